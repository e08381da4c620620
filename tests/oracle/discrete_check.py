# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares a plan with the discrete optimum of a small pipeline."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .dag import one_forward_one_backward, replay
from .mip import DiscreteProgram
from .plan_check import Job, check_plan
from .run_plan import run_plan
from .tables import write_profile

if TYPE_CHECKING:
    from .small_cases import SmallCase


# Bound of HiGHS' gap and of sums of doubles.
ROUNDING_PERCENT = 1e-4


@dataclass(frozen=True)
class DiscreteComparison:
    """A plan beside the optimum.

    Attributes
    ----------
    excess_percent
        Energy of the plan over the optimum (its proven bound) for an iteration of the
        requested length, in per cent.
    bound_gap_percent
        The optimum over the plan's own lower bound: what no plan can reach.
    proved
        Whether the mixed-integer program ran to proof.
    errors
        What the recomputation of the plan finds wrong.
    seconds
        CPU time of the mixed-integer program.
    """

    excess_percent: float
    bound_gap_percent: float
    proved: bool
    errors: list[str]
    seconds: float


def compare_with_optimum(case: SmallCase, seconds: float = math.inf) -> DiscreteComparison:
    """Plan a small case and solve it to proof, within a time limit.

    Both energies are taken over an iteration of the requested length: a plan
    that ends earlier waits at blocking power, as its pipeline would.
    """
    profile = case.profile()
    power = case.original().blocking_power
    job = Job(profile, one_forward_one_backward(case.stages, case.microbatches), [power])
    pipeline = job.pipeline()
    limit = case.slowdown * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.csv"
        write_profile(path, profile.tables)
        flags: list[str | Path] = [path, "--schedule", "1f1b", "--stages", str(case.stages)]
        flags += ["--microbatches", str(case.microbatches), "--blocking-power", repr(power)]
        plan, curve = run_plan(flags, f"{case.slowdown}x")
    total = sum(pipeline.blocking)
    ours = plan["energy_j"] + total * (limit - plan["iteration_time_s"])
    errors = check_plan(plan, job)
    begin = time.process_time()
    # HiGHS 1.15.1 sometimes "proves" a bound that a valid plan is below. Such a
    # proof is none, and the program is solved again without presolve.
    for presolve in ("choose", "off"):
        optimum = DiscreteProgram(pipeline, seconds=seconds, presolve=presolve).solve(limit)
        best = optimum.bound + total * limit
        excess = 100 * (ours / best - 1)
        if excess > -ROUNDING_PERCENT:
            break
    else:
        errors.append(f"the plan is below the optimum that HiGHS claims, by {-excess:.5f} %")
    return DiscreteComparison(
        excess,
        100 * (best / curve.at(limit, total) - 1),
        optimum.proved,
        errors,
        time.process_time() - begin,
    )
