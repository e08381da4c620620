# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The minutes-long proofs, as a command.

Run in tests/: python -m oracle.full [frontier] [networks] [plans] [jobs] [outputs] [discrete]
[grouped] [work] [emulation] [fleet] [--points N] [--seconds N].
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .binary import frontier_tool, perseus_binary, shared_data, solve_networks
from .cases import all_cases, network_of
from .dag import one_forward_one_backward
from .discrete_check import compare_with_optimum
from .emulation_check import InfeasibleError, check_emulation
from .fleet_check import check as check_sites
from .frontier_check import compare, shape_errors
from .grouped_check import GRANULARITIES, MOST_SHORT, compare_grouped
from .job_check import check_job
from .network_check import check_project
from .output_check import check_outputs
from .plan_check import Job, check_plan
from .random_emulations import KINDS, random_emulation
from .random_jobs import random_job
from .random_networks import random_networks
from .run_plan import run_frontier, run_plan
from .small_cases import FULL

SECTIONS = (
    *("frontier", "networks", "plans", "jobs", "outputs", "discrete", "grouped", "work"),
    *("emulation", "fleet"),
)


def check_frontiers(points: int) -> bool:
    """All shared profiles x {12, 24, 48}: frontier.csv and the general solver."""
    good = True
    print("\nFrontier against linear programs at", points, "times per case, relative differences")
    print("'profile': frontier.csv, program on the profile as measured (includes quantisation)")
    print("'exact': frontier_tool, program on the quantised hulls; 'bracket': what the program")
    print("leaves open between its recomputed bounds (HiGHS at 1e-10).\n")
    print("| case | breakpoints | profile | exact | bracket | form | LP CPU s |")
    print("|---|---|---|---|---|---|---|")
    for case in all_cases():
        begin = time.process_time()
        pipeline = case.pipeline()
        network = network_of(pipeline)
        power = sum(pipeline.blocking)
        curve = run_frontier(case.arguments())
        errors = shape_errors(curve, network, power, 1e-8)
        result = compare(curve, network, points, power)
        exact_text = "not built"
        fine = result.difference <= 1e-8 and result.bracket <= 1e-11 and not errors
        if frontier_tool().is_file():
            project = {
                "activities": [pipeline.effective(i) for i in range(len(pipeline.options))],
                "precedences": pipeline.dag.precedences,
            }
            (answer,) = solve_networks([project])
            exact, _, more = check_project(project, answer, points, power)
            errors += more
            exact_text = f"{max(exact.difference, 0):.1e}"
            fine = fine and exact.difference <= 1e-9 and not more
        good = good and fine
        print(
            f"| {case} | {len(curve.times)} | {max(result.difference, 0):.1e} | {exact_text} "
            f"| {result.bracket:.1e} | {'; '.join(errors[:2]) or 'right'} "
            f"| {time.process_time() - begin:.1f} |",
            flush=True,
        )
    return good


def check_networks() -> bool:
    """1,000 random projects through the general solver."""
    projects = random_networks(1, 1000)
    exact_worst = quantisation_worst = bracket_worst = 0.0
    wrong = 0
    for project, answer in zip(projects, solve_networks(projects), strict=True):
        exact, quantisation, errors = check_project(project, answer)
        exact_worst = max(exact_worst, exact.difference)
        quantisation_worst = max(quantisation_worst, quantisation.difference)
        bracket_worst = max(bracket_worst, exact.bracket)
        wrong += bool(errors)
    print(
        f"\nRandom projects: {len(projects)}; largest relative difference {exact_worst:.1e} on"
        f" quantised curves, {quantisation_worst:.1e} on given ones; bracket {bracket_worst:.1e};"
        f" wrong in form {wrong}"
    )
    return exact_worst <= 1e-9 and quantisation_worst <= 1e-8 and wrong == 0


