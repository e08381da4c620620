# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
r"""Recomputes the tables of the Perseus paper (Chung et al., SOSP'24) from its public data.

    python evaluation/sosp24.py sosp24_data --derived derived -o evaluation

Our plans, and the lower bound, stand beside every published cell: docs/evidence/evidence.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import artifact
import perseus
from artifact import Case, Point, Workload
from perseus import PlannerError
from perseus.analysis import policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Row = dict[str, Any]

GLOBAL_BATCH = 1536  # Microbatches of all pipelines.
SLOWDOWNS = tuple((100 + percent) / 100 for percent in range(1, 51))  # Figure 8.
FIGURE_7 = 1.2
TABLE_4 = (1.05, 1.1, 1.2, 1.3, 1.4, 1.5)
# Shares of the effort asked for: plans that a table shows are searched for longer.
HEADLINE, EFFORT = 5, 0.2
CURVE_PLANS = 12
NONE = "\u2013"


def saving(baseline: float, joules: float) -> float:
    """Return by how many percent of the baseline's energy another is less."""
    return 100 * (baseline - joules) / baseline if baseline > 0 else 0.0


class Ours:
    """Our plans of a job: 1F1B without communication, one stage a rank."""

    def __init__(
        self, profile: object, microbatches: int, gpus: int, watts: float, effort: float
    ) -> None:
        before = time.process_time()
        self.planner = perseus.Planner(
            profile, "1f1b", microbatches, watts, tp=gpus, accept_implausible=True
        )
        self.frontier = self.planner.frontier
        self.frontier_seconds = time.process_time() - before
        self.baseline = self.planner.baseline
        self.watts = self.frontier.total_blocking_power_watts
        self.effort = effort
        self.plans: list[perseus.Plan] = []

    def plan(self, seconds: float, effort: float) -> perseus.Plan:
        """Make a plan, and keep it."""
        made = self.planner.plan(f"{seconds!r}s", effort=effort * self.effort)
        self.plans.append(made)
        return made

    def bound(self, seconds: float) -> float:
        """Return the least energy that any plan of that time can use."""
        return self.frontier.energy_at(max(seconds, self.frontier.fastest_seconds))

    def until(self, plan: perseus.Plan, seconds: float) -> float:
        """Return a plan's energy with waiting until then; none where it is later."""
        return plan.energy_joules + self.watts * max(0.0, seconds - plan.iteration_time_seconds)

    def best_until(self, seconds: float) -> float:
        """Return the energy until then of the best plan within; below T_min, of the fastest."""
        within = [plan for plan in self.plans if plan.iteration_time_seconds <= seconds]
        if within:

            def effective(plan: perseus.Plan) -> float:
                return plan.energy_joules - self.watts * plan.iteration_time_seconds

            return self.until(min(within, key=effective), seconds)
        return self.until(min(self.plans, key=lambda p: p.iteration_time_seconds), seconds)


class Published:
    """A published frontier, and two rules to choose on it."""

    def __init__(self, points: list[Point], watts: float) -> None:
        self.points = sorted(points, key=lambda point: point.time)
        self.watts = watts

    def within(self, seconds: float) -> list[Point]:
        """Return the points that end in time; below all, the fastest."""
        return [p for p in self.points if p.time <= seconds] or self.points[:1]

    def least_total(self, seconds: float) -> Point:
        """Return the point of the paper's rule."""
        return min(self.within(seconds), key=lambda point: point.energy)

    def least_effective(self, seconds: float) -> Point:
        """Return that of least energy with waiting: the wait is paid anyway."""
        return min(self.within(seconds), key=lambda p: p.energy - self.watts * p.time)


class Situation:
    """A job of pipelines of which one is slower by a factor; T is `seconds`."""

    def __init__(
        self, seconds: float, baseline: float, slowdown: float, pipelines: int, watts: float
    ) -> None:
        self.seconds, self.baseline, self.slowdown = seconds, baseline, slowdown
        self.pipelines, self.watts = pipelines, watts
        self.until = slowdown * seconds
        # Energy that a healthy pipeline of the baseline uses until the straggler is there.
        self.baseline_until = baseline + watts * (self.until - seconds)
        self.baseline_job = (pipelines - 1) * self.baseline_until + slowdown * baseline

    def job_percent(self, healthy: float, straggler: float) -> float:
        """Return the job's saving where pipelines use that; the straggler without its slowdown."""
        return saving(self.baseline_job, (self.pipelines - 1) * healthy + self.slowdown * straggler)


