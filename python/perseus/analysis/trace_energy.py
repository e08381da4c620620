# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a recorded job used, by a profile, and what plans would have saved.

docs/explanation/traces.md ("Energy, by a profile") explains it.
"""

from __future__ import annotations

import csv
import functools
import json
import math
import os
import statistics
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from perseus.analysis import recording as rec
from perseus.analysis.trace import Replay, own_seconds, usual_seconds
from perseus.dag import Dag
from perseus.note import ImplausibleWarning, Note
from perseus.planner import Planner
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from perseus.analysis.recording import Floats, Recording
    from perseus.analysis.trace import Links

# Said wherever energies are.
RELATIVE_COSTS = (
    "A trace holds no energies and no clocks. Each computation is taken to have run at the "
    "profile's highest clock. Lower clocks change its time and power as they do in the profile, "
    "for the same stage and type."
)
POLICIES = {
    "max-clocks": "maximum clocks, as recorded",
    "static": "one plan for the mean lengths",
    "static-stragglers": "the same, and an answer to stragglers that the detector knows",
    "per-iteration-alone": "one plan an iteration, each pipeline by itself",
    "per-iteration": "one plan an iteration, as slow as the slowest pipeline",
    "per-iteration-lengths": "the same, knowing one length for each microbatch",
    "per-iteration-as-slow": "one plan an iteration, given the time that the static plan takes",
}
EFFORT = 0.005  # Of each of thousands of plans.
_SLOW = 1.05  # A straggler's time over that of the median pipeline.
_SHORTEST_SECONDS = 1e-6  # A computation that took no measurable time has clocks, too.
_LEAST_OF_MEAN = 0.05  # A computation of next to no time cannot be planned.
_MOST_FACTOR = 1e6  # All clocks are at their lowest long before.


class _Options(NamedTuple):
    times: Floats
    energies: Floats
    highest: int  # Of the highest clock.


@dataclass
class Costs:
    """Where energies come from: the options of a profile by stage and type."""

    name: str
    modelled: str
    stages: int
    notes: list[Note]
    gpus_in_energies: int  # 0: energies are of one GPU.
    tables: dict[tuple[int, int], _Options]
    blocking_power_watts: float
    gpus_per_rank: int

    @classmethod
    def read(cls, path: str, blocking_power_watts: float, gpus_per_rank: int, **job: Any) -> Costs:
        """Read a profile as the planner reads it.

        Raises
        ------
        PlannerError
            With the sentence that `perseus plan` says of the profile.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImplausibleWarning)
            planner = Planner(path, "1f1b", 1, blocking_power_watts, **job)
        options: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
        rows = planner.profile.options
        clocks = [_clock(each.frequency) for each in rows]
        ranked = not any(map(math.isnan, clocks))
        for clock, each in zip(clocks, rows):
            if each.instruction in ("forward", "backward"):
                code = rec.FORWARD if each.instruction == "forward" else rec.BACKWARD
                first = -clock if ranked else each.time
                options.setdefault((each.stage, code), []).append((first, each.time, each.energy))
        tables = {}
        for key, found in options.items():
            ranks, times, energies = map(np.array, zip(*found))
            tables[key] = _Options(times, energies, int(np.lexsort((energies, times, ranks))[0]))
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = (line for line in file if not line.startswith("#"))
            group = {row["tp_rank"] for row in csv.DictReader(lines) if row.get("tp_rank")}
        of_profile = json.loads(planner.baseline.json())["profile"]
        name = os.path.basename(path)
        notes = [each for each in planner.notes if os.path.basename(each.source) == name]
        stages = planner.profile.stages
        return cls(
            name,
            of_profile.get("modelled", ""),
            stages,
            notes,
            len(group),
            tables,
            blocking_power_watts,
            gpus_per_rank,
        )

    @property
    def rank_watts(self) -> float:
        """What a rank draws while it waits."""
        return self.blocking_power_watts * self.gpus_per_rank

    def median_seconds(self) -> float:
        """Return the median time at the highest clock."""
        return statistics.median_high(float(o.times[o.highest]) for o in self.tables.values())

    def options(self, recording: Recording, row: int, seconds: float) -> _Options:
        """Return those of a computation that takes so long at the highest clock.

        Blocks of the recorded model get stages of the profile's: first to first, last to last,
        those between in proportion.
        """
        blocks = recording.stages * recording.virtual_stages
        block, kind = int(recording.column("gmc")[row]), int(recording.column("kind")[row])
        stage = 0
        if blocks > 1:
            stage = (block * (self.stages - 1) * 2 + (blocks - 1)) // (2 * (blocks - 1))
        if (stage, kind) not in self.tables:
            what = rec.KINDS[kind].partition("-")[0]
            raise PlannerError(
                f"{self.name}: the trace runs {what}, and the profile has no such rows of stage "
                f"{stage}; give a profile with forward and backward"
            )
        times, energies, highest = self.tables[stage, kind]
        factor = max(seconds, _SHORTEST_SECONDS) / times[highest]
        gpus = self.gpus_per_rank / max(self.gpus_in_energies, 1)
        return _Options(times * factor, energies * factor * gpus, highest)


