# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Days of a site, simulated under one rule after the other (docs/explanation/fleet.md).

What the jobs can do comes from `perseus fleet curves`. The same input gives the same figures.
"""

from __future__ import annotations

import bisect
import heapq
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy import optimize, sparse

from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

T = TypeVar("T")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_MOMENT = 1e-6  # Seconds: what happens within is one moment.
_SAME_INSTANT = 1e-7  # Rounding of a week's iterations.
_LONGEST_WAIT = 10  # A job that would wait for so many times its slowest plan is paused.
_INFINITY = math.inf


class Run(NamedTuple):
    """What a job does until it is told otherwise: its healthy pipelines, and those that straggle.

    Late ones are then as much slower as they straggle. `choice` tells plans from each other.
    """

    seconds: float  # Infinite: the job is paused.
    joules: float
    late_seconds: float
    late_joules: float
    choice: int


PAUSED = Run(_INFINITY, 0.0, _INFINITY, 0.0, -1)


class Options(NamedTuple):
    """What a job may be told, watts ascending and times descending."""

    runs: list[Run]
    watts: list[float]

    def fastest_within(self, watts: float) -> Run:
        """Return the fastest within these watts; where none is, that of least power."""
        return self.runs[max(0, bisect.bisect_right(self.watts, watts * (1 + 1e-9)) - 1)]


class Curve(NamedTuple):
    """Power over throughput: corners of a convex curve, both ascending, at the meter."""

    x: Floats
    watts: Floats


class Member(NamedTuple):
    """A job as a division sees it: what plans and waiting reach, and the convex bound."""

    bound: Curve
    plans: Curve
    options: list[tuple[float, float, int]]  # x, watts and plan, x and watts ascending.
    steps: list[tuple[float, int, int]]  # Along the hull of the options: key, from, to.


@dataclass
class Job:
    """A job of a site, and what is asked of it. Points are seconds and joules of one pipeline."""

    name: str
    group: str
    gpus: int
    pipelines: int
    weight: float
    fixed_watts: float
    least_watts: float
    waiting_watts: float
    slowest_seconds: float | None
    max_clocks: tuple[float, float]
    frontier: Floats
    plans: Floats
    clocks: Floats  # One clock for all GPUs: MHz, seconds, joules; ascending.
    caps: Floats  # One power cap for all GPUs, likewise.
    late: list[tuple[float, float]]
    parts: list[tuple[int, float]]  # All nodes that carry it, and what part of it.
    meter: float
    arrives: float = 0.0
    spread: float = 0.0
    lasts: float | None = None
    iterations: float | None = None
    deadline: tuple[float, float] | None = None  # Seconds, share of the work of maximum clocks.
    noise: float = 0.0
    straggler_rate: float = 0.0
    straggler_seconds: float = HOUR
    slowdown: float = 1.2
    _known: dict[object, Any] = field(default_factory=dict, repr=False)

    @property
    def fastest(self) -> tuple[float, float]:
        """The fastest plan, which stragglers follow."""
        return float(self.plans[0, 0]), float(self.plans[0, 1])

    @property
    def slowest(self) -> tuple[float, float]:
        """The slowest plan."""
        seconds, joules = self.plans[int(np.argmax(self.plans[:, 0]))].tolist()
        return seconds, joules

    @property
    def full(self) -> Run:
        """Maximum clocks."""
        return Run(*self.max_clocks, *self.max_clocks, 0)

    def pace(self, run: Run, slow: int) -> tuple[float, float]:
        """Return the seconds of an iteration and the watts, with so many stragglers."""
        if run.seconds == _INFINITY:
            return _INFINITY, self.fixed_watts + self.pipelines * self.waiting_watts
        late_seconds = run.late_seconds * self.slowdown
        seconds = max(run.seconds, late_seconds) if slow else run.seconds
        for each, _ in self.late:
            seconds = max(seconds, each)
        healthy = max(0, self.pipelines - slow - len(self.late))
        waiting = self.waiting_watts
        joules = healthy * (run.joules + waiting * (seconds - run.seconds))
        if slow:
            joules += slow * (run.late_joules * self.slowdown + waiting * (seconds - late_seconds))
        for each, energy in self.late:
            joules += energy + waiting * (seconds - each)
        return seconds, self.fixed_watts + joules / seconds

    def full_pace(self, slow: int) -> tuple[float, float]:
        """Return the pace at maximum clocks."""
        return self._once(("full", slow), lambda: self.pace(self.full, slow))

    def accepted(self, slow: int) -> float:
        """Return the longest iteration that the owner accepts; what stragglers take anyway is."""
        if self.slowest_seconds is None:
            return _INFINITY
        return max(self.slowest_seconds, self.full_pace(slow)[0])

    def run_at(self, points: Floats, cap: float) -> Run:
        """Return the run of the highest of `clocks` or `caps` that is within."""
        k = max(0, int(np.searchsorted(points[:, 0], cap, side="right")) - 1)
        _, seconds, joules = points[k].tolist()
        return Run(seconds, joules, seconds, joules, k + 1)

    def clock_options(self, slow: int) -> Options:
        """Return what one clock for the whole job can do, as far as the owner accepts it."""

        def make() -> Options:
            rows = [self.run_at(self.clocks, cap) for cap in self.clocks[:, 0]]
            return self._best(rows, slow)

        return self._once(("clocks", slow), make)

    def plan_options(self, slow: int) -> Options:
        """Return what plans can do, and waiting after the slowest, as far as it is accepted."""

        def make() -> Options:
            fastest = self.fastest
            rows = [Run(t, e, *fastest, k + 1) for k, (t, e) in enumerate(self.plans.tolist())]
            seconds, joules = self.slowest
            for k in range(1, 101):  # In steps of power that are about equal.
                waits = seconds * (1 / (1 - (1 - 1 / _LONGEST_WAIT) * k / 100) - 1)
                waited = joules + self.waiting_watts * waits
                rows.append(Run(seconds + waits, waited, *fastest, len(self.plans)))
            return self._best(rows, slow)

        return self._once(("plans", slow), make)

    def _best(self, runs: list[Run], slow: int) -> Options:
        """Return those that nothing beats in time and power; the fastest, if all are too slow."""
        accepted = self.accepted(slow) * (1 + 1e-9)
        best: list[tuple[float, float, Run]] = []
        paces = [(*self.pace(run, slow), run) for run in runs]
        for seconds, watts, run in sorted(paces, key=lambda row: (row[1], row[0])):
            if not best or seconds < best[-1][1]:
                best.append((watts, seconds, run))
        good = [row for row in best if row[1] <= accepted] or best[-1:]
        return Options([row[2] for row in good], [row[0] for row in good])

    def waits_too_long(self, seconds: float, slow: int) -> bool:
        """Whether such a long iteration is a pause instead, which ends at once."""
        longest = _LONGEST_WAIT * self.pace(Run(*self.slowest, *self.fastest, 0), slow)[0]
        if self.slowest_seconds is not None:
            longest = max(longest, self.accepted(slow))
        return not seconds <= longest

    def mean_run(self, seconds: float, watts: float, slow: int, choice: int) -> Run:
        """Return the run whose pace this is: between plans, where a job alternates."""
        fastest = self.fastest
        rest = self.pace(Run(seconds, 0.0, *fastest, 0), slow)[1]  # All but what healthy ones need.
        healthy = max(1, self.pipelines - slow - len(self.late))
        return Run(seconds, (watts - rest) * seconds / healthy, *fastest, choice)

    def member(self, slow: int) -> Member:
        """Return the job as a division sees it."""
        return self._once(("member", slow), lambda: self._member(slow))

    def _member(self, slow: int) -> Member:
        fastest = self.plans[0] * self.slowdown
        late = np.array(self.late + [tuple(fastest)] * slow).reshape(-1, 2)
        joules = float(np.sum(late[:, 1] - self.waiting_watts * late[:, 0]))
        constant = self.fixed_watts + self.waiting_watts * len(late)
        most = float(np.min(1 / late[:, 0], initial=_INFINITY))

        def watts_of_job(x: Floats, watts: Floats) -> Floats:
            return self.meter * ((self.pipelines - len(late)) * watts + joules * x + constant)

        def curve(points: Floats) -> Curve:
            x = np.append(0.0, 1 / points[:, 0])
            watts = np.append(self.waiting_watts, points[:, 1] / points[:, 0])
            order = np.lexsort((watts, x))
            x, watts = _hull(x[order], watts[order])
            watts = watts_of_job(x, watts)
            if most < x[-1]:
                x, watts = (
                    np.append(x[x < most], most),
                    np.append(watts[x < most], np.interp(most, x, watts)),
                )
            if self.slowest_seconds is not None:
                x, watts = _cut_before(1 / self.accepted(slow), x, watts)
            useful = 0  # From here on more power always means more throughput.
            while useful + 1 < len(x) and watts[useful + 1] <= watts[useful]:
                useful += 1
            x, watts = x[useful:], watts[useful:]
            x, watts = _cut_before(
                float(np.interp(self.meter * self.least_watts, watts, x)), x, watts
            )
            return Curve(*_hull(x, watts))

        plans = curve(self.plans)
        # One plan each, and in steps of waiting after the slowest.
        times, energies = self.plans[:, 0], self.plans[:, 1]
        x = 1 / times
        at = np.minimum(x, most)
        chosen = np.arange(len(x))
        slowest, least = int(np.argmax(times)), plans.x[0]
        if at[slowest] > least:
            steps = least + (at[slowest] - least) * np.arange(64) / 64
            at, chosen = np.append(at, steps), np.append(chosen, np.full(64, slowest))
        power = energies[chosen] / times[chosen]
        waits = self.waiting_watts + (power - self.waiting_watts) * (at / x[chosen])
        rows = sorted(zip(watts_of_job(at, waits).tolist(), (-at).tolist(), chosen.tolist()))
        options: list[tuple[float, float, int]] = []
        for watts, minus_x, plan in rows:
            if -minus_x >= least * (1 - 1e-12) and (not options or -minus_x > options[-1][0]):
                options.append((-minus_x, watts, plan))

        def key(a: int, b: int) -> float:
            return (options[b][1] - options[a][1]) / self.value(options[b][0] - options[a][0])

        hull: list[tuple[float, int, int]] = []
        for k in range(1, len(options)):
            while hull and key(hull[-1][2], k) <= hull[-1][0]:
                hull.pop()
            begin = hull[-1][2] if hull else 0
            hull.append((key(begin, k), begin, k))
        return Member(curve(np.concatenate([self.frontier, self.plans])), plans, options, hull)

    def value(self, x: float) -> float:
        """Return the weighted speed of so many iterations a second."""
        return self.weight * (x * self.max_clocks[0])

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = make()
        known: T = self._known[key]
        return known


def _hull(x: Floats, watts: Floats) -> tuple[Floats, Floats]:
    """Return the lower hull of points with ascending x: slopes that rise."""
    kept: list[int] = []
    xs, ws = x.tolist(), watts.tolist()
    for k in range(len(xs)):
        if kept and xs[k] == xs[kept[-1]]:
            continue
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (ws[b] - ws[a]) * (xs[k] - xs[b]) < (ws[k] - ws[b]) * (xs[b] - xs[a]):
                break
            kept.pop()
        kept.append(k)
    return x[kept], watts[kept]


def _cut_before(at: float, x: Floats, watts: Floats) -> tuple[Floats, Floats]:
    """Cut what is left of `at`; the last corner stays."""
    if at <= x[0]:
        return x, watts
    at = min(at, float(x[-1]))
    rest = x > at
    return np.append(at, x[rest]), np.append(np.interp(at, x, watts), watts[rest])


class Event(NamedTuple):
    """An order to draw less for a while; it is known `notice` before."""

    start: float
    end: float
    notice: float
    node: int
    limit_watts: float


class Series(NamedTuple):
    """A value that changes in steps; the first also holds before its time."""

    seconds: Floats
    values: Floats

    def at(self, seconds: float) -> float:
        """Return the value of a moment."""
        return float(self.values[max(0, int(np.searchsorted(self.seconds, seconds, "right")) - 1)])


@dataclass
class Site:
    """A site, its jobs, and what happens on its days."""

    limits: list[float]  # [node]; node 0 is the whole site.
    parents: list[int | None]
    names: list[str]
    meter: float
    jobs: list[Job]
    events: list[Event] = field(default_factory=list)
    price: Series | None = None  # Of a joule.
    carbon: Series | None = None  # Grams a joule.
    ramp_up: float = _INFINITY  # Watts a second.
    ramp_down: float = _INFINITY
    work: float = 1.0

    def limit_within(self, node: int, seconds: float, ahead: float) -> float:
        """Return the least limit of this moment and of known events that begin so soon."""
        limit = self.limits[node]
        for event in self.events:
            known = seconds >= event.start - event.notice
            near = event.start <= seconds + ahead + _MOMENT
            if event.node == node and known and near and seconds < event.end:
                limit = min(limit, event.limit_watts)
        return limit

    def next_change(self, seconds: float, ahead: float) -> float:
        """Return when an event becomes known, is near, begins or ends next."""
        best = _INFINITY
        for event in self.events:
            known = event.start - event.notice
            for at in (known, max(known, event.start - ahead), event.start, event.end):
                if seconds < at < best:
                    best = at
        return best

    def limit_steps(self, seconds: float) -> list[tuple[float, float]]:
        """Return the limit of the site over time."""
        steps: list[tuple[float, float]] = []
        at = 0.0
        while at < seconds:
            limit = self.limit_within(0, at, 0)
            if not steps or steps[-1][1] != limit:
                steps.append((at, limit))
            at = self.next_change(at, 0)
        return steps


# A hash of a seed and words, as docs/explanation/emulation.md defines it: the draws of the program.
_ARRIVES, _COMES, _PIPELINE, _ITERATION = 11, 12, 13, 14
_MASK = (1 << 64) - 1


def _mixed(state: int, *words: int) -> int:
    for word in words:
        x = ((state ^ word) + 0x9E3779B97F4A7C15) & _MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        state = x ^ (x >> 31)
    return state


def _share(state: int) -> float:
    return float(state >> 11) * 2.0**-53


def _draws(seed: int, job: int, first: int, count: int) -> Floats:
    """Return numbers of mean 0 and variance 1 for iterations of a job."""
    state = np.uint64(_mixed(seed, _ITERATION, job))
    x = (state ^ np.arange(first, first + count, dtype=np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    word = np.uint64(0xFFFF)
    parts = sum((x >> np.uint64(shift)) & word for shift in (0, 16, 32, 48))
    drawn: Floats = math.sqrt(3) * ((np.asarray(parts).astype(np.float64) + 2) * 2.0**-16 - 2)
    return drawn


@dataclass
class Calendar:
    """When a job comes and goes in the days of a seed, and when its pipelines straggle."""

    arrives: float
    leaves: float
    straggling: list[tuple[int, float, float]]

    @classmethod
    def draw(cls, job: Job, index: int, seconds: float, seed: int) -> Calendar:
        """Draw it. In each minute a straggler may come."""
        arrives = job.arrives + job.spread * _share(_mixed(seed, _ARRIVES, index))
        leaves = seconds if job.lasts is None else min(seconds, arrives + job.lasts)
        straggling: list[tuple[int, float, float]] = []
        likely = min(1.0, job.straggler_rate * job.gpus * MINUTE / DAY)
        healthy_from = [0.0] * job.pipelines
        base = _mixed(seed, _COMES, index)
        for minute in range(math.ceil(max(0.0, leaves - arrives) / MINUTE) if likely > 0 else 0):
            draw = _mixed(base, minute)
            coming = _share(_mixed(draw, _COMES))
            if not coming < likely:
                continue
            at = arrives + minute * MINUTE + MINUTE * coming / likely
            pipeline = int(_share(_mixed(draw, _PIPELINE)) * job.pipelines)
            if healthy_from[pipeline] <= at < leaves:
                healthy_from[pipeline] = at + job.straggler_seconds
                straggling.append((pipeline, at, healthy_from[pipeline]))
        return cls(arrives, leaves, straggling)

    def slow_at(self, job: Job, seconds: float) -> int:
        """Return how many pipelines straggle; those that are late all the time do not count."""
        return sum(
            begin <= seconds < end and pipeline >= len(job.late)
            for pipeline, begin, end in self.straggling
        )


class Order(NamedTuple):
    """What a job is told, from the iteration on that begins then."""

    at: float
    run: Run
    slow: int
    seconds: float
    watts: float


class Span(NamedTuple):
    """A job between two changes. A pause has no iterations."""

    begin: float
    end: float
    watts: float
    speed: float  # Over that at maximum clocks without stragglers.
    full_speed: float  # The same at maximum clocks with these stragglers.
    full_watts: float
    too_slow: bool


class Life:
    """A job through the days. What changes is in effect from its next iteration on."""

    def __init__(self, job: Job, index: int, seed: int) -> None:
        self.job = job
        self.is_here = False
        self.now = Order(0.0, PAUSED, 0, _INFINITY, 0.0)
        self.next: Order | None = None
        self.changes = 0
        self.spans: list[Span] = []
        self._draw = (seed, index)
        self._ends = np.zeros(1)  # [iteration]: of noisy ones, in paces.
        self._begin = 0.0  # Of the iteration that runs,
        self._number = 0  # and its number.
        self.done = 0.0
        self._span_from = 0.0

    def _order(self, at: float, run: Run, slow: int) -> Order:
        return Order(at, run, slow, *self.job.pace(run, slow))

    def _ends_to(self, number: int, paces: float = 0.0) -> Floats:
        """Return when iterations end, in paces: up to a number and so far beyond it."""
        while len(self._ends) <= number or self._ends[-1] - self._ends[number] <= paces:
            draws = 1 + self.job.noise * _draws(*self._draw, len(self._ends) - 1, 8192)
            self._ends = np.append(self._ends, self._ends[-1] + np.cumsum(draws))
        return self._ends

    def _place(self, order: Order, seconds: float, begin: float, number: int) -> tuple[float, int]:
        """Return begin and number of the iteration that runs then."""
        if order.seconds == _INFINITY:
            return max(begin, seconds), number
        paces = (seconds - begin + _SAME_INSTANT) / order.seconds
        if paces <= 0:
            return begin, number
        if self.job.noise <= 0:
            count = math.floor(paces)
            return begin + count * order.seconds, number + count
        ends = self._ends_to(number, paces)
        to = int(np.searchsorted(ends, ends[number] + paces, "right")) - 1
        return begin + order.seconds * float(ends[to] - ends[number]), to

    def _length(self, order: Order, number: int) -> float:
        if self.job.noise <= 0 or order.seconds == _INFINITY:
            return order.seconds
        ends = self._ends_to(number + 1)
        return order.seconds * float(ends[number + 1] - ends[number])

    def _go_to(self, seconds: float) -> None:
        begin, number = self._place(self.now, seconds, self._begin, self._number)
        self.done += number - self._number
        self._begin, self._number = begin, number

    def _start(self, order: Order) -> None:
        self.now, self.next = order, None
        self._span_from = order.at

    def _end_span(self, seconds: float) -> None:
        if not seconds > self._span_from:
            return
        slow, pace = self.now.slow, self.now.seconds
        full_seconds, full_watts = self.job.full_pace(slow)
        full = self.job.max_clocks[0]
        speed = full / pace if pace < _INFINITY else 0.0
        too_slow = pace > self.job.accepted(slow) * (1 + 1e-6) or pace == _INFINITY
        self.spans.append(
            Span(self._span_from, seconds, self.now.watts, speed, full / full_seconds, full_watts,
                 too_slow)
        )  # fmt: skip

    def arrive(self, seconds: float, run: Run, slow: int) -> None:
        """Start the first iteration."""
        self.is_here = True
        self._begin = seconds
        self._start(self._order(seconds, run, slow))

    def leave(self, seconds: float) -> None:
        """End amid an iteration."""
        self.advance(seconds)
        self._end_span(seconds)
        self.done = self.done_at(seconds)
        self.is_here = False
        self.next = None

    def next_begin(self, seconds: float) -> float:
        """Return the begin of the first iteration from then on."""
        begin, number = self._place(self.now, seconds, self._begin, self._number)
        return begin if begin >= seconds - _SAME_INSTANT else begin + self._length(self.now, number)

    def tell(self, begin: float, run: Run, slow: int) -> None:
        """Change what it does from the iteration on that begins then."""
        now = self.now
        same = (run.choice, run.seconds, slow) == (now.run.choice, now.run.seconds, now.slow)
        self.next = None if same else self._order(begin, run, slow)

    def tell_now(self, seconds: float, run: Run, slow: int) -> None:
        """Change what it does at once, amid an iteration."""
        self.advance(seconds)
        self._end_span(seconds)
        self.done = self.done_at(seconds)
        self._begin = seconds
        self._start(self._order(seconds, run, slow))

    def advance(self, seconds: float) -> None:
        """Go on until then, changes that are due included."""
        if not self.is_here:
            return
        if self.next and self.next.at <= seconds + _SAME_INSTANT:
            at = self.next.at
            self._go_to(at)
            self._begin = at
            self._end_span(at)
            self.changes += self.next.run.choice != self.now.run.choice
            self._start(self.next)
        self._go_to(seconds)

    def done_at(self, seconds: float) -> float:
        """Return the iterations done by then, with a part of the one that runs."""
        if not self.is_here or self.now.seconds == _INFINITY:
            return self.done
        begin, number = self._place(self.now, seconds, self._begin, self._number)
        part = (seconds - begin) / self._length(self.now, number)
        return self.done + number - self._number + min(max(part, 0.0), 1.0)

    def time_of(self, iterations: float, until: float) -> float:
        """Return when it has done so many; infinite: not before `until`."""

        def end_in(order: Order, last: float, begin: float, number: int, done: float) -> float:
            count = max(0, math.ceil(iterations - done))
            if order.seconds == _INFINITY:
                return _INFINITY
            if self.job.noise <= 0:
                end = begin + count * order.seconds
            else:
                ends = self._ends_to(number + count)
                end = begin + order.seconds * float(ends[number + count] - ends[number])
            return end if end <= last + _SAME_INSTANT else _INFINITY

        change = min(self.next.at, until) if self.next else until
        end = end_in(self.now, change, self._begin, self._number, self.done)
        if end < _INFINITY or not self.next or self.next.at > until:
            return end
        _, number = self._place(self.now, self.next.at, self._begin, self._number)
        done = self.done + number - self._number
        return end_in(self.next, until, self.next.at, number, done)

    def longest_iteration(self) -> float:
        """Return how long it may take to obey."""
        orders = [self.now, self.next] if self.next else [self.now]
        longest = max([o.seconds for o in orders if o and o.seconds < _INFINITY], default=0.0)
        return longest * (1 + 3.47 * self.job.noise)


class Budget:
    """What the site may draw: its limit, but moved no faster than the ramps allow."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._watts = _INFINITY
        self._last: float | None = None
        self.next_step = _INFINITY

    def at(self, seconds: float, drawn: float, most: float, ahead: float) -> float:
        """Return the budget from now on, where jobs take `ahead` seconds to obey."""
        step = 15.0
        site, up, down = self._site, self._site.ramp_up, self._site.ramp_down
        self.next_step = _INFINITY
        target = site.limit_within(0, seconds, ahead)
        if down < _INFINITY:
            # The way down begins so early that it ends in time, where the notice allows.
            for event in site.events:
                if event.node != 0:
                    continue
                way = max(0.0, min(drawn, self._watts) - event.limit_watts)
                soon = ahead + way / down
                if event.start <= seconds + soon:
                    target = min(target, site.limit_within(0, seconds, soon))
                elif seconds >= event.start - event.notice:
                    self.next_step = min(self.next_step, event.start - soon)
        passed = 0.0 if self._last is None else min(step, seconds - self._last)
        if self._last is None:
            self._watts = target
        self._last = seconds
        if target < min(self._watts, drawn):
            # From what is drawn: a limit far above it is no room to ramp in.
            fall = down * (step if self._watts > drawn else passed) if down < _INFINITY else down
            self._watts = max(target, min(self._watts, drawn) - fall)
        elif target > self._watts:
            rise = up * passed if up < _INFINITY else up
            self._watts = min(target, self._watts + rise)
            if self._watts >= most:
                self._watts = target
        else:
            self._watts = target
        if self._watts != target:
            self.next_step = seconds + step
        return self._watts


