# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares plans with a dwell with the best of all ways to cut each rank into stretches."""

from __future__ import annotations

import itertools
import math
import random
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import highspy

from .dag import one_forward_one_backward, replay
from .plan_check import Job
from .run_plan import run_plan
from .small_cases import FEW_CLOCKS, SmallCase
from .tables import write_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dag import Pipeline

# The dwell, in times of the fastest computation of the first rank.
DWELLS = (2.5, 5.5)
# Stages and microbatches of random cases: 8 to 64 computations.
SHAPES = [(2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (2, 8), (4, 4), (3, 6), (4, 6), (4, 8)]
# Excess up to which a plan counts as optimal: the gap of HiGHS and rounding.
OPTIMAL_PERCENT = 1e-4


class Comparison(Protocol):
    """A plan beside the optimum; DwellComparison says what each is."""

    @property
    def excess_percent(self) -> float: ...  # noqa: D102
    @property
    def proved(self) -> bool: ...  # noqa: D102
    @property
    def computations(self) -> int: ...  # noqa: D102


Compared = TypeVar("Compared", bound=Comparison)


@dataclass(frozen=True)
class DwellComparison:
    """A plan with a dwell beside the optimum.

    Attributes
    ----------
    excess_percent
        Energy of the plan over the least that HiGHS leaves possible, for an iteration of the
        requested length.
    proved
        Whether HiGHS ran to proof.
    claims_proof
        Whether the plan says that it is proven to be the best.
    gap_percent
        How far the plan says that it may be above the best; None where it does not say.
    computations
        Of the pipeline.
    """

    excess_percent: float
    proved: bool
    claims_proof: bool
    gap_percent: float | None
    computations: int


def compare_dwell(case: SmallCase, dwell: float, seconds: float = math.inf) -> DwellComparison:
    """Plan a small case with a dwell and solve it.

    Parameters
    ----------
    case
        The pipeline.
    dwell
        The dwell in times of the fastest computation of the first rank.
    seconds
        Time limit of HiGHS.
    """
    profile = case.profile()
    power = case.original().blocking_power
    pipeline = Job(
        profile, one_forward_one_backward(case.stages, case.microbatches), [power]
    ).pipeline()
    limit = case.slowdown * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    first = pipeline.dag.rank_order[0]
    dwell_s = dwell * min(o.time for i in first for o in pipeline.options[i])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.csv"
        write_profile(path, profile.tables)
        flags: list[str | Path] = [path, "--schedule", "1f1b", "--stages", str(case.stages)]
        flags += ["--microbatches", str(case.microbatches), "--blocking-power", repr(power)]
        plan, _ = run_plan([*flags, "--min-dwell", repr(dwell_s)], f"{case.slowdown}x")
    total = sum(pipeline.blocking)
    ours = plan["energy_j"] + total * (limit - plan["iteration_time_s"])
    bound, proved = least_with_dwell(pipeline, limit, dwell_s, seconds)
    shared = plan.get("shared_clocks", {})
    return DwellComparison(
        excess_percent=100 * (ours / (bound + total * limit) - 1),
        proved=proved,
        claims_proof=bool(shared.get("proven")),
        gap_percent=shared.get("gap_percent"),
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


def least_with_dwell(
    pipeline: Pipeline, limit: float, dwell_s: float, seconds: float
) -> tuple[float, bool]:
    """Return HiGHS' bound on the effective energy, and whether it is proved to be reached.

    One binary variable for each stretch of a rank that is long enough and each
    knob that it may have throughout; stretches follow one another.
    """
    dag = pipeline.dag
    solver = exact_solver(seconds)
    starts = [solver.addVariable(lb=release, ub=limit) for release in dag.release]
    costs: list[Any] = []
    durations: dict[int, list[Any]] = defaultdict(list)
    by_knob = [{o.knob: o for o in options} for options in pipeline.options]
    for rank, order in enumerate(dag.rank_order):
        power = pipeline.blocking[rank]
        leaves: dict[int, list[Any]] = defaultdict(list)
        enters: dict[int, list[Any]] = defaultdict(list)
        for begin in range(len(order)):
            for end in range(begin + 1, len(order) + 1):
                members = order[begin:end]
                fastest = sum(min(o.time for o in pipeline.options[i]) for i in members)
                if fastest < dwell_s * (1 - 1e-12) and len(members) < len(order):
                    continue
                for knob in set.intersection(*(set(by_knob[i]) for i in members)):
                    variable = solver.addBinary()
                    chosen = [by_knob[i][knob] for i in members]
                    cost = math.fsum(o.energy - power * o.time for o in chosen)
                    costs.append(cost * variable)
                    leaves[begin].append(variable)
                    enters[end].append(variable)
                    for i, option in zip(members, chosen, strict=True):
                        durations[i].append(option.time * variable)
        solver.addConstr(solver.qsum(leaves[0]) == 1)
        for place in range(1, len(order)):
            if leaves[place] or enters[place]:
                solver.addConstr(solver.qsum(leaves[place]) - solver.qsum(enters[place]) == 0)
    last = set(range(len(dag.steps))) - {source for source, _, _ in dag.precedences}
    for i in last:
        solver.addConstr(starts[i] + solver.qsum(durations[i]) <= limit - dag.tail)
    for i, j, delay in dag.precedences:
        solver.addConstr(starts[j] - starts[i] - solver.qsum(durations[i]) >= delay)
    solver.minimize(solver.qsum(costs))
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().mip_dual_bound, proved


def by_size(found: list[Compared]) -> Iterator[tuple[str, list[Compared]]]:
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


def random_cases(count: int, seed: int) -> list[tuple[SmallCase, float]]:
    """Return pipelines of up to 64 computations with few clocks, each with a dwell.

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
        cases.append((case, draws.uniform(1.2, 7)))
    return cases


def main() -> None:
    """Print the figures of docs/evidence/planning.md."""
    cases = [(case, dwell) for case in FEW_CLOCKS for dwell in DWELLS]
    found = [compare_dwell(case, dwell, 60) for case, dwell in cases + random_cases(48, 1)]
    print("| computations | plans | solved in 60 s | optimal | worst | proven by the planner |")
    for cells, within in by_size(found):
        print(f"{cells} | {sum(result.claims_proof for result in within)} |")


if __name__ == "__main__":
    main()
