# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Small plans beside the optimum that HiGHS proves: free, with few changes, with shared knobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import seeds
from .changes_check import OPTIMAL_PERCENT, compare_changes
from .dag import replay
from .discrete_check import compare_with_optimum
from .grouped_check import GRANULARITIES, MOST_SHORT, compare_grouped
from .mip import DiscreteProgram
from .path_program import PathProgram
from .plan_check import groups_of
from .random_jobs import random_job
from .small_cases import FEW_CLOCKS, QUICK, SmallCase
from .tables import write_profile

if TYPE_CHECKING:
    from pathlib import Path

CASES = [
    SmallCase("gpt3-a100", 4, 6, 2, 1.02),
    SmallCase("bloom-a40", 4, 6, 1, 1.05),
    SmallCase("bloom-a40", 6, 8, 3, 1.1),
]


@pytest.mark.parametrize("case", QUICK, ids=str)
@pytest.mark.usefixtures("sosp24")
def test_plan_is_near_the_discrete_optimum(case: SmallCase) -> None:
    """At most 0.02 % above, and never below."""
    result = compare_with_optimum(case)
    assert result.proved
    assert result.errors == []
    assert -1e-6 <= result.excess_percent <= 0.02


@pytest.mark.parametrize("most", [2, 6])
@pytest.mark.parametrize("case", [FEW_CLOCKS[0], FEW_CLOCKS[3]], ids=str)
@pytest.mark.usefixtures("sosp24")
def test_small_plans_are_the_optimum_and_say_so(case: SmallCase, most: int) -> None:
    """The bound is met, and HiGHS finds nothing better."""
    result = compare_changes(case, most)
    assert result.proved
    assert abs(result.excess_percent) < OPTIMAL_PERCENT
    assert abs(result.gap_percent) < OPTIMAL_PERCENT


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("sosp24")
def test_grouped_plan_is_optimal(case: SmallCase, granularity: str, tmp_path: Path) -> None:
    """No plan with the same groups saves a hundredth of a point more."""
    profile = case.profile()
    power = case.original().blocking_power
    path = tmp_path / "profile.csv"
    write_profile(path, profile.tables)
    arguments: list[str | Path] = [path, "--schedule", "1f1b", "--stages", str(case.stages)]
    arguments += ["--microbatches", str(case.microbatches), "--blocking-power", repr(power)]
    result = compare_grouped(
        arguments, profile, case.microbatches, power, granularity, case.slowdown
    )
    assert result.proved
    assert result.errors == []
    assert result.short <= MOST_SHORT * (1 + 1e-6)


@pytest.mark.parametrize("seed", seeds(0, 12))
def test_both_programs_have_the_same_optimum(seed: int, tmp_path: Path) -> None:
    """Rows for paths say what start times say, with delays, loading and overhead too."""
    pipeline = random_job(seed, tmp_path, largest=3, plain=True).job.pipeline()
    granularity = GRANULARITIES[seed % len(GRANULARITIES)]
    members: dict[object, list[int]] = {}
    for i, group in enumerate(groups_of(pipeline, granularity)):
        members.setdefault(group, []).append(i)
    groups = list(members.values())
    limit = 1.04 * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    want = DiscreteProgram(pipeline, groups=groups).solve(limit)
    have = PathProgram(pipeline, groups).solve(limit)
    assert want.proved
    assert have.proved
    assert have.best == pytest.approx(want.best, rel=1e-7)
    assert have.bound <= have.best
    assert have.time <= limit * (1 + 1e-8)
    size = abs(have.best) + 1e-9
    assert PathProgram(pipeline, groups).solve(limit, have.best - 1e-4 * size).best == math.inf
    assert PathProgram(pipeline, groups).solve(limit, have.best + 1e-4 * size).best < math.inf