def check_plans() -> bool:
    """Recompute the plans of every case at five times."""
    good = True
    points = ("1.0x", "1.02x", "1.1x", "min-energy", "fastest")
    print("\nPlans at a fifth of the usual effort, recomputed: by how many millionths of the")
    print("requested time they end before it, or what is wrong\n")
    print(f"| case | {' | '.join(points)} |")
    print("|---" * (1 + len(points)) + "|")
    for case in all_cases((12, 24, 48, 96)):
        profile = case.profile()
        schedule = one_forward_one_backward(profile.num_stages, case.microbatches)
        cells = []
        for at in points:
            plan, _ = run_plan([*case.arguments(), "--effort", "0.2"], at)
            errors = check_plan(plan, Job(profile, schedule, [case.blocking_power]))
            early = 1e6 * (1 - plan["iteration_time_s"] / plan["requested_time_s"])
            cells.append("; ".join(errors[:2]) or f"{early:.3f}")
            good = good and not errors
        print(f"| {case} | {' | '.join(cells)} |", flush=True)
    return good


def check_jobs() -> bool:
    """Recompute everything that is written for random jobs of every kind."""
    wrong = {"constrained": 0, "plain": 0}
    counts = {"constrained": 400, "plain": 100}
    for kind, count in counts.items():
        plain = kind == "plain"
        for seed in range(count):
            with tempfile.TemporaryDirectory() as folder:
                job = random_job(seed, Path(folder), 3 if plain else 4, plain)
                errors = check_job(job, 1.0 if plain else 0.02, 30.0 if plain else 0.0)
            wrong[kind] += bool(errors)
            for error in errors[:2]:
                print(f"seed {seed}, {kind}: {error}", flush=True)
    print(
        f"\nRandom jobs of all schedules: {counts['constrained']} with constraints, wrong "
        f"{wrong['constrained']}; {counts['plain']} without, those of at most 64 computations "
        f"compared with the proven discrete optimum, wrong {wrong['plain']}"
    )
    return not any(wrong.values())


def check_all_outputs() -> bool:
    """Compare what every output of 1,000 random jobs says of their plans."""
    count = 1000
    wrong = 0
    for seed in range(count):
        with tempfile.TemporaryDirectory() as folder:
            errors = check_outputs(random_job(seed, Path(folder), conditions=True), 0.02)
        wrong += bool(errors)
        for error in errors[:2]:
            print(f"seed {seed}: {error}", flush=True)
    print(f"\nOutputs of {count} random jobs compared with each other, wrong {wrong}")
    return wrong == 0


def check_discrete() -> bool:
    """Compare plans with proven discrete optima."""
    good = True
    print("\n| case | plan over optimum % | optimum over bound % | proved | MIP CPU s |")
    print("|---|---|---|---|---|")
    for case in FULL:
        result = compare_with_optimum(case, seconds=600)
        good = good and result.proved and not result.errors and result.excess_percent <= 0.02
        excess = round(result.excess_percent, 5) + 0.0  # Not -0.
        print(
            f"| {case} | {excess:.5f} | {result.bound_gap_percent:.4f} "
            f"| {'yes' if result.proved else 'no'} | {result.seconds:.1f} |",
            flush=True,
        )
    return good


def check_grouped(seconds: float) -> bool:
    """Prove that no plan with shared knobs saves more, at 24 microbatches."""
    good = True
    print(
        f"\nSavings in per cent, and whether a mixed-integer program shows that no plan saves"
        f" {MOST_SHORT} points"
    )
    print("more. CPU seconds of perseus plan with its whole table, and of the program\n")
    print("| case | granularity | time | groups | saved | more possible | table | program |")
    print("|---|---|---|---|---|---|---|---|")
    for case in all_cases((24,)):
        for granularity in GRANULARITIES:
            for slowdown in (1.0, 1.02, 1.05, 1.1):
                result = compare_grouped(
                    case.arguments(),
                    case.profile(),
                    case.microbatches,
                    case.blocking_power,
                    granularity,
                    slowdown,
                    seconds=seconds,
                )
                none = result.proved and result.short <= MOST_SHORT * (1 + 1e-6)
                good = good and none and not result.errors
                more = "no" if none else f"up to {result.short:.3f}"
                print(
                    f"| {case.name} | {granularity} | {slowdown}x | {result.groups} "
                    f"| {result.saving:.3f} | {more} | {result.plan_seconds:.2f} "
                    f"| {result.mip_seconds:.1f} |",
                    flush=True,
                )
                for error in result.errors[:2]:
                    print(error)
    return good