class Evaluation:
    """Everything that is recomputed, by the keys of evaluation.json."""

    def __init__(self, data: str, derived: str, measured: str, effort: float) -> None:
        self.root = artifact.find(data)
        self.derived = Path(derived) if derived else None
        if self.derived is not None and not self.derived.is_dir():
            raise PlannerError(f"{derived}: is no folder; give that with the derived job profiles")
        beside = [self.root.parent, *([self.derived.parent] if self.derived else [])]
        self.measured = [Path(measured)] if measured else [b / "measured" for b in beside]
        self.effort = effort
        self.emulations: list[Row] = []
        self.stragglers: list[Row] = []
        self.jobs: list[Row] = []
        self.job_stragglers: list[Row] = []
        self.missing: list[str] = []

    def run(self, progress: Callable[[str], object]) -> None:
        """Recompute all."""
        envpipe = artifact.envpipe_results(self.root)
        for case in artifact.emulations(self.root, self.missing):
            if GLOBAL_BATCH % case.microbatches:
                self.missing.append(
                    f"Emulation of {case}: {GLOBAL_BATCH} microbatches in all are no whole number "
                    "of pipelines, so it is left out."
                )
                continue
            progress(f"Table 6, Figures 7 and 8: {case}")
            self.emulate(case, envpipe.get(case[:3]))
        workloads = artifact.workloads(self.root)
        if not workloads:
            self.missing.append(
                "Real jobs: workloads/, perseus/ and envpipe/ name none, so Tables 3 and 4 and "
                "Figure 9 are left out."
            )
        for workload in workloads:
            if workload.gpu not in artifact.BLOCKING_WATTS:
                self.missing.append(
                    f"{workload}: the paper states no blocking power for this GPU, so it is left "
                    "out."
                )
                continue
            progress(f"Tables 3 and 4, Figure 9: {workload}")
            RealJob(self, workload).run()
        self._name_absent_plans()

    def _name_absent_plans(self) -> None:
        if self.derived is None:
            self.missing.append(
                "Real jobs: no folder of derived profiles was given, so Tables 3 and 4 and Figure "
                "9 have no plans of ours, and no published plan is replayed."
            )
            return
        named = [(f"{job['model']} on {job['gpu']}", job) for job in self.jobs]
        without = [name for name, job in named if job["derived"] is None]
        if without:
            self.missing.append(
                f"Real jobs: the folder of derived profiles has none of {', '.join(without)}, so "
                "there are no plans of ours for them."
            )
        without = [
            name
            for name, job in named
            if job["derived"] is not None and (job["perseus_from_summary"] or not job["perseus"])
        ]
        if without:
            self.missing.append(
                f"Real jobs: the clocks of the published plans of {', '.join(without)} are absent, "
                "so these are not replayed against their measured times."
            )

    def emulate(self, case: Case, envpipe: Point | None) -> None:
        """Recompute a cell of Table 6, and its rows of Figures 7 and 8."""
        ours = Ours(
            artifact.stage_profile(case.profile),
            case.microbatches,
            artifact.TENSOR_PARALLEL,
            artifact.BLOCKING_WATTS[case.device],
            self.effort,
        )
        watts, frontier = ours.watts, ours.frontier
        published = Published(artifact.frontier(case.frontier), watts)
        pipelines = GLOBAL_BATCH // case.microbatches
        t, t_max = published.points[0].time, ours.baseline.iteration_time_seconds
        baseline = ours.baseline.energy_joules - watts * (t_max - t)
        published_joules = published.least_total(t).energy
        at_t_max = 0.0
        if t_max >= t:
            best = published.least_effective(t_max)
            at_t_max = saving(
                ours.baseline.energy_joules, best.energy + watts * (t_max - best.time)
            )
        if envpipe is None:
            self.missing.append(
                f"Emulation of {case}: no row of EnvPipe in emulation/envpipe_result.csv, so its "
                "published figures are left out."
            )
        before = time.process_time()
        top = own = ours.plan(t_max, HEADLINE)
        plan_seconds = time.process_time() - before
        # The protocol's time where a plan can achieve it, else the least that one can.
        own_t = max(t, frontier.fastest_seconds)
        if own_t != t_max:
            own = ours.plan(own_t, HEADLINE)
        own_joules = ours.until(own, own_t)
        real = own_t <= t
        policy_plan = None
        try:
            policy_plan = policy.plan(ours.planner, "envpipe")
        except PlannerError as error:
            self.missing.append(f"Emulation of {case}: EnvPipe's policy has no plan: {error}.")
        self.emulations.append(
            {
                **case._asdict(),
                "pipelines": pipelines,
                "gpus": pipelines * ours.planner.profile.stages * artifact.TENSOR_PARALLEL,
                "published_time_s": t,
                "published_baseline_j": baseline,
                "published_j": published_joules,
                "published_saving_percent": saving(baseline, published_joules),
                "published_at_max_clock_saving_percent": at_t_max,
                "max_clock_time_s": t_max,
                "fastest_time_s": frontier.fastest_seconds,
                "at_published_saving_percent": saving(baseline, own_joules) if real else None,
                "at_max_clock_saving_percent": top.saving_percent,
                "bound_saving_percent": saving(ours.baseline.energy_joules, ours.bound(t_max)),
                "bound_at_published_saving_percent": saving(baseline, ours.bound(t))
                if real
                else None,
                "envpipe_published_time_s": envpipe.time if envpipe else None,
                "envpipe_published_j": envpipe.energy if envpipe else None,
                "envpipe_time_s": policy_plan.seconds if policy_plan else None,
                "envpipe_j": policy_plan.joules if policy_plan else None,
                "frontier_cpu_s": ours.frontier_seconds,
                "plan_cpu_s": plan_seconds,
                "computations": len(top.computations),
                "breakpoints": len(frontier),
            }
        )
        del self.emulations[-1]["profile"], self.emulations[-1]["frontier"]
        self._plan_for_stragglers(ours, t, t_max)
        for slowdown in SLOWDOWNS:
            situation = Situation(t, baseline, slowdown, pipelines, watts)
            row = {**case._asdict(), "slowdown": slowdown}
            del row["profile"], row["frontier"]
            row |= _published_row(situation, published, published_joules, envpipe)
            healthy = ours.best_until(situation.until)
            row["ours_pipeline_percent"] = saving(situation.baseline_until, healthy)
            row["ours_job_percent"] = situation.job_percent(healthy, own_joules)
            row["bound_job_percent"] = situation.job_percent(
                ours.bound(situation.until), ours.bound(t)
            )
            if slowdown == FIGURE_7:
                at = Situation(t_max, ours.baseline.energy_joules, slowdown, pipelines, watts)
                row["ours_max_clock_job_percent"] = at.job_percent(
                    ours.best_until(at.until), ours.until(top, t_max)
                )
                row["bound_max_clock_job_percent"] = at.job_percent(
                    ours.bound(at.until), ours.bound(t_max)
                )
            self.stragglers.append(row)

    def _plan_for_stragglers(self, ours: Ours, t: float, t_max: float) -> None:
        at_tstar = False
        for slowdown in SLOWDOWNS:
            wanted = [(slowdown * t, HEADLINE if slowdown == FIGURE_7 else 1)]
            if slowdown == FIGURE_7:
                wanted.append((slowdown * t_max, HEADLINE))
            for seconds, effort in wanted:
                # Beyond T* the plan is always the same.
                beyond = seconds >= ours.frontier.tstar_seconds
                if seconds < ours.frontier.fastest_seconds or (beyond and at_tstar):
                    continue
                at_tstar = at_tstar or beyond
                ours.plan(seconds, effort)


