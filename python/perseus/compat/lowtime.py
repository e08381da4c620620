# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A graph of lowtime's operations, solved by the planner of Perseus.

lowtime (https://github.com/ml-energy/lowtime) describes operations by `OperationSpec`s with
`ExecutionOption`s, on the nodes of a networkx DiGraph. Nothing of lowtime or networkx is imported:
what has the same attributes will do.

>>> from perseus.compat.lowtime import PhillipsDessouky, Solution
>>> for result in PhillipsDessouky(dag).run():  # As lowtime's, and its operations are set alike.
...     print(result.real_time, result.cost)
>>> Solution(dag).choose(deadline=5.3).knobs

What differs: the options are used as measured, with their real times and costs, where lowtime
rounds times down to its unit and works on an exponential fit; see docs/reference/python.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from perseus.dag import Dag
from perseus.planner import Frontier
from perseus.planner_error import PlannerError

__all__ = ["Assignment", "IterationResult", "PhillipsDessouky", "Solution"]

_NOTHING = [(0.0, 0.0)]
# Sums of the same times in another order differ by less: an assignment that meets a deadline does
# so whichever of two like operations comes first.
_SAME_TIME = 1e-12
# lowtime's steps, too, take longer the more operations there are.
_EFFORT_PER_OPERATION = 1e-5


@dataclass(frozen=True)
class Assignment:
    """One execution option for each operation.

    Attributes
    ----------
    options
        The option of each operation, by its node, or by (u, v) where it is on an edge.
    real_time, cost
        Of all, from the options' own real times and costs.
    lower_bound
        No assignment that takes this time costs less.
    """

    options: dict[Hashable, Any]
    real_time: float
    cost: float
    lower_bound: float

    @property
    def knobs(self) -> dict[Hashable, Any]:
        """The knob of each operation."""
        return {key: option.knob for key, option in self.options.items()}


@dataclass(frozen=True)
class IterationResult:
    """One step of `PhillipsDessouky.run`.

    Attributes
    ----------
    iteration
        0 is the slowest time that saves anything.
    cost_change
        Against the step before.
    cost, real_time
        The cost of the options that are assigned, and the deadline that they meet.
    quant_time
        The deadline in units, rounded down.
    lower_bound
        No assignment that meets the deadline costs less.
    assignment
        What is assigned: `assignment.real_time` says when it really ends.
    """

    iteration: int
    cost_change: float
    cost: float
    quant_time: int
    unit_time: float
    real_time: float
    lower_bound: float
    assignment: Assignment


class _Operations:
    """The operations of a graph in the order of a `Dag`, by node or edge."""

    def __init__(self, graph: Any, attr_name: str) -> None:
        self.keys: list[Hashable] = []
        self.operations: list[Any] = []  # None: nothing is done there.
        self.options: list[list[Any]] = []
        self._tables: dict[int, tuple[object, list[Any], list[tuple[float, float]]]] = {}
        self._points: list[list[tuple[float, float]]] = []
        index: dict[Hashable, int] = {}
        for node, attributes in graph.nodes(data=True):
            index[node] = self._add(node, attributes.get(attr_name))
        self.precedences: list[tuple[int, int]] = []
        for u, v, attributes in graph.edges(data=True):
            operation = attributes.get(attr_name)
            if _is_dummy(operation):
                self.precedences.append((index[u], index[v]))
                continue
            between = self._add((u, v), operation)
            self.precedences += [(index[u], between), (between, index[v])]
        if all(operation is None for operation in self.operations):
            raise PlannerError(
                "there is no operation in the graph; they are attributes of nodes or edges with "
                f"the name {attr_name!r}"
            )

    def dag(self) -> Dag:
        return Dag(self._points, self.precedences)

    @functools.cached_property
    def order(self) -> list[tuple[int, list[int], list[int]]]:
        """Each operation after those before it, with those next to it on both sides."""
        before: list[list[int]] = [[] for _ in self.keys]
        after: list[list[int]] = [[] for _ in self.keys]
        for u, v in self.precedences:
            before[v].append(u)
            after[u].append(v)
        waits = [len(those) for those in before]
        order = [i for i, count in enumerate(waits) if count == 0]
        for i in order:  # Grows.
            for j in after[i]:
                waits[j] -= 1
                if waits[j] == 0:
                    order.append(j)
        return [(i, before[i], after[i]) for i in order]

    def _add(self, key: Hashable, operation: Any) -> int:
        dummy = _is_dummy(operation)
        self.keys.append(key)
        self.operations.append(None if dummy else operation)
        if dummy:
            self.options.append([])
            self._points.append(_NOTHING)
        else:
            options, points = self._table(operation.spec)
            self.options.append(options)
            self._points.append(points)
        return len(self.keys) - 1

    def _table(self, spec: Any) -> tuple[list[Any], list[tuple[float, float]]]:
        if id(spec) not in self._tables:
            candidates = getattr(spec, "options", spec)
            options = list(getattr(candidates, "options", candidates))
            points = [(option.real_time, option.cost) for option in options]
            self._tables[id(spec)] = (spec, options, points)
        return self._tables[id(spec)][1:]


def _is_dummy(operation: Any) -> bool:
    return operation is None or bool(getattr(operation, "is_dummy", False))


class Solution:
    """The exact trade-off of a graph of operations.

    Parameters
    ----------
    graph
        A networkx DiGraph without cycles, with operations on nodes or edges. Nodes without one
        take no time. An operation has `spec.options.options`, a list of options with `real_time`,
        `cost` and `knob`; operations with the same spec share it.
    attr_name
        Of the attribute that holds the operation.

    Attributes
    ----------
    frontier
        The least cost at each time, to which no assignment can be superior.
    """

    def __init__(self, graph: Any, attr_name: str = "op") -> None:
        self._operations = _Operations(graph, attr_name)
        self._dag = self._operations.dag()
        self.frontier: Frontier = self._dag.frontier

    def choose(self, deadline: float, *, effort: float = 1.0) -> Assignment:
        """Return one option for each operation, so that all end by the deadline (but for rounding).

        Raises
        ------
        PlannerError
            No assignment does.
        """
        choice = self._dag.choose(deadline * (1 + _SAME_TIME), effort=effort)
        every = self._operations
        options = {
            key: every.options[i][choice.options[i]]
            for i, key in enumerate(every.keys)
            if every.operations[i] is not None
        }
        return Assignment(options, choice.time, choice.cost, choice.lower_bound)

    def assign(self, assignment: Assignment) -> None:
        """Set `assigned_knob` of each operation, and its `duration` where it has one.

        The earliest and latest times of an operation, in units, are set where it has them.
        """
        every = self._operations
        for key, operation in zip(every.keys, every.operations):
            if operation is None:
                continue
            option = assignment.options[key]
            _set(operation, duration=option.quant_time)
            operation.assigned_knob = option.knob
        _set_times(every)

    @property
    def size(self) -> int:
        """How many nodes and operations there are."""
        return len(self._operations.keys)

    def unit_times(self) -> set[float]:
        """Return all units of time that options name."""
        return {
            option.unit_time
            for options in self._operations.options
            for option in options
            if hasattr(option, "unit_time")
        }


def _set(operation: Any, **values: int) -> None:
    """Set those attributes that an operation has and that change: lowtime's are slow to set."""
    for name, value in values.items():
        if getattr(operation, name, value) != value:
            setattr(operation, name, value)


def _set_times(every: _Operations) -> None:
    """Set when each operation starts and finishes, in its units, as lowtime does."""
    durations = [getattr(operation, "duration", 0) for operation in every.operations]
    start = [0] * len(durations)
    for i, before, _ in every.order:
        start[i] = max([start[j] + durations[j] for j in before], default=0)
    end = max(begin + duration for begin, duration in zip(start, durations))
    finish = [end] * len(durations)
    for i, _, after in reversed(every.order):
        finish[i] = min([finish[j] - durations[j] for j in after], default=end)
    for operation, duration, begin, last in zip(every.operations, durations, start, finish):
        _set(
            operation,
            earliest_start=begin,
            earliest_finish=begin + duration,
            latest_start=last - duration,
            latest_finish=last,
        )


class PhillipsDessouky:
    """In the place of `lowtime.solver.PhillipsDessouky`.

    Parameters
    ----------
    dag, attr_name
        As `Solution` has them. One source and one sink, which lowtime needs, are not needed.
    unit_time
        What a step takes off the time; None: that of the options, which must be the same of all.
    effort
        Of the search for each step's options; see `Solution.choose`. None: little, so that a step
        takes less time than one of lowtime's.
    """

    def __init__(
        self,
        dag: Any,
        attr_name: str = "op",
        *,
        unit_time: float | None = None,
        effort: float | None = None,
    ) -> None:
        self.solution = Solution(dag, attr_name)
        if unit_time is None:
            found = self.solution.unit_times()
            if len(found) != 1:
                raise PlannerError(
                    f"expected the same unit_time of all operations, found {sorted(found)}; "
                    "or give one"
                )
            unit_time = found.pop()
        if not (unit_time > 0 and math.isfinite(unit_time)):
            raise PlannerError(f"the unit of time is {unit_time!r}; expected a number > 0")
        self.unit_time = unit_time
        if effort is None:
            effort = _EFFORT_PER_OPERATION * self.solution.size
        self.effort = effort

    def run(self) -> Iterator[IterationResult]:
        """Go from the slowest time that saves anything to the fastest, a unit at a time.

        Before each result the operations of the graph are set to it, in place.
        """
        frontier = self.solution.frontier
        last: Assignment | None = None
        cost = 0.0
        for iteration, deadline in enumerate(self._deadlines()):
            # A point that ended earlier than it had to is still the cheapest.
            if last is None or last.real_time > deadline:
                last = self.solution.choose(deadline, effort=self.effort)
                self.solution.assign(last)
            change = last.cost - cost if iteration else 0.0
            cost = last.cost
            yield IterationResult(
                iteration=iteration,
                cost_change=change,
                cost=cost,
                quant_time=int(deadline // self.unit_time),
                unit_time=self.unit_time,
                real_time=deadline,
                lower_bound=frontier.energy_at(deadline),
                assignment=last,
            )

    def _deadlines(self) -> Iterator[float]:
        frontier = self.solution.frontier
        slowest, fastest = frontier.tstar_seconds, frontier.fastest_seconds
        yield slowest
        units = math.ceil(slowest / self.unit_time) - 1
        while units * self.unit_time > fastest:
            yield units * self.unit_time
            units -= 1
        if fastest < slowest:
            yield fastest
