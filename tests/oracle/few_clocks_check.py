# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares plans of few clocks with the best of all sets of so many clocks."""

from __future__ import annotations

import itertools
import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .dag import one_forward_one_backward, replay
from .mip import DiscreteProgram
from .plan_check import Job
from .run_plan import run_plan
from .small_cases import FEW_CLOCKS, FULL
from .tables import write_profile

if TYPE_CHECKING:
    from .small_cases import SmallCase


@dataclass(frozen=True)
class FewClocksComparison:
    """A plan of few clocks beside the optimum.

    Attributes
    ----------
    excess_percent
        Energy of the plan over the optimum for an iteration of the requested length.
    claims_proof
        Whether the plan says that it is proven to be the best.
    clocks
        Distinct clocks of the plan.
    """

    excess_percent: float
    claims_proof: bool
    clocks: int


def compare_few_clocks(case: SmallCase, most: int) -> FewClocksComparison:
    """Plan a small case with at most ``most`` clocks and solve it for each set of so many.

    Parameters
    ----------
    case
        The pipeline; it should have few clocks, of which all sets are tried.
    most
        The limit.
    """
    profile = case.profile()
    power = case.original().blocking_power
    pipeline = Job(
        profile, one_forward_one_backward(case.stages, case.microbatches), [power]
    ).pipeline()
    limit = case.slowdown * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    plan = plan_few_clocks(case, most)
    total = sum(pipeline.blocking)
    ours = plan["energy_j"] + total * (limit - plan["iteration_time_s"])
    knobs = sorted({o.knob for options in pipeline.options for o in options})
    best = math.inf
    for kept in itertools.combinations(knobs, min(most, len(knobs))):
        options = [[o for o in own if o.knob in kept] for own in pipeline.options]
        if not all(options):
            continue
        fastest = [min(o.time for o in own) for own in options]
        if replay(pipeline.dag, fastest) > limit:
            continue
        program = DiscreteProgram(replace(pipeline, options=options))
        best = min(best, program.solve(limit, min(best, ours - total * limit)).best)
    # Where rounding leaves no plan that is as good, none is better.
    excess = 100 * (ours / (best + total * limit) - 1) if best < math.inf else 0.0
    shared = plan.get("shared_clocks", {})
    return FewClocksComparison(excess, bool(shared.get("proven")), plan["distinct_knobs"])


def plan_few_clocks(case: SmallCase, most: int) -> dict[str, Any]:
    """Plan a small case with at most ``most`` clocks."""
    profile = case.profile()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.csv"
        write_profile(path, profile.tables)
        flags: list[str | Path] = [path, "--schedule", "1f1b", "--stages", str(case.stages)]
        flags += ["--microbatches", str(case.microbatches)]
        flags += ["--blocking-power", repr(case.original().blocking_power)]
        plan, _ = run_plan([*flags, "--max-clocks", str(most)], f"{case.slowdown}x")
    return plan


def main() -> None:
    """Print both tables of docs/evidence/planning.md."""
    found = [compare_few_clocks(case, most) for case in FEW_CLOCKS for most in (2, 3)]
    optimal = sum(result.excess_percent < 1e-4 for result in found)
    worst = max(result.excess_percent for result in found)
    print(f"{optimal} of {len(found)} optimal, worst {worst:.2f} % above")
    for most in (2, 3, 4, 6):
        plans = [
            plan_few_clocks(case, most) for case in FULL if case.stages * case.microbatches <= 32
        ]
        proven = sum(bool(plan.get("shared_clocks", {}).get("proven")) for plan in plans)
        print(f"{most} clocks: {proven} of {len(plans)} proven")


if __name__ == "__main__":
    main()
