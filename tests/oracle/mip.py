# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The true discrete optimum of a small pipeline, as a mixed-integer program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

from .dag import Pipeline, replay

if TYPE_CHECKING:
    from .lp import Point


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


def _pareto(points: list[Point]) -> list[Point]:
    kept: list[Point] = []
    for time, cost in sorted(points):
        if not kept or cost < kept[-1][1]:
            kept.append((time, cost))
    return kept


class DiscreteProgram:
    """One binary variable per computation and Pareto-optimal option."""

    def __init__(self, pipeline: Pipeline, gap: float = 1e-7, seconds: float = math.inf) -> None:
        """Take a pipeline, the relative gap that counts as proof, and a time limit."""
        self._pipeline = pipeline
        self._options = [_pareto(pipeline.effective(i)) for i in range(len(pipeline.options))]
        self._gap = gap
        self._seconds = seconds

    def solve(self, time: float) -> DiscreteOptimum:
        """Find the plan of least effective energy that ends by ``time``."""
        dag = self._pipeline.dag
        count = len(dag.steps)
        cost: list[float] = [0.0] * count
        lower = list(dag.release)
        upper = [time] * count
        columns: list[list[int]] = []
        # Options cost their excess over the cheapest, which keeps numbers small.
        least = [options[-1][1] for options in self._options]
        for options, base in zip(self._options, least, strict=True):
            columns.append(list(range(len(cost), len(cost) + len(options))))
            cost += [c - base for _, c in options]
            lower += [0.0] * len(options)
            upper += [1.0] * len(options)
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
            pairs = zip(columns[i], self._options[i], strict=True)
            return [(i, -1.0), *((column, -t) for column, (t, _) in pairs)]

        has_successor = {source for source, _, _ in dag.precedences}
        for i in range(count):
            row([(column, 1.0) for column in columns[i]], 1.0, 1.0)
            if i not in has_successor:
                row(minus_duration(i), dag.tail - time, highspy.kHighsInf)
        for i, j, delay in dag.precedences:
            row([(j, 1.0), *minus_duration(i)], delay, highspy.kHighsInf)
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
            ("mip_rel_gap", self._gap),
            ("mip_abs_gap", 1e-9),
            ("mip_feasibility_tolerance", 1e-9),
            ("primal_feasibility_tolerance", 1e-9),
            ("time_limit", self._seconds),
        ):
            solver.setOptionValue(name, option)
        solver.passModel(lp)
        solver.run()
        info = solver.getInfo()
        chosen = solver.getSolution().col_value
        picked = [int(np.argmax([chosen[column] for column in own])) for own in columns]
        durations = [self._options[i][k][0] for i, k in enumerate(picked)]
        return DiscreteOptimum(
            best=math.fsum(self._options[i][k][1] for i, k in enumerate(picked)),
            bound=math.fsum(least) + info.mip_dual_bound,
            proved=solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
            time=replay(dag, durations),
        )
