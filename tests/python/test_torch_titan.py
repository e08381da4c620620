# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.hooks.torchtitan` in torchtitan from PyPI, its debug model trained on the CPU.

`PERSEUS_TITAN_PYTHON`, else build/titan-venv (scripts/frameworks-venv makes it), is a Python with
torchtitan 0.2 or 0.3; tried with 0.2.2 on PyTorch 2.13, and by hand with 0.3.0 on 2.14.1.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from drilling import JOB, Drill
from trainers_testing import HERE, ROOT, environment, needs_programs, planned

sys.path.insert(0, str(ROOT / "python"))

import perseus
from perseus.hooks import torchtitan

PYTHON = os.environ.get("PERSEUS_TITAN_PYTHON") or str(ROOT / "build/titan-venv/bin/python")

STEPS = 4
PLAIN, OURS = "torchtitan.train", "perseus.hooks.torchtitan"


@pytest.fixture(scope="module")
def version() -> str:
    """The one of torchtitan."""
    if not os.path.exists(PYTHON):
        pytest.skip("no torchtitan: run scripts/frameworks-venv")
    code = "import importlib.metadata as m; print(m.version('torchtitan'))"
    return subprocess.run(
        [PYTHON, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer whose tokens are letters, and some text: torchtitan's own lie in its tests."""
    folder = tmp_path_factory.mktemp("assets")
    ends = ["<|begin_of_text|>", "<|end_of_text|>"]
    letters = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", *ends]
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "model": {
            "type": "BPE",
            "vocab": {letter: number for number, letter in enumerate(letters)},
            "merges": [],
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    tokens = dict(zip(("bos_token", "eos_token"), ends, strict=True))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    words = random.Random(1)
    (folder / "text").mkdir()
    with (folder / "text" / "data.json").open("w") as file:
        for _ in range(300):
            text = " ".join(words.choice(["clock", "power", "stage", "rank"]) for _ in range(60))
            file.write(json.dumps({"text": text}) + "\n")
    return folder


def flags(version: str, assets: Path, folder: Path) -> list[str]:
    """Return the arguments of torchtitan that its versions call differently."""
    if version.startswith("0.2"):
        return [
            *("--model.name", "llama3", "--model.flavor", "debugmodel"),
            *("--model.hf_assets_path", str(assets), "--job.dump_folder", str(folder)),
            *("--training.dataset_path", str(assets / "text")),
            *("--validation.enable", "--validation.freq", "2", "--validation.steps", "1"),
            *("--validation.dataset", "c4_test", "--validation.dataset_path", str(assets / "text")),
            *("--validation.local_batch_size", "4", "--validation.seq_len", "32"),
        ]
    return [
        *("--module", "titan_worker", "--config=debugmodel", "--training.disable_cuda_graphs"),
        *("--hf_assets_path", str(assets), "--dump_folder", str(folder)),
        *("--dataloader.dataset_path", str(assets / "text")),
        *("--validator.enable", "--validator.freq", "2", "--validator.steps", "1"),
        *("--validator.dataloader.dataset", "c4_test"),
        *("--validator.dataloader.dataset_path", str(assets / "text")),
    ]


def train(folder: Path, module: str, ranks: int, arguments: list[str], **named: str) -> list[Any]:
    """Train; returns what each rank says."""
    folder.mkdir(exist_ok=True)
    command = [PYTHON, "-B", "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), str(HERE / "titan_worker.py"), str(folder), module]
    command += ["--training.local_batch_size", "4", "--training.seq_len", "32", "--debug.seed", "1"]
    command += ["--metrics.log_freq", "1", "--metrics.enable_tensorboard", *arguments]
    done = subprocess.run(
        command,
        env=environment(HF_HUB_OFFLINE="1", **named),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(ranks)]


PIPELINE = [
    *("--parallelism.pipeline_parallel_degree", "2"),
    *("--parallelism.pipeline_parallel_microbatch_size", "1"),
    "--parallelism.pipeline_parallel_schedule",
]
KINDS = {
    # Accumulates over two calls of the schedule.
    "pipeline": (2, [*PIPELINE, "1F1B", "--training.global_batch_size", "8"]),
    "interleaved with FSDP": (4, [*PIPELINE, "Interleaved1F1B"]),
    "FSDP": (2, ["--training.global_batch_size", "16"]),
}
MICROBATCHES = {"pipeline": 4, "interleaved with FSDP": 4, "FSDP": 2}
CALLS = {"pipeline": 2, "interleaved with FSDP": 1, "FSDP": 1}  # In a step of the optimizer.


@pytest.fixture(scope="module", params=list(KINDS))
def both(
    request: pytest.FixtureRequest, version: str, assets: Path, tmp_path_factory: Any
) -> tuple[str, list[Any], list[Any]]:
    """The same training without Perseus and with it."""
    ranks, arguments = KINDS[request.param]
    done = []
    for module in (PLAIN, OURS):
        folder = tmp_path_factory.mktemp("train")
        arguments = [*arguments, "--training.steps", str(STEPS), *flags(version, assets, folder)]
        arguments += ["--checkpoint.enable", "--checkpoint.interval", "2"]
        done.append(train(folder, module, ranks, arguments, RECORD="1"))
    return request.param, done[0], done[1]


def test_losses_are_the_same_bit_for_bit(both: Any) -> None:
    """With evaluation and checkpoints; nothing is told without Perseus."""
    kind, plain, ours = both
    (expected,) = [one["logged"] for one in plain if one["logged"]]
    (logged,) = [one["logged"] for one in ours if one["logged"]]
    for name in ("loss_metrics/global_avg_loss", "grad_norm"):
        assert len(logged[name]) == STEPS
        assert logged[name] == expected[name]
    assert logged["validation_metrics/loss"]
    assert logged["validation_metrics/loss"] == expected["validation_metrics/loss"]
    assert not any(one["begins"] for one in plain), kind


def test_hooks_see_what_is_planned(both: Any) -> None:
    """In order, in each iteration, and nothing of the evaluation."""
    kind, _, ours = both
    iterations = STEPS * CALLS[kind]
    first = ours[0]
    orders = planned(first["order"], first["stages"], MICROBATCHES[kind])
    for one in ours:
        assert one["order"] == first["order"]
        assert one["microbatches"] == MICROBATCHES[kind]
        order = orders[one["place"]["pp_rank"]]
        assert one["begins"] == one["ends"] == order * iterations
        assert one["steps"] == ["step_begin", "step_end"] * iterations


def test_each_rank_knows_its_place(both: Any) -> None:
    """The pipeline is the outermost dimension."""
    kind, _, ours = both
    pp, dp = {"pipeline": (2, 1), "interleaved with FSDP": (2, 2), "FSDP": (1, 2)}[kind]
    for rank, one in enumerate(ours):
        place = {"rank": rank, "pp_rank": rank // dp, "pp": pp, "dp_rank": rank % dp, "dp": dp}
        assert one["place"] == {**place, "tp_rank": 0, "tp": 1}


def trainer(rank: int, monkeypatch: pytest.MonkeyPatch, torchft: Any = None) -> Any:
    """Return what a rank of torchtitan says of itself: pp 2, batch 3, cp 2, tp 2, in this order."""
    distributed = types.SimpleNamespace(get_rank=lambda: rank)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(distributed=distributed))
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    sizes = {"pp": 2, "batch": 3, "cp": 2, "tp": 2}
    at, left = {}, rank
    for name in reversed(sizes):
        left, at[name] = divmod(left, sizes[name])

    def mesh(name: str) -> Any:
        return types.SimpleNamespace(get_local_rank=lambda: at[name])

    dims = types.SimpleNamespace(
        dp_replicate=1, dp_shard=3, cp=2, tp=2, world_size=24, get_optional_mesh=mesh
    )
    return types.SimpleNamespace(parallel_dims=dims, ft_manager=torchft)


def test_ranks_that_compute_together_and_copies_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Context and tensor parallel ranks compute together."""
    places = [torchtitan._place(trainer(rank, monkeypatch), {}) for rank in range(24)]
    assert [place["rank"] for place in places] == list(range(24))
    assert {(place["dp"], place["tp"]) for place in places} == {(3, 4)}
    assert [place["dp_rank"] for place in places] == [rank // 4 % 3 for rank in range(24)]
    assert [place["tp_rank"] for place in places] == [rank % 4 for rank in range(24)]


def test_replica_groups_of_torchft_are_pipelines_of_one_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With numbers that no other group has; without a name for the run they are refused."""
    torchft = types.SimpleNamespace(
        enabled=True, replica_id=1, get_dp_info=lambda dp, dp_rank: (dp * 2, dp * 1 + dp_rank)
    )
    monkeypatch.setenv("PERSEUS_RUN", "run")
    place = torchtitan._place(trainer(4, monkeypatch, torchft), {})
    assert place == {"rank": 28, "dp": 6, "dp_rank": 4, "tp": 4, "tp_rank": 0}
    monkeypatch.delenv("PERSEUS_RUN")
    with pytest.warns(RuntimeWarning, match="PERSEUS_RUN"):
        attached = perseus.attach_torchtitan(trainer(4, monkeypatch, torchft))
    assert not attached
    assert "PERSEUS_RUN" in attached.reason


def test_cuda_graphs_are_refused() -> None:
    """They are torchtitan 0.3's default without a pipeline; 0.2 has none."""
    training = types.SimpleNamespace(disable_cuda_graphs=False)
    one = types.SimpleNamespace(
        device=types.SimpleNamespace(type="cuda"), config=types.SimpleNamespace(training=training)
    )
    with pytest.raises(perseus.AttachError, match="disable_cuda_graphs"):
        torchtitan._refuse_graphs(one)
    training.disable_cuda_graphs = True
    torchtitan._refuse_graphs(one)
    del one.config
    torchtitan._refuse_graphs(one)


@pytest.mark.parametrize("is_whole", [False, True])
def test_torchtitan_finds_the_config_through_this_module(is_whole: bool) -> None:
    """And says itself what is missing."""
    config = ["--config=small"] if is_whole else ["--config", "small"]
    given = torchtitan._with_perseus(["--a", "1", "--module", "my.models", *config, "--b"])
    expected = "--module perseus.hooks.torchtitan --config my.models.small --a 1 --b"
    assert given == expected.split()
    assert torchtitan._with_perseus(config) == config


@needs_programs
def test_a_job_in_torchtitan_follows_its_plan(version: str, assets: Path, tmp_path: Path) -> None:
    """Its logger has the figures; at the end the clocks go back."""
    drill = Drill(tmp_path)
    arguments = [*PIPELINE, "1F1B", "--training.steps", "12"]
    arguments += flags(version, assets, tmp_path / "train")
    try:
        drill.serve()
        job = drill.make_job({**JOB, "schedule": "1f1b"})
        ranks = train(
            tmp_path / "train",
            OURS,
            2,
            arguments,
            PERSEUS_SERVER=drill.url,
            PERSEUS_JOB_ID=job,
            PERSEUS_DEVICE=f"simulated:{tmp_path}/gpus",
        )
        (logged,) = [one["logged"] for one in ranks if one["logged"]]
        assert len(logged["perseus/following"]) == 12
        assert logged["perseus/following"][-1] == 1
        assert logged["perseus/plan_version"][-1] >= 1
        assert logged["perseus/clock_calls"][-1] > 0
        assert [drill.gpus.read(gpu).locked_mhz for gpu in (0, 1)] == [0, 0]
    finally:
        drill.close()
