# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""A simulator of training jobs, written from the rules in docs/explanation/emulation.md.

Every pipeline is run event by event: a computation starts, a clock comes into effect, a computation
ends. Nothing is copied between pipelines or iterations, and waiting is added up from the gaps
between computations, so that little of what could go wrong is shared with the emulator in C++.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .dag import replay
from .emulation_calls import Clock, Expectation, planned_gaps
from .emulation_noise import (
    COMPUTATION_WORD,
    GPU_WORD,
    RANK_WORD,
    STAGE_WORD,
    STRAGGLER_WORD,
    computation_numbers,
    draw,
    following,
    hash_words,
    rare,
    standard,
)
from .emulation_run import PipelineRun, Run
from .emulation_scenario import Scenario, Straggler
from .tables import knob_is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .binary import Curve
    from .dag import Pipeline
    from .tables import Option

SECONDS_PER_DAY = 86400.0
THOUSANDTHS = 1000.0  # Of the target; in whole ones where stragglers come by chance.


@dataclass
class Split:
    """Energy of the job in one iteration, or in all."""

    useful: float = 0.0
    intrinsic: float = 0.0
    extrinsic: float = 0.0
    blocking: float = 0.0

    def add(self, other: Split) -> None:
        """Add another one."""
        self.useful += other.useful
        self.intrinsic += other.intrinsic
        self.extrinsic += other.extrinsic
        self.blocking += other.blocking

    def total(self) -> float:
        """Sum of the four."""
        return self.useful + self.intrinsic + self.extrinsic + self.blocking


@dataclass
class Iteration:
    """One iteration of the job."""

    start: float
    time: float
    target: float
    straggling: int
    energy: Split
    drawn: float  # Added up along the ranks, not from the split.


@dataclass
class Outcome:
    """The whole job."""

    iterations: list[Iteration] = field(default_factory=list)
    time: float = 0.0
    energy: Split = field(default_factory=Split)
    drawn: float = 0.0
    gpu_peak: float = 0.0
    clock_calls: int = 0
    late: int = 0
    stragglers: int = 0
    replans: int = 0
    # (start, end, watts) of everything that draws power, waiting too.
    draws: list[tuple[float, float, float]] = field(default_factory=list)

    def power(self, interval: float, count: int) -> list[float]:
        """Mean power in ``count`` equal intervals; after the end of the job nothing is drawn."""
        joules = [0.0] * count
        for start, end, watts in self.draws:
            first = min(int(start / interval), len(joules) - 1)
            last = min(int(end / interval), len(joules) - 1)
            for k in range(first, last + 1):
                low = start if k == first else k * interval
                high = end if k == last else (k + 1) * interval
                joules[k] += watts * (high - low)
        return [j / interval for j in joules]


def limited(planned: Option, options: list[Option], limits: list[Straggler], gpus: int) -> Option:
    """Return what stragglers' limits on clock and power leave of a planned option.

    Parameters
    ----------
    planned
        The option of the plan.
    options
        All that the profile has for the computation.
    limits
        The stragglers of the rank; other kinds than the two do nothing here.
    gpus
        GPUs of the rank.
    """
    clocks = [s.value for s in limits if s.kind == "clock"]
    if clocks and float(planned.knob) > min(clocks):
        below = [o for o in options if float(o.knob) <= min(clocks)]
        planned = (
            max(below, key=lambda o: float(o.knob))
            if below
            else min(options, key=lambda o: float(o.knob))
        )
    watts = [s.value for s in limits if s.kind == "power"]
    if watts and planned.energy / planned.time / gpus > min(watts):
        allowed = options
        if all(knob_is_number(o.knob) for o in options):
            # Of equal ones the first counts: that with the highest clock.
            by_clock = sorted(options, key=lambda o: -float(o.knob))
            allowed = [o for o in by_clock if float(o.knob) <= float(planned.knob)]
        calm = [o for o in allowed if o.energy / o.time / gpus <= min(watts)]
        planned = (
            min(calm, key=lambda o: (o.time, o.energy))
            if calm
            else min(allowed, key=lambda o: (o.energy / o.time, o.time))
        )
    return planned