def _published_row(
    situation: Situation, published: Published, joules: float, envpipe: Point | None
) -> Row:
    """Return what published plans save with a straggler."""
    watts, until = situation.watts, situation.until

    def waited(point: Point) -> float:
        return point.energy + watts * (until - point.time)

    total, effective = published.least_total(until), published.least_effective(until)
    row: Row = {
        "published_pipeline_percent": saving(situation.baseline_until, waited(total)),
        "published_job_percent": situation.job_percent(waited(total), joules),
        "published_time_over_t": total.time / situation.seconds,
        "effective_job_percent": situation.job_percent(waited(effective), joules),
        "effective_time_over_t": effective.time / situation.seconds,
    }
    if envpipe is not None:
        row["envpipe_job_percent"] = situation.job_percent(waited(envpipe), envpipe.energy)
        # The artifact takes EnvPipe to end at T, and counts the waiting of two pipelines too many.
        waiting = watts * (until - situation.seconds)
        row["envpipe_artifact_pipeline_percent"] = saving(
            situation.baseline_until, envpipe.energy + waiting
        )
        row["envpipe_artifact_job_percent"] = saving(
            situation.baseline_job,
            (situation.pipelines - 1 + situation.slowdown) * envpipe.energy
            + (situation.pipelines + 1) * waiting,
        )
    return row