@dataclass
class Moment:
    """What a rule sees: the jobs that are there, their stragglers, and the limits."""

    seconds: float
    jobs: list[int] = field(default_factory=list)
    slow: list[int] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)


class Rule:
    """A way to divide power. `decide` returns a run for each job that is there."""

    name = ""
    title = ""
    says = ""
    at_once = False  # Changes are in effect at once, and budgets do not ramp.

    def __init__(self, site: Site, seconds: float) -> None:
        self.site = site
        self.seconds = seconds
        self.again = _INFINITY  # Ask again then, even if nothing happens.

    def decide(self, moment: Moment) -> list[Run]:
        """Return what each job is to do from now on."""
        raise NotImplementedError

    def jobs(self, moment: Moment) -> list[Job]:
        """Return the jobs that are there."""
        return [self.site.jobs[j] for j in moment.jobs]

    def loads(self, jobs: Sequence[Job], watts: Sequence[float]) -> list[float]:
        """Return what nodes carry, at the meters, if jobs draw these watts."""
        loads = [0.0] * len(self.site.limits)
        for job, drawn in zip(jobs, watts):
            for node, part in job.parts:
                loads[node] += self.site.meter * part * drawn
        return loads

    def raise_alike(
        self, moment: Moment, count: int, watts_at: Callable[[int, int], float]
    ) -> list[int]:
        """Raise a level from 0 for all jobs alike, to `count` - 1 at most; return each job's.

        Jobs below a limit that binds stay, and the others go on. `watts_at(k, level)` never falls.
        """
        jobs = self.jobs(moment)
        levels = [0] * len(jobs)
        rises = [True] * len(jobs)
        low = 0
        while any(rises):
            # Limits that carry none of those that rise are settled.
            live = {n for job, up in zip(jobs, rises) if up for n, _ in job.parts}

            def above(level: int, live: set[int] = live) -> set[int]:
                now = [level if up else own for up, own in zip(rises, levels)]
                loads = self.loads(jobs, [watts_at(k, at) for k, at in enumerate(now)])
                return {n for n in live if loads[n] > moment.limits[n] * (1 + 1e-9)}

            high = count
            while high - low > 1:
                middle = (low + high) // 2
                if above(middle):
                    high = middle
                else:
                    low = middle
            binding = above(high) if high < count else live
            for k, job in enumerate(jobs):
                if rises[k]:
                    levels[k] = low
                    rises[k] = binding.isdisjoint(n for n, _ in job.parts)
        return levels


