# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares plans with few changes of clock with the best of all such plans."""

from __future__ import annotations

import itertools
import json
import math
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import highspy

from .binary import perseus
from .dag import one_forward_one_backward, replay
from .plan_check import Job
from .small_cases import SmallCase
from .tables import write_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dag import Pipeline

# The default of --max-slowdown.
ACCEPTED = 0.001
# Stages and microbatches of random cases: 8 to 64 computations.
SHAPES = [(2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (2, 8), (4, 4), (3, 6), (4, 6), (4, 8)]
# Excess up to which a plan counts as optimal: the gap of HiGHS and rounding.
OPTIMAL_PERCENT = 1e-4


@dataclass(frozen=True)
class ChangesComparison:
    """A plan with few changes beside the optimum.

    Attributes
    ----------
    excess_percent
        Energy of the plan, waiting included, over the least that HiGHS leaves possible.
    proved
        Whether HiGHS ran to proof.
    gap_percent
        How far the planner says that its plan may be above the best.
    computations
        Of the pipeline.
    """

    excess_percent: float
    proved: bool
    gap_percent: float
    computations: int


def compare_changes(case: SmallCase, most: int, seconds: float = math.inf) -> ChangesComparison:
    """Plan a small case with at most ``most`` changes of clock and solve it.

    Parameters
    ----------
    case
        The pipeline.
    most
        The limit.
    seconds
        Time limit of HiGHS.
    """
    profile = case.profile()
    power = case.original().blocking_power
    pipeline = Job(
        profile, one_forward_one_backward(case.stages, case.microbatches), [power]
    ).pipeline()
    limit = (
        case.slowdown * (1 + ACCEPTED) * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.csv"
        write_profile(path, profile.tables)
        flags: list[str | Path] = ["plan", path, "--schedule", "1f1b"]
        flags += ["--stages", str(case.stages), "--microbatches", str(case.microbatches)]
        flags += ["--blocking-power", repr(power), "--max-changes", str(most)]
        flags += ["--at", f"{case.slowdown}x", "--json", "-o", Path(folder) / "out"]
        summary = json.loads(perseus(flags))
    ours = next(p for p in summary["points"] if p.get("chosen"))["energy_j"]
    best, proved = least_with_changes(pipeline, limit, most, seconds)
    base = summary["baseline"]["energy_j"]
    bound = base * (1 - summary["bound"]["saving_percent"] / 100)
    return ChangesComparison(
        excess_percent=100 * (ours / best - 1),
        proved=proved,
        gap_percent=100 * (ours / bound - 1),
        computations=len(pipeline.dag.steps),
    )


def exact_solver(seconds: float) -> highspy.Highs:
    """Return a quiet HiGHS that is exact, where it ends within this time."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, setting in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_rel_gap", 1e-7),
        ("mip_feasibility_tolerance", 1e-9),
        ("primal_feasibility_tolerance", 1e-9),
        ("time_limit", seconds),
    ):
        solver.setOptionValue(name, setting)
    return solver


def by_size(found: list[ChangesComparison]) -> Iterator[tuple[str, list[ChangesComparison]]]:
    """Yield what comparisons of like sizes have in common, as cells of a table, and these."""
    for least, most in itertools.pairwise((0, 16, 32, 64)):
        within = [result for result in found if least < result.computations <= most]
        solved = [result for result in within if result.proved]
        optimal = sum(result.excess_percent < OPTIMAL_PERCENT for result in solved)
        worst = max((result.excess_percent for result in solved), default=math.nan)
        cells = (
            f"| {least + 1} to {most} | {len(within)} | {len(solved)} | {optimal} | {worst:.2f} %"
        )
        yield cells, within


def random_cases(count: int, seed: int) -> list[SmallCase]:
    """Return pipelines of up to 64 computations with few clocks.

    Parameters
    ----------
    count
        How many.
    seed
        Where the draws begin.
    """
    draws = random.Random(seed)
    cases = []
    for _ in range(count):
        stages, microbatches = draws.choice(SHAPES)
        case = SmallCase(
            draws.choice(["gpt3-a100", "bloom-a40"]),
            stages,
            microbatches,
            draws.randint(8, 16),
            draws.choice([1.0, 1.02, 1.05, 1.1]),
        )
        cases.append(case)
        draws.uniform(1.2, 7)  # Keeps the cases of the tables.
    return cases


def least_with_changes(
    pipeline: Pipeline, limit: float, most: int, seconds: float
) -> tuple[float, bool]:
    """Return HiGHS' bound on the energy with waiting, and whether it is proved to be reached.

    One binary variable for each computation and knob, and one for each place where the knob
    may change, also from a rank's last computation to its first.
    """
    dag = pipeline.dag
    solver = exact_solver(seconds)
    starts = [solver.addVariable(lb=release, ub=limit) for release in dag.release]
    end = solver.addVariable(lb=0, ub=limit)
    costs: list[Any] = [sum(pipeline.blocking) * end]
    durations: dict[int, Any] = {}
    chosen: dict[int, dict[str, Any]] = {}
    for rank, order in enumerate(dag.rank_order):
        power = pipeline.blocking[rank]
        for i in order:
            chosen[i] = {o.knob: solver.addBinary() for o in pipeline.options[i]}
            solver.addConstr(solver.qsum(chosen[i].values()) == 1)
            durations[i] = solver.qsum([o.time * chosen[i][o.knob] for o in pipeline.options[i]])
            costs += [(o.energy - power * o.time) * chosen[i][o.knob] for o in pipeline.options[i]]
    changes = []
    for order in dag.rank_order:
        for before, after in itertools.pairwise([*order, order[0]]):
            change = solver.addBinary()
            changes.append(change)
            for knob, variable in chosen[after].items():
                earlier = chosen[before].get(knob)
                solver.addConstr(variable - (0 if earlier is None else earlier) <= change)
    solver.addConstr(solver.qsum(changes) <= most)
    last = set(range(len(dag.steps))) - {source for source, _, _ in dag.precedences}
    for i in last:
        solver.addConstr(starts[i] + durations[i] - end <= -dag.tail)
    for i, j, delay in dag.precedences:
        solver.addConstr(starts[j] - starts[i] - durations[i] >= delay)
    solver.minimize(solver.qsum(costs))
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().mip_dual_bound, proved


def random_limits(count: int, seed: int) -> list[tuple[SmallCase, int]]:
    """Return random small pipelines, each with a limit on changes."""
    draws = random.Random(seed)
    return [(case, draws.choice([2, 4, 6, 8, 12])) for case in random_cases(count, seed)]


def main() -> None:
    """Print the table of docs/evidence/evidence.md."""
    found = [compare_changes(case, most, 20) for case, most in random_limits(24, 7)]
    print("| computations | plans | solved in 20 s | optimal | worst | bound met | largest gap |")
    for cells, within in by_size(found):
        met = sum(result.gap_percent < OPTIMAL_PERCENT for result in within)
        gap = max(result.gap_percent for result in within)
        print(f"{cells} | {met} | {gap:.2f} % |")


if __name__ == "__main__":
    main()
