# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Plans with lowtime, the published planner's solver, and writes what Zeus would run.

Usage: python bench/lowtime_plan.py PROFILE --microbatches N --blocking-power WATTS
       [--tp N] [--at SECONDS] > lowtime_plan.py

The plan (1F1B) is a Python list of ('forward' | 'backward', MHz) per rank, which
`perseus emulate PROFILE ... --plan lowtime_plan.py` replays. --at chooses the cheapest plan whose
replayed time is at most so long; without it, the time at maximum clocks, or lowtime's fastest
plan where all are slower (its flooring of times makes them so).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lowtime_runner import LowtimePlan, LowtimeRun
from oracle.dag import Fixed, build_dag, cost_pipeline, one_forward_one_backward, replay
from oracle.tables import Option, Profile, read_profile


def per_pipeline(profile: Profile, tensor_parallel: int) -> Profile:
    """Return a profile whose energies are those of all GPUs of a rank."""
    tables = {
        key: [Option(o.knob, o.time, tensor_parallel * o.energy, o.time_std) for o in options]
        for key, options in profile.tables.items()
    }
    return Profile(tables, profile.tensor_parallel_ranks)


def main() -> None:
    """Print the plan; what it takes goes to standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("profile", type=Path)
    parser.add_argument("--microbatches", type=int, required=True)
    parser.add_argument("--blocking-power", type=float, required=True, help="watts per GPU")
    parser.add_argument("--tp", type=int, default=1, help="GPUs per rank")
    parser.add_argument("--at", type=float, help="seconds of an iteration")
    parser.add_argument("--unit", type=float, default=0.001, help="lowtime's unit, s")
    arguments = parser.parse_args()
    profile = per_pipeline(read_profile(arguments.profile), arguments.tp)
    schedule = one_forward_one_backward(profile.num_stages, arguments.microbatches)
    dag = build_dag(schedule, Fixed())
    power = [arguments.tp * arguments.blocking_power]
    pipeline = cost_pipeline(profile, dag, power)
    wanted = arguments.at or replay(dag, [o.time for o in pipeline.baseline()])
    best: LowtimePlan | None = None
    fastest: LowtimePlan | None = None
    for plan in LowtimeRun(pipeline, arguments.unit).plans(every=1):
        if fastest is None or plan.achieved_time < fastest.achieved_time:
            fastest = plan
        if plan.achieved_time <= wanted and (best is None or plan.energy < best.energy):
            best = plan
    chosen = best or fastest
    if chosen is None:
        raise SystemExit("lowtime made no plan")
    if best is None:
        print(f"no plan of lowtime's takes {wanted:.6g} s; its fastest:", file=sys.stderr)
    print(
        f"{chosen.achieved_time:.6g} s (it says {chosen.planned_time:.6g} s), "
        f"{chosen.energy:.6g} J",
        file=sys.stderr,
    )
    print("[")
    for order in dag.rank_order:
        steps = [f"({dag.steps[i][0].type!r}, {round(float(chosen.knobs[i]))})" for i in order]
        print(f"    [{', '.join(steps)}],")
    print("]")


if __name__ == "__main__":
    main()