def _clock(label: str) -> float:
    """Return what a knob is by its number; NaN: it is a name."""
    text = label.strip()
    for unit, factor in (("GHz", 1e3), ("MHz", 1.0), ("kW", 1e3), ("W", 1.0), ("", 1.0)):
        if text.endswith(unit):
            try:
                return float(text[: len(text) - len(unit)]) * factor
            except ValueError:
                continue
    return math.nan


class _Pipeline:
    """One pipeline in one step: its computations, with all between them as fixed delays.

    Attributes
    ----------
    rows
        Of the recording, in an order in which they can run.
    waits
        Of each computation: the earliest begin, and pairs of an earlier one and a delay after it.
    """

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.waits: list[tuple[float, list[tuple[int, float]]]] = []
        self.positions: list[tuple[int, int]] = []  # Rank, and the place on it.

    def pruned(self, after: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Leave out what others imply: an earlier one of a rank with no longer delay."""

        def key(each: tuple[int, float]) -> tuple[int, int, float]:
            rank, position = self.positions[each[0]]
            return rank, -position, -each[1]

        kept: list[tuple[int, float]] = []
        for each in sorted(after, key=key):
            same = kept and self.positions[kept[-1][0]][0] == self.positions[each[0]][0]
            if not same or each[1] > kept[-1][1]:
                kept.append(each)
        return kept

    def seconds(self, own: Mapping[int, float] | Floats) -> float:
        """Return the time of the iteration where computations take so long."""
        ends: list[float] = []
        for row, (begin, before) in zip(self.rows, self.waits):
            for other, delay in before:
                begin = max(begin, ends[other] + delay)
            ends.append(begin + own[row])
        return max(ends)

    def dag(self, options: list[_Options], rank_watts: float) -> Dag:
        """Return the graph for the planner."""
        tables = []
        for times, energies, _ in options:
            costs = energies - rank_watts * times  # The saving of a second less of waiting.
            tables.append(list(zip(times.tolist(), costs.tolist())))
        edges = [
            (other, number, delay)
            for number, (_, before) in enumerate(self.waits)
            for other, delay in before
        ]
        ranks = [rank for rank, _ in self.positions]
        return Dag(tables, edges, ranks=ranks, begins=[begin for begin, _ in self.waits])


class _Pipelines:
    """Makes pipelines of a recording."""

    def __init__(self, recording: Recording, links: Links) -> None:
        self._kind: list[int] = recording.column("kind").tolist()
        self._stage: list[int] = recording.column("stage").tolist()
        by_after = np.argsort(links.after, kind="stable")
        first = np.searchsorted(links.after[by_after], np.arange(len(self._kind) + 1))
        self._first: list[int] = first.tolist()
        self._waits: list[int] = links.before[by_after].tolist()
        # (step, pipeline) -> its rows, group by group.
        where = recording.column("step_index") * recording.pipelines + recording.column("dp_rank")
        group = np.repeat(np.arange(len(links.group_first) - 1), np.diff(links.group_first))
        members = links.members[recording.column("kind")[links.members] <= rec.GATHER]
        group = group[recording.column("kind")[links.members] <= rec.GATHER]
        order = np.argsort(where[members], kind="stable")
        self._members, self._group = members[order], group[order]
        steps = len(recording.steps) * recording.pipelines
        self._begins = np.searchsorted(where[self._members], np.arange(steps + 1))
        self._pipelines = recording.pipelines

    def make(self, step_index: int, pipeline: int, own: Floats) -> _Pipeline:
        """Return one; transfers take as long as `own` says, at least 0."""
        place = step_index * self._pipelines + pipeline
        part = slice(self._begins[place], self._begins[place + 1])
        made = _Pipeline()
        on_rank: dict[int, int] = {}
        # Of each row: what its end waits for, as of a computation.
        ends: dict[int, tuple[float, list[tuple[int, float]]]] = {}
        rows, groups = self._members[part].tolist(), self._group[part].tolist()
        at = 0
        while at < len(rows):
            stop = at + 1
            while stop < len(rows) and groups[stop] == groups[at]:
                stop += 1
            begin, after = 0.0, []
            for row in rows[at:stop]:
                for wait in self._waits[self._first[row] : self._first[row + 1]]:
                    begin = max(begin, ends[wait][0])
                    after += ends[wait][1]
            after = made.pruned(after)
            for row in rows[at:stop]:
                if self._kind[row] <= rec.BACKWARD:
                    number = len(made.rows)
                    rank = self._stage[row]
                    made.positions.append((rank, on_rank.get(rank, 0)))
                    on_rank[rank] = on_rank.get(rank, 0) + 1
                    made.rows.append(row)
                    made.waits.append((begin, sorted(after)))
                    ends[row] = 0.0, [(number, 0.0)]
                else:
                    delay = max(float(own[row]), 0.0)
                    ends[row] = begin + delay, [(other, each + delay) for other, each in after]
            at = stop
        return made


def fit_lengths(recording: Recording, own: Floats) -> tuple[Floats, float]:
    """Return times that a planner would predict if it knew one length for each microbatch.

    The length of a microbatch is the mean over its computations of time / (mean time of the same
    block and type). Then time = a + b x length is fitted for each block and type. Also returned is
    the root mean square error, as a share of the mean times.
    """
    rows = np.flatnonzero(recording.column("kind") <= rec.BACKWARD)
    seconds = own[rows]
    frame = recording.rows.iloc[rows]
    kind = frame.groupby(["gmc", "kind"]).ngroup().to_numpy()
    microbatch = frame.groupby(["step", "dp_rank", "mb_id"]).ngroup().to_numpy()

    count, y = np.bincount(kind).astype(float), np.bincount(kind, weights=seconds)
    usual = (y / count)[kind]
    relative = np.divide(
        seconds * count[kind], y[kind], out=np.ones_like(seconds), where=y[kind] > 0
    )
    of_microbatch = np.bincount(microbatch, weights=relative) / np.bincount(microbatch)
    length = of_microbatch[microbatch]
    x = np.bincount(kind, weights=length)
    xx = np.bincount(kind, weights=length * length)
    xy = np.bincount(kind, weights=length * seconds)
    spread = xx - x * x / count
    slope = np.divide(
        xy - x * y / count, spread, out=np.zeros_like(spread), where=spread > 1e-12 * xx
    )
    predicted = (y / count)[kind] + slope[kind] * (length - (x / count)[kind])
    predicted = np.maximum(predicted, _LEAST_OF_MEAN * usual)
    errors = np.divide(predicted - seconds, usual, out=np.zeros_like(seconds), where=usual > 0)
    result = own.copy()
    result[rows] = predicted
    return result, float(np.sqrt(np.mean(errors**2)))


class _Detector:
    """Finds pipelines that were slower than the median one in three quarters of earlier steps."""

    def __init__(self, pipelines: int, steps: int) -> None:
        self._steps = steps
        self._slow_by: list[list[float]] = [[] for _ in range(pipelines)]

    def factors(self) -> list[float]:
        """Return by how much each pipeline that is known to straggle is slower; 1 of others."""
        found = []
        for seen in self._slow_by:
            newest = seen[-self._steps :]
            slow = sum(each > _SLOW for each in newest)
            known = len(newest) == self._steps and 4 * slow >= 3 * self._steps
            found.append(statistics.median(newest) if known else 1.0)
        return found

    def add(self, seconds: list[float]) -> None:
        """Take the times of a step that ended now."""
        middle = statistics.median(seconds)
        for seen, each in zip(self._slow_by, seconds):
            seen.append(each / middle if middle > 0 else 1.0)


class _Analysis:
    """Makes the plans of a recorded job, and what all steps are under each policy."""

    def __init__(
        self, recording: Recording, links: Links, costs: Costs, effort: float, detector_steps: int
    ) -> None:
        self._recording, self._costs, self._effort = recording, costs, effort
        self._own = own_seconds(recording, links)
        self._predicted, self.length_error = fit_lengths(recording, self._own)
        self._replay = Replay(recording, links)
        self._pipelines = _Pipelines(recording, links)
        columns = [recording.column(name).tolist() for name in ("gmc", "kind", "mb_id")]
        self._ids = list(zip(*columns))  # Of each row: block, kind and microbatch.
        self._detector = _Detector(recording.pipelines, detector_steps)
        self.answered = 0  # Steps in which the detector knew of a straggler.
        steps = len(recording.steps)
        self._times = {policy: self._own.copy() for policy in POLICIES}
        self._joules = {policy: np.zeros(steps) for policy in POLICIES}
        self._busy = {policy: np.zeros(steps) for policy in POLICIES}
        self._slowest, self._slowest_predicted = np.zeros(steps), np.zeros(steps)
        self.intrinsic, self.extrinsic = np.zeros(steps), np.zeros(steps)

    def run(self, progress: Callable[[float], object] | None) -> None:
        """Make all plans."""
        recording = self._recording
        self._plan_static()
        for step in range(len(recording.steps)):
            self._run_static(step)
        static, highest = (
            float(np.mean(self._replay(self._times[policy])[0]))
            for policy in ("static", "max-clocks")
        )
        for step in range(len(recording.steps)):
            for pipeline in range(recording.pipelines):
                self._run_iteration(step, pipeline, max(1.0, static / highest))
                if progress is not None:
                    done = step + (pipeline + 1) / recording.pipelines
                    progress(done / len(recording.steps))

    def outcome(self, policy: str) -> tuple[Floats, Floats, Floats]:
        """Return seconds, joules, and the joules of waiting ranks of each step."""
        seconds, _ = self._replay(self._times[policy])
        rank_seconds = seconds * self._recording.places
        waiting = self._costs.rank_watts * (rank_seconds - self._busy[policy])
        return seconds, self._joules[policy] + waiting, waiting

    def _options(self, pipeline: _Pipeline, seconds: Floats) -> list[_Options]:
        return [self._costs.options(self._recording, row, seconds[row]) for row in pipeline.rows]

    def _put(
        self,
        policy: str,
        step: int,
        pipeline: _Pipeline,
        options: list[_Options],
        chosen: Iterable[int],
    ) -> None:
        for row, option, k in zip(pipeline.rows, options, chosen):
            self._times[policy][row] = option.times[k]
            self._joules[policy][step] += option.energies[k]
            self._busy[policy][step] += option.times[k]

    def _at_highest(self, pipeline: _Pipeline, options: list[_Options]) -> float:
        times = {row: float(o.times[o.highest]) for row, o in zip(pipeline.rows, options)}
        return pipeline.seconds(times)

    def _plan_static(self) -> None:
        """Prepare plans for all steps and pipelines, made for the mean of each block and type."""
        rows = self._recording.rows.assign(own=self._own)
        means = rows.groupby(["gmc", "kind"])["own"].transform("mean").to_numpy()
        pipeline = self._pipelines.make(0, 0, usual_seconds(self._recording, self._own))
        options = self._options(pipeline, means)
        dag = pipeline.dag(options, self._costs.rank_watts)
        seconds = self._at_highest(pipeline, options)
        effort = max(self._effort, 1.0)  # One plan, not thousands.

        @functools.cache
        def plan(thousandths: int) -> dict[tuple[int, ...], int]:
            choice = dag.choose(seconds * (thousandths / 1000), effort=effort)
            return {self._ids[row]: k for row, k in zip(pipeline.rows, choice.options)}

        # Of so many times the time, without slowdown: by block, kind and microbatch.
        self._static: Callable[[float], dict[tuple[int, ...], int]] = lambda factor: plan(
            math.floor(min(factor, _MOST_FACTOR) * 1000 + 1e-9)
        )

    def _run_static(self, step: int) -> None:
        factors = self._detector.factors()
        self.answered += int(max(factors) > 1)
        base, answer = self._static(1.0), self._static(max(factors))
        seconds, predicted = [], []
        for number, factor in enumerate(factors):
            pipeline = self._pipelines.make(step, number, self._own)
            options = self._options(pipeline, self._own)
            plans: dict[str, dict[tuple[int, ...], int]] = {
                "max-clocks": {},
                "static": base,
                "static-stragglers": base if factor > 1 else answer,
            }
            for policy, plan in plans.items():
                # A microbatch that the first step had not runs at the highest clock.
                chosen = (
                    plan.get(self._ids[row], o.highest) for row, o in zip(pipeline.rows, options)
                )
                self._put(policy, step, pipeline, options, chosen)
            seconds.append(pipeline.seconds(self._own))
            predicted.append(pipeline.seconds(self._predicted))
        self._detector.add(seconds)
        self._slowest[step], self._slowest_predicted[step] = max(seconds), max(predicted)

    def _run_iteration(self, step: int, number: int, as_slow: float) -> None:
        pipeline = self._pipelines.make(step, number, self._own)
        options = self._options(pipeline, self._own)
        dag = pipeline.dag(options, self._costs.rank_watts)
        alone = self._at_highest(pipeline, options)
        job = max(alone, self._slowest[step])
        # docs/explanation/emulation.md, "Energy".
        effective = sum(
            o.energies[o.highest] - self._costs.rank_watts * o.times[o.highest] for o in options
        )
        fastest = dag.frontier.fastest_seconds
        least, least_of_job = (dag.frontier.energy_at(max(at, fastest)) for at in (alone, job))
        self.intrinsic[step] += effective - least
        self.extrinsic[step] += least - least_of_job
        for policy, at in (
            ("per-iteration-alone", alone),
            ("per-iteration", job),
            ("per-iteration-as-slow", job * as_slow),
        ):
            chosen = dag.choose(at, effort=self._effort).options
            self._put(policy, step, pipeline, options, chosen)
        # Planned by the predicted times, run on the true ones.
        predicted = self._options(pipeline, self._predicted)
        at = max(self._at_highest(pipeline, predicted), self._slowest_predicted[step])
        dag = pipeline.dag(predicted, self._costs.rank_watts)
        chosen = dag.choose(at, effort=self._effort).options
        self._put("per-iteration-lengths", step, pipeline, options, chosen)


def energy(
    recording: Recording,
    links: Links,
    costs: Costs,
    *,
    effort: float = EFFORT,
    detector_steps: int = 12,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Return `energy` of trace.json: what the job would have used, a step in the mean.

    Raises
    ------
    PlannerError
        The profile lacks a computation, or the planner's own.
    """
    analysis = _Analysis(recording, links, costs, effort, detector_steps)
    analysis.run(progress)
    outcomes = {policy: analysis.outcome(policy) for policy in POLICIES}
    means = {policy: [float(np.mean(each)) for each in o] for policy, o in outcomes.items()}
    seconds, joules, blocking = means["max-clocks"]
    intrinsic, extrinsic = float(np.mean(analysis.intrinsic)), float(np.mean(analysis.extrinsic))
    return {
        "profile": costs.name,
        "costs": RELATIVE_COSTS,
        "blocking_power_w": costs.blocking_power_watts,
        "gpus_per_rank": costs.gpus_per_rank,
        "step_s": seconds,
        "energy_j": joules,
        "useful_j": joules - blocking - intrinsic - extrinsic,
        "intrinsic_bloat_j": intrinsic,
        "extrinsic_bloat_j": extrinsic,
        "blocking_j": blocking,
        "length_error": analysis.length_error,
        "detector_steps": detector_steps,
        "steps_with_known_stragglers": analysis.answered,
        **({"profile_modelled": costs.modelled} if costs.modelled else {}),
        "plans": [
            {
                "plan": policy,
                "step_s": mean[0],
                "slowdown_percent": 100 * (mean[0] / seconds - 1),
                "energy_j": mean[1],
                "saving_percent": 100 * (1 - mean[1] / joules) if joules > 0 else 0.0,
            }
            for policy, mean in means.items()
        ],
        "steps": [
            {
                "step": step,
                "intrinsic_bloat_j": float(analysis.intrinsic[i]),
                "extrinsic_bloat_j": float(analysis.extrinsic[i]),
                **{
                    policy: {"step_s": float(outcome[0][i]), "energy_j": float(outcome[1][i])}
                    for policy, outcome in outcomes.items()
                },
            }
            for i, step in enumerate(recording.steps)
        ],
    }
