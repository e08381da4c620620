# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.attach_ddp`: DDP, FSDP and plain models of the PyTorch that is installed.

`PERSEUS_TORCH_PYTHON`, else build/zeus-venv (scripts/zeus-venv makes it), is a Python with PyTorch.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest
from drilling import CLOCKS, HERE, NEEDED, ROOT, TORCH, Drill, following

pytestmark = pytest.mark.skipif(
    not os.path.exists(TORCH), reason="no PyTorch: run scripts/zeus-venv"
)

# So slow that forward and backward get one clock: a change of clock takes 3 ms, and may be late.
SLOW = 1.4
WAITING_WATTS = 83.64
STEPS = 40  # Whose joules are compared.


def scenario(name: str) -> Any:
    """Run a scenario of ddp_worker.py and return what it printed."""
    done = subprocess.run(
        [TORCH, "-B", str(HERE / "ddp_worker.py"), name],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def kinds() -> Any:
    """What the hooks see of each kind of model: PyTorch is imported once."""
    return scenario("kinds")


@pytest.mark.parametrize("case", ["1 True", "2 True", "2 False"])
@pytest.mark.parametrize("kind", ["ddp", "fsdp", "plain"])
def test_hooks_see_each_forward_and_backward(kinds: Any, kind: str, case: str) -> None:
    """In four iterations; losses and weights are the same, bit for bit."""
    accumulate, with_optimizer = int(case[0]), case.endswith("True")
    step = [f"0{k}{m}" for m in range(accumulate) for k in "FB"]
    events = ["step_begin", *["instruction_begin", "instruction_end"] * len(step)]
    # Without an optimizer an iteration ends with the next one's begin: the last one does not.
    ended = 4 if with_optimizer else 3
    for one in kinds[f"{kind} {case}"]:
        assert one["begins"] == one["ends"] == step * 4
        assert one["events"][: len(events) + 1] == [*events, "step_end"]
        assert one["tokens"] == [7] * ended
        assert one["same"]
        assert one["detached"] == []
        assert one["hooks"] == (1 if kind == "fsdp" else 0) * 2


@pytest.fixture(scope="module")
def life() -> Any:
    """What else happens in a training."""
    return scenario("life")


def test_what_happens_in_a_training_does_not_confuse_it(life: Any) -> None:
    """Evaluation, copies, recomputation, forwards without backward, unused parameters, scalers."""
    used, unused = ["step_begin", "step_end"], ["step_begin", "step_abandon"]
    assert life["recomputed"] == ["0F0", "0B0"] * 3
    assert life["evaluation"] == life["copied"] == []
    assert life["after"] == used
    steps, error = life["two forwards"]
    assert steps == unused
    assert "no backward" in error
    assert life["recovered"] == [used, ""]
    assert life["unused"] == used * 4
    assert life["skipped"] == [unused + used, ""]
    assert "2 microbatches" in life["uneven"]
    assert life["deep"] == ["0F0", "0B0"] * 2
    assert not life["saved"], "a saved model cannot be read where Perseus is not installed"


def test_under_ddp_a_backward_ends_before_the_wait_for_other_ranks() -> None:
    """Rank 1 ends its backward only when rank 0 has told of its own end, so else none would."""
    assert scenario("waits") == [3, 3]


def test_without_an_optimizer_evaluation_is_no_part_of_an_iteration(life: Any) -> None:
    """What was trained before it is an iteration, whatever comes after."""
    assert life["evaluation ends"] == ["step_end"]


@pytest.mark.parametrize("compiled", ["in place", "whole", "attached"])
def test_a_model_that_is_compiled_is_seen_or_said_not_to_be(life: Any, compiled: str) -> None:
    """What the hooks call cannot be compiled: with fullgraph=True, PyTorch would raise."""
    same, begins, error = life[f"compiled {compiled}"]
    assert same
    assert bool(begins) == (compiled == "attached")
    assert ("torch.compile" in error) == (compiled != "attached")


def test_what_cannot_be_attached_says_why_once(life: Any) -> None:
    """And training goes on."""
    assert "object is no torch.nn.Module" in life["no model"]
    assert "object is no torch.optim.Optimizer" in life["no optimizer"]
    assert "no parameter" in life["frozen"]
    assert life["alone"] == ""
    not_attached = [said for said in life["said"] if "not attached" in said]
    assert len(not_attached) == len(set(not_attached)) == 3


def test_nothing_of_ours_raises_into_training() -> None:
    """Whatever fails in a job."""
    failing = scenario("failing")
    assert len(failing) == 6
    assert all(failing.values()), failing


def table(slow: float = 1.0) -> dict[int, tuple[float, float]]:
    """Return seconds and joules of an iteration's computations at each clock."""
    rows = {}
    for mhz in CLOCKS:
        seconds = 0.045 * (0.3 + 0.7 * CLOCKS[0] / mhz) * slow
        rows[mhz] = seconds, seconds * (85 + 295 * (mhz / CLOCKS[0]) ** 2.2)
    return rows


def profile() -> str:
    """Return what the computations cost: a third of an iteration is the forward."""
    lines = ["stage,instruction,frequency,time,energy"]
    for mhz, (seconds, joules) in table().items():
        for kind, share in (("forward", 1 / 3), ("backward", 2 / 3)):
            lines.append(f"0,{kind},{mhz},{seconds * share},{joules * share}")
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(NEEDED[1].args[0], reason=NEEDED[1].kwargs["reason"])
@pytest.mark.parametrize(("groups", "other"), [(1, 0), (2, 2)])
def test_the_others_slow_down_for_a_straggler(tmp_path: Path, groups: int, other: int) -> None:
    """Unaided: found by its times, answered by clocks, at the joules that the tables say.

    The straggler is rank 1; `other` may be of a group of replicas that was started for itself.
    """
    drill = Drill(tmp_path, gpus=2 * groups)
    (tmp_path / "profile.csv").write_text(profile())
    try:
        drill.serve()
        profile_csv = str(tmp_path / "profile.csv")
        drill.train(("ddp_worker.py", "straggle"), slow=SLOW, groups=groups, profile=profile_csv)
        drill.until_both(following, "nobody follows")
        drill.perseus_job("detection", "--mode", "act")
        drill.until(lambda: bool(drill.job()["stragglers"]), "no straggler is found")
        first = drill.job()["plan"]["version"]
        drill.until(lambda: drill.lines(other)[-1]["plan_version"] >= first, "it is not answered")
        begin = len(drill.lines(other)) + 5
        drill.until(lambda: len(drill.lines(other)) > begin + STEPS, "training does not go on")
        (tmp_path / "stop").touch()
        assert drill.trainer is not None
        assert drill.trainer.wait(120) == 0, (tmp_path / "trainer.log").read_text()[-3000:]
        rows = drill.lines(other)[begin : begin + STEPS + 1]
        # The median: on a busy machine a few iterations begin late.
        seconds, joules = (
            statistics.median(b[key] - a[key] for a, b in itertools.pairwise(rows))
            for key in ("end", "joules")
        )
    finally:
        drill.close()
    slowest = table(SLOW)[CLOCKS[0]][0]
    assert seconds == pytest.approx(slowest, rel=0.005)
    # The forward is a third, and may have another clock than the backward.
    choices = [
        (f[0] / 3 + b[0] * 2 / 3, f[1] / 3 + b[1] * 2 / 3)
        for f, b in itertools.product(table().values(), repeat=2)
    ]
    least = min(_with_wait(*row, slowest) for row in choices if row[0] <= slowest)
    unanswered = _with_wait(*table()[CLOCKS[0]], slowest)
    # The server's estimate of how slow the straggler is may be a few percent low.
    assert least * 0.995 < joules < least + 0.2 * (unanswered - least), (least, unanswered)


def _with_wait(seconds: float, joules: float, until: float) -> float:
    return joules + WAITING_WATTS * (until - seconds)
