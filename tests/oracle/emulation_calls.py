# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The clock of a rank, and when calls for it are made: docs/explanation/emulation.md, "Clocks"."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .emulation_noise import LATENCY_WORD, SPREAD, hash_words
from .tables import knob_is_number

if TYPE_CHECKING:
    from .dag import Dag
    from .emulation_scenario import Scenario
    from .tables import Option

HIGH, LEAST = 1.3, 2.2  # Spreads above and below the latency.
IN_TIME = 1e-6  # Of the latency.
DOUBTS = 4.0  # A gap is surely no shorter than expected by so many.
SHORTEST_WAIT = 1e-6  # That a clock is set for, where clocks come at once.


@dataclass
class Clock:
    """The clock of a rank: in effect, asked for last, and the call that is under way."""

    scenario: Scenario
    pipeline: int
    rank: int
    knob: str
    wanted: str
    calling: str | None = None
    done: float = 0.0
    allowed: float = 0.0  # No call before.
    iteration: int = 0
    number: int = 0  # Of the next call of the iteration.
    # When which knob came into effect: in this iteration, and in the one that ended last.
    changes: list[tuple[float, str]] = field(default_factory=list)
    past: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the knob that is in effect."""
        self.changes.append((0.0, self.knob))

    def _latency(self) -> float:
        scenario = self.scenario
        latency, spread = scenario.latency_of(self.wanted)
        if spread == 0:
            return latency
        words = (LATENCY_WORD, self.pipeline, self.iteration, self.rank, self.number)
        h = hash_words(scenario.seed, *words)
        u = sum((((h >> shift) & 0xFFFF) + 0.5) / 65536 for shift in (0, 16, 32, 48))
        return max(0.0, latency + spread * (SPREAD * (u - 2)))

    def call(self, now: float) -> None:
        """Begin a call for the knob that is wanted, if one is needed and may begin."""
        if self.calling is not None or self.knob == self.wanted or now < self.allowed:
            return
        latency = self._latency()
        self.number += 1
        self.allowed = now + self.scenario.interval
        if self.scenario.at_once():
            self.set(self.wanted, now)
        else:
            self.calling, self.done = self.wanted, now + latency

    def set(self, knob: str, now: float) -> None:
        """Put a knob into effect."""
        self.knob = knob
        self.changes.append((now, knob))

    def end_call(self) -> None:
        """End the call under way."""
        assert self.calling is not None
        self.set(self.calling, self.done)
        self.calling = None

    def waits_until(self) -> float:
        """Return when a call may begin that is wanted and not under way."""
        if self.calling is not None or self.knob == self.wanted:
            return math.inf
        return self.allowed

    def end_iteration(self, time: float) -> int:
        """Go to the start of the next iteration; return how many calls began in this one."""
        while True:
            due = self.done if self.calling is not None else self.waits_until()
            if due > time:
                break
            if self.calling is not None:
                self.end_call()
            self.call(due)
        self.done -= time
        self.allowed -= time
        self.iteration += 1
        self.past, self.changes = self.changes, [(0.0, self.knob)]
        began, self.number = self.number, 0
        return began

    def is_late(self, knob: str, now: float) -> bool:
        """Whether a computation that starts now finds another clock than its own."""
        if self.knob == knob:
            return False
        soon = now + IN_TIME * self.scenario.latency
        return not (self.calling == knob and self.done <= soon)


def _lower(knob: str, other: str) -> bool:
    return not knob_is_number(knob) or float(other) < float(knob)


@dataclass
class Expectation:
    """What a rank expects of its computations, in order."""

    knobs: list[str] = field(default_factory=list)
    planned: list[float] = field(default_factory=list)
    lasts: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    doubts: list[float] = field(default_factory=list)  # How far the gaps are usually off.
    waiting: str | None = None  # The knob of waiting.
    wrap: float = 0.0
    measured: bool = False
    last_end: float | None = None  # Of the iteration before, from this one's start.

    def follow(
        self, knobs: list[str], lasts: list[float], gaps: list[float], changed: bool
    ) -> None:
        """Begin an iteration of a plan; ``changed``: of another than the one before."""
        if self.knobs and not changed:
            return
        if self.measured:
            overall = sum(self.lasts) / sum(self.planned) if sum(self.planned) > 0 else 1.0
            ratios = [
                now / then if then > 0 else overall
                for now, then in zip(self.lasts, self.planned, strict=True)
            ]
            self.lasts = [x * ratio for x, ratio in zip(lasts, ratios, strict=True)]
            self.gaps = [x * overall for x in gaps]
        else:
            self.lasts, self.gaps = list(lasts), list(gaps)
        self.doubts = list(gaps)
        self.knobs, self.planned, self.measured = knobs, lasts, False

    def learn_gap(self, k: int, measured: float) -> None:
        """Learn a gap, and how far gaps are off."""
        off = abs(measured - self.gaps[k])
        doubt = (self.doubts[k] + off) / 2 if self.measured else measured / 2
        small = self.measured and doubt <= measured / 1024
        self.doubts[k] = 0.0 if small else doubt
        self.learn(self.gaps, k, measured)

    def learn(self, values: list[float], k: int, measured: float) -> None:
        """Learn a duration or a gap."""
        values[k] = (values[k] + measured) / 2 if self.measured else measured


def planned_gaps(dag: Dag, plan: list[Option]) -> list[list[float]]:
    """Return what each rank waits before each of its computations in a plan's replay."""
    incoming: list[list[tuple[int, float]]] = [[] for _ in dag.steps]
    for source, target, delay in dag.precedences:
        incoming[target].append((source, delay))
    start, end = [0.0] * len(plan), [0.0] * len(plan)
    for i in dag.topological_order():
        start[i] = max([dag.release[i], *(end[j] + delay for j, delay in incoming[i])])
        end[i] = start[i] + plan[i].time
    gaps = []
    for order in dag.rank_order:
        before = [0.0, *(end[i] for i in order[:-1])]
        gaps.append([max(0.0, start[i] - b) for i, b in zip(order, before, strict=True)])
    return gaps