class MaxClocks(Rule):
    """All at maximum clocks."""

    name = "max-clocks"
    title = "maximum clocks, no limit kept"
    says = "All GPUs at maximum clocks, whatever the limit is. Work is compared with this."

    def decide(self, moment: Moment) -> list[Run]:
        """Return maximum clocks."""
        return [job.full for job in self.jobs(moment)]


class Shedding(Rule):
    """Jobs are paused by priority."""

    name = "shedding"
    title = "jobs paused by priority"
    says = (
        "Jobs with more weight a GPU come first, then those that stand first in the file. Each "
        "runs at maximum clocks if that fits beside those before it; else it is paused, and its "
        "GPUs wait."
    )

    def decide(self, moment: Moment) -> list[Run]:
        """Return maximum clocks or a pause."""
        jobs = self.jobs(moment)
        watts = [job.pace(PAUSED, 0)[1] for job in jobs]
        runs = [PAUSED] * len(jobs)
        for k in sorted(range(len(jobs)), key=lambda k: -jobs[k].weight / jobs[k].gpus):
            tried = [*watts[:k], jobs[k].full_pace(moment.slow[k])[1], *watts[k + 1 :]]
            loads = self.loads(jobs, tried)
            if all(loads[n] <= moment.limits[n] * (1 + 1e-9) for n, _ in jobs[k].parts):
                watts, runs[k] = tried, jobs[k].full
        return runs