class RealJob:
    """A real job of Tables 3 and 4 and Figure 9."""

    def __init__(self, evaluation: Evaluation, workload: Workload) -> None:
        self._evaluation, self._workload = evaluation, workload
        self._watts = artifact.BLOCKING_WATTS[workload.gpu]
        self._runs = artifact.run_folder(evaluation.root, "perseus", workload)
        self._numbers: list[int] = []  # Of measured plans.
        self._perseus: list[Point] = []
        self._envpipe: Point | None = None
        self._baseline: Point | None = None
        self._ours: Ours | None = None
        self._summarised = False

    def run(self) -> None:
        """Recompute it."""
        zeus = self._read()
        baseline, perseus_plans = self._baseline, _slow_to_fast(self._perseus)
        row: Row = {
            "gpu": self._workload.gpu,
            "model": self._workload.model,
            "layout": self._workload.layout,
            "microbatch_size": self._workload.microbatch_size,
            "microbatches": self._workload.microbatches,
            "baseline": baseline,
            "perseus": self._perseus,
            "perseus_from_summary": self._summarised,
            "envpipe": self._envpipe,
            "zeus_global": zeus[0],
            "zeus_per_stage": zeus[1],
            "derived": None,
            "replay_error_percent": [],
            "replay_energy_error_percent": [],
        }
        for name, point in (
            ("perseus", perseus_plans[-1] if perseus_plans else None),
            ("envpipe", self._envpipe),
        ):
            if baseline and point:
                row[f"{name}_saving_percent"] = saving(baseline.energy, point.energy)
                row[f"{name}_slowdown_percent"] = max(0.0, 100 * (point.time / baseline.time - 1))
        self._plan(row)
        self._table_4()
        if zeus[0] or zeus[1] or self._perseus or self._envpipe or row["derived"]:
            self._evaluation.jobs.append(row)

    def _missing(self, what: str) -> None:
        self._evaluation.missing.append(f"{self._workload}: {what}")

    def _read(self) -> tuple[list[Point], list[Point]]:
        workload, root = self._workload, self._evaluation.root
        folder = root / "zeus/csv" / workload.gpu
        rows = artifact.zeus_rows(folder / "zeus_global.csv", workload)
        local = artifact.zeus_rows(folder / "zeus_local.csv", workload)
        if rows:
            self._baseline = max(rows, key=lambda row: row[0])[1]
        else:
            self._missing(
                f"zeus/csv/{workload.gpu}/zeus_global.csv has no rows of it, and so no baseline, "
                "so it is left out of Tables 3 and 4."
            )
        if not local and workload.pp > 1:  # Without stages to balance it is ZeusGlobal.
            self._missing(
                f"zeus/csv/{workload.gpu}/zeus_local.csv has no rows of it, so the curve of "
                "ZeusPerStage is left out of Figure 9."
            )
        self._read_perseus()
        runs = artifact.run_folder(root, "envpipe", workload)
        plans = artifact.plans_in(runs[0], "prof") if runs else []
        if runs and plans and plans[-1] >= runs[1]:  # Its one plan is run after those of warm-up.
            self._envpipe = artifact.measurement(runs[0], plans[-1])
        absent = [
            name
            for name, is_there in (("Perseus", self._perseus), ("EnvPipe", self._envpipe))
            if not is_there
        ]
        if absent:
            self._missing(
                f"no measured plans of {' and '.join(absent)}, so these cells of Tables 3 and 4 "
                "and curves of Figure 9 are left out."
            )
        return [row[1] for row in rows], [row[1] for row in local]

    def _read_perseus(self) -> None:
        if self._runs:
            folder, warm_up = self._runs
            self._numbers = [n for n in artifact.plans_in(folder, "prof") if n >= warm_up]
            self._perseus = [artifact.measurement(folder, n) for n in self._numbers]
            if self._numbers:
                planned = artifact.plans_in(folder, "sched")
                every = {*range(warm_up, self._numbers[-1]), *planned} - set(self._numbers)
                absent = [f"{n}.prof.json" for n in sorted(every) if n >= warm_up]
                if absent:
                    self._missing(
                        f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} absent from "
                        f"{folder.name}, so these plans are left out."
                    )
        for folder in self._evaluation.measured:
            path = folder / self._workload.file
            if not self._perseus and path.is_file():
                self._perseus, self._summarised = artifact.summary(path), True

    def _plan(self, row: Row) -> None:
        """Make our plans, and replay the published ones."""
        workload, evaluation = self._workload, self._evaluation
        path = evaluation.derived / workload.file if evaluation.derived else None
        if path is None or not path.is_file():
            return
        ours = Ours(str(path), workload.microbatches, workload.tp, self._watts, evaluation.effort)
        if ours.planner.profile.stages != workload.pp:
            raise PlannerError(
                f"{path}: the profile has {ours.planner.profile.stages} stages, its name says "
                f"{workload.pp}"
            )
        self._ours = ours
        top = ours.plan(ours.baseline.iteration_time_seconds, HEADLINE)
        frontier = ours.frontier
        span = frontier.tstar_seconds - frontier.fastest_seconds
        times = [
            frontier.fastest_seconds + span * i / (CURVE_PLANS - 1) for i in range(CURVE_PLANS)
        ]
        times[-1] = frontier.tstar_seconds
        curve = [ours.plan(seconds, 1) for seconds in times]
        row["derived"] = {
            "baseline_time_s": ours.baseline.iteration_time_seconds,
            "baseline_energy_j": workload.dp * ours.baseline.energy_joules,
            "saving_percent": top.saving_percent,
            "bound_saving_percent": saving(ours.baseline.energy_joules, top.lower_bound_joules),
            "frontier": [
                Point(p.iteration_time_seconds, workload.dp * p.energy_joules) for p in curve
            ],
        }
        self._replay_published(ours, row)

    def _replay_published(self, ours: Ours, row: Row) -> None:
        absent, misfits = [], []
        fastest = 0 if _fastest_first(self._perseus) else len(self._perseus) - 1
        for i, number in enumerate(self._numbers):
            assert self._runs is not None
            if not (self._runs[0] / f"{number}.sched.json").is_file():
                absent.append(number)
                continue
            point = replay(ours, artifact.clocks(self._runs[0], number), self._workload)
            if point is None:
                misfits.append(number)
                continue
            measured = self._perseus[i]
            joules = self._workload.dp * point.energy
            row["replay_error_percent"].append(100 * (point.time / measured.time - 1))
            row["replay_energy_error_percent"].append(100 * (joules / measured.energy - 1))
            if i == fastest:  # The plan of Table 3.
                baseline = ours.baseline
                row["replay_saving_percent"] = saving(baseline.energy_joules, point.energy)
                row["replay_slowdown_percent"] = 100 * (
                    point.time / baseline.iteration_time_seconds - 1
                )
        for numbers, what in (
            (absent, "no list of clocks (N.sched.json) of {}, not replayed."),
            (misfits, "the clocks of {} do not fit 1F1B or the derived profile, not replayed."),
        ):
            if numbers:
                plans = f"plan{'s'[: len(numbers) > 1]} {', '.join(map(str, numbers))}"
                self._missing(what.format(plans))

    def _until(self, point: Point, seconds: float) -> float:
        """Return the job's energy with waiting, which may be negative, as in the artifact."""
        gpus = self._workload.dp * self._workload.pp * self._workload.tp
        return point.energy + (seconds - point.time) * gpus * self._watts

    def _table_4(self) -> None:
        late = []
        for slowdown in TABLE_4:
            measured: dict[str, float | None] = {"perseus": None, "envpipe": None, "ours": None}
            if self._baseline:
                until = slowdown * self._baseline.time
                in_time = [p for p in _slow_to_fast(self._perseus) if p.time <= until]
                for name, point in (
                    ("perseus", in_time[0] if in_time else None),
                    ("envpipe", self._envpipe),
                ):
                    if point:
                        measured[name] = saving(
                            self._until(self._baseline, until), self._until(point, until)
                        )
                if self._perseus and not in_time:
                    late.append(str(slowdown))
            if self._ours:
                measured["ours"] = self._straggler_percent(self._ours, slowdown)
            if any(each is not None for each in measured.values()):
                self._evaluation.job_stragglers.append(
                    {
                        "gpu": self._workload.gpu,
                        "model": self._workload.model,
                        "slowdown": slowdown,
                        **{f"{name}_percent": each for name, each in measured.items()},
                    }
                )
        if late:
            self._missing(
                f"no measured plan of Perseus ends in time at slowdown {', '.join(late)}, so its "
                "cells of Table 4 are left out there."
            )

    @staticmethod
    def _straggler_percent(ours: Ours, slowdown: float) -> float:
        until = slowdown * ours.baseline.iteration_time_seconds
        if until < ours.frontier.tstar_seconds:  # Beyond, the curve's last plan is the one.
            ours.plan(until, 1)
        baseline = ours.until(ours.baseline, until)
        in_time = [p for p in ours.plans if p.iteration_time_seconds <= until]
        return saving(baseline, min([baseline, *(ours.until(p, until) for p in in_time)]))


