# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.attach_megatron` on the schedules of Megatron-Core from PyPI."""

from __future__ import annotations

from typing import Any

import pytest
from frameworks_testing import needs, needs_frameworks, planned, scenario

WORKER = "megatron_worker.py"
pytestmark = needs_frameworks

# Pipeline ranks, chunks, microbatches, microbatches of a group (0: Megatron's default).
CASES = ["1 1 3 0", "2 1 4 0", "4 1 2 0", "2 2 4 0", "2 2 5 3", "2 3 6 4", "4 2 8 0"]


# What each rank of two runs with four microbatches.
ITERATIONS = [
    ["0F0", "0F1", "0B0", "0F2", "0B1", "0F3", "0B2", "0B3"],
    ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2", "1F3", "1B3"],
]


@pytest.fixture(scope="module")
def orders() -> Any:
    """What the hook sees: PyTorch is imported once."""
    return dict(zip(CASES, scenario(WORKER, "orders", *CASES), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_the_hook_sees_exactly_what_megatron_runs(orders: Any, case: str) -> None:
    """In the order that is planned; losses and gradients are those without, bit for bit."""
    pp, chunks, count, _ = map(int, case.split())
    rows = planned(orders[case][0]["schedule"], pp * chunks, count)
    for rank, one in enumerate(orders[case]):
        assert one["on"]
        assert one["begins"] == one["again"] == one["ends"] == rows[rank]
        assert one["steps"] == ["step_begin", "step_end"] * 2
        assert one["hooked"] == one["plain"]
        assert one["plain"][1] > 0
    assert len(orders[case][-1]["plain"][0]) == count


@pytest.mark.parametrize(("tp", "cp", "pp", "dp"), [(2, 2, 2, 1), (2, 1, 2, 2), (1, 2, 1, 2)])
def test_the_layout_is_megatrons(tp: int, cp: int, pp: int, dp: int) -> None:
    """Context parallel ranks compute together, as tensor parallel ones do."""
    places = scenario(WORKER, "layout", *map(str, (tp, cp, pp, dp)))
    for rank, (own, pp_rank, dp_rank, tp_rank, *sizes) in enumerate(places):
        # Megatron's default order: tp, cp, ep, dp, pp.
        assert own == rank
        assert [tp_rank, dp_rank, pp_rank] == [
            rank % (tp * cp),
            rank // (tp * cp) % dp,
            rank // (tp * cp * dp),
        ]
        assert sizes == [pp, dp, tp * cp]


def test_process_groups_may_be_passed_without_a_parallel_state() -> None:
    """As an argument or as the model's own; where one is missing, it says which."""
    ranks = scenario(WORKER, "groups")
    for rank, (pp_rank, dp_rank) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert ranks[rank]["place"] == [rank, pp_rank, 2, dp_rank, 2, 1]
        assert ranks[rank]["begins"] == [ITERATIONS[pp_rank]] * 2 + [[]]
        given, own, none, missing = ranks[rank]["reasons"]
        assert given == own == ""
        assert "give pg_collection=" in none
        assert "no group dp;" in missing


@needs("megatron/bridge")
def test_megatron_bridge_tells_by_its_callbacks() -> None:
    """Iterations are seen before and after an evaluation, which gives the config its old timers."""
    for rank, one in enumerate(scenario(WORKER, "bridge")):
        assert one["begins"] == ITERATIONS[rank] * 3
        assert one["steps"] == ["step_begin", "step_end"] * 3
        assert one["same"]
        assert one["restored"]
        before, attached, unable = one["reasons"]
        assert "not begun" in before
        assert attached == ""
        assert "/nowhere.csv" in unable


def test_what_happens_in_a_training_does_not_confuse_it() -> None:
    """Evaluation, exceptions, other numbers of microbatches, accumulation, detaching."""
    done = scenario(WORKER, "life")
    assert done["again"]
    assert done["begins"] == ["0F0", "0B0", "0F1", "0B1", "0F2", "0B2", "0F3", "0B3"]
    assert done["timed"]
    assert done["levels"] == 2
    assert done["copied"] == "Timers"
    assert done["evaluation"] == []
    assert done["forward_only"] == ["step_begin", "step_abandon"]
    assert done["raised"]
    assert done["broken"] == ["step_begin", "step_abandon", "step_begin", "step_end"]
    assert done["changed"] == ["step_begin", "step_abandon"] * 2
    assert len(done["said"]) == 1
    assert "2 microbatches and the plan is for 4" in done["said"][0]
    assert done["tokens"] == ["step_end", 2048]
    assert done["bad_tokens"][0] == "step_end"
    assert "function for tokens" in done["bad_tokens"][1]
    # The second within one of the trainer's own shows that each is an iteration.
    assert done["accumulated"] == ["step_begin", "step_abandon", "step_begin", "step_end"]
    assert done["restored"]
    assert done["detached"] == []
    assert done["attached_again"]
    assert done["recorded_again"] == 8


def test_megatron_lm_finds_it_after_an_evaluation() -> None:
    """With a stand-in for the trainer's global timers, which evaluation gives the config anew."""
    done = scenario(WORKER, "megatron_lm")
    iteration = ["0F0", "0B0", "0F1", "0B1"]
    assert done["begins"] == iteration
    assert done["evaluation"] == []
    assert done["after"] == iteration
    assert done["restored"]
    assert done["detached"] == []
    assert done["first"] == []  # Attached in its first forward: not in the middle of it.
    assert done["second"] == iteration
    assert done["third"] == 8


def test_attaching_fails_softly() -> None:
    """It says once why, however often it is tried, and nothing is changed."""
    said = scenario(WORKER, "failures")
    for label, words in {
        "parallel state": "not initialized yet",
        "no trainer": "give the model",
        "no model": "config",
        "no number": "give microbatches=",
        "overlap": "overlap_moe_expert_parallel_comm",
        "profile": "/nowhere.csv",
    }.items():
        one = said[label]
        assert not one["on"], label
        assert words in one["reason"], label
        assert one["same"], label
        assert one["warnings"] == (2 if label == "no trainer" else 1), label
    assert said["untouched"]
    assert said["log"] == []
    assert said["later"]
