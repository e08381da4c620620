# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a rank stands in its job, and what a run is known by: without PyTorch."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from perseus.hooks import layout  # noqa: E402


class Mesh:
    """What is needed of a `DeviceMesh`."""

    def __init__(self, sizes: dict[str, int], coordinate: list[int]) -> None:
        self.mesh_dim_names = tuple(sizes)
        self._sizes = list(sizes.values())
        self._coordinate = coordinate

    def size(self, dimension: int) -> int:
        """Of one dimension."""
        return self._sizes[dimension]

    def get_coordinate(self) -> list[int]:
        """Of this rank."""
        return self._coordinate


def test_the_place_of_a_rank_from_its_mesh() -> None:
    """Copies are data parallel, those that compute together tensor parallel."""
    mesh = Mesh({"pp": 4, "dp_replicate": 2, "dp_shard": 3, "cp": 2, "tp": 8}, [3, 1, 2, 1, 5])
    assert layout.layout_of_mesh(mesh, 77) == layout.Layout(77, 3, 4, 5, 6, 13, 16)
    with pytest.raises(layout.LayoutError, match="'spam'"):
        layout.layout_of_mesh(Mesh({"pp": 2, "spam": 2}, [0, 0]), 0)


@pytest.mark.parametrize("pipelines_first", [True, False])
@pytest.mark.parametrize(("pp", "dp", "tp"), [(4, 1, 1), (2, 3, 1), (4, 2, 2), (1, 4, 1)])
def test_the_place_of_a_rank_from_its_pipeline(
    pipelines_first: bool, pp: int, dp: int, tp: int
) -> None:
    """As Megatron (pipelines are strides) and others (pipelines are blocks) lay ranks out."""

    def rank_of(p: int, d: int, t: int) -> int:
        return (p * dp + d) * tp + t if pipelines_first else (d * pp + p) * tp + t

    for p in range(pp):
        for d in range(dp):
            for t in range(tp):
                ranks = [rank_of(q, d, t) for q in range(pp)]
                rank = rank_of(p, d, t)
                found = layout.layout_of_group(ranks, rank, pp * dp * tp, tp)
                assert found == layout.Layout(rank, p, pp, d, dp, t, tp)


def test_a_pipeline_that_lies_otherwise_is_no_layout() -> None:
    """The message says what to give."""
    with pytest.raises(layout.LayoutError, match="give mesh="):
        layout.layout_of_group([0, 1, 3, 2], 0, 8)


def test_all_ranks_make_the_same_job_and_another_shape_another() -> None:
    """By its client key."""

    def key(rank: int, microbatches: int) -> object:
        place = layout.Layout(rank=rank, pp_rank=rank % 2, pp=2, dp_rank=rank // 2, dp=2)
        return layout.job_body(
            place,
            schedule={"schedule": "1f1b", "virtual_stages": 1},
            stages=2,
            microbatches=microbatches,
            run="r",
        )["client_key"]

    assert key(0, 8) == key(3, 8)
    assert key(0, 8) != key(0, 4)


def test_what_a_run_is_known_by() -> None:
    """The schedulers' ids; torchrun's "none" is none."""
    assert layout.run_key({"PERSEUS_RUN": "mine", "SLURM_JOB_ID": "7"}) == "mine"
    assert layout.run_key({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3"}) == "slurm-7.3"
    assert layout.run_key({"TORCHELASTIC_RUN_ID": "abc"}) == "torchrun-abc"
    assert layout.run_key({"TORCHELASTIC_RUN_ID": "none"}) is None
    random = {"TORCHELASTIC_RUN_ID": "5e1f"}
    ours = f"torchrun-night@{socket.gethostname()}"
    assert layout.run_key({**random, "PET_RDZV_ID": "night"}) == ours


def test_a_job_has_the_labels_of_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks have the same; the key does not change with them."""
    assert layout.labels_of_run({"PERSEUS_LABELS": "team=vision, a/b=x=y,"}) == {
        "team": "vision",
        "a/b": "x=y",
    }
    assert layout.labels_of_run({}) == {}

    def body(labels: dict[str, str] | None = None) -> dict[str, object]:
        order = {"schedule": "1f1b"}
        return layout.job_body(
            layout.Layout(), schedule=order, stages=1, microbatches=2, run="mine", labels=labels
        )

    monkeypatch.delenv("PERSEUS_LABELS", raising=False)
    bare = body()
    assert "labels" not in bare
    monkeypatch.setenv("PERSEUS_LABELS", "team=vision")
    assert body() == bare | {"labels": {"team": "vision"}}
    # The trainer's code comes before its environment.
    both = {"team": "speech", "project": "x"}
    assert body({"team": "speech", "project": "x"}) == bare | {"labels": both}
    monkeypatch.setenv("PERSEUS_LABELS", "project=x")
    assert body({"team": "speech"}) == bare | {"labels": both}


@pytest.mark.parametrize(("text", "word"), [("team", "'team'"), ("a=1,a=2", "'a' is there twice")])
def test_labels_that_cannot_be_read_are_named(text: str, word: str) -> None:
    """With the variable, and how to write it."""
    with pytest.raises(ValueError, match="PERSEUS_LABELS") as refused:
        layout.labels_of_run({"PERSEUS_LABELS": text})
    assert word in str(refused.value)
    assert "team=vision" in str(refused.value)


def test_labels_of_another_type_are_named() -> None:
    """A text is what `PERSEUS_LABELS` takes; the call takes a dict."""
    with pytest.raises(TypeError, match=r"labels='team=vision'"):
        layout.job_body(
            layout.Layout(),
            schedule={"schedule": "1f1b"},
            stages=1,
            microbatches=2,
            run="mine",
            labels="team=vision",  # type: ignore[arg-type]
        )


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("python -m torch.distributed.run --rdzv-id night train.py", "night"),
        ("/usr/bin/python3 /usr/bin/torchrun --rdzv_id=night --nproc-per-node 2 train.py", "night"),
        ("torchrun --nproc-per-node 2 train.py", ""),
        ("torchrun --rdzv-id none train.py", ""),
    ],
)
def test_the_id_that_torchrun_was_given(command: str, key: str) -> None:
    """Whichever way it is spelled."""
    assert layout._rdzv_id(command.split()) == key


def test_the_torchrun_of_a_rank_is_found_through_a_shell(tmp_path: Path) -> None:
    """It is no parent then. What only has the word in its arguments is none."""
    torchrun = tmp_path / "torchrun"
    torchrun.write_text("import subprocess, sys\nsubprocess.run(sys.argv[3:], check=True)\n")
    rank = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\n"
    rank += "from perseus.hooks import layout; print(layout.run_key())"
    (tmp_path / "rank.py").write_text(rank)
    started = [sys.executable, "-B", str(tmp_path / "rank.py")]

    def key_of(*launcher: str) -> str:
        shell = ["sh", "-c", f"{shlex.join(started)}; true"]
        done = subprocess.run(
            [*launcher, *shell],
            env={"TORCHELASTIC_RUN_ID": "5e1f"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    found = key_of(sys.executable, str(torchrun), "--rdzv-id", "night")
    assert found == f"torchrun-night@{socket.gethostname()}"
    assert key_of("env") == "torchrun-5e1f"


def test_a_job_without_a_name_has_that_of_its_run() -> None:
    """Where people look for it."""
    place = layout.Layout(pp=2)
    options: dict[str, Any] = {"schedule": {}, "stages": 2, "microbatches": 4, "run": "a1"}
    assert layout.job_body(place, **options)["name"] == "a1"
    assert layout.job_body(place, name="mine", **options)["name"] == "mine"