def _fastest_first(plans: list[Point]) -> bool:
    return bool(plans) and plans[0].time < plans[-1].time


def _slow_to_fast(plans: list[Point]) -> list[Point]:
    return plans[::-1] if _fastest_first(plans) else plans


def replay(ours: Ours, clocks: list[list[float]], workload: Workload) -> Point | None:
    """Return what a published plan takes and uses on our profile; None: it does not fit.

    Replicas and tensor-parallel GPUs of a stage have the clocks of its first.
    """
    stages = workload.pp
    group = workload.dp * workload.tp
    if len(clocks) != group * stages:
        return None
    options = {
        (o.stage, o.instruction, float(o.frequency)): (o.time, o.energy * workload.tp)
        for o in ours.planner.profile.options
    }
    order: list[list[tuple[str, int]]] = [[] for _ in range(stages)]
    for each in sorted(ours.baseline.computations, key=lambda c: (c.rank, c.start_seconds)):
        order[each.stage].append((each.instruction, each.microbatch))
    chosen = {}
    for stage, own in enumerate(order):
        found = _clocks_of_computations(own, stage, stages, clocks[stage * group])
        if found is None:
            return None
        for (instruction, microbatch), clock in zip(own, found, strict=True):
            if (stage, instruction, clock) not in options:
                return None
            chosen[stage, instruction, microbatch] = options[stage, instruction, clock]
    ends: dict[tuple[int, str, int], float] = {}
    places, free = [0] * stages, [0.0] * stages
    while len(ends) < len(chosen):
        for stage, own in enumerate(order):
            while places[stage] < len(own):
                instruction, microbatch = own[places[stage]]
                neighbour = stage + (-1 if instruction == "forward" else 1)
                before = (neighbour, instruction, microbatch)
                if 0 <= neighbour < stages and before not in ends:
                    break
                key = stage, instruction, microbatch
                free[stage] = max(free[stage], ends.get(before, 0.0)) + chosen[key][0]
                ends[key] = free[stage]
                places[stage] += 1
    seconds = max(ends.values())
    watts = ours.watts / stages
    joules = ours.watts * seconds + sum(joules - watts * time for time, joules in chosen.values())
    return Point(seconds, joules)


def _clocks_of_computations(
    order: list[tuple[str, int]], stage: int, stages: int, clocks: list[float]
) -> list[float] | None:
    """Return the clocks of a stage's computations among those of all its instructions.

    Between two computations stand transfers, which the artifact counts, too. A transfer to and one
    from the same neighbour that meet in adjacent steps are one instruction; the first and the last
    stage load their microbatch before every forward; three instructions end the iteration.
    """
    has_previous, has_next = stage > 0, stage + 1 < stages

    def receives(forward: bool) -> bool:
        return has_previous if forward else has_next

    chosen: list[float] = []
    at, last_step, last_forward = 0, -1, False
    for instruction, microbatch in order:
        forward = instruction == "forward"
        # The rigid steps in which the artifact's engine (DeepSpeed's 1F1B) lays out a pipeline.
        step = 2 * microbatch + (stage if forward else 2 * stages - 1 - stage)
        merged = bool(chosen) and step == last_step + 1 and forward != last_forward
        if not merged and chosen:
            at += receives(not last_forward)  # Sends what it made to the other neighbour.
        at += receives(forward)
        at += forward and not (has_previous and has_next)
        if at >= len(clocks):
            return None
        chosen.append(clocks[at])
        at += 1
        last_step, last_forward = step, forward
    at += receives(not last_forward)
    return chosen if at + 3 == len(clocks) else None


def _signed(value: float, decimals: int, plus: str) -> str:
    digits = f"{abs(value):.{decimals}f}"
    if not digits.strip("0."):
        return digits
    return ("\u2212" if value < 0 else plus) + digits


def _percent(value: float | None) -> str:
    return NONE if value is None else _signed(value, 2, "")


def _points(value: float | None, other: float | None = 0.0) -> str:
    return NONE if value is None or other is None else _signed(value - other, 2, "+")


def _printed(value: float) -> str:
    return _signed(value, 6, "")


Table = tuple[str, list[list[str]], int]  # Columns, rows, how many of them are text.


def _case_table(columns: str, rows: Iterable[Row], cells: Callable[[Row], list[str]]) -> Table:
    found = [[r["model"], r["device"], str(r["microbatches"]), *cells(r)] for r in rows]
    return f"Model|GPU|Microbatches|{columns}", found, 2


