# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Any graph of operations, each with some options of time and cost: the exact trade-off.

>>> from perseus import Dag
>>> cut, paint, ship = [(2, 90), (4, 40)], [(3, 50), (6, 20)], [(1, 5)]
>>> dag = Dag([cut, paint, paint, ship], [(0, 1), (0, 2), (1, 3), (2, 3)])
>>> dag.frontier.points
>>> dag.choose(9).options
"""

from __future__ import annotations

import ctypes
import functools
import operator
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional

from perseus import planner_library as abi
from perseus.planner import Frontier
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable

    Options = Iterable[tuple[float, float]]
    Progress = Optional[Callable[[float], object]]

_INT32 = 2**31


class Choice(NamedTuple):
    """One option for each operation.

    Attributes
    ----------
    options
        The index of each operation's option.
    time, cost
        Of all: the longest path, and the sum.
    lower_bound
        No choice that takes this time costs less.
    """

    options: tuple[int, ...]
    time: float
    cost: float
    lower_bound: float


class Dag:
    """Operations that wait for each other, and their frontier of time and cost.

    Parameters
    ----------
    operations
        For each its options, (time, cost) each, in any order and units. Operations with one and
        the same list share it, which is quicker.
    precedences
        (from, to) or (from, to, delay): `to` starts no earlier than `delay` after `from` ends.
    ranks
        The device of each operation, from 0, where they run one after the other: the search looks
        at neighbours together. None: found from the precedences.
    begins
        Before which each operation does not start; None: all 0.
    progress
        Called now and then with the share that is done; False gives up.

    Raises
    ------
    PlannerError
        A cycle, an index out of range, a number that is none, too large a graph.
    """

    def __init__(
        self,
        operations: Iterable[Options],
        precedences: Iterable[Sequence[int | float]] = (),
        *,
        ranks: Sequence[int] | None = None,
        begins: Sequence[float] | None = None,
        progress: Progress = None,
    ) -> None:
        library = abi.load()
        tables: dict[int, tuple[int, Options]] = {}  # The list, too, so that its id stays its own.
        first, times, costs, curve_of = [0], [], [], []
        for options in operations:
            if id(options) not in tables:
                tables[id(options)] = (len(tables), options)
                for time, cost in options:
                    times.append(_float(time))
                    costs.append(_float(cost))
                first.append(len(times))
            curve_of.append(tables[id(options)][0])
        edges = [(*edge, 0.0)[:3] for edge in precedences]

        struct = abi.sized(abi.DagStruct)
        struct.num_operations = len(curve_of)
        struct.num_curves = len(tables)
        struct.curve_of = (ctypes.c_int32 * len(curve_of))(*curve_of)
        struct.first_option = (ctypes.c_int32 * len(first))(*first)
        struct.option_time = (ctypes.c_double * len(times))(*times)
        struct.option_cost = (ctypes.c_double * len(costs))(*costs)
        struct.num_precedences = len(edges)
        struct.from_ = (ctypes.c_int32 * len(edges))(*(_index(edge[0]) for edge in edges))
        struct.to = (ctypes.c_int32 * len(edges))(*(_index(edge[1]) for edge in edges))
        struct.delay = (ctypes.c_double * len(edges))(*(_float(edge[2]) for edge in edges))
        for given, what in ((ranks, "ranks"), (begins, "begins")):
            if given is not None and len(given) != len(curve_of):
                raise PlannerError(f"{len(given)} {what} for {len(curve_of)} operations")
        if ranks is not None:
            struct.rank = (ctypes.c_int32 * len(ranks))(*map(_index, ranks))
        if begins is not None:
            struct.begin = (ctypes.c_double * len(begins))(*map(_float, begins))

        watched = abi.Watched(progress)
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        status = library.perseus_dag_solve(
            ctypes.byref(struct),
            watched.function,
            None,
            ctypes.byref(handle),
            ctypes.byref(message),
        )
        if handle.value:
            self._finalizer = weakref.finalize(self, library.perseus_dag_free, handle)
        watched.check(library, status, message)
        self._handle = handle
        self._size = len(curve_of)

    def __len__(self) -> int:
        """How many operations there are."""
        return self._size

    @functools.cached_property
    def frontier(self) -> Frontier:
        """The exact lower bound of the cost at each time: joules stand for costs."""
        library = abi.load()
        struct = abi.sized(abi.FrontierStruct)
        abi.check(library.perseus_dag_frontier(self._handle, ctypes.byref(struct), None))
        return Frontier(struct, _csv(struct))

    def choose(self, deadline: float, *, effort: float = 1.0, progress: Progress = None) -> Choice:
        """Return one option for each operation, so that all end by the deadline.

        Parameters
        ----------
        effort
            Scales the work of the search: 1 for a choice that will be used, less for a quick one.

        Raises
        ------
        PlannerError
            No choice ends by then.
        """
        library = abi.load()
        options = (ctypes.c_int32 * self._size)()
        choice = abi.sized(abi.ChoiceStruct)
        watched = abi.Watched(progress)
        message = ctypes.c_void_p()
        status = library.perseus_dag_choose(
            self._handle,
            _float(deadline),
            _float(effort),
            watched.function,
            None,
            options,
            ctypes.byref(choice),
            ctypes.byref(message),
        )
        watched.check(library, status, message)
        return Choice(tuple(options), choice.time, choice.cost, choice.lower_bound)


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise PlannerError(f"expected a number, found {value!r}") from None


def _index(value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = _INT32
    if not -_INT32 <= number < _INT32:
        raise PlannerError(f"expected the index of an operation, found {value!r}")
    return number


def _csv(struct: abi.FrontierStruct) -> str:
    rows = zip(
        struct.time_seconds[: struct.count],
        struct.energy_joules[: struct.count],
        struct.slope_watts[: struct.count],
    )
    return "time,cost,slope\n" + "".join(f"{t!r},{c!r},{s!r}\n" for t, c, s in rows)
