# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares plans whose computations share knobs with the best such plan."""

from __future__ import annotations

import math
import resource
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .dag import one_forward_one_backward, replay
from .path_program import PathProgram
from .plan_check import Job, check_plan, groups_of
from .run_plan import run_plan

if TYPE_CHECKING:
    from pathlib import Path

    from .tables import Profile

# A plan may save so many points less than another one.
MOST_SHORT = 0.01
GRANULARITIES = ("stage", "stage-type", "phase")


@dataclass(frozen=True)
class GroupedComparison:
    """A plan beside the optimum of its granularity.

    Attributes
    ----------
    groups
        Number of groups.
    saving
        Of our plan against all clocks at maximum, in per cent, over an iteration of the
        requested length.
    short
        By how many points another plan saves more; MOST_SHORT at most where it is proved that
        none saves more than that.
    proved
        Whether the mixed-integer program ran to its end.
    errors
        What the recomputation of the plan finds wrong.
    plan_seconds
        CPU time of ``perseus plan``, which makes a whole table of plans.
    mip_seconds
        CPU time of the mixed-integer program.
    """

    groups: int
    saving: float
    short: float
    proved: bool
    errors: list[str]
    plan_seconds: float
    mip_seconds: float


def compare_grouped(
    arguments: list[str | Path],
    profile: Profile,
    microbatches: int,
    power: float,
    granularity: str,
    slowdown: float,
    seconds: float = math.inf,
) -> GroupedComparison:
    """Plan a 1F1B job with shared knobs and solve it to proof.

    Parameters
    ----------
    arguments
        What describes the job to perseus.
    profile
        The same profile.
    microbatches
        Of one iteration.
    power
        Blocking power of a GPU in watts.
    granularity
        What shares a knob.
    slowdown
        Requested time over the all-maximum-clock time.
    seconds
        Time limit of the mixed-integer program.
    """
    schedule = one_forward_one_backward(profile.num_stages, microbatches)
    job = Job(profile, schedule, [power], granularity=granularity)
    pipeline = job.pipeline()
    today = pipeline.baseline()
    today_time = replay(pipeline.dag, [o.time for o in today])
    limit = slowdown * today_time
    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    plan, _ = run_plan([*arguments, "--granularity", granularity], f"{slowdown}x")
    plan_seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin

    members: dict[object, list[int]] = defaultdict(list)
    for i, group in enumerate(groups_of(pipeline, granularity)):
        members[group].append(i)
    baseline = pipeline.energy(today, today_time)
    begin = time.process_time()
    total = sum(pipeline.blocking)
    ours = plan["energy_j"] + total * (limit - plan["iteration_time_s"])
    program = PathProgram(pipeline, list(members.values()), seconds)
    wanted = ours - MOST_SHORT / 100 * baseline
    optimum = program.solve(limit, wanted - total * limit)
    return GroupedComparison(
        len(members),
        100 * (1 - ours / baseline),
        100 * (ours - optimum.bound - total * limit) / baseline,
        optimum.proved,
        check_plan(plan, job),
        plan_seconds,
        time.process_time() - begin,
    )