def tables(evaluation: Evaluation) -> dict[str, Table]:
    """Return every table of the page by its name."""
    cells, rows = evaluation.emulations, evaluation.stragglers
    figure_7 = [row for row in rows if row["slowdown"] == FIGURE_7]
    found = {
        "Table 6 at T": _case_table(
            "GPUs|T (s)|T_min (s)|Published planner, saving (%)|Ours at T (%)|"
            "Bound at T (%)|Ours less published (points)",
            cells,
            lambda c: [
                str(c["gpus"]),
                f"{c['published_time_s']:.4f}",
                f"{c['fastest_time_s']:.4f}",
                _printed(c["published_saving_percent"]),
                "T is below T_min"
                if c["at_published_saving_percent"] is None
                else _percent(c["at_published_saving_percent"]),
                _percent(c["bound_at_published_saving_percent"]),
                _points(c["at_published_saving_percent"], c["published_saving_percent"]),
            ],
        ),
        "Table 6 at T_max": _case_table(
            "T_max (s)|Published planner at T (%)|Published planner at T_max (%)|"
            "Ours at T_max (%)|Bound at T_max (%)|Ours less bound (points)|"
            "Ours less published at T (points)|at T_max (points)",
            cells,
            lambda c: [
                f"{c['max_clock_time_s']:.4f}",
                _printed(c["published_saving_percent"]),
                _percent(c["published_at_max_clock_saving_percent"])
                + " (above the bound)"
                * (c["published_at_max_clock_saving_percent"] > c["bound_saving_percent"]),
                _percent(c["at_max_clock_saving_percent"]),
                _percent(c["bound_saving_percent"]),
                *(
                    _points(c["at_max_clock_saving_percent"], c[other])
                    for other in (
                        "bound_saving_percent",
                        "published_saving_percent",
                        "published_at_max_clock_saving_percent",
                    )
                ),
            ],
        ),
        "Figure 7": _case_table(
            "Published, pipeline (%)|Published, job (%)|Its time / T|"
            "Least effective energy, job (%)|Its time / T|Ours, pipeline (%)|"
            "Ours, job (%)|Bound, job (%)|Ours less published (points)|"
            "Ours at T_max, job (%)|Bound at T_max, job (%)",
            figure_7,
            lambda r: [
                _printed(r["published_pipeline_percent"]),
                _printed(r["published_job_percent"]),
                f"{r['published_time_over_t']:.2f}",
                _percent(r["effective_job_percent"]),
                f"{r['effective_time_over_t']:.2f}",
                _percent(r["ours_pipeline_percent"]),
                _percent(r["ours_job_percent"]),
                _percent(r["bound_job_percent"]),
                _points(r["ours_job_percent"], r["published_job_percent"]),
                _percent(r.get("ours_max_clock_job_percent")),
                _percent(r.get("bound_max_clock_job_percent")),
            ],
        ),
        "Figure 7, EnvPipe": _case_table(
            "EnvPipe as the artifact counts, pipeline (%)|"
            "EnvPipe as the artifact counts, job (%)|"
            "EnvPipe as the protocol says, job (%)|Ours, job (%)",
            (row for row in figure_7 if "envpipe_job_percent" in row),
            lambda r: [
                _printed(r["envpipe_artifact_pipeline_percent"]),
                _printed(r["envpipe_artifact_job_percent"]),
                _percent(r["envpipe_job_percent"]),
                _percent(r["ours_job_percent"]),
            ],
        ),
        "Figure 8": _case_table(
            "Slowdown|Published (%)|Least effective energy (%)|Ours (%)|Bound (%)|"
            "Ours less published (points)|EnvPipe (%)",
            (row for row in rows if row["slowdown"] in TABLE_4),
            lambda r: [
                f"{r['slowdown']:.2f}",
                _percent(r["published_job_percent"]),
                _percent(r["effective_job_percent"]),
                _percent(r["ours_job_percent"]),
                _percent(r["bound_job_percent"]),
                _points(r["ours_job_percent"], r["published_job_percent"]),
                _percent(r.get("envpipe_job_percent")),
            ],
        ),
        "EnvPipe": _case_table(
            "Published time (s)|Our policy's time (s)|Published energy (J)|"
            "Our policy's energy (J)|Published saving (%)|Our policy's saving (%)|"
            "Difference (points)",
            (c for c in cells if c["envpipe_published_j"]),
            _envpipe_cells,
        ),
        "Run time": _case_table(
            "Computations|Breakpoints|Frontier (CPU s)|Plan (CPU s)",
            cells,
            lambda c: [
                str(c["computations"]),
                str(c["breakpoints"]),
                f"{c['frontier_cpu_s']:.2f}",
                f"{c['plan_cpu_s']:.2f}",
            ],
        ),
    }
    return found | _job_tables(evaluation)


def _envpipe_cells(cell: Row) -> list[str]:
    published, ours = (
        joules and 100 * (1 - joules / cell["published_baseline_j"])
        for joules in (cell["envpipe_published_j"], cell["envpipe_j"])
    )
    return [
        f"{cell['envpipe_published_time_s']:.4f}",
        f"{cell['envpipe_time_s']:.4f}" if ours else NONE,
        f"{cell['envpipe_published_j']:.0f}",
        f"{cell['envpipe_j']:.0f}" if ours else NONE,
        _percent(published),
        _percent(ours),
        _points(ours, published),
    ]


