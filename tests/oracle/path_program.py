# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The best plan whose computations share knobs, by a program over paths.

There are few groups, so instead of a variable for the start of every computation there is a row
for every path that matters: its computations' times add up to the deadline at most. Paths are
added as solutions are found to break them. Rows of this kind are knapsacks, which HiGHS knows
much about: it proves in seconds what it does not in minutes from start times.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import highspy
import numpy as np

from .dag import replay
from .mip import DiscreteOptimum, choices_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .dag import Dag, Pipeline
    from .mip import Choice

LATE = 1e-9  # A path may be longer than the deadline by such a share: rounding.
PATHS_A_ROUND = 20


class _Paths:
    """Longest paths of a DAG."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._order = dag.topological_order()
        self._before: list[list[tuple[int, float]]] = [[] for _ in dag.steps]
        self._after: list[list[tuple[int, float]]] = [[] for _ in dag.steps]
        for i, j, delay in dag.precedences:
            self._before[j].append((i, delay))
            self._after[i].append((j, delay))

    def longest_through_each(self, durations: Sequence[float]) -> Iterator[tuple[float, list[int]]]:
        """Return the longest path through each computation, with its length."""
        count = len(durations)
        end, last = [0.0] * count, [-1] * count
        for i in self._order:
            start = self._dag.release[i]
            for j, delay in self._before[i]:
                if end[j] + delay > start:
                    start, last[i] = end[j] + delay, j
            end[i] = start + durations[i]
        rest, following = [0.0] * count, [-1] * count
        for i in reversed(self._order):
            for j, delay in self._after[i]:
                if delay + durations[j] + rest[j] > rest[i]:
                    rest[i], following[i] = delay + durations[j] + rest[j], j
        for i in range(count):
            path = [i]
            while last[path[0]] >= 0:
                path.insert(0, last[path[0]])
            while following[path[-1]] >= 0:
                path.append(following[path[-1]])
            yield end[i] + rest[i] + self._dag.tail, path

    def fixed_seconds(self, path: Sequence[int]) -> float:
        """Return what a path takes besides its computations."""
        total = self._dag.release[path[0]] + self._dag.tail
        for i, j in zip(path, path[1:], strict=False):
            total += max(delay for k, delay in self._before[j] if k == i)
        return total


class PathProgram:
    """One binary variable per group of computations and choice that none other beats."""

    def __init__(
        self, pipeline: Pipeline, groups: Sequence[Sequence[int]], seconds: float = math.inf
    ) -> None:
        """Take a pipeline.

        Parameters
        ----------
        pipeline
            The computations and their options.
        groups
            Computations that share a knob.
        seconds
            Time limit.
        """
        self._pipeline = pipeline
        self._groups = [list(group) for group in groups]
        self._choices = [choices_of(pipeline, members) for members in self._groups]
        self._paths = _Paths(pipeline.dag)
        self._seconds = seconds
        self._place = {i: (g, k) for g, own in enumerate(self._groups) for k, i in enumerate(own)}

    def solve(self, limit: float, below: float = math.inf) -> DiscreteOptimum:
        """Find the plan of least effective energy that ends by ``limit``.

        Parameters
        ----------
        limit
            Deadline in seconds.
        below
            Only plans of at most this effective energy count. It is the bound, and proved,
            where there is none.
        """
        begin = time.monotonic()
        least = math.fsum(choices[0][0] for choices in self._choices)
        solver, columns = self._program(below - least)
        added: set[frozenset[int]] = set()
        relaxed = True  # Without whole numbers first: that is quick, and finds most paths.
        while True:
            left = self._seconds - (time.monotonic() - begin)
            solver.setOptionValue("time_limit", solver.getRunTime() + max(left, 0.0))
            solver.run()
            status = solver.getModelStatus()
            if status == highspy.HighsModelStatus.kInfeasible:
                return DiscreteOptimum(best=math.inf, bound=below, proved=True, time=math.inf)
            info = solver.getInfo()
            if status != highspy.HighsModelStatus.kOptimal:
                bound = -math.inf if relaxed else info.mip_dual_bound
                return DiscreteOptimum(math.inf, least + bound, proved=False, time=math.inf)
            shares = solver.getSolution().col_value
            durations = self._durations(columns, shares)
            late = [
                (length, path)
                for length, path in self._paths.longest_through_each(durations)
                if length > limit * (1 + LATE)
            ]
            late.sort(key=lambda each: -each[0])
            new = [path for _, path in late if frozenset(path) not in added]
            for path in new[:PATHS_A_ROUND]:
                if frozenset(path) not in added:
                    added.add(frozenset(path))
                    self._add_path(solver, columns, path, limit)
            if new:
                continue
            if relaxed:
                relaxed = False
                for own in columns:
                    for column in own:
                        solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
                continue
            cost = info.objective_function_value
            bound = min(info.mip_dual_bound, cost)
            return DiscreteOptimum(
                least + cost, least + bound, proved=True, time=replay(self._pipeline.dag, durations)
            )

    def _program(self, budget: float) -> tuple[highspy.Highs, list[list[int]]]:
        """Return the program without any path, and the columns of each group."""
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, option in (
            ("output_flag", False),
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 1e-9),
            ("mip_feasibility_tolerance", 1e-9),
            ("primal_feasibility_tolerance", 1e-9),
        ):
            solver.setOptionValue(name, option)
        # Choices cost their excess over the cheapest, which keeps numbers small.
        costs = [cost - own[0][0] for own in self._choices for cost, _ in own]
        solver.addVars(len(costs), np.zeros(len(costs)), np.ones(len(costs)))
        for column, cost in enumerate(costs):
            solver.changeColCost(column, cost)
        columns = []
        first = 0
        for choices in self._choices:
            columns.append(list(range(first, first + len(choices))))
            first += len(choices)
            self._add_row(solver, 1.0, 1.0, [(column, 1.0) for column in columns[-1]])
        if budget < math.inf:
            cells = [(column, cost) for column, cost in enumerate(costs) if cost != 0.0]
            self._add_row(solver, -highspy.kHighsInf, budget, cells)
        return solver, columns

    @staticmethod
    def _add_row(
        solver: highspy.Highs, low: float, high: float, cells: list[tuple[int, float]]
    ) -> None:
        index = np.array([column for column, _ in cells], dtype=np.int32)
        solver.addRow(low, high, len(cells), index, np.array([value for _, value in cells]))

    def _add_path(
        self, solver: highspy.Highs, columns: list[list[int]], path: list[int], limit: float
    ) -> None:
        seconds: dict[int, float] = defaultdict(float)
        for i in path:
            group, member = self._place[i]
            for column, (_, times) in zip(columns[group], self._choices[group], strict=True):
                seconds[column] += times[member]
        most = limit * (1 + LATE) - self._paths.fixed_seconds(path)
        self._add_row(solver, -highspy.kHighsInf, most, sorted(seconds.items()))

    def _durations(self, columns: list[list[int]], shares: Sequence[float]) -> list[float]:
        durations = [0.0] * len(self._pipeline.options)
        for own, choices, members in zip(columns, self._choices, self._groups, strict=True):
            used: list[tuple[float, Choice]] = [
                (shares[column], choice) for column, choice in zip(own, choices, strict=True)
            ]
            for k, i in enumerate(members):
                durations[i] = math.fsum(share * times[k] for share, (_, times) in used)
        return durations