def check_work() -> bool:
    """Random jobs whose microbatches differ: frontier, plans, discrete optimum, emulation."""
    worst = 0.0
    wrong = {"frontier": 0, "job": 0, "small": 0, "emulation": 0}
    counts = {"frontier": 200, "job": 200, "small": 60, "emulation": 40 * len(KINDS)}
    for seed in range(200):
        with tempfile.TemporaryDirectory() as folder:
            pipeline = random_job(seed, Path(folder), plain=True, work=True).job.pipeline()
            project = {
                "activities": [pipeline.effective(i) for i in range(len(pipeline.options))],
                "precedences": pipeline.dag.precedences,
            }
            (answer,) = solve_networks([project])
            exact, _, errors = check_project(project, answer, 12, sum(pipeline.blocking))
            worst = max(worst, exact.difference)
            wrong["frontier"] += bool(errors) or exact.difference > 1e-9
            errors = check_job(random_job(seed, Path(folder), work=True), 0.02)
            wrong["job"] += bool(errors)
            for error in errors[:2]:
                print(f"seed {seed}, with work: {error}", flush=True)
            if seed >= counts["small"]:
                continue
            small = random_job(seed, Path(folder), largest=2, plain=True, work=True)
            errors = check_job(small, 1.0, 30.0)
            wrong["small"] += bool(errors)
            for error in errors[:2]:
                print(f"seed {seed}, small, with work: {error}", flush=True)
    for kind in KINDS:
        for seed in range(40):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    errors = check_emulation(random_emulation(seed, Path(folder), kind, work=True))
                except InfeasibleError:
                    counts["emulation"] -= 1
                    continue
                wrong["emulation"] += bool(errors)
                for error in errors[:2]:
                    print(f"seed {seed}, {kind}, with work: {error}", flush=True)
    print(
        f"\nJobs whose microbatches differ: frontier against the linear program, largest relative"
        f" difference {worst:.1e}; "
        + "; ".join(f"{k}: {counts[k]}, wrong {wrong[k]}" for k in wrong)
    )
    return not any(wrong.values())


def check_emulations() -> bool:
    """Random jobs in random scenarios: perseus emulate against the simulator."""
    good = True
    print("\n| policy | what happens | emulations | no plan | differ |")
    print("|---|---|---|---|---|")
    for policy, seeds in (("perseus", 100), ("max-clocks", 40)):
        for kind in KINDS:
            compared = infeasible = wrong = 0
            for seed in range(seeds):
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        errors = check_emulation(random_emulation(seed, Path(folder), kind, policy))
                    except InfeasibleError:
                        infeasible += 1
                        continue
                compared += 1
                wrong += bool(errors)
                for error in errors[:2]:
                    print(f"seed {seed}, {kind}, {policy}: {error}", flush=True)
            good = good and wrong == 0
            print(f"| {policy} | {kind} | {compared} | {infeasible} | {wrong} |", flush=True)
    return good


def check_fleet() -> bool:
    """Divisions of 1,000 random sites."""
    begin = time.process_time()
    errors = check_sites(0, 1000)
    print("\nPower of 1,000 random sites, divided, against linear programs")
    print("\n".join(errors) or "All objectives agree to 1e-9, all ratios to 1e-8.")
    print(f"{time.process_time() - begin:.0f} s of CPU")
    return not errors


def main() -> int:
    """Run the sections named on the command line; all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m oracle.full", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--points", type=int, default=60, help="times per case (default 60)")
    parser.add_argument(
        "--seconds", type=float, default=1800, help="of a grouped program (default 1800)"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    for path in (perseus_binary(), shared_data() / "sosp24"):
        if not path.exists():
            parser.error(f"{path} does not exist (see PERSEUS_BINARY, PERSEUS_SHARED_DATA)")
    good = True
    for section in arguments.sections or SECTIONS:
        if section == "frontier":
            good &= check_frontiers(arguments.points)
        elif section == "networks":
            good &= check_networks()
        elif section == "plans":
            good &= check_plans()
        elif section == "jobs":
            good &= check_jobs()
        elif section == "outputs":
            good &= check_all_outputs()
        elif section == "discrete":
            good &= check_discrete()
        elif section == "work":
            good &= check_work()
        elif section == "grouped":
            good &= check_grouped(arguments.seconds)
        elif section == "fleet":
            good &= check_fleet()
        else:
            good &= check_emulations()
    print("\nAll as it should be." if good else "\nSomething is not as it should be.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