class UniformCap(Rule):
    """One power cap for every GPU."""

    name = "uniform-cap"
    title = "one power cap for every GPU"
    says = (
        "Every GPU of the site gets the same power cap in watts: the highest with which the meter "
        "stays within the limit. Each computation runs at the highest clock whose mean power is "
        "within the cap. It does not know what owners accept."
    )

    def decide(self, moment: Moment) -> list[Run]:
        """Return runs under the cap."""
        jobs = self.jobs(moment)
        if not jobs:
            return []
        caps = np.unique(np.concatenate([job.caps[:, 0] for job in jobs])).tolist()
        levels = self.raise_alike(
            moment,
            len(caps),
            lambda k, level: jobs[k].pace(
                jobs[k].run_at(jobs[k].caps, caps[level]), moment.slow[k]
            )[1],
        )
        return [job.run_at(job.caps, caps[level]) for job, level in zip(jobs, levels)]


class ProportionalCap(Rule):
    """Each job is cut in proportion."""

    name = "proportional-cap"
    title = "each job cut in proportion, one clock a job"
    says = (
        "Every job may draw the same share of its power at maximum clocks, and runs at the one "
        "clock of its table that is fastest within that."
    )

    def decide(self, moment: Moment) -> list[Run]:
        """Return one clock for each job."""
        jobs = self.jobs(moment)
        options = [job.clock_options(slow) for job, slow in zip(jobs, moment.slow)]
        full = [job.full_pace(slow)[1] for job, slow in zip(jobs, moment.slow)]
        steps = 1 << 40  # Of the share, as fine as sums are.

        def watts_at(k: int, level: int) -> float:
            return max(options[k].watts[0], level / steps * full[k])

        levels = self.raise_alike(moment, steps + 1, watts_at)
        return [o.fastest_within(watts_at(k, levels[k])) for k, o in enumerate(options)]


class Divided(Rule):
    """What a division of power among plans says; where none fits, all go as low as they may."""

    def decide(self, moment: Moment) -> list[Run]:
        """Return a plan for each job, and waiting after it."""
        jobs = self.jobs(moment)
        members = [job.member(slow) for job, slow in zip(jobs, moment.slow)]
        choices = divide(self.site, jobs, members, moment.limits, self.choose)
        if choices is None:
            return [job.plan_options(slow).runs[0] for job, slow in zip(jobs, moment.slow)]
        runs = []
        for job, member, slow, choice in zip(jobs, members, moment.slow, choices):
            x, _, plan = member.options[choice]
            seconds = 1 / x if x > 0 else _INFINITY
            if job.waits_too_long(seconds, slow):
                runs.append(PAUSED)
                continue
            own, joules = job.plans[plan].tolist()
            joules += job.waiting_watts * max(0.0, seconds - own)
            runs.append(Run(seconds, joules, *job.fastest, plan + 1))
        return runs

    def choose(self, jobs: Sequence[Job], members: Sequence[Member], loads: Loads) -> None:
        """Choose an option for each job."""
        raise NotImplementedError


