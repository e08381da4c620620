# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""One iteration of one pipeline, event by event: clocks come into effect, computations end."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .emulation_calls import SHORTEST_WAIT, Predictor
from .tables import knob_is_number

if TYPE_CHECKING:
    from .dag import Pipeline
    from .emulation_calls import Clock, Expectation
    from .emulation_scenario import Scenario
    from .tables import Option


@dataclass
class Piece:
    """A part of a computation at one clock."""

    start: float
    end: float
    option: Option
    share: float


@dataclass
class Run:
    """One pipeline in one iteration."""

    pieces: list[list[Piece]]
    end: float
    late: int = 0


_CALL_ENDS, _ENDS, _DECIDES, _STARTS = range(4)


class PipelineRun:
    """Runs one iteration of one pipeline, event by event."""

    def __init__(
        self,
        pipeline: Pipeline,
        scenario: Scenario,
        plan: list[Option],
        factors: list[float],
        clocks: list[Clock],
        before: list[str | None],
        data_stall: list[float],
        expected: list[Expectation],
    ) -> None:
        self._pipeline = pipeline
        self._scenario = scenario
        self._plan = plan
        self._factors = factors
        self._clocks = clocks
        dag = pipeline.dag
        self._ready = list(dag.release)
        self._waits = [0] * len(plan)
        self._after: list[list[tuple[int, float]]] = [[] for _ in plan]
        for source, target, delay in dag.precedences:
            self._waits[target] += 1
            self._after[source].append((target, delay))
        self._next: list[int | None] = [None] * len(plan)
        self._stall = [0.0] * len(plan)
        for rank, order in enumerate(dag.rank_order):
            self._ready[order[0]] = max(self._ready[order[0]], data_stall[rank])
            knob = before[rank]
            for position, i in enumerate(order):
                if position:
                    self._next[order[position - 1]] = i
                if knob is not None and knob != plan[i].knob:
                    self._stall[i] = scenario.stall
                knob = plan[i].knob
        self._events: list[tuple[float, int, int, int]] = []
        self._running: list[int | None] = [None] * len(dag.rank_order)
        self._free = [0.0] * len(dag.rank_order)  # When its last computation ended.
        self._share_left = [1.0] * len(plan)
        self._since = [0.0] * len(plan)
        self._version = [0] * len(plan)
        self._run = Run([[] for _ in plan], 0.0)
        # By rank: while its row is not the last that ended.
        self._predictors: list[Predictor | None] = [Predictor(scenario, own) for own in expected]
        if not expected:
            self._predictors = [None] * len(dag.rank_order)
        self._decision = [0] * len(dag.rank_order)  # Counted: newer ones replace older ones.

    def run(self) -> Run:
        """Run until the last computation has ended."""
        dag = self._pipeline.dag
        for rank, clock in enumerate(self._clocks):
            if clock.calling is not None:
                heapq.heappush(self._events, (clock.done, _CALL_ENDS, rank, 0))
            else:
                self._decide(rank, 0.0)
        if self._scenario.ahead == "end" and not self._scenario.at_once():
            for order in dag.rank_order:
                self._ask(order[0], 0.0)
        for i, waits in enumerate(self._waits):
            if waits == 0:
                self._release(i)
        left = len(self._plan)
        last_end = 0.0
        while left:
            now, kind, who, version = heapq.heappop(self._events)
            if kind == _CALL_ENDS:
                if self._clocks[who].calling is not None and self._clocks[who].done == now:
                    self._call_ends(who, now)
            elif kind == _DECIDES:
                if version == self._decision[who]:
                    self._decide(who, now)
            elif kind == _STARTS:
                self._start(who, now)
            elif version == self._version[who]:
                left -= 1
                last_end = max(last_end, now)
                self._end(who, now)
        self._run.end = last_end + dag.tail
        return self._run

    def _option(self, i: int, knob: str) -> Option:
        """Return the option of a computation at a clock, or at the nearest that it has."""
        options = self._pipeline.options[i]
        for option in options:
            if option.knob == knob:
                return option
        if not knob_is_number(knob):
            return self._plan[i]
        clock = float(knob)
        return min(options, key=lambda o: (abs(float(o.knob) - clock), float(o.knob)))

    def _ask(self, i: int, now: float) -> None:
        rank = self._pipeline.dag.rank[i]
        self._clocks[rank].wanted = self._plan[i].knob
        self._decide(rank, now)

    def _decide(self, rank: int, now: float) -> None:
        """Begin a call if it is time for one, or say when to decide again."""
        clock = self._clocks[rank]
        self._decision[rank] += 1
        if clock.calling is not None:
            return
        wake = math.inf
        predictor = self._predictors[rank]
        if predictor is not None:
            clock.wanted, wake = predictor.decide(now, clock.knob)
        number = clock.number
        clock.call(now)
        if clock.number > number:
            if predictor is not None:
                predictor.called()
            if clock.calling is not None:
                heapq.heappush(self._events, (clock.done, _CALL_ENDS, rank, 0))
            return
        wake = min(wake, clock.waits_until())
        if math.isfinite(wake):
            heapq.heappush(self._events, (wake, _DECIDES, rank, self._decision[rank]))

    def _call_ends(self, rank: int, now: float) -> None:
        i = self._running[rank]
        if i is not None:
            self._close_piece(i, now)
        self._clocks[rank].end_call()
        self._decide(rank, now)
        if i is not None:
            self._open_piece(i, now)

    def _release(self, i: int) -> None:
        heapq.heappush(self._events, (self._ready[i] + self._stall[i], _STARTS, i, 0))

    def _start(self, i: int, now: float) -> None:
        rank = self._pipeline.dag.rank[i]
        predictor = self._predictors[rank]
        if predictor is not None:
            predictor.starts(now)
            self._decide(rank, now)
        elif self._scenario.ahead != "end" or self._scenario.at_once():
            self._wait_at_own_clock(i, now)
            self._ask(i, now)
        self._run.late += self._clocks[rank].is_late(self._plan[i].knob, now)
        self._running[rank] = i
        self._open_piece(i, now)

    def _wait_at_own_clock(self, i: int, now: float) -> None:
        """Where clocks come at once: the rank has waited for a computation at its own clock."""
        rank = self._pipeline.dag.rank[i]
        clock = self._clocks[rank]
        if not self._scenario.waits_at_own_clock() or not self._pipeline.waiting:
            return
        if now - self._free[rank] > SHORTEST_WAIT:
            waiting = self._pipeline.waiting_knob(rank)
            clock.number += clock.knob != waiting
            clock.set(waiting, now)

    def _seconds(self, i: int) -> float:
        clock = self._clocks[self._pipeline.dag.rank[i]]
        return self._option(i, clock.knob).time * self._factors[i]

    def _open_piece(self, i: int, now: float) -> None:
        self._since[i] = now
        self._version[i] += 1
        end = now + self._share_left[i] * self._seconds(i)
        heapq.heappush(self._events, (end, _ENDS, i, self._version[i]))

    def _close_piece(self, i: int, now: float, ends: bool = False) -> None:
        share = self._share_left[i]
        if not ends:
            share = min(share, (now - self._since[i]) / self._seconds(i))
        self._share_left[i] -= share
        knob = self._clocks[self._pipeline.dag.rank[i]].knob
        piece = Piece(self._since[i], now, self._option(i, knob), share)
        if piece.end > piece.start:
            self._run.pieces[i].append(piece)

    def _end(self, i: int, now: float) -> None:
        self._close_piece(i, now, ends=True)
        rank = self._pipeline.dag.rank[i]
        self._running[rank] = None
        self._free[rank] = now
        following = self._next[i]
        predictor = self._predictors[rank]
        if predictor is not None:
            if predictor.ends(now):
                self._predictors[rank] = None
                self._ask(self._pipeline.dag.rank_order[rank][0], now)
            else:
                self._decide(rank, now)
        elif (
            following is not None and self._scenario.ahead == "end" and not self._scenario.at_once()
        ):
            self._ask(following, now)
        for j, delay in self._after[i]:
            self._ready[j] = max(self._ready[j], now + delay)
            self._waits[j] -= 1
            if self._waits[j] == 0:
                self._release(j)
