# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The lower bound E(T) as a linear program, with a certified bracket.

The linear program is solved by HiGHS, but no result is believed because a
solver says so: its primal durations give a feasible schedule, hence an upper
bound on the optimum, and its duals give a Lagrangian lower bound. Both are
recomputed here. The true optimum lies between them, whatever tolerance the
solver worked to, up to the rounding of a few thousand double additions.
"""

from __future__ import annotations

import math
import time as clock
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Point = tuple[float, float]


def lower_hull(points: Sequence[Point]) -> list[Point]:
    """Return the vertices of the falling part of the lower convex hull.

    Parameters
    ----------
    points
        (time, cost) pairs in any order.

    Returns
    -------
    list of (time, cost)
        Times ascending, costs descending; at least one vertex.
    """
    hull: list[Point] = []
    for time, cost in sorted(points):
        if hull and cost >= hull[-1][1]:
            continue
        while len(hull) >= 2:
            (t0, c0), (t1, c1) = hull[-2], hull[-1]
            if (c1 - c0) * (time - t0) < (cost - c0) * (t1 - t0):
                break
            hull.pop()
        hull.append((time, cost))
    return hull


def hull_cost(hull: Sequence[Point], time: float) -> float:
    """Cost at a duration on a hull; beyond its last vertex the last cost."""
    if time >= hull[-1][0]:
        return hull[-1][1]
    for (t0, c0), (t1, c1) in zip(hull, hull[1:], strict=False):
        if time <= t1:
            return c0 + (c1 - c0) * (max(time, t0) - t0) / (t1 - t0)
    return hull[-1][1]


@dataclass
class Network:
    """A project: activities with convex cost curves, and precedences.

    Attributes
    ----------
    hulls
        Per activity, hull vertices (time, cost).
    precedences
        (from, to, delay): ``to`` starts no earlier than delay after ``from`` ends.
    release
        Earliest start of each activity.
    tail
        Time from the last end to the end of the project.
    """

    hulls: list[list[Point]]
    precedences: list[tuple[int, int, float]]
    release: list[float]
    tail: float = 0.0

    def __post_init__(self) -> None:
        """Fix a topological order."""
        waits = [0] * len(self.hulls)
        self._after: list[list[tuple[int, float]]] = [[] for _ in self.hulls]
        for source, target, delay in self.precedences:
            waits[target] += 1
            self._after[source].append((target, delay))
        self._order = [i for i, count in enumerate(waits) if count == 0]
        for i in self._order:
            for j, _ in self._after[i]:
                waits[j] -= 1
                if waits[j] == 0:
                    self._order.append(j)
        if len(self._order) != len(self.hulls):
            raise ValueError("the precedences form a cycle")

    def makespan(self, durations: Sequence[float]) -> float:
        """Longest path, everything as early as possible."""
        start = list(self.release)
        latest = 0.0
        for i in self._order:
            end = start[i] + durations[i]
            latest = max(latest, end)
            for j, delay in self._after[i]:
                start[j] = max(start[j], end + delay)
        return latest + self.tail

    @property
    def fastest(self) -> float:
        """Makespan with every activity at its least time."""
        return self.makespan([hull[0][0] for hull in self.hulls])

    @property
    def cheapest(self) -> float:
        """Makespan with every activity at its least cost."""
        return self.makespan([hull[-1][0] for hull in self.hulls])


@dataclass(frozen=True)
class Bracket:
    """What is proved about the optimum at one time.

    Attributes
    ----------
    time
        The makespan of the schedule behind the upper bound: within the
        solver's feasibility tolerance of the time that was asked for.
    lower, upper
        Bounds on the least total cost at ``time``.
    price
        -dE/dT according to the duals.
    """

    time: float
    lower: float
    upper: float
    price: float


class LinearProgram:
    """The least total cost of a network for a makespan, by HiGHS.

    Variables are the start of each activity and, per hull segment, by how much
    the activity is shortened along it; times and costs are scaled to about 1.
    ``solver_seconds`` is the CPU time that HiGHS has used.
    """

    def __init__(
        self,
        network: Network,
        tolerance: float = 1e-10,
        settings: Mapping[str, str] = MappingProxyType({"solver": "simplex", "presolve": "off"}),
    ) -> None:
        """Build the program; ``tolerance`` is HiGHS' primal and dual feasibility."""
        self._network = network
        hulls = network.hulls
        count = len(hulls)
        spans = [h[-1][0] - h[0][0] for h in hulls if len(h) > 1]
        rises = [h[0][1] - h[-1][1] for h in hulls if len(h) > 1]
        self._time_unit = max(spans, default=0.0) or 1.0
        self._cost_unit = max(rises, default=0.0) or 1.0
        cost = [0.0] * count
        upper = [highspy.kHighsInf] * count
        segments: list[list[int]] = []
        for hull in hulls:
            columns = []
            for (t0, c0), (t1, c1) in zip(hull, hull[1:], strict=False):
                columns.append(len(cost))
                cost.append((c0 - c1) / (t1 - t0) * self._time_unit / self._cost_unit)
                upper.append((t1 - t0) / self._time_unit)
            segments.append(columns)
        has_successor = {source for source, _, _ in network.precedences}
        self._sinks = [i for i in range(count) if i not in has_successor]
        index: list[int] = []
        value: list[float] = []
        start = [0]
        row_lower: list[float] = []
        for i, j, delay in network.precedences:
            index += [j, i, *segments[i]]
            value += [1.0, -1.0, *([1.0] * len(segments[i]))]
            start.append(len(index))
            row_lower.append((hulls[i][-1][0] + delay) / self._time_unit)
        for i in self._sinks:
            index += [i, *segments[i]]
            value += [-1.0, *([1.0] * len(segments[i]))]
            start.append(len(index))
            row_lower.append(0.0)
        lp = highspy.HighsLp()
        lp.num_col_ = len(cost)
        lp.num_row_ = len(row_lower)
        lp.col_cost_ = np.array(cost)
        lower = np.zeros(len(cost))
        lower[:count] = np.array(network.release) / self._time_unit
        lp.col_lower_ = lower
        lp.col_upper_ = np.array(upper)
        lp.row_lower_ = np.array(row_lower)
        lp.row_upper_ = np.full(len(row_lower), highspy.kHighsInf)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(start, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(index, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(value)
        self._segments = segments
        self.solver_seconds = 0.0
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            **settings,
        }
        for name, option in options.items():
            self._highs.setOptionValue(name, option)
        if self._highs.passModel(lp) == highspy.HighsStatus.kError:
            raise RuntimeError("HiGHS refused the model")

    def solve(self, time: float) -> Bracket:
        """Solve for one makespan and certify the answer.

        Parameters
        ----------
        time
            The makespan allowed, at least the network's fastest.
        """
        network = self._network
        first = len(network.precedences)
        for row, i in enumerate(self._sinks, start=first):
            least = (network.hulls[i][-1][0] + network.tail - time) / self._time_unit
            self._highs.changeRowBounds(row, least, highspy.kHighsInf)
        begin = clock.process_time()
        self._highs.run()
        self.solver_seconds += clock.process_time() - begin
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            # At T_min itself a last bit may be missing: ask for a hair more.
            return self.solve(math.nextafter(time, math.inf) * (1 + 1e-13))
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS ends with {status}")
        solution = self._highs.getSolution()
        return self._certify(np.array(solution.col_value), np.array(solution.row_dual))

    def _certify(self, primal: NDArray[np.float64], dual: NDArray[np.float64]) -> Bracket:
        network = self._network
        hulls = network.hulls
        durations = []
        for hull, columns in zip(hulls, self._segments, strict=True):
            cut = math.fsum(primal[c] for c in columns) * self._time_unit
            durations.append(min(max(hull[-1][0] - cut, hull[0][0]), hull[-1][0]))
        upper = math.fsum(hull_cost(h, d) for h, d in zip(hulls, durations, strict=True))
        time = network.makespan(durations)

        # Lagrangian bound with prices on precedences (f) and on the end (g).
        prices = np.maximum(dual, 0.0) * (self._cost_unit / self._time_unit)
        outflow = [0.0] * len(hulls)
        inflow = [0.0] * len(hulls)
        terms: list[float] = []
        for (i, j, delay), f in zip(network.precedences, prices, strict=False):
            outflow[i] += f
            inflow[j] += f
            terms.append(f * delay)
        total = 0.0
        for i, g in zip(self._sinks, prices[len(network.precedences) :], strict=True):
            outflow[i] += g
            total += g
            terms.append(g * network.tail)
        for i, hull in enumerate(hulls):
            x = outflow[i]
            terms.append(min(c + x * t for t, c in hull))
            # Flow that leaves a node without entering it comes from the source; what
            # enters without leaving is the solver's inaccuracy, paid for in full.
            leak = x - inflow[i]
            terms.append(leak * network.release[i] if leak > 0 else leak * time)
        terms.append(-total * time)
        return Bracket(time, math.fsum(terms), upper, total)