class SlowedAlike(Divided):
    """All jobs are slowed alike."""

    name = "frontier-alike"
    title = "all jobs slowed alike, on their frontiers"
    says = (
        "All jobs keep the same share of their speed, as far as owners accept it, and each follows "
        "a plan for that."
    )

    def choose(self, jobs: Sequence[Job], members: Sequence[Member], loads: Loads) -> None:
        """Let the slowest job take its next option, as long as one fits."""
        speeds = [m.options[0][0] * job.max_clocks[0] for job, m in zip(jobs, members)]
        turns = [(speed, k) for k, speed in enumerate(speeds)]
        heapq.heapify(turns)
        while turns:
            speed, k = heapq.heappop(turns)
            at, options = loads.choices[k], members[k].options
            if at + 1 < len(options) and options[at + 1][1] - options[at][1] <= loads.room(k):
                loads.choose(k, at + 1)
                gain = (options[at + 1][0] - options[at][0]) * jobs[k].max_clocks[0]
                heapq.heappush(turns, (speed + gain, k))


class Exact(Divided):
    """The division of `perseus fleet plan`."""

    name = "perseus"
    title = "perseus: divided exactly"
    says = (
        "The next watt always goes to the job whose frontier gives most weighted work for it. Each "
        "job follows one of its plans."
    )

    def choose(self, jobs: Sequence[Job], members: Sequence[Member], loads: Loads) -> None:
        """Take the steps of all jobs, the cheapest first, up to some place; then move one job."""

        def gain(k: int, a: int, b: int) -> float:
            return jobs[k].value(members[k].options[b][0] - members[k].options[a][0])

        def best_move() -> tuple[float, int, int]:
            best = (0.0, 0, 0)
            for k, member in enumerate(members):
                now = loads.choices[k]
                most = member.options[now][1] + loads.room(k)
                to = bisect.bisect_right(member.options, most, key=lambda row: row[1]) - 1
                if to > now and gain(k, now, to) > best[0]:
                    best = (gain(k, now, to), k, to)
            return best

        steps = [(key, k, a, b) for k, m in enumerate(members) for key, a, b in m.steps]
        steps.sort(key=lambda step: step[0])
        taken: list[tuple[int, int, int]] = []
        stays: set[int] = set()
        for _, k, a, b in steps:
            watts = members[k].options[b][1] - members[k].options[a][1]
            if k in stays or watts > loads.room(k, below_site=True):
                stays.add(k)  # Another node has no watts for it; the others go on.
            elif not loads.fits_site(watts):
                break
            else:
                loads.choose(k, b)
                taken.append((k, a, b))
        most_gain = max(
            (gain(k, 0, len(m.options) - 1) for k, m in enumerate(members)), default=0.0
        )
        lost = 0.0
        best = best_move()
        best_value, best_taken = best[0], len(taken)
        for count in range(len(taken) - 1, -1, -1):
            k, a, b = taken[count]
            lost += gain(k, a, b)
            if most_gain - lost <= best_value:
                break
            loads.choose(k, a)
            move = best_move()
            if move[0] - lost > best_value:
                best, best_value, best_taken = move, move[0] - lost, count
        for k in range(len(jobs)):
            loads.choose(k, 0)
        for k, _, b in taken[:best_taken]:
            loads.choose(k, b)
        if best[0] > 0:
            loads.choose(best[1], best[2])


class Bound(Rule):
    """The convex optimum as it is: between plans, at once."""

    name = "bound"
    title = "bound: no plans can do better"
    says = (
        "The best division on the exact frontiers, between plans, in effect at once and without "
        "ramps."
    )
    at_once = True

    def decide(self, moment: Moment) -> list[Run]:
        """Return points between plans."""
        jobs = self.jobs(moment)
        members = [job.member(slow) for job, slow in zip(jobs, moment.slow)]
        curves = [member.bound for member in members]
        if any(
            load > limit * (1 + 1e-12)
            for load, limit in zip(
                node_loads(self.site, jobs, [c.watts[0] for c in curves]), moment.limits
            )
        ):
            return [job.plan_options(slow).runs[0] for job, slow in zip(jobs, moment.slow)]
        runs = []
        for job, curve, slow, x in zip(
            jobs, curves, moment.slow, fill(self.site, jobs, curves, moment.limits)
        ):
            watts = float(np.interp(x, curve.x, curve.watts)) / self.site.meter
            runs.append(job.mean_run(1 / x, watts, slow, 0) if x > 0 else PAUSED)
        return runs