class Simulator:
    """Runs a job.

    Parameters
    ----------
    pipeline
        The DAG and all options of its computations.
    gpus
        GPUs of one rank.
    scenario
        What happens.
    plan_for
        Gives the plan, one option per computation, for a time; the base plan for the target.
    curve
        The exact frontier of the pipeline.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        gpus: int,
        scenario: Scenario,
        plan_for: Callable[[float], list[Option]],
        curve: Curve,
    ) -> None:
        self._pipeline = pipeline
        self._gpus = gpus
        self._scenario = scenario
        self._plan_for = plan_for
        self._base = plan_for(scenario.target)
        self._curve = curve
        self._numbers = computation_numbers(pipeline.dag)
        ranks = len(pipeline.dag.rank_order)
        draws = [
            [self._gpu_draws(p, rank) for rank in range(ranks)] for p in range(scenario.pipelines)
        ]
        self._slowest = [[max(own) for own in of_pipeline] for of_pipeline in draws]
        self._mean = [[math.fsum(own) / gpus for own in of_pipeline] for of_pipeline in draws]
        self._clocks: list[list[Clock]] = []
        self._before: list[list[str | None]] = [[None] * ranks for _ in range(scenario.pipelines)]
        self._expected = [[Expectation() for _ in range(ranks)] for _ in range(scenario.pipelines)]
        self._chance: dict[tuple[int, int], tuple[Straggler, float]] = {}  # And until when.
        # Of every iteration that has begun: its start, and the stragglers of each pipeline.
        self._history: list[tuple[float, list[list[Straggler]]]] = []
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Run all iterations."""
        now, last, target = 0.0, self._scenario.target, self._scenario.target
        outcome = self._outcome
        for n in range(self._scenario.iterations):
            outcome.stragglers += sum(s.first == n for s in self._scenario.stragglers)
            self._history.append((now, self._stragglers(n, now, last)))
            planned_for = self._target(now)
            outcome.replans += planned_for != target
            target = planned_for
            iteration = self._iteration(n, now, target)
            outcome.iterations.append(iteration)
            outcome.energy.add(iteration.energy)
            outcome.drawn += iteration.drawn
            last = iteration.time
            now += last
        outcome.time = now
        return outcome

    def _gpu_draws(self, pipeline: int, rank: int) -> list[float]:
        scenario = self._scenario
        return [
            draw(scenario.gpu_noise, scenario.seed, GPU_WORD, pipeline, rank, gpu)
            for gpu in range(self._gpus)
        ]

    def _stragglers(self, n: int, now: float, last: float) -> list[list[Straggler]]:
        scenario = self._scenario
        there: list[list[Straggler]] = [[] for _ in range(scenario.pipelines)]
        for straggler in scenario.stragglers:
            if straggler.there(n):
                there[straggler.pipeline].append(straggler)
        chance = min(1.0, scenario.random_rate * self._gpus * last / SECONDS_PER_DAY)
        for p in range(scenario.pipelines):
            for rank in range(len(self._pipeline.dag.rank_order)):
                if (p, rank) in self._chance and now >= self._chance[p, rank][1]:
                    del self._chance[p, rank]
                if (p, rank) not in self._chance:
                    h = hash_words(scenario.seed, STRAGGLER_WORD, p, rank, n)
                    if (h >> 11) / 2**53 < chance:
                        came = Straggler(scenario.random_kind, scenario.random_value, p, rank)
                        self._chance[p, rank] = (came, now + scenario.random_duration)
                        self._outcome.stragglers += 1
                if (p, rank) in self._chance:
                    there[p].append(self._chance[p, rank][0])
        return there

    def _limited(self, plan: list[Option], stragglers: list[Straggler]) -> list[Option]:
        dag = self._pipeline.dag
        by_rank = [[s for s in stragglers if s.names(r)] for r in range(len(dag.rank_order))]
        return [
            limited(o, self._pipeline.options[i], by_rank[dag.rank[i]], self._gpus)
            for i, o in enumerate(plan)
        ]

    def _slow(self, stragglers: list[Straggler]) -> list[float]:
        ranks = range(len(self._pipeline.dag.rank_order))
        return [
            math.prod(s.value for s in stragglers if s.kind == "slow" and s.names(rank))
            for rank in ranks
        ]

    def _data_stall(self, stragglers: list[Straggler]) -> list[float]:
        ranks = range(len(self._pipeline.dag.rank_order))
        return [
            max((s.value for s in stragglers if s.kind == "stall" and s.names(rank)), default=0.0)
            for rank in ranks
        ]

    def _nominal(self, stragglers: list[Straggler]) -> float:
        """Time of the base plan with stragglers, without noise and late clocks."""
        dag = self._pipeline.dag
        options = self._limited(self._base, stragglers)
        slow = self._slow(stragglers)
        stalls = self._data_stall(stragglers)
        release = list(dag.release)
        for rank, order in enumerate(dag.rank_order):
            release[order[0]] = max(release[order[0]], stalls[rank])
        held = type(dag)(dag.steps, dag.rank, dag.rank_order, dag.precedences, release, dag.tail)
        return replay(held, [o.time * slow[dag.rank[i]] for i, o in enumerate(options)])

    def _target(self, now: float) -> float:
        target = self._scenario.target
        if not self._scenario.reacts:
            return target
        known = [there for start, there in self._history if start <= now - self._scenario.delay]
        if not known:
            return target
        time = max([target] + [self._nominal(own) for own in known[-1] if own])
        if self._scenario.random_rate > 0:
            time = target * math.floor(THOUSANDTHS * time / target) / THOUSANDTHS
        return max(time, target)

    def _factors(
        self, n: int, p: int, slow: Sequence[float], per_gpu: Sequence[float]
    ) -> list[float]:
        scenario, dag = self._scenario, self._pipeline.dag
        factors = [0.0] * len(dag.steps)
        for rank, order in enumerate(dag.rank_order):
            of_rank = draw(scenario.rank_noise, scenario.seed, RANK_WORD, p, n, rank)
            words = {i: (COMPUTATION_WORD, p, n, self._numbers[i]) for i in order}
            fresh = [standard(scenario.seed, *words[i]) for i in order]
            for i, own in zip(order, following(scenario.correlation, fresh), strict=True):
                stage = draw(scenario.stage_noise, scenario.seed, STAGE_WORD, dag.steps[i][0].stage)
                factor = stage * per_gpu[rank] * slow[rank] * of_rank
                longer = rare(scenario.rare_length, scenario.rare_share, scenario.seed, *words[i])
                factors[i] = factor * (1 + scenario.computation_noise * own + longer)
        return factors

    def _iteration(self, n: int, now: float, target: float) -> Iteration:
        scenario, dag = self._scenario, self._pipeline.dag
        there = self._history[-1][1]
        plan = self._base if target == scenario.target else self._plan_for(target)
        plans = [self._limited(self._base if own else plan, own) if own else plan for own in there]
        if n == 0:
            firsts = [[p[order[0]].knob for order in dag.rank_order] for p in plans]
            self._clocks = [
                [Clock(scenario, p, rank, knob, knob) for rank, knob in enumerate(own)]
                for p, own in enumerate(firsts)
            ]
        runs, energies = [], []
        for p, own in enumerate(plans):
            slow = self._slow(there[p])
            factors = self._factors(n, p, slow, self._slowest[p])
            self._expect(p, own)
            run = PipelineRun(
                self._pipeline,
                scenario,
                own,
                factors,
                self._clocks[p],
                self._before[p],
                self._data_stall(there[p]),
                self._expected[p] if scenario.predicts() else [],
            ).run()
            self._before[p] = [own[order[-1]].knob for order in dag.rank_order]
            self._outcome.late += run.late
            runs.append(run)
            # The power stays: the mean GPU works, the slowest says for how long.
            energies.append(self._factors(n, p, slow, self._mean[p]))
        time = max(run.end for run in runs)
        split = Split()
        drawn = 0.0
        for p, run in enumerate(runs):
            for clock in self._clocks[p]:
                self._outcome.clock_calls += clock.end_iteration(time)
            joules, computing = self._computing(run, energies[p])
            waiting = self._waiting(run, p, time)
            split.add(self._split(plans[p], computing, waiting, run.end, time))
            drawn += self._draw(run, p, now, time, joules)
            for expected in self._expected[p]:
                expected.measured = True
                if expected.last_end is not None:
                    expected.last_end -= time
        return Iteration(now, time, target, sum(bool(own) for own in there), split, drawn)

    def _expect(self, p: int, plan: list[Option]) -> None:
        """Tell the ranks of a pipeline the plan of the iteration."""
        if not self._scenario.predicts():
            return
        dag = self._pipeline.dag
        knobs = [[plan[i].knob for i in order] for order in dag.rank_order]
        gaps = planned_gaps(dag, plan)
        changed = knobs != [expected.knobs for expected in self._expected[p]]
        for rank, order in enumerate(dag.rank_order):
            lasts = [plan[i].time for i in order]
            self._expected[p][rank].follow(knobs[rank], lasts, gaps[rank], changed)
            if self._scenario.waits_at_own_clock() and self._pipeline.waiting:
                self._expected[p][rank].waiting = self._pipeline.waiting_knob(rank)

    def _computing(self, run: Run, factors: list[float]) -> tuple[list[list[float]], float]:
        joules = [
            [piece.share * piece.option.energy * factors[i] for piece in pieces]
            for i, pieces in enumerate(run.pieces)
        ]
        return joules, math.fsum(j for own in joules for j in own)

    def _power_of_wait(
        self, p: int, rank: int, start: float, end: float
    ) -> list[tuple[float, float, float]]:
        """Return (start, end, watts) of a wait, by the clock in effect."""
        pipeline = self._pipeline
        at_once = self._scenario.at_once()
        least = pipeline.blocking[rank]
        if not pipeline.waiting or (at_once and self._scenario.waits_at_own_clock()):
            return [(start, end, least)]
        parts = []
        changes = self._clocks[p][rank].past
        for k, (since, knob) in enumerate(changes):
            until = changes[k + 1][0] if k + 1 < len(changes) else math.inf
            low, high = max(start, since), min(end, until)
            if low < high:
                parts.append((low, high, least + pipeline.dearer(rank, knob)))
        return parts or [(start, end, least)]

    def _power_beside(self, p: int, rank: int, at: float) -> float:
        """Watts of GPUs that are done and wait for their rank's slowest."""
        idle = 1 - self._mean[p][rank] / self._slowest[p][rank]
        knob = [k for since, k in self._clocks[p][rank].past if since <= at][-1]
        return (self._pipeline.blocking[rank] + self._pipeline.dearer(rank, knob)) * idle

    def _waiting(self, run: Run, p: int, time: float) -> float:
        """Blocking energy of one pipeline, by the formula."""
        if self._pipeline.waiting:
            return math.fsum(self._waits(run, p, time))
        total = 0.0
        for rank, order in enumerate(self._pipeline.dag.rank_order):
            busy = math.fsum(x.end - x.start for i in order for x in run.pieces[i])
            power = self._pipeline.blocking[rank]
            idle = 1 - self._mean[p][rank] / self._slowest[p][rank]
            total += power * (time - busy) + power * idle * busy
        return total

    def _waits(self, run: Run, p: int, time: float) -> list[float]:
        """Return the joules of each wait, by the clock in effect."""
        joules = []
        for rank, order in enumerate(self._pipeline.dag.rank_order):
            free = 0.0
            for i in order:
                for x in run.pieces[i]:
                    waits = self._power_of_wait(p, rank, free, x.start)
                    joules += [watts * (end - start) for start, end, watts in waits]
                    joules.append(self._power_beside(p, rank, x.start) * (x.end - x.start))
                    free = x.end
            waits = self._power_of_wait(p, rank, free, time)
            joules += [watts * (end - start) for start, end, watts in waits]
        return joules

    def _split(
        self, plan: list[Option], computing: float, waiting: float, end: float, time: float
    ) -> Split:
        pipeline, curve = self._pipeline, self._curve
        power = sum(pipeline.blocking)

        def least(t: float) -> float:
            t = max(t, curve.times[0])
            return curve.at(t, power) - power * t

        planned_time = replay(pipeline.dag, [o.time for o in plan])
        planned = math.fsum(o.energy for o in plan)
        effective = math.fsum(
            o.energy - pipeline.blocking[pipeline.dag.rank[i]] * o.time for i, o in enumerate(plan)
        )
        dearer = computing / planned if planned else 1.0
        stretch = max(1.0, end / planned_time)
        intrinsic = dearer * (effective - least(planned_time))
        extrinsic = dearer * (least(planned_time) - least(max(planned_time, time / stretch)))
        return Split(computing - intrinsic - extrinsic, intrinsic, extrinsic, waiting)

    def _draw(self, run: Run, p: int, now: float, time: float, joules: list[list[float]]) -> float:
        """Put what a pipeline draws into the trace, rank by rank, and add it up."""
        outcome = self._outcome
        drawn = []
        for rank, order in enumerate(self._pipeline.dag.rank_order):
            free = 0.0
            for i in order:
                for piece, energy in zip(run.pieces[i], joules[i], strict=True):
                    seconds = piece.end - piece.start
                    for start, end, power in self._power_of_wait(p, rank, free, piece.start):
                        outcome.draws.append((now + start, now + end, power))
                        drawn.append(power * (end - start))
                    beside = self._power_beside(p, rank, piece.start)
                    watts = energy / seconds
                    outcome.draws.append((now + piece.start, now + piece.end, watts + beside))
                    outcome.gpu_peak = max(outcome.gpu_peak, watts / self._gpus)
                    drawn.append(energy + beside * seconds)
                    free = piece.end
            for start, end, power in self._power_of_wait(p, rank, free, time):
                outcome.draws.append((now + start, now + end, power))
                drawn.append(power * (end - start))
        return math.fsum(drawn)