class Predictor:
    """Decides for a rank, in one iteration, which knob must be called for by now."""

    def __init__(self, scenario: Scenario, expected: Expectation) -> None:
        self._scenario = scenario
        self._most_high = max(map(self._high, expected.knobs))
        self._loss = scenario.early_loss
        self._interval = scenario.interval
        self._expected = expected
        self._row = -1  # Started last.
        self._runs = False
        self._start = 0.0
        self._end = 0.0
        self._called = -1
        self._target = 0

    def starts(self, now: float) -> None:
        """Begin the next row."""
        expected = self._expected
        self._row += 1
        self._runs, self._start = True, now
        expected.learn_gap(self._row, now - self._end)
        if self._row == 0 and expected.last_end is not None:
            measured = now - expected.last_end
            wrap = expected.wrap
            expected.wrap = (wrap + measured) / 2 if wrap > 0 else measured

    def ends(self, now: float) -> bool:
        """End the row that runs; return whether it was the last."""
        expected = self._expected
        expected.learn(expected.lasts, self._row, now - self._start)
        self._runs, self._end = False, now
        last = self._row + 1 == len(expected.knobs)
        if last:
            expected.last_end = now
        return last

    def _high(self, knob: str) -> float:
        latency, spread = self._scenario.latency_of(knob)
        return latency + HIGH * spread

    def _least(self, knob: str) -> float:
        latency, spread = self._scenario.latency_of(knob)
        return max(0.0, latency - LEAST * spread)

    def _waits_until(self, row: int, starts: float) -> float:
        """Return until when the rank may wait at its own clock for a row."""
        expected = self._expected
        if expected.waiting is None:
            return -math.inf
        return starts - DOUBTS * expected.doubts[row] - self._high(expected.knobs[row])

    def _is_worth_waiting(self, since: float, until: float) -> bool:
        """Whether a rank that may wait at its own clock should."""
        waiting = self._expected.waiting
        return waiting is not None and until - since > self._high(waiting) + self._interval

    def decide(self, now: float, in_effect: str) -> tuple[str, float]:
        """Return the knob that should be in effect or called for, and when to ask again.

        Parameters
        ----------
        now
            The time.
        in_effect
            The knob that the rank has.
        """
        expected = self._expected
        row = self._row if self._runs else self._row + 1
        knob, lasts = expected.knobs[row], expected.lasts[row]
        sure = self._start + lasts if self._runs else self._end + expected.gaps[row]
        if not self._runs and row > self._called:
            until = self._waits_until(row, sure)
            waits = in_effect == expected.waiting
            if until > now if waits else self._is_worth_waiting(now, until):
                assert expected.waiting is not None
                self._target = row - 1
                return expected.waiting, until if until <= sure else math.inf
        end = max(now, sure) if self._runs else max(now, sure) + lasts
        wake = math.inf
        for following in range(row + 1, len(expected.knobs) + 1):
            fresh = following > self._called
            if fresh and end - self._most_high > max(now, sure):
                break  # Nothing that comes later is due so soon.
            is_next_iteration = following == len(expected.knobs)
            wanted = expected.knobs[0 if is_next_iteration else following]
            gap = expected.wrap if is_next_iteration else expected.gaps[following]
            starts = end + gap
            if fresh and not is_next_iteration:
                until = self._waits_until(following, starts)
                if self._is_worth_waiting(end, until):
                    break
            if wanted != knob:
                due = starts - self._high(wanted)
                if _lower(knob, wanted):
                    due = max(due, end - self._least(wanted) - self._loss * lasts)
                due = min(end, due)
                if fresh and due > now:
                    wake = due if due <= sure else math.inf
                    break
                row, knob = following, wanted
                if fresh:
                    break
            if not is_next_iteration:
                lasts = expected.lasts[following]
                end = starts + lasts
        self._target = row
        return knob, wake

    def called(self) -> None:
        """Note that a call began for what was decided last."""
        self._called = self._target
