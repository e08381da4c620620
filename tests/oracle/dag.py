# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Schedules and the DAG of one iteration, and its replay."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field

from .tables import Option, Profile, Tables, baseline_option, knob_is_number

FORWARD, BACKWARD = "forward", "backward"
INPUT, WEIGHT = "backward_input", "backward_weight"
RECOMPUTE = "recompute"
_TYPE_OF_LETTER = {"F": FORWARD, "B": BACKWARD, "I": INPUT, "W": WEIGHT, "R": RECOMPUTE}


@dataclass(frozen=True, order=True)
class Action:
    """One computation: what, of which model stage, on which microbatch."""

    type: str
    stage: int
    microbatch: int


Step = tuple[Action, ...]  # One action, or two that run as one operation.
Schedule = list[list[Step]]  # [rank][position]


def one_forward_one_backward(stages: int, microbatches: int) -> Schedule:
    """Order of 1F1B: warm-up forwards, alternation, cool-down backwards."""
    ranks: Schedule = []
    for stage in range(stages):
        ahead = min(stages - 1 - stage, microbatches)
        order = [(FORWARD, m) for m in range(ahead)]
        for m in range(microbatches - ahead):
            order += [(FORWARD, ahead + m), (BACKWARD, m)]
        order += [(BACKWARD, m) for m in range(microbatches - ahead, microbatches)]
        ranks.append([(Action(kind, stage, m),) for kind, m in order])
    return ranks


def parse_schedule(text: str) -> Schedule:
    """Read PyTorch's CSV text: row = rank, cell = action, empty cells idle.

    A fused pair is spelled ``(0F3;7B1)OVERLAP_F_B``; cells that are not
    computations (sends, receives, unshards) are left out.
    """
    ranks: Schedule = []
    for row in csv.reader(io.StringIO(text)):
        steps: list[Step] = []
        for cell in row:
            if not re.match(r"^\s*\(?\s*\d+[FBIWR]\d+", cell):
                continue
            found = re.findall(r"(\d+)([FBIWR])(\d+)", cell)
            steps.append(
                tuple(Action(_TYPE_OF_LETTER[kind], int(s), int(m)) for s, kind, m in found)
            )
        if steps:
            ranks.append(steps)
    return ranks


@dataclass
class Fixed:
    """Work of fixed duration, in seconds."""

    comm_delay: list[float] = field(default_factory=list)
    data_loading: float = 0.0
    iteration_overhead: float = 0.0

    def boundary(self, stage: int) -> float:
        """Delay between a stage and the next."""
        if not self.comm_delay:
            return 0.0
        return self.comm_delay[0] if len(self.comm_delay) == 1 else self.comm_delay[stage]


@dataclass
class Dag:
    """The computations of an iteration and what each waits for."""

    steps: list[Step]
    rank: list[int]
    rank_order: list[list[int]]
    precedences: list[tuple[int, int, float]]
    release: list[float]
    tail: float

    def topological_order(self) -> list[int]:
        """Return an order in which every computation follows what it waits for."""
        waits = [0] * len(self.steps)
        after: list[list[int]] = [[] for _ in self.steps]
        for source, target, _ in self.precedences:
            waits[target] += 1
            after[source].append(target)
        ready = [i for i, count in enumerate(waits) if count == 0]
        for i in ready:
            for j in after[i]:
                waits[j] -= 1
                if waits[j] == 0:
                    ready.append(j)
        if len(ready) != len(self.steps):
            raise ValueError("the schedule deadlocks")
        return ready