def _job_tables(evaluation: Evaluation) -> dict[str, Table]:
    jobs = evaluation.jobs
    table_3 = []
    for job in jobs:
        derived = job["derived"] or {}
        ours, replayed = derived.get("saving_percent"), job.get("replay_saving_percent")
        measured = job.get("perseus_saving_percent")
        if not derived and measured is None and job.get("envpipe_saving_percent") is None:
            continue
        cells = [job[key] for key in ("gpu", "model", "layout", "microbatches")]
        for name in ("perseus", "envpipe"):
            cells += [_percent(job.get(f"{name}_{key}_percent")) for key in ("saving", "slowdown")]
        cells += [_percent(ours), _percent(derived.get("bound_saving_percent"))]
        cells += [_points(ours, measured), _percent(replayed)]
        cells += [_percent(job.get("replay_slowdown_percent")), _points(ours, replayed)]
        table_3.append([str(cell) for cell in cells])
    errors = []
    for job in jobs:
        cells = [job["gpu"], job["model"], str(len(job["replay_error_percent"]))]
        for key in ("replay_error_percent", "replay_energy_error_percent"):
            if job[key]:
                worst = max(sorted(job[key], reverse=True), key=abs)
                cells += [_points(statistics.median(job[key])), _points(worst)]
        if len(cells) > 3:
            errors.append(cells)
    found: dict[str, Table] = {
        "Table 3": (
            "GPU|Model|Layout|Microbatches|Perseus, measured saving (%)|slowdown (%)|"
            "EnvPipe, measured saving (%)|slowdown (%)|Ours, predicted saving (%)|"
            "Bound, predicted (%)|Ours less measured Perseus (points)|"
            "The Perseus plan, predicted saving (%)|slowdown (%)|"
            "Ours less that (points)",
            table_3,
            3,
        ),
        "Table 4": (
            "GPU|Model|Slowdown|Perseus, measured (%)|EnvPipe, measured (%)|"
            "Ours, predicted (%)|Ours less measured Perseus (points)",
            [
                [
                    row["gpu"],
                    row["model"],
                    f"{row['slowdown']:.2f}",
                    *(_percent(row[f"{name}_percent"]) for name in ("perseus", "envpipe", "ours")),
                    _points(row["ours_percent"], row["perseus_percent"]),
                ]
                for row in evaluation.job_stragglers
            ],
            2,
        ),
        "Replay": (
            "GPU|Model|Published plans|Time, median error (%)|worst (%)|"
            "Energy, median error (%)|worst (%)",
            errors,
            2,
        ),
    }
    columns = "System|Point|Time (s)|Energy (J)|Time, change (%)|Energy, change (%)"
    for job in jobs:
        name = (
            f"{job['model']} on {job['gpu']}, {job['layout']}: {job['microbatches']} microbatches "
            f"of {job['microbatch_size']}."
        )
        found[name] = columns, _figure_9(job), 2
    return found


