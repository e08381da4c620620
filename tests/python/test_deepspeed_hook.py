# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.attach_deepspeed` on the pipeline engine of DeepSpeed from PyPI."""

from __future__ import annotations

from typing import Any

import pytest
from frameworks_testing import needs_frameworks, planned, scenario

WORKER = "deepspeed_worker.py"
pytestmark = needs_frameworks

CASES = ["1 3 0", "2 1 0", "2 4 0", "2 3 1", "4 6 0"]  # Stages, microbatches, recomputation.


@pytest.fixture(scope="module")
def orders() -> Any:
    """What the hook sees: DeepSpeed is imported once."""
    return dict(zip(CASES, scenario(WORKER, "orders", *CASES), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_the_hook_sees_exactly_what_deepspeed_runs(orders: Any, case: str) -> None:
    """In the order that is planned; losses and weights are those without, bit for bit."""
    stages, count, _ = map(int, case.split())
    rows = planned({"schedule": "1f1b"}, stages, count)
    for rank, one in enumerate(orders[case]):
        assert one["begins"] == one["again"] == one["ends"] == rows[rank]
        assert one["steps"] == ["step_begin", "step_end"] * 2
        assert one["hooked"] == one["plain"]
        assert one["place"] == [rank, rank, stages, 0, 1, 1]


def test_the_layout_is_deepspeeds() -> None:
    """Pipelines and stages of the engine's grid."""
    places = scenario(WORKER, "layout", "2", "2")
    assert places == [[r, r // 2, r % 2, 0, 2, 2] for r in range(4)]


def test_what_happens_in_a_training_does_not_confuse_it() -> None:
    """Evaluation, exceptions, other numbers of microbatches, two engines, detaching."""
    done = scenario(WORKER, "life")
    assert done["other"] == []
    assert done["begins"] == ["0F0", "0B0", "0F1", "0B1", "0F2", "0B2", "0F3", "0B3"]
    assert "gradients enabled" in done["no_grad"]
    assert done["evaluation"] == []
    assert done["raised"]
    assert done["broken"] == ["step_begin", "step_abandon"]
    assert done["changed"] == ["step_begin", "step_abandon"] * 2
    assert len(done["said"]) == 1
    assert "2 microbatches and the plan is for 4" in done["said"][0]
    assert done["tokens"] == ["step_end", 2048]
    # The second within one of the trainer's own shows that each is an iteration.
    assert done["accumulated"] == ["step_begin", "step_abandon", "step_begin", "step_end"]
    assert done["detached"] == []
    assert done["left"] == []
    assert done["again"]


def test_attaching_fails_softly() -> None:
    """It says why, and nothing is changed."""
    said = scenario(WORKER, "failures")
    for label, words in {
        "no engine": "no pipeline engine",
        "profile": "/nowhere.csv",
        "unknown": "WeightPass",
        "twice": "already",
    }.items():
        assert not said[label]["on"]
        assert words in said[label]["reason"]
        assert said[label]["warnings"] == 1
    assert said["left"] == []
    # Of the second: attached once.
    assert said["once"] == 4
