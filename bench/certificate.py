# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""What is left between a plan and each of three bounds, as a Markdown table.

The relaxation's bound and the tighter one are those that ``perseus plan`` states; the latter once
more at ``--effort 4``, with that plan. The third is
what HiGHS has proved, by its own word and within its tolerances, when it began with the plan and
its time was up. All are percentages of the plan's energy over the bound, at the plan's own time.

Usage: python bench/certificate.py [--seconds 180] [--case STAGES MICROBATCHES STRIDE]...
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from measure import print_header
from oracle.binary import perseus, perseus_binary
from oracle.dag import one_forward_one_backward
from oracle.mip import DiscreteProgram
from oracle.plan_check import Job, check_plan, chosen_options
from oracle.small_cases import SmallCase
from oracle.tables import write_profile

# Stages, microbatches, every n-th clock of the table.
CASES = [[4, 12, 4], [4, 24, 4], [8, 12, 4], [8, 24, 4]]


def _row(case: SmallCase, seconds: float) -> str:
    profile = case.profile()
    power = case.original().blocking_power
    job = Job(profile, one_forward_one_backward(case.stages, case.microbatches), [power])
    pipeline = job.pipeline()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.csv"
        write_profile(path, profile.tables)
        flags: list[str | Path] = ["plan", path, "--schedule", "1f1b", "--stages", str(case.stages)]
        flags += ["--microbatches", str(case.microbatches), "--blocking-power", repr(power)]
        flags += ["--at", f"{case.slowdown}x", "--json", "-o", Path(folder) / "out"]
        deeper = next(
            point["discrete_bound"]["gap_percent"]
            for point in json.loads(perseus([*flags, "--effort", "4"]))["points"]
            if point["chosen"]
        )
        points = json.loads(perseus(flags))["points"]
        plan = json.loads((Path(folder) / "out/plan.json").read_text(encoding="utf-8"))
    chosen, errors = chosen_options(plan, pipeline)
    errors += check_plan(plan, job)
    if errors:
        raise SystemExit(f"{case}: {errors[0]}")
    ends = plan["iteration_time_s"]
    begin = time.process_time()
    # With its presolve HiGHS 1.15.1 ends at once here and calls plans optimal than which it
    # finds better ones without.
    program = DiscreteProgram(pipeline, seconds=seconds, presolve="off")
    found = program.solve(ends, known=chosen)
    spent = time.process_time() - begin
    waiting = sum(pipeline.blocking) * ends
    bound, best = found.bound + waiting, found.best + waiting
    tighter = next(point["discrete_bound"] for point in points if point["chosen"])
    wrong = ""
    if tighter["lower_bound_j"] > best * (1 + 1e-9):
        wrong = " **our bound is above its plan**"
    if bound > plan["energy_j"] * (1 + 1e-6):
        wrong += " (its bound is above a plan, so it is none)"

    def gap(least: float) -> float:
        return 100 * (float(plan["energy_j"]) / least - 1)

    return (
        f"| {case.stages} x {case.microbatches}, every {case.stride} "
        f"| {gap(plan['lower_bound_j']):.3f} | {gap(tighter['lower_bound_j']):.3f} "
        f"| {deeper:.3f} | {gap(bound):.3f}{', proved' if found.proved else ''} "
        f"| {gap(best):.3f} | {spent:.0f}{wrong} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180, help="HiGHS' time for each case")
    parser.add_argument(
        "--case",
        nargs=3,
        type=int,
        action="append",
        metavar=("STAGES", "MICROBATCHES", "STRIDE"),
        help="may be given several times",
    )
    arguments = parser.parse_args()
    print_header(["highspy"], perseus_binary())
    print("GPT-3 on A100, 1F1B, no slowdown. Per cent of the plan's energy over each bound;")
    print("'better plan': what the best plan of HiGHS saves beyond ours.\n")
    print(
        "| case | relaxation | tighter bound | the same at --effort 4 | mixed-integer bound "
        "| better plan | CPU s, HiGHS |"
    )
    print("|---|---|---|---|---|---|---|")
    for stages, microbatches, stride in arguments.case or CASES:
        case = SmallCase("gpt3-a100", stages, microbatches, stride, 1.0)
        print(_row(case, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