class Priced(Rule):
    """Least cost for the work that jobs must do, one day after the other."""

    name = "perseus-priced"
    title = "perseus: least cost for the work asked for"
    says = (
        "Each day's work is shared out over the day's prices and limits so that it costs least. "
        "Prices are known until midnight; work of a later deadline is spread evenly."
    )

    def __init__(self, site: Site, seconds: float) -> None:
        super().__init__(site, seconds)
        self._day = -1
        self._days: dict[int, tuple[float, float]] = {}  # Of a job: begin of its day, done by then.
        self._solved: Moment | None = None
        self._ends: list[float] = []
        self._shares: list[list[tuple[float, float]]] = []  # [period][job]: x, watts.

    def decide(self, moment: Moment) -> list[Run]:
        """Return what the schedule says of this period."""
        day = math.floor(moment.seconds / DAY + _MOMENT / DAY)
        if day != self._day:
            self._days.clear()
        self._day = day
        for j, done in zip(moment.jobs, moment.done):
            self._days.setdefault(j, (moment.seconds, done))
        solved = self._solved
        # Stragglers and noise: what is left to do is counted anew now and then.
        if (
            solved is None
            or (moment.jobs, moment.limits) != (solved.jobs, solved.limits)
            or not moment.seconds < self._ends[-1]
            or moment.seconds >= solved.seconds + HOUR - _MOMENT
        ):
            solved = self._solved = moment
            self._solve(moment)
        period = bisect.bisect_right(self._ends, moment.seconds + _MOMENT)
        self.again = self._ends[min(period, len(self._ends) - 1)]
        shares = self._shares[min(period, len(self._shares) - 1)]
        runs = []
        for k, job in enumerate(self.jobs(moment)):
            x, watts = shares[k]
            seconds = 1 / x if x > 0 else _INFINITY
            if job.waits_too_long(seconds, moment.slow[k]):
                runs.append(PAUSED)
            else:
                runs.append(job.mean_run(seconds, watts, solved.slow[k], int(1e9 * seconds)))
        return runs

    def _price(self, seconds: float) -> float:
        series = self.site.price or self.site.carbon
        return series.at(seconds) if series else 1.0

    def _set_periods(self, moment: Moment) -> None:
        """Let periods end wherever something known changes, and at midnight."""
        now, shortest = moment.seconds, 1.0
        midnight = min((self._day + 1) * DAY, self.seconds)
        series = self.site.price or self.site.carbon
        ends = list(series.seconds.tolist()) if series else []
        for event in self.site.events:
            if now >= event.start - event.notice:
                ends += [event.start, event.end]
        for job, arrived in zip(self.jobs(moment), moment.arrived):
            if job.deadline:
                ends.append(arrived + job.deadline[0])
            if job.lasts is not None:
                ends.append(arrived + job.lasts)
        self._ends = []
        last = now
        for end in sorted(ends):
            if last + shortest <= end <= midnight - shortest:
                self._ends.append(end)
                last = end
        self._ends.append(max(midnight, now + shortest))

    def _work(self, moment: Moment, k: int) -> list[tuple[int, int, float]]:
        """Return (job, period, iterations): what a job must have done by the end of which."""
        job, now, done = self.site.jobs[moment.jobs[k]], moment.seconds, moment.done[k]
        rate = 1 / job.max_clocks[0]
        until = self._ends[-1]
        if job.lasts is not None:
            until = min(until, moment.arrived[k] + job.lasts)
        due, left = moment.arrived[k], 0.0
        asked: list[tuple[float, float]] = []
        if job.deadline:
            due += job.deadline[0]
            left = max(0.0, job.deadline[1] * job.deadline[0] * rate - done)
            if due > until and due > now:
                left *= (until - now) / (due - now)
        if not job.deadline or due <= now:
            begin, before = self._days[moment.jobs[k]]
            left = self.site.work * (until - begin) * rate - (done - before)
        elif due < until:
            asked.append((left, due))
            left += self.site.work * (until - due) * rate
        asked.append((left, until))
        # No more than can be done with the stragglers of now.
        fastest = job.fastest
        pace = job.pace(Run(*fastest, *fastest, 0), moment.slow[k])[0]
        work = []
        for iterations, by in asked:
            period = max(0, bisect.bisect_right(self._ends, by + _MOMENT) - 1)
            most = (1 - 1e-4) * max(0.0, self._ends[period] - now) / pace
            if min(iterations, most) > 0:
                work.append((k, period, min(iterations, most)))
        return work

    def _limits_known(self, seconds: float, now: float) -> list[float]:
        limits = list(self.site.limits)
        for event in self.site.events:
            on = event.start - _MOMENT <= seconds < event.end - _MOMENT
            if on and now >= event.start - event.notice:
                limits[event.node] = min(limits[event.node], event.limit_watts)
        return limits

    def _solve(self, moment: Moment) -> None:
        self._set_periods(moment)
        jobs = self.jobs(moment)
        self._shares = [[]]
        if not jobs:
            return
        members = [job.member(slow) for job, slow in zip(jobs, moment.slow)]
        begins = [moment.seconds, *self._ends[:-1]]
        work = [each for k in range(len(jobs)) for each in self._work(moment, k)]
        shares = schedule(
            self.site,
            jobs,
            [member.plans for member in members],
            [end - begin for begin, end in zip(begins, self._ends)],
            [self._price(begin) for begin in begins],
            [moment.limits, *(self._limits_known(t, moment.seconds) for t in begins[1:])],
            work,
        )
        if shares is not None:
            self._shares = shares
            return
        # As much work as the limit allows, and then as slowly as owners accept.
        self._ends = self._ends[:1]
        choose = Exact(self.site, self.seconds).choose
        choices = divide(self.site, jobs, members, moment.limits, choose)
        if choices is not None:
            rows = [m.options[choice] for m, choice in zip(members, choices)]
            self._shares = [[(x, watts / self.site.meter) for x, watts, _ in rows]]
            return
        paces = [j.pace(j.plan_options(s).runs[0], s) for j, s in zip(jobs, moment.slow)]
        self._shares = [[(1 / seconds, watts) for seconds, watts in paces]]


def node_loads(site: Site, jobs: Sequence[Job], watts: Sequence[float]) -> list[float]:
    """Return what nodes carry if jobs draw these watts at the meter."""
    loads = [0.0] * len(site.limits)
    for job, drawn in zip(jobs, watts):
        for node, part in job.parts:
            loads[node] += part * drawn
    return loads


class Loads:
    """An option for each job, at first that of least power, and what nodes then carry."""

    def __init__(self, jobs: Sequence[Job], members: Sequence[Member], loads: list[float],
                 limits: Sequence[float]) -> None:  # fmt: skip
        self._jobs = jobs
        self._members = members
        self._loads = loads
        self._limits = [limit * (1 + 1e-12) for limit in limits]
        self.choices = [0] * len(jobs)

    def room(self, k: int, *, below_site: bool = False) -> float:
        """Return the most watts that a job may draw more."""
        return min(
            (
                (self._limits[node] - self._loads[node]) / part
                for node, part in self._jobs[k].parts
                if node > 0 or not below_site
            ),
            default=_INFINITY,
        )

    def fits_site(self, watts: float) -> bool:
        """Whether so many watts more keep the limit of the site."""
        return self._loads[0] + watts <= self._limits[0]

    def choose(self, k: int, option: int) -> None:
        """Change the option of a job."""
        options = self._members[k].options
        more = options[option][1] - options[self.choices[k]][1]
        for node, part in self._jobs[k].parts:
            self._loads[node] += part * more
        self.choices[k] = option


def divide(
    site: Site,
    jobs: Sequence[Job],
    members: Sequence[Member],
    limits: Sequence[float],
    choose: Callable[[Sequence[Job], Sequence[Member], Loads], None],
) -> list[int] | None:
    """Return an option for each job; None: even the least of all is above a limit."""
    least = node_loads(site, jobs, [member.options[0][1] for member in members])
    if any(load > limit * (1 + 1e-12) for load, limit in zip(least, limits)):
        return None
    loads = Loads(jobs, members, least, limits)
    choose(jobs, members, loads)
    return loads.choices


def fill(
    site: Site, jobs: Sequence[Job], curves: Sequence[Curve], limits: Sequence[float]
) -> list[float]:
    """Return each job's x of the most weighted throughput on these curves.

    In a tree of limits: all segments, the cheapest first; those that cost the same rise alike, and
    jobs below a limit that is reached stop. Else by a linear program.
    """
    if any(part < 1 - 1e-12 and limits[n] < _INFINITY for job in jobs for n, part in job.parts):
        costs = [-job.weight * job.max_clocks[0] for job in jobs]
        shares = _solve_program(site, jobs, curves, [1.0], [costs], [0.0], [list(limits)], [])
        assert shares is not None
        return [x for x, _ in shares[0]]
    jobs_of_segments = np.repeat(np.arange(len(jobs)), [len(c.x) - 1 for c in curves])
    dx = np.concatenate([np.diff(c.x) for c in curves] or [np.zeros(0)])
    dw = np.concatenate([np.diff(c.watts) for c in curves] or [np.zeros(0)])
    per_watt = np.array([job.max_clocks[0] * job.weight for job in jobs])
    keys = dw / dx / per_watt[jobs_of_segments]
    order = np.argsort(keys, kind="stable")
    x = [float(c.x[0]) for c in curves]
    loads = node_loads(site, jobs, [float(c.watts[0]) for c in curves])
    stopped: set[int] = set()
    firsts = np.flatnonzero(np.diff(keys[order], prepend=-1.0))
    for group in np.split(order, firsts[1:]):
        rising = [(int(jobs_of_segments[s]), int(s)) for s in group]
        taken = 0.0
        while taken < 1:
            rising = [each for each in rising if each[0] not in stopped]
            if not rising:
                break
            rates = node_loads(
                site, [jobs[k] for k, _ in rising], [float(dw[s]) for _, s in rising]
            )
            rooms = {
                n: max(0.0, limits[n] - loads[n]) / rate for n, rate in enumerate(rates) if rate > 0
            }
            step = min(1 - taken, *rooms.values())
            for k, s in rising:
                x[k] += step * float(dx[s])
            loads = [load + step * rate for load, rate in zip(loads, rates)]
            taken += step
            if taken < 1:
                full = {n for n, room in rooms.items() if room <= step}
                stopped |= {
                    k for k, job in enumerate(jobs) if not full.isdisjoint(n for n, _ in job.parts)
                }
        if len(stopped) == len(jobs):
            break
    return x