def build_dag(schedule: Schedule, fixed: Fixed) -> Dag:
    """Build the DAG of a schedule.

    Parameters
    ----------
    schedule
        Order of the computations of every rank.
    fixed
        Delays of transfers between ranks, data loading and the iteration's end.
    """
    steps: list[Step] = []
    rank_of: list[int] = []
    rank_order: list[list[int]] = []
    node: dict[Action, int] = {}
    for rank, order in enumerate(schedule):
        rank_order.append([])
        for step in order:
            for action in step:
                if action in node:
                    raise ValueError(f"{action} is scheduled twice")
                node[action] = len(steps)
            rank_order[-1].append(len(steps))
            steps.append(step)
            rank_of.append(rank)
    last_stage = max(action.stage for action in node)
    edges: dict[tuple[int, int], float] = {}

    def wait(target: int, source: int, delay: float) -> None:
        if source != target:
            edges[source, target] = max(delay, edges.get((source, target), 0.0))

    release = [0.0] * len(steps)
    for ids in rank_order:
        for position, i in enumerate(ids):
            loads = any(a.type == FORWARD and a.stage == 0 for a in steps[i])
            delay = fixed.data_loading if loads else 0.0
            if position == 0:
                release[i] = delay
            else:
                wait(i, ids[position - 1], delay)
    for action, i in node.items():
        stage, microbatch = action.stage, action.microbatch
        if action.type == FORWARD:
            if stage > 0:
                j = node[Action(FORWARD, stage - 1, microbatch)]
                wait(i, j, fixed.boundary(stage - 1) if rank_of[i] != rank_of[j] else 0.0)
        elif action.type in (BACKWARD, INPUT):
            wait(i, node[Action(FORWARD, stage, microbatch)], 0.0)
            recompute = node.get(Action(RECOMPUTE, stage, microbatch))
            if recompute is not None:
                wait(i, recompute, 0.0)
            if stage < last_stage:
                above = node.get(Action(INPUT, stage + 1, microbatch))
                if above is None:
                    above = node[Action(BACKWARD, stage + 1, microbatch)]
                delay = fixed.boundary(stage) if rank_of[i] != rank_of[above] else 0.0
                wait(i, above, delay)
        elif action.type == WEIGHT:
            wait(i, node[Action(INPUT, stage, microbatch)], 0.0)
        else:
            wait(i, node[Action(FORWARD, stage, microbatch)], 0.0)
    precedences = [(a, b, delay) for (a, b), delay in sorted(edges.items())]
    return Dag(steps, rank_of, rank_order, precedences, release, fixed.iteration_overhead)


def replay(dag: Dag, durations: list[float]) -> float:
    """Run every computation as early as possible and return the iteration time.

    Only maxima and additions of doubles, in the documented order, so that the
    result can be compared bit by bit.
    """
    incoming: list[list[tuple[int, float]]] = [[] for _ in dag.steps]
    for source, target, delay in dag.precedences:
        incoming[target].append((source, delay))
    end = [0.0] * len(dag.steps)
    for i in dag.topological_order():
        start = dag.release[i]
        for source, delay in incoming[i]:
            start = max(start, end[source] + delay)
        end[i] = start + durations[i]
    return max(end) + dag.tail


def start_times(dag: Dag, durations: list[float]) -> tuple[list[float], list[float]]:
    """Return when every computation starts and ends, each as early as possible."""
    start = list(dag.release)
    end = [0.0] * len(durations)
    after: list[list[tuple[int, float]]] = [[] for _ in durations]
    for i, j, delay in dag.precedences:
        after[i].append((j, delay))
    for i in dag.topological_order():
        end[i] = start[i] + durations[i]
        for j, delay in after[i]:
            start[j] = max(start[j], end[i] + delay)
    return start, end


@dataclass
class Pipeline:
    """A DAG, the options of each of its computations, and blocking powers."""

    dag: Dag
    options: list[list[Option]]  # [computation]
    blocking: list[float]  # [rank], watts, all GPUs of the rank; the least over knobs.
    # [rank] The same at each knob; empty where it does not depend on the knob.
    waiting: list[dict[str, float]] = field(default_factory=list)

    def dearer(self, rank: int, knob: str) -> float:
        """Watts that waiting at a knob draws beyond the least."""
        return self.waiting[rank][knob] - self.blocking[rank] if self.waiting else 0.0

    def waiting_knob(self, rank: int) -> str:
        """Return the knob of the least watts; of equal ones the highest (labels: the first)."""
        own = self.waiting[rank]
        cheap = [knob for knob, watts in own.items() if watts == min(own.values())]
        return max(cheap, key=float) if all(map(knob_is_number, cheap)) else cheap[0]

    def effective(self, i: int) -> list[tuple[float, float]]:
        """(time, energy - blocking power x time) of each option of a computation."""
        power = self.blocking[self.dag.rank[i]]
        return [(o.time, o.energy - power * o.time) for o in self.options[i]]

    def dearer_energy(self, chosen: list[Option]) -> float:
        """Joules beyond the least of waits at the clock of the computation before."""
        if not self.waiting:
            return 0.0
        start, end, time = self._times(chosen)
        total = 0.0
        for rank, order in enumerate(self.dag.rank_order):
            before, free = order[-1], 0.0
            for i in order:
                total += self.dearer(rank, chosen[before].knob) * (start[i] - free)
                before, free = i, end[i]
            total += self.dearer(rank, chosen[before].knob) * (time - free)
        return total

    def _times(self, chosen: list[Option]) -> tuple[list[float], list[float], float]:
        incoming: list[list[tuple[int, float]]] = [[] for _ in chosen]
        for source, target, delay in self.dag.precedences:
            incoming[target].append((source, delay))
        start, end = [0.0] * len(chosen), [0.0] * len(chosen)
        for i in self.dag.topological_order():
            start[i] = max([self.dag.release[i], *(end[j] + d for j, d in incoming[i])])
            end[i] = start[i] + chosen[i].time
        return start, end, max(end) + self.dag.tail

    def energy(self, chosen: list[Option], time: float) -> float:
        """Energy of one pipeline over ``time`` seconds, if every wait draws the least."""
        busy = [0.0] * len(self.blocking)
        total = 0.0
        for i, option in enumerate(chosen):
            total += option.energy
            busy[self.dag.rank[i]] += option.time
        return total + sum(p * (time - b) for p, b in zip(self.blocking, busy, strict=True))

    def baseline(self) -> list[Option]:
        """Return the highest clock of every computation."""
        return [baseline_option(options) for options in self.options]


