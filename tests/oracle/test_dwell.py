# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""No plan with a dwell is below the optimum that HiGHS proves."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .dag import one_forward_one_backward, replay
from .dwell_check import (
    DWELLS,
    OPTIMAL_PERCENT,
    compare_dwell,
    least_with_dwell,
    random_cases,
)
from .plan_check import Job
from .small_cases import FEW_CLOCKS, SmallCase

if TYPE_CHECKING:
    from pathlib import Path

    from .dag import Pipeline
    from .tables import Option


def _ways(pipeline: Pipeline, rank: int, dwell_s: float) -> list[list[Option]]:
    """Return all choices of a rank that keep the dwell."""
    order = pipeline.dag.rank_order[rank]
    fastest = {i: min(o.time for o in pipeline.options[i]) for i in order}
    ways = []
    for way in itertools.product(*(pipeline.options[i] for i in order)):
        runs = [
            [i for i, _ in run]
            for _, run in itertools.groupby(zip(order, way, strict=True), lambda pair: pair[1].knob)
        ]
        shortest = min(sum(fastest[i] for i in run) for run in runs)
        if len(runs) == 1 or shortest >= dwell_s:
            ways.append(list(way))
    return ways


@pytest.mark.parametrize("dwell", DWELLS)
def test_program_finds_the_best_of_all_choices(dwell: float, sosp24: Path) -> None:
    """Trying everything finds no less, and the same."""
    del sosp24
    case = SmallCase("gpt3-a100", 2, 2, 30, 1.05)
    power = case.original().blocking_power
    pipeline = Job(case.profile(), one_forward_one_backward(2, 2), [power]).pipeline()
    limit = case.slowdown * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    order = pipeline.dag.rank_order
    dwell_s = dwell * min(o.time for i in order[0] for o in pipeline.options[i])
    best = math.inf
    for ways in itertools.product(*(_ways(pipeline, rank, dwell_s) for rank in range(2))):
        chosen = {
            i: o
            for own, way in zip(order, ways, strict=True)
            for i, o in zip(own, way, strict=True)
        }
        if replay(pipeline.dag, [chosen[i].time for i in range(len(chosen))]) <= limit:
            best = min(best, math.fsum(o.energy - power * o.time for o in chosen.values()))
    bound, proved = least_with_dwell(pipeline, limit, dwell_s, math.inf)
    assert proved
    assert bound == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("dwell", DWELLS)
@pytest.mark.parametrize("case", FEW_CLOCKS[:4], ids=str)
def test_no_plan_is_below_the_optimum(
    case: SmallCase, dwell: float, sosp24: Path, perseus_program: Path
) -> None:
    """Small ones are the optimum, and say so."""
    del sosp24, perseus_program
    result = compare_dwell(case, dwell)
    assert result.proved
    assert abs(result.excess_percent) < OPTIMAL_PERCENT
    assert result.claims_proof


@pytest.mark.parametrize(("case", "dwell"), random_cases(6, 20), ids=lambda value: str(value)[:40])
def test_random_plans_are_within_the_gap_that_they_state(
    case: SmallCase, dwell: float, sosp24: Path, perseus_program: Path
) -> None:
    """No plan is below the optimum, nor above it by more than it says."""
    del sosp24, perseus_program
    result = compare_dwell(case, dwell, 20)
    assert result.gap_percent is not None
    assert result.excess_percent > -OPTIMAL_PERCENT
    if result.proved:
        assert result.excess_percent <= result.gap_percent + OPTIMAL_PERCENT