def schedule(
    site: Site,
    jobs: Sequence[Job],
    curves: Sequence[Curve],
    lengths: Sequence[float],
    prices: Sequence[float],
    limits: Sequence[Sequence[float]],
    work: Sequence[tuple[int, int, float]],
) -> list[list[tuple[float, float]]] | None:
    """Return x and watts of each job in each period, at least cost; None: the work does not fit.

    `work` is (job, period, iterations): how much must be done by the end of which period.
    """
    least = node_loads(site, jobs, [curve.watts[0] for curve in curves])
    if any(load > limit * (1 + 1e-12) for row in limits for load, limit in zip(least, row)):
        return None
    costs = [price * seconds for price, seconds in zip(prices, lengths)]
    return _solve_program(site, jobs, curves, lengths, [], costs, limits, work)


def _solve_program(
    site: Site,
    jobs: Sequence[Job],
    curves: Sequence[Curve],
    lengths: Sequence[float],
    cost_of_x: Sequence[Sequence[float]],
    cost_of_watts: Sequence[float],
    limits: Sequence[Sequence[float]],
    work: Sequence[tuple[int, int, float]],
) -> list[list[tuple[float, float]]] | None:
    """Solve the linear program over the segments of all curves in all periods: how much of each."""
    counts = [len(curve.x) - 1 for curve in curves]
    starts = np.concatenate([[0], np.cumsum(counts)])
    width = int(starts[-1])
    dx = np.concatenate([np.diff(curve.x) for curve in curves])
    dw = np.concatenate([np.diff(curve.watts) for curve in curves])
    rows: list[tuple[NDArray[np.int64], Floats]] = []
    bounds: list[float] = []
    for t, row in enumerate(limits):
        for node, limit in enumerate(row):
            if limit == _INFINITY:
                continue
            parts = np.zeros(len(jobs))
            for k, job in enumerate(jobs):
                parts[k] = sum(part for n, part in job.parts if n == node)
            scale = limit if limit > 0 else 1.0
            fixed = float(parts @ [float(curve.watts[0]) for curve in curves])
            values = np.repeat(parts, counts) * dw / scale
            rows.append((t * width + np.arange(width), values))
            bounds.append(max(0.0, limit - fixed) / scale)
    for k, period, iterations in work:
        own = np.arange(starts[k], starts[k + 1])
        columns = np.concatenate([t * width + own for t in range(period + 1)])
        seconds = np.asarray(lengths[: period + 1])
        values = np.repeat(seconds, len(own)) * np.tile(dx[own], period + 1)
        rows.append((columns, -values / iterations))
        bounds.append(float(curves[k].x[0]) * float(seconds.sum()) / iterations - 1)
    costs = np.concatenate([cost * dw for cost in cost_of_watts])
    for t, of_jobs in enumerate(cost_of_x):
        costs[t * width : (t + 1) * width] += np.repeat(of_jobs, counts) * dx
    if not len(costs):
        return [[(float(c.x[0]), float(c.watts[0]) / site.meter) for c in curves] for _ in lengths]
    lines = np.repeat(np.arange(len(rows)), [len(columns) for columns, _ in rows])
    matrix = sparse.csr_matrix(
        (
            np.concatenate([values for _, values in rows]),
            (lines, np.concatenate([columns for columns, _ in rows])),
        ),
        shape=(len(rows), len(costs)),
    )
    scale = float(np.max(np.abs(costs))) or 1.0
    solved = optimize.linprog(costs / scale, matrix, bounds, bounds=(0, 1), method="highs-ds")
    if solved.status == 2:
        return None
    if solved.status != 0:
        raise PlannerError(f"the linear program was not solved: {solved.message}", "internal")
    answer = []
    for t, cost in enumerate(cost_of_watts):
        taken = np.clip(solved.x[t * width : (t + 1) * width], 0.0, 1.0)
        shares = []
        for k, curve in enumerate(curves):
            part = slice(int(starts[k]), int(starts[k + 1]))
            x = float(curve.x[0] + taken[part] @ dx[part])
            if cost < 0:  # If power is paid for, the same watts do more work.
                watts = float(curve.watts[0] + taken[part] @ dw[part])
                x = float(np.interp(watts, curve.watts, curve.x))
            shares.append((x, float(np.interp(x, curve.x, curve.watts)) / site.meter))
        answer.append(shares)
    return answer


@dataclass
class JobDays:
    """What became of a job under a rule."""

    arrives: float = 0.0
    leaves: float = 0.0
    iterations: float = 0.0
    missed: bool = False
    spans: list[Span] = field(default_factory=list)


class Figures(NamedTuple):
    """What a rule made of the days. Limits and ramps are those of the meter."""

    lost_percent: float
    joules: float
    cost: float
    co2_grams: float
    over_seconds: float
    over_most_watts: float
    over_joules: float
    rise_watts_per_second: float
    fall_watts_per_second: float
    deadlines_missed: float
    too_slow_seconds: float
    fairness: float
    plan_changes: float


class RuleRun:
    """One rule in the days of one seed, from change to change."""

    def __init__(
        self, site: Site, calendars: Sequence[Calendar], seconds: float, seed: int, rule: Rule
    ) -> None:
        self._site = site
        self._calendars = calendars
        self._seconds = seconds
        self._rule = rule
        self._lives = [Life(job, j, seed) for j, job in enumerate(site.jobs)]
        self._left = [False] * len(site.jobs)
        self._budget = Budget(site)
        self._ahead = 0.0
        self.jobs = [JobDays() for _ in site.jobs]
        times = {t for c in calendars for t in (c.arrives, c.leaves)}
        times |= {t for c in calendars for _, begin, end in c.straggling for t in (begin, end)}
        self._times = sorted(times)

    def run(self) -> Figures:
        """Go through the days."""
        now = 0.0
        while now < self._seconds - _MOMENT:
            self._decide(now)
            now = self._next_moment(now)
            for life in self._lives:
                life.advance(now)
            for j, life in enumerate(self._lives):
                if life.is_here:
                    self._judge(j, now)
        for j, life in enumerate(self._lives):
            if life.is_here:
                self._leave(j, self._seconds, is_done=False)
            self.jobs[j].spans = life.spans
        return figures_of(
            self._site, self.jobs, self._seconds, sum(life.changes for life in self._lives)
        )

    def _due(self, j: int) -> float:
        deadline = self._site.jobs[j].deadline
        return self._calendars[j].arrives + deadline[0] if deadline else _INFINITY

    def _asked(self, j: int) -> float:
        seconds, share = self._site.jobs[j].deadline or (0.0, 0.0)
        return share * seconds / self._site.jobs[j].max_clocks[0]

    def _judge(self, j: int, now: float) -> None:
        """Note a deadline; let a job leave, by time or with its work done."""
        life, asked = self._lives[j], self._site.jobs[j].iterations
        if abs(now - self._due(j)) <= _MOMENT:
            # The last iteration may end within the moment.
            self.jobs[j].missed = life.done_at(now) < self._asked(j) * (1 - 1e-4)
        is_done = asked is not None and life.done_at(now) >= asked - _MOMENT
        if is_done or now >= self._calendars[j].leaves - _MOMENT:
            self._leave(j, now, is_done)

    def _leave(self, j: int, now: float, is_done: bool) -> None:
        life, job = self._lives[j], self.jobs[j]
        life.leave(now)
        self._left[j] = True
        job.leaves, job.iterations = now, life.done
        # A job that left before its deadline was done, or not.
        if not is_done and now < min(self._due(j), self._seconds) - _MOMENT and self._asked(j):
            job.missed = job.iterations < self._asked(j) - _MOMENT

    def _next_moment(self, now: float) -> float:
        """Return when something happens that a decision may depend on."""
        at = bisect.bisect_right(self._times, now + _MOMENT)
        candidates = [
            *self._times[at : at + 1],
            self._site.next_change(now + _MOMENT, self._ahead),
            self._rule.again,
            self._budget.next_step,
            *(self._due(j) for j, life in enumerate(self._lives) if life.is_here),
        ]
        following = min([self._seconds, *(t for t in candidates if t > now + _MOMENT)])
        for life in self._lives:
            if life.is_here and life.job.iterations is not None:
                done = life.time_of(life.job.iterations, following)
                if done > now + _MOMENT:
                    following = min(following, done)
        return following

    def _see(self, now: float) -> Moment:
        moment = Moment(now)
        drawn = most = self._ahead = 0.0
        for j, (life, calendar) in enumerate(zip(self._lives, self._calendars)):
            here = calendar.arrives - _MOMENT <= now < calendar.leaves - _MOMENT
            if self._left[j] or not here:
                continue
            slow = calendar.slow_at(life.job, now + _MOMENT)
            moment.jobs.append(j)
            moment.slow.append(slow)
            moment.arrived.append(calendar.arrives)
            moment.done.append(life.done_at(now) if life.is_here else 0.0)
            most += self._site.meter * life.job.full_pace(slow)[1]
            if life.is_here:
                drawn += self._site.meter * (life.next or life.now).watts
                self._ahead = max(self._ahead, life.longest_iteration())
        ahead = 0.0 if self._rule.at_once else self._ahead
        nodes = range(len(self._site.limits))
        moment.limits = [self._site.limit_within(node, now, ahead) for node in nodes]
        if not self._rule.at_once:
            moment.limits[0] = self._budget.at(now, drawn, most, self._ahead)
        return moment

    def _decide(self, now: float) -> None:
        moment = self._see(now)
        at_once = self._rule.at_once
        runs = self._rule.decide(moment)
        # A job that is to draw more waits until those that are to draw less do.
        all_less_from = now
        begins: list[float | None] = []
        for j, run, slow in zip(moment.jobs, runs, moment.slow):
            life = self._lives[j]
            begins.append(now)
            if not life.is_here or at_once:
                continue
            begins[-1] = begin = life.next_begin(now)
            if life.job.pace(run, slow)[1] < life.now.watts:
                all_less_from = max(all_less_from, begin)
            elif slow == (life.next or life.now).slow:
                begins[-1] = None
        for j, run, slow, start in zip(moment.jobs, runs, moment.slow, begins):
            life = self._lives[j]
            if not life.is_here:
                # It starts as soon as the others have made room for it.
                has_room = at_once or all_less_from <= now
                life.arrive(now, run if has_room else PAUSED, slow)
                if not has_room:
                    life.tell(all_less_from, run, slow)
                self.jobs[j].arrives = now
            elif at_once:
                life.tell_now(now, run, slow)
            else:
                life.tell(life.next_begin(all_less_from) if start is None else start, run, slow)