def _figure_9(job: Row) -> list[list[str]]:
    rows = []

    def add(system: str, name: str, at: Point, base: Point) -> None:
        changes = [
            _points(100 * (value / of - 1)) if of > 0 else NONE
            for value, of in zip(at, base, strict=True)
        ]
        rows.append([system, name, f"{at.time:.4f}", f"{at.energy:.1f}", *changes])

    def ends(system: str, points: list[Point], base: Point) -> None:
        points = sorted(points)
        if points:
            add(system, "fastest", points[0], base)
        if len(points) > 2:
            add(system, "middle", points[len(points) // 2], base)
        if len(points) > 1:
            add(system, "slowest", points[-1], base)

    base = job["baseline"] or Point(0.0, 0.0)
    add("baseline, measured", "maximum power limit", base, base)
    ends("Perseus, measured", job["perseus"], base)
    if job["envpipe"]:
        add("EnvPipe, measured", "its plan", job["envpipe"], base)
    ends("ZeusGlobal, measured", job["zeus_global"], base)
    ends("ZeusPerStage, measured", job["zeus_per_stage"], base)
    if job["derived"]:
        ours = Point(job["derived"]["baseline_time_s"], job["derived"]["baseline_energy_j"])
        add("maximum clocks, predicted", "derived profile", ours, ours)
        ends("ours, predicted", job["derived"]["frontier"], ours)
    return rows


# Headings of the page, the tables below each, and what they say.
SECTIONS = {
    "Table 6: savings without stragglers, emulated": {
        "Table 6 at T": "Tensor parallel 8, 8 stages, 1F1B, 1,536 microbatches over all pipelines. "
        "T is the least time of the published frontier. The published planner rounds times down, "
        "so T can be below what any plan can achieve (T_min).",
        "Table 6 at T_max": "T_max is the time with all clocks at maximum, replayed. A published "
        "saving above the bound is predicted, and no clocks can do it.",
    },
    "Figure 7: one pipeline slower by 1.2, emulated": {
        "Figure 7": "The others end in time and wait. The paper takes the point of least total "
        "energy. The wait is paid anyway, so that of least effective energy is right.",
        "Figure 7, EnvPipe": "The artifact counts EnvPipe's waiting for one pipeline more than "
        "there are instead of one less, and from T on. Both ways are shown.",
    },
    "Figure 8: savings over the slowdown of the straggler, emulated": {
        "Figure 8": "Of the whole job, at the T of Table 6.",
    },
    "EnvPipe: our policy against the published results": {
        "EnvPipe": "What EnvPipe's authors' code made of the same pipelines.",
    },
    "Table 3: savings without stragglers, real jobs": {
        "Table 3": "Measured: the slowest rank's time and the energy of all, against ZeusGlobal's "
        "highest power limit. Ours is predicted, on a profile whose energies are fitted, against "
        "maximum clocks on it.",
    },
    "Table 4: savings with a straggler, real jobs": {
        "Table 4": "Measured: the slowest plan that ends in time, and its waiting.",
    },
    "Emulated against measured iteration time and energy": {
        "Replay": "Published plans, replayed without communication and optimizer step, against "
        "what was measured with them.",
    },
    "Figure 9: energy over iteration time, real jobs": {},  # A table for each job.
    "Run time of the planner": {"Run time": "CPU time on this machine, for one pipeline."},
}


def markdown(evaluation: Evaluation, *, times: bool) -> str:
    """Return the page."""
    parts = [
        "# Evaluation: the Perseus paper, recomputed",
        "Savings are in percent of the baseline's energy, differences in percentage points. A "
        "bound is the least energy that any plan of that time can use.",
    ]
    found = tables(evaluation)
    if not times:
        del found["Run time"]
    named = {name for notes in SECTIONS.values() for name in notes}
    for heading, notes in SECTIONS.items():
        shown = notes or {name: name for name in found if name not in named}
        texts = [
            f"{note}\n\n{_table_text(*found[name])}"
            for name, note in shown.items()
            if name in found and found[name][1]
        ]
        parts += [f"## {heading}", *texts] if texts else []
    if evaluation.missing:
        parts += ["## What is missing", "\n".join(f"- {each}" for each in evaluation.missing)]
    return "\n\n".join(parts) + "\n"


def _table_text(columns: str, rows: list[list[str]], texts: int) -> str:
    names = columns.split("|")
    rule = "---|" * texts + "---:|" * (len(names) - texts)
    lines = [f"| {' | '.join(cells)} |" for cells in [names, *rows]]
    return "\n".join([lines[0], f"|{rule}", *lines[1:]])


def draw(evaluation: Evaluation, path: Path) -> None:
    """Write Figure 8 of every case, and Figure 9 of every job."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    cases: dict[str, list[Row]] = {}
    for row in evaluation.stragglers:
        name = f"{row['model']}, {row['device']}, {row['microbatches']} microbatches"
        cases.setdefault(name, []).append(row)
    count = len(cases) + len(evaluation.jobs)
    if count == 0:
        return
    figure, grid = pyplot.subplots(
        (count + 1) // 2, 2, figsize=(12, 2 * count + 4), layout="constrained", squeeze=False
    )
    panels = iter(grid.flat)
    for name, rows in cases.items():
        axes = next(panels)
        for key in ("bound", "published", "effective", "ours", "envpipe"):
            values = [row.get(f"{key}_job_percent") for row in rows]
            axes.plot([row["slowdown"] for row in rows], values, label=key)
        axes.set(title=name, xlabel="slowdown of one pipeline", ylabel="saving of the job, %")
        axes.legend()
    for job in evaluation.jobs:
        axes = next(panels)
        curves = {key: job[key] for key in ("zeus_global", "zeus_per_stage", "perseus")}
        curves["ours, predicted"] = job["derived"]["frontier"] if job["derived"] else []
        curves |= {key: [job[key]] for key in ("baseline", "envpipe") if job[key]}
        for key, points in curves.items():
            axes.plot([p.time for p in points], [p.energy for p in points], ".-", label=key)
        axes.set(title=f"{job['model']} on {job['gpu']}", xlabel="s", ylabel="J per iteration")
        axes.legend()
    figure.savefig(path)
    pyplot.close(figure)


def document(evaluation: Evaluation) -> str:
    """Return evaluation.json."""

    def plain(value: object) -> object:
        if isinstance(value, Point):
            return {"iteration_time_s": value.time, "energy_j": value.energy}
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, list) else value

    names = ("emulations", "stragglers", "jobs", "job_stragglers", "missing")
    found = {name: plain(getattr(evaluation, name)) for name in names}
    return json.dumps({"schema_version": 1, **found}, indent=1) + "\n"


def main() -> int:
    """Answer the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("data", metavar="DATA", help="sosp24_data of github.com/ml-energy/zeus, branch kronos")
    add("--derived", default="", help="folder with profiles of the real jobs: adds our plans")
    add("--measured", default="", help="folder with summaries, where raw runs are absent")
    add("--effort", type=float, default=EFFORT, help="work to search for each plan (0.2)")
    add("--no-times", action="store_true", help="leave out the planner's run time")
    add("-o", "--output", help="write evaluation.md, .json and .svg into this folder")
    add("--json", action="store_true", help="print one JSON document instead of Markdown")
    given = parser.parse_args()

    def progress(what: str) -> None:
        if sys.stderr.isatty():
            print(what, file=sys.stderr)

    try:
        evaluation = Evaluation(given.data, given.derived, given.measured, given.effort)
        evaluation.run(progress)
    except PlannerError as error:
        print(f"sosp24: {error}", file=sys.stderr)
        return 2
    page = markdown(evaluation, times=not given.no_times)
    if given.output:
        folder = Path(given.output)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "evaluation.md").write_text(page, encoding="utf-8")
        (folder / "evaluation.json").write_text(document(evaluation), encoding="utf-8")
        draw(evaluation, folder / "evaluation.svg")
    print(document(evaluation) if given.json else page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
