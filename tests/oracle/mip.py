# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The true discrete optimum of a small pipeline, as a mixed-integer program.

Computations may share knobs in groups; there are then few choices, and larger
pipelines can be solved too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

from .dag import Pipeline, replay, start_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tables import Option

# A choice of a group: its cost, and the time of each of its members.
Choice = tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class DiscreteOptimum:
    """What HiGHS found.

    Attributes
    ----------
    best
        Effective energy of the best plan found (computed from its options).
    bound
        No plan has less effective energy.
    proved
        Whether the search ran to proof.
    time
        Iteration time of the best plan.
    """

    best: float
    bound: float
    proved: bool
    time: float


def _undominated(choices: list[Choice]) -> list[Choice]:
    """Leave out what another choice beats in cost and in the time of every member."""
    kept: list[Choice] = []
    for cost, times in sorted(choices):
        if not any(all(a <= b for a, b in zip(other, times, strict=True)) for _, other in kept):
            kept.append((cost, times))
    return kept


def choices_of(pipeline: Pipeline, members: Sequence[int]) -> list[Choice]:
    """Return the knobs that all members have, as choices, the cheapest first."""
    tables = [{o.knob: o for o in pipeline.options[i]} for i in members]
    powers = [pipeline.blocking[pipeline.dag.rank[i]] for i in members]
    choices: list[Choice] = []
    for knob in tables[0]:
        if all(knob in table for table in tables):
            options = [table[knob] for table in tables]
            parts = (o.energy - p * o.time for o, p in zip(options, powers, strict=True))
            choices.append((math.fsum(parts), tuple(o.time for o in options)))
    return _undominated(choices)


class DiscreteProgram:
    """One binary variable per group of computations and choice that none other beats."""

    def __init__(
        self,
        pipeline: Pipeline,
        gap: float = 1e-7,
        seconds: float = math.inf,
        groups: Sequence[Sequence[int]] | None = None,
        presolve: str = "choose",
    ) -> None:
        """Take a pipeline and what counts as solved.

        Parameters
        ----------
        pipeline
            The computations and their options.
        gap
            Relative gap that counts as proof.
        seconds
            Time limit.
        groups
            Computations that share a knob; by default each has its own.
        presolve
            Whether HiGHS simplifies the program first: "choose", "on" or "off".
        """
        self._presolve = presolve
        self._pipeline = pipeline
        count = len(pipeline.options)
        self._groups = [list(g) for g in groups] if groups else [[i] for i in range(count)]
        self._choices = [choices_of(pipeline, members) for members in self._groups]
        self._place = {i: (g, k) for g, own in enumerate(self._groups) for k, i in enumerate(own)}
        self._gap = gap
        self._seconds = seconds

    def solve(
        self,
        time: float,
        below: float = math.inf,
        known: Sequence[Option] | None = None,
    ) -> DiscreteOptimum:
        """Find the plan of least effective energy that ends by ``time``.

        Parameters
        ----------
        time
            Deadline in seconds.
        below
            Only plans of at most this effective energy count. It is the bound, and proved,
            where there is none.
        known
            The options of a plan that ends by ``time``, to begin with.
        """
        dag = self._pipeline.dag
        count = len(dag.steps)
        cost: list[float] = [0.0] * count
        lower = list(dag.release)
        upper = [time] * count
        columns: list[list[int]] = []
        # Choices cost their excess over the cheapest, which keeps numbers small.
        least = [choices[0][0] for choices in self._choices]
        for choices, base in zip(self._choices, least, strict=True):
            columns.append(list(range(len(cost), len(cost) + len(choices))))
            cost += [c - base for c, _ in choices]
            lower += [0.0] * len(choices)
            upper += [1.0] * len(choices)
        index: list[int] = []
        value: list[float] = []
        start = [0]
        row_lower: list[float] = []
        row_upper: list[float] = []

        def row(cells: list[tuple[int, float]], low: float, high: float) -> None:
            index.extend(column for column, _ in cells)
            value.extend(coefficient for _, coefficient in cells)
            start.append(len(index))
            row_lower.append(low)
            row_upper.append(high)

        def minus_duration(i: int) -> list[tuple[int, float]]:
            group, member = self._place[i]
            pairs = zip(columns[group], self._choices[group], strict=True)
            return [(i, -1.0), *((column, -times[member]) for column, (_, times) in pairs)]

        has_successor = {source for source, _, _ in dag.precedences}
        for own in columns:
            row([(column, 1.0) for column in own], 1.0, 1.0)
        for i in range(count):
            if i not in has_successor:
                row(minus_duration(i), dag.tail - time, highspy.kHighsInf)
        for i, j, delay in dag.precedences:
            row([(j, 1.0), *minus_duration(i)], delay, highspy.kHighsInf)
        if below < math.inf:
            cells = [(k, c) for k, c in enumerate(cost) if c != 0.0]
            row(cells, -highspy.kHighsInf, below - math.fsum(least))
        lp = highspy.HighsLp()
        lp.num_col_ = len(cost)
        lp.num_row_ = len(row_lower)
        lp.col_cost_ = np.array(cost)
        lp.col_lower_ = np.array(lower)
        lp.col_upper_ = np.array(upper)
        lp.row_lower_ = np.array(row_lower)
        lp.row_upper_ = np.array(row_upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(start, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(index, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(value)
        continuous, integer = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        lp.integrality_ = [continuous] * count + [integer] * (len(cost) - count)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, option in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", self._presolve),
            ("mip_rel_gap", self._gap),
            ("mip_abs_gap", 1e-9),
            ("mip_feasibility_tolerance", 1e-9),
            ("primal_feasibility_tolerance", 1e-9),
            ("time_limit", self._seconds),
        ):
            solver.setOptionValue(name, option)
        solver.passModel(lp)
        if known is not None:
            solution = highspy.HighsSolution()
            solution.col_value = self._as_columns(known, columns, len(cost))
            if solver.setSolution(solution) != highspy.HighsStatus.kOk:
                raise RuntimeError("HiGHS refused the plan to begin with")
        solver.run()
        if below < math.inf and solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return DiscreteOptimum(best=math.inf, bound=below, proved=True, time=math.inf)
        info = solver.getInfo()
        chosen = solver.getSolution().col_value
        picked = [int(np.argmax([chosen[column] for column in own])) for own in columns]
        durations = [0.0] * count
        for own, choices, k in zip(self._groups, self._choices, picked, strict=True):
            for i, t in zip(own, choices[k][1], strict=True):
                durations[i] = t
        return DiscreteOptimum(
            best=math.fsum(choices[k][0] for choices, k in zip(self._choices, picked, strict=True)),
            bound=math.fsum(least) + info.mip_dual_bound,
            proved=solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
            time=replay(dag, durations),
        )

    def _as_columns(
        self, known: Sequence[Option], columns: list[list[int]], count: int
    ) -> list[float]:
        """Return a plan as values of the program's columns: starts, then choices."""
        values = [0.0] * count
        durations = [0.0] * len(known)
        for members, own, choices in zip(self._groups, columns, self._choices, strict=True):
            # The cheapest choice that is as fast: the plan's own, or one that beats it.
            k = next(
                k
                for k, (_, times) in enumerate(choices)
                if all(t <= known[i].time for i, t in zip(members, times, strict=True))
            )
            values[own[k]] = 1.0
            for i, t in zip(members, choices[k][1], strict=True):
                durations[i] = t
        starts, _ = start_times(self._pipeline.dag, durations)
        values[: len(starts)] = starts
        return values