def power(
    site: Site, jobs: Sequence[JobDays], times: Sequence[float]
) -> tuple[Floats, NDArray[np.float64]]:
    """Return when power or one of `times` changes, and the load of each node in between."""
    spans = [(site.jobs[j], span) for j, days in enumerate(jobs) for span in days.spans]
    marks = np.unique([*times, *(t for _, span in spans for t in (span.begin, span.end))])
    changes = np.zeros((len(site.limits), len(marks)))
    begins = np.searchsorted(marks, [span.begin for _, span in spans])
    ends = np.searchsorted(marks, [span.end for _, span in spans])
    for (job, span), begin, end in zip(spans, begins, ends):
        for node, part in job.parts:
            watts = site.meter * part * span.watts
            changes[node, begin] += watts
            changes[node, end] -= watts
    return marks, np.cumsum(changes, axis=1)[:, :-1]


def mean_power(site: Site, jobs: Sequence[JobDays], edges: Floats) -> Floats:
    """Return the mean power of the site between neighbouring times."""
    marks, loads = power(site, jobs, edges.tolist())
    energy = np.append(0.0, np.cumsum(loads[0] * np.diff(marks)))
    means: Floats = np.diff(np.interp(edges, marks, energy)) / np.diff(edges)
    return means


def figures_of(site: Site, jobs: Sequence[JobDays], seconds: float, changes: int) -> Figures:
    """Return all figures, from the spans of the jobs."""
    work = full_work = too_slow = 0.0
    kept: list[float] = []
    for job, days in zip(site.jobs, jobs):
        own = sum(span.speed * (span.end - span.begin) for span in days.spans)
        full = sum(span.full_speed * (span.end - span.begin) for span in days.spans)
        too_slow += sum(span.end - span.begin for span in days.spans if span.too_slow)
        work += job.weight * own
        full_work += job.weight * full
        if full > 0:
            kept.append(own / full)
    squares = sum(each * each for each in kept)
    times = [t for event in site.events for t in (event.start, event.end)]
    times += [t for series in (site.price, site.carbon) if series for t in series.seconds]
    marks, loads = power(site, jobs, [0.0, *(t for t in times if 0 <= t <= seconds), seconds])
    lengths, middles = np.diff(marks), (marks[:-1] + marks[1:]) / 2
    joules = loads[0] * lengths
    limits = np.repeat(np.asarray(site.limits)[:, None], len(middles), axis=1)
    for event in site.events:
        on = (event.start <= middles) & (middles < event.end)
        limits[event.node, on] = np.minimum(limits[event.node, on], event.limit_watts)
    over = np.where(loads > limits * (1 + 1e-6), loads - limits, 0.0)  # A millionth is rounding.
    minutes = MINUTE * np.arange(
        int(seconds / MINUTE) + 1, dtype=np.float64
    )  # A part of one at the end is none.
    steps = np.diff(mean_power(site, jobs, minutes)) / MINUTE if len(minutes) > 2 else np.zeros(1)

    def priced(series: Series | None) -> float:
        return float(joules @ [series.at(t) for t in middles]) if series else 0.0

    return Figures(
        lost_percent=100 * (1 - work / full_work) if full_work > 0 else 0.0,
        joules=float(joules.sum()),
        cost=priced(site.price),
        co2_grams=priced(site.carbon),
        over_seconds=float(lengths @ (over.max(axis=0) > 0)),
        over_most_watts=float(over.max(initial=0.0)),
        over_joules=float(over[0] @ lengths),
        rise_watts_per_second=max(0.0, float(steps.max())),
        fall_watts_per_second=max(0.0, float(-steps.min())),
        deadlines_missed=sum(days.missed for days in jobs),
        too_slow_seconds=too_slow,
        fairness=sum(kept) ** 2 / (len(kept) * squares) if squares > 0 else 1.0,
        plan_changes=changes,
    )


@dataclass
class Answer:
    """A rule over all seeds, and what became of the jobs in the first."""

    rule: type[Rule]
    figures: list[Figures] = field(default_factory=list)
    first: list[JobDays] = field(default_factory=list)


def rules_for(site: Site) -> list[type[Rule]]:
    """Return the rules, in the order of the table; one only where something has a price."""
    rules: list[type[Rule]] = [MaxClocks, Shedding, UniformCap, ProportionalCap, SlowedAlike, Exact]
    if site.price or site.carbon or any(job.deadline for job in site.jobs):
        rules.append(Priced)
    return [*rules, Bound]


def simulate(site: Site, seconds: float, seeds: Sequence[int]) -> list[Answer]:
    """Return what each rule makes of these days."""
    answers = [Answer(rule) for rule in rules_for(site)]
    for seed in seeds:
        calendars = [Calendar.draw(job, j, seconds, seed) for j, job in enumerate(site.jobs)]
        for answer in answers:
            run = RuleRun(site, calendars, seconds, seed, answer.rule(site, seconds))
            answer.figures.append(run.run())
            answer.first = answer.first or run.jobs
    return answers