def _joined(parts: list[list[Option]]) -> list[Option]:
    """Options of computations that run as one, at one knob."""
    by_knob = [{option.knob: option for option in part} for part in parts]
    return [
        Option(
            knob,
            sum(part[knob].time for part in by_knob),
            sum(part[knob].energy for part in by_knob),
            sum(part[knob].time_std for part in by_knob),
        )
        for knob in by_knob[0]
        if all(knob in part for part in by_knob)
    ]


def _scaled(options: list[Option], share: float, energy: float) -> list[Option]:
    return [Option(o.knob, share * o.time, energy * o.energy, share * o.time_std) for o in options]


def _worked(options: list[Option], factor: float) -> list[Option]:
    """So many times as much work at every knob: the power stays."""
    return [
        Option(o.knob, factor * o.time, factor * o.energy, factor * o.time_std) for o in options
    ]


def _options_of(tables: Tables, action: Action, split_ratio: float, scale: float) -> list[Option]:
    table = tables.get((action.stage, action.type))
    if table is not None:
        return _scaled(table, 1.0, scale)
    if action.type == BACKWARD:
        parts = [tables[action.stage, kind] for kind in (INPUT, WEIGHT)]
        return _joined([_scaled(part, 1.0, scale) for part in parts])
    if action.type == RECOMPUTE:  # The profile knows no recomputation at all.
        return _scaled(tables[action.stage, FORWARD], 1.0, scale)
    share = {INPUT: split_ratio, WEIGHT: 1.0 - split_ratio}[action.type]
    return _scaled(tables[action.stage, BACKWARD], share, share * scale)


def cost_pipeline(
    profile: Profile,
    dag: Dag,
    blocking_power: list[float],
    tensor_parallel: int = 0,
    split_ratio: float = 0.5,
    work: dict[Action, float] | None = None,
) -> Pipeline:
    """Give every computation of a DAG its options, scaled to one pipeline.

    Parameters
    ----------
    profile
        The measured options.
    dag
        The computations.
    blocking_power
        Watts of a waiting GPU: one number, or one per rank.
    tensor_parallel
        GPUs per rank; 0 takes the profile's number of tensor-parallel ranks.
    split_ratio
        Share of the input gradient where only the whole backward was measured.
    work
        How many times the profile's work a computation is; 1 where it is not there.
    """
    gpus = tensor_parallel or profile.tensor_parallel_ranks or 1
    scale = 1 if profile.tensor_parallel_ranks else gpus
    ranks = len(dag.rank_order)
    power = blocking_power * ranks if len(blocking_power) == 1 else blocking_power
    work = work or {}
    cache: dict[tuple[tuple[str, int, float], ...], list[Option]] = {}
    options: list[list[Option]] = []
    for step in dag.steps:
        key = tuple((action.type, action.stage, work.get(action, 1.0)) for action in step)
        if key not in cache:
            parts = [
                _worked(
                    _options_of(profile.tables, action, split_ratio, scale), work.get(action, 1.0)
                )
                for action in step
            ]
            cache[key] = _joined(parts)
        options.append(cache[key])
    waiting: list[dict[str, float]] = []
    least = []
    knobs = {o.knob for own in profile.tables.values() for o in own}
    for rank, order in enumerate(dag.rank_order):
        stages = sorted({action.stage for i in order for action in dag.steps[i]})
        own = {}
        for knob in sorted(knobs):
            said = [profile.waiting_watts(stage, knob) for stage in stages]
            watts = [each for each in said if each is not None]
            own[knob] = gpus * (sum(watts) / len(watts) if watts else power[rank])
        waiting.append(own)
        least.append(min(own.values()))
    depends = any(len(set(own.values())) > 1 for own in waiting)
    return Pipeline(dag, options, least, waiting if depends else [])
