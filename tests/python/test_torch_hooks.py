# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.attach` on the schedules of the PyTorch that is installed.

`PERSEUS_TORCH_PYTHON`, else build/zeus-venv (scripts/zeus-venv makes it), is a Python with PyTorch.
"""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TORCH = os.environ.get("PERSEUS_TORCH_PYTHON") or str(ROOT / "build/zeus-venv/bin/python")
LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.environ.get("PERSEUS_BINARY", "")

pytestmark = pytest.mark.skipif(
    not os.path.exists(TORCH), reason="no PyTorch: run scripts/zeus-venv"
)

# Perseus' name, virtual stages and microbatches, for 2 ranks and for 4.
SCHEDULES = {
    "ScheduleGPipe": ("gpipe", 1, (3, 6)),
    "Schedule1F1B": ("1f1b", 1, (4, 7)),
    "ScheduleLoopedBFS": ("looped-bfs", 2, (3, 4)),
    "ScheduleInterleaved1F1B": ("interleaved-1f1b", 2, (4, 8)),
    "ScheduleInterleavedZeroBubble": ("interleaved-zero-bubble", 2, (4, 8)),
    "ScheduleZBVZeroBubble": ("zbv-zero-bubble", 2, (4, 8)),
    "ScheduleDualPipeV": ("dualpipev", 2, (5, 9)),
}


def scenario(name: str, *arguments: str) -> Any:
    """Run a scenario of torch_worker.py and return what it printed."""
    done = subprocess.run(
        [TORCH, "-B", str(HERE / "torch_worker.py"), name, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def flat(order: list[str]) -> list[str]:
    """Return an order with the halves of fused computations one after the other."""
    return [
        half
        for action in order
        for half in (action[1 : action.index(")")].split(";") if action[0] == "(" else [action])
    ]


def planned(name: str, stages: int, virtual: int, microbatches: int) -> list[list[str]]:
    """Return the order that Perseus plans for, a row for each rank."""
    command = [BINARY, "schedule", name, "--stages", str(stages), "--format", "csv"]
    command += ["--virtual-stages", str(virtual), "--microbatches", str(microbatches)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return [[a for a in row if a] for row in csv.reader(io.StringIO(done.stdout))]


def test_every_schedule_class_is_known() -> None:
    """Of the PyTorch that is installed: a new one must be added to the hooks and to these tests."""
    assert scenario("classes") == sorted(SCHEDULES)


CASES = {
    (name, world): f"{name} {world} {counts[world // 4]} {virtual}"
    for name, (_, virtual, counts) in SCHEDULES.items()
    for world in (2, 4)
}


@pytest.fixture(scope="module")
def seen_orders() -> Any:
    """What the hooks see of all of them: PyTorch is imported once."""
    return scenario("orders", *CASES.values())


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_hooks_see_exactly_the_actions_of_the_schedule(
    seen_orders: Any, name: str, world: int
) -> None:
    """In order, each iteration; and the losses are those without hooks, bit for bit."""
    ours, virtual, counts = SCHEDULES[name]
    seen = seen_orders[CASES[name, world]]
    assert len(seen) == world
    rows = planned(ours, world * virtual, virtual, counts[world // 4]) if BINARY else None
    for rank, one in enumerate(seen):
        assert one["begins"] == one["again"] == one["ends"]
        assert one["steps"] == ["step_begin", "step_end"] * 2
        assert one["losses"] == one["plain"]
        if rows is not None:
            assert one["begins"] == flat(rows[rank])
        # PyTorch 2.13 says 1F1 to 1Fm of the last rank of 1F1B, and runs 1F0 to 1F(m-1).
        if name != "Schedule1F1B" or rank < world - 1:
            assert one["begins"] == flat(one["order"])
            assert [a for a in one["csv"].splitlines()[rank].split(",") if a] == one["order"]
    assert any(one["losses"][0] for one in seen)


@pytest.fixture(scope="module")
def life() -> Any:
    """What happens in a training."""
    return scenario("life")


def test_an_order_from_a_file_is_followed_and_told_as_pytorch_writes_it() -> None:
    """Of a class that Perseus does not know."""
    rows = planned("interleaved-1f1b", 4, 2, 4) if BINARY else None
    if rows is None:
        pytest.skip("PERSEUS_BINARY names no binary")
    text = "\n".join(",".join(row) for row in rows) + "\n"
    seen = scenario("from_csv", text)
    for rank, one in enumerate(seen):
        assert one["on"]
        assert one["begins"] == rows[rank]
        assert one["order"] == one["lowered"] == {"schedule_csv": text}
        assert one["given"] == {"schedule_csv": "another\n"}


def test_functions_of_ones_own_are_left_alone() -> None:
    """What they compute cannot be seen: it is said once, and training goes on without Perseus."""
    done = scenario("custom")
    on, reason, losses, log = done["refused"]
    assert not on
    assert "BACKWARD_WEIGHT" in reason
    assert losses == done["plain"]
    assert log == []
    assert done["harmless"] == ["0F0", "0F1", "0B0", "0B1"]
    assert done["losses"] == [done["plain"]] * 2
    assert done["told"] == 1
    assert done["closed"] == 1
    assert "BACKWARD_WEIGHT" in done["last_error"]
    assert len(done["said"]) == 2


def test_a_run_that_is_started_again_has_its_key(tmp_path: Path) -> None:
    """Where torchrun takes a random id in place of the one that it was given."""
    script = tmp_path / "rank.py"
    script.write_text(
        "import os\nfrom perseus.hooks import layout\n"
        "print(os.environ['TORCHELASTIC_RUN_ID'], layout.run_key())\n"
    )

    def start(*options: str) -> list[str]:
        done = subprocess.run(
            [TORCH, "-B", "-m", "torch.distributed.run", *options, str(script)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )
        return done.stdout.split()

    (one, key), (other, again) = start("--rdzv-id", "night"), start("--rdzv-id", "night")
    assert key == again == f"torchrun-night@{socket.gethostname()}"
    assert one != other  # Else a plain id would do.


def test_what_happens_in_a_training_does_not_confuse_it(life: Any) -> None:
    """Evaluation, exceptions, other numbers of microbatches, recomputation, accumulation."""
    done = life
    assert done["begins"] == ["0F0", "0F1", "0F2", "0F3", "0B0", "0B1", "0B2", "0B3"]
    assert done["recomputed"] >= 8  # It did run: four forwards, and each again.
    assert done["evaluation"] == []
    assert "gradients to be enabled" in done["no_grad"]
    assert done["raised"]
    assert done["broken"][0] == "step_begin"
    assert done["broken"][-1] == "step_abandon"
    assert 2 <= done["broken"].count("instruction_begin") <= 3  # PyTorch may try the loss first.
    assert done["after"] == ["step_begin", "step_end"]
    assert done["changed"] == ["step_begin", "step_abandon"] * 2
    assert len(done["said"]) == 1
    assert "2 microbatches and the plan is for 4" in done["said"][0]
    # The second step within one of the trainer's own shows that each is an iteration.
    assert done["accumulated"][:2] == ["step_begin", "step_abandon"]
    assert done["accumulated"][2:] == ["step_begin", "step_end"] * 3
    assert done["accumulated_count"] == 32


def test_detaching_restores_the_methods(life: Any) -> None:
    """Twice as well as once."""
    done = life
    assert done["detached"] == []
    assert done["left"] == []
    assert done["same"]


def test_wrappers_above_ours_stay_when_ours_go() -> None:
    """What another put over ours calls the original then."""
    done = scenario("over")
    assert done == {"calls": [0, 1, 0, 1], "after": [], "kept": True}


def test_stages_are_untouched_while_nobody_asks() -> None:
    """Waiting, profiling, following, a straggler without a plan, connecting."""
    done = scenario("waiting")
    assert done["counts"] == [0, 0, 4, 4, 0]
    assert done["wrapped"] == [False, False, True, True, False]
    assert not done["left"]


def test_attaching_fails_softly() -> None:
    """One warning says why, nothing is wrapped, losses are the same."""
    said = scenario("failures")
    for label, words in {
        "no schedule": "Thing is no schedule of torch.distributed.pipelining",
        "mesh": "dimension 'spam'",
        "profile": "/nowhere/profile.csv",
    }.items():
        one = said[label]
        assert not one["on"]
        assert words in one["reason"]
        assert words in one["report"]
        assert len(one["warnings"]) == 1
        assert words in one["warnings"][0]
        assert one["wrapped"] == []
        assert one["same"]
    assert len(said["option"]["warnings"]) == 1
    assert "spam" in said["option"]["report"]
    assert said["option"]["same"]
    assert "backward_one_chunk" in said["strange"]
    assert "no loss function" in said["no loss"]
    assert "already" in said["twice"]
    assert said["once"] == 4
    assert said["again"]


def test_each_rank_gets_its_part_of_the_plans_for_lengths_that_are_told_ahead() -> None:
    """By the iteration that trains with them."""
    for rank, told in enumerate(scenario("lengths")):
        assert told == [
            [1, [[rank, [2.0, 3.0]]]],
            [2, [[rank, [3.0, 4.0]]]],
        ]
