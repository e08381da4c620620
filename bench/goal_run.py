#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of promises on machines with more effects than a plan knows, with no flag given.

Eight jobs of measured tables run on the independent simulator of tests/oracle, on GPUs with every
effect of Effects at once. A sweep of GPUs of this kind makes the profile. A job's first plan is for
what the server assumes. Its ranks' times and clock calls then go through the client's and the
server's own estimators, and its next plan is for what these say, with the profile as the server
corrects it by these times; then once more. Each plan runs for 200 iterations with new draws, and
the last for 1000, beside all maximum clocks with the same draws. Then one job runs with each effect
alone.

    ninja -C build/release perseus estimate_conditions swept_profile
    PYTHONPATH=tests python bench/goal_run.py [--effort 0.25] [--iterations 200] [--jobs NAME,...]

Writes tables in Markdown. "Late": the mean iteration against maximum clocks, with twice its
standard error; plans accept +0.1 %. "Off": measured minus predicted saving, in points.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import random
import statistics
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oracle.binary import REPOSITORY, perseus, read_frontier, shared_data
from oracle.cases import A40_BLOCKING_WATTS, A100_BLOCKING_WATTS
from oracle.dag import Fixed, Pipeline, build_dag, cost_pipeline, parse_schedule
from oracle.emulation import Simulator
from oracle.emulation_calls import Clock
from oracle.emulation_scenario import Scenario
from oracle.tables import Option, Profile, read_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = (
    "noise",
    "rank_noise",
    "noise_correlation",
    "switch_latency",
    "switch_latency_spread",
    "switch_stall",
    "rare_noise",
    "rare_noise_share",
)
# The client's own behaviour: docs/reference/client.md.
CLIENT_INTERVAL = 0.010
SETTLING = 20  # Iterations that nobody counts: the plan is new.
TIMELINE_EVERY = 10  # The client tells when the rows of every tenth iteration ran.
STEADY = 0.95  # The client counts rows whose clock is in effect in so many iterations,
ENOUGH = 4  # if there are so many, and all rows else.
LEAST_CALL = 0.005  # A call lasts as long, even where its clock is in effect at once.


@dataclass(frozen=True)
class Effects:
    """What the machine does. Shares, seconds. docs/evidence/evidence.md has the sources."""

    noise: float = 0.009
    correlation: float = 0.65
    rank_noise: float = 0.004
    latency: float = 0.025
    latency_spread: float = 0.008
    latency_power: float = 0.9  # Clocks differ in latency, by up to e to this power.
    spikes: float = 0.015  # Share of computations that take longer,
    spike_length: float = 0.05  # by so much in the mean.
    first: float = 0.12  # The first computation of an iteration on the first rank takes longer.
    stall: float = 0.0001  # A rank does nothing before a change of clock.
    gpu_spread: float = 0.005  # Of the factor of each GPU, for good.
    sweeps: float = 1  # A sweep makes the profile, of computations with this noise.
    sweep_noise: float = 0.009
    drift: float = 0.009  # All becomes slower while GPUs become warm.
    transfer: float = 0.0003  # Between stages; the plan knows none.

    def latency_of(self, knob: str) -> float:
        """Return the mean latency of a clock."""
        power = random.Random(f"latency {knob}").uniform(-1, 1) * self.latency_power
        return self.latency * math.exp(power)


NONE = Effects(**dict.fromkeys(vars(Effects()), 0.0))
# Each is one effect.
TOGETHER = {
    "noise, correlated": ("noise", "correlation"),
    "noise of a rank": ("rank_noise",),
    "late clocks": ("latency", "latency_spread"),
    "clocks that differ in latency": ("latency", "latency_spread", "latency_power"),
    "rare long computations": ("spikes", "spike_length"),
    "a slow first computation": ("first",),
    "calls that stall": ("stall",),
    "GPUs that differ": ("gpu_spread",),
    "errors of the profile": ("sweeps", "sweep_noise"),
    "warming up": ("drift",),
    "unknown transfers": ("transfer",),
}


@dataclass(frozen=True)
class Job:
    """A measured table and a schedule."""

    name: str
    table: str
    watts: float
    schedule: str
    virtual_stages: int = 1
    microbatches: int = 12

    def path(self) -> Path:
        """Where the table is."""
        return shared_data() / "sosp24" / self.table

    def arguments(self, profile: Path, stages: int, watts: float) -> list[str]:
        """Describe the pipeline to perseus."""
        return [
            str(profile),
            *("--schedule", self.schedule, "--stages", str(stages)),
            *("--virtual-stages", str(self.virtual_stages)),
            *("--microbatches", str(self.microbatches), "--blocking-power", repr(watts)),
        ]


_STAGE = "sosp24_data/emulation/stage_profile"
JOBS = (
    Job("GPT-3 175B, A100", f"{_STAGE}/gpt3-175b+a100_sxm_bf16.csv", A100_BLOCKING_WATTS, "1f1b"),
    Job("Bloom 176B, A40", f"{_STAGE}/bloom+a40_bf16.csv", A40_BLOCKING_WATTS, "1f1b"),
    Job(
        "BERT, A100",
        "derived/A100_bert-huge-uncased_dp1_tp1_pp4_mbs8_nmb32.csv",
        A100_BLOCKING_WATTS,
        "1f1b",
    ),
    Job(
        "GPT-3 1.3B, A100",
        "derived/A100_gpt3-xl_dp1_tp1_pp4_mbs8_nmb128.csv",
        A100_BLOCKING_WATTS,
        "1f1b",
    ),
    Job(
        "Bloom 3B, A40",
        "derived/A40_bloom-3b_dp1_tp1_pp8_mbs4_nmb128.csv",
        A40_BLOCKING_WATTS,
        "1f1b",
    ),
    Job(
        "WideResNet, A40",
        "derived/A40_wide-resnet101_8_dp1_tp1_pp8_mbs32_nmb48.csv",
        A40_BLOCKING_WATTS,
        "1f1b",
    ),
    Job(
        "GPT-3 175B, interleaved",
        f"{_STAGE}/gpt3-175b+a100_sxm_bf16.csv",
        A100_BLOCKING_WATTS,
        "interleaved-1f1b",
        2,
    ),
    Job(
        "Bloom 176B, ZBV",
        f"{_STAGE}/bloom+a40_bf16.csv",
        A40_BLOCKING_WATTS,
        "zbv-zero-bubble",
        2,
    ),
)


class Machine(Simulator):
    """The simulator, with what the emulator does not know; keeps each computation's time."""

    def __init__(self, effects: Effects, ranks: int, pipeline: Pipeline, *rest: Any) -> None:
        super().__init__(pipeline, 1, *rest)
        self._effects = effects
        self.iterations = self._scenario.iterations
        chance = random.Random(f"gpus {self._scenario.seed // 1000}")
        self._own = [1 + effects.gpu_spread * chance.gauss(0, 1) for _ in range(ranks)]
        # Rank, iteration, row, MHz, seconds.
        self.seen: list[tuple[int, int, int, float, float]] = []
        self.calls: list[tuple[int, float, float]] = []  # Rank, MHz, seconds.
        self.rows: list[str] = []  # Of timelines, for estimate_conditions.

    def _factors(self, n: int, p: int, slow: Any, per_gpu: Any) -> list[float]:
        factors = super()._factors(n, p, slow, per_gpu)
        effects, dag = self._effects, self._pipeline.dag
        chance = random.Random(f"{self._scenario.seed} {n}")  # The same for every plan.
        warm = 1 + effects.drift * (1 - math.exp(-n / 40))
        for i, rank in enumerate(dag.rank):
            length = chance.expovariate(1) * effects.spike_length
            spike = length if chance.random() < effects.spikes else 0.0
            first = effects.first if rank == 0 and i == dag.rank_order[0][0] else 0.0
            factors[i] *= warm * self._own[rank] * (1 + spike) * (1 + first)
        return factors

    def _computing(self, run: Any, factors: list[float]) -> tuple[list[list[float]], float]:
        n = len(self._history) - 1
        for rank, order in enumerate(self._pipeline.dag.rank_order):
            if n % TIMELINE_EVERY == 0:
                self._keep_rows(rank, order, run, n)
            for row, i in enumerate(order):
                pieces = run.pieces[i]
                if len(pieces) == 1 and not self._calls_during(rank, pieces[0]):
                    length = pieces[0].end - pieces[0].start
                    self.seen.append((rank, n, row, float(pieces[0].option.knob), length))
        return super()._computing(run, factors)

    def _calls_during(self, rank: int, piece: Any) -> bool:
        until = piece.end + max(self._effects.latency, LEAST_CALL)
        return any(piece.start < at < until for at, _ in self._clocks[0][rank].past[1:])

    def _keep_rows(self, rank: int, order: list[int], run: Any, n: int) -> None:
        # Ranks begin an iteration when they are ready, and each has its own clock.
        earlier = random.Random(f"{self._scenario.seed} {n} {rank}").uniform(0, 0.1)
        plan = self._plan_for(1.0)
        before = plan[order[-1]].knob
        for row, i in enumerate(order):
            pieces = run.pieces[i]
            begin, end = (1e9 * (earlier + at) for at in (pieces[0].start, pieces[-1].end))
            changes = int(plan[i].knob != before)
            self.rows.append(f"row {rank} {n} {row} {begin!r} {end!r} {changes}")
            before = plan[i].knob


class Recorder:
    """Keeps the latency of each clock call of a machine."""

    def __init__(self, calls: list[tuple[int, float, float]]) -> None:
        self._calls = calls
        self._latency = Clock._latency

    def __enter__(self) -> None:
        """Begin."""

        def latency(clock: Clock) -> float:
            drawn = self._latency(clock)
            if not clock.scenario.at_once() and clock.knob != clock.wanted:
                self._calls.append((clock.rank, float(clock.wanted), drawn))
            return drawn

        Clock._latency = latency  # type: ignore[assignment, method-assign]

    def __exit__(self, *_: object) -> None:
        """End."""
        Clock._latency = self._latency  # type: ignore[method-assign]


@dataclass
class Measured:
    """A plan's iterations beside those of maximum clocks."""

    saving: float
    late: float
    late_error: float


def at_clock(options: list[Option], mhz: float) -> tuple[float, float]:
    """Return time and energy at a clock, also where the table has none."""
    known = sorted((float(option.knob), option.time, option.energy) for option in options)
    for below, above in itertools.pairwise(known):
        if below[0] <= mhz <= above[0]:
            share = (mhz - below[0]) / (above[0] - below[0])
            time, energy = (a + share * (b - a) for a, b in zip(below[1:], above[1:], strict=True))
            return time, energy
    end, time, energy = known[0] if mhz < known[0][0] else known[-1]
    return time * end / mhz, energy


def write_measured(path: Path, truth: Profile, effects: Effects, watts: float, seed: int) -> float:
    """Write what a sweep of such GPUs finds; return the blocking power that it finds.

    A sweep runs all kinds at each clock, so it needs them in all tables of the truth. The profile
    has only those of the truth, and what the sweep says of waiting by clock: a server would plan
    with it. In truth waiting draws the same at each clock here.
    """
    clocks = sorted({float(option.knob) for table in truth.tables.values() for option in table})
    columns = ["stage", "instruction", "frequency", "time", "energy"]
    full = path.with_name("truth.csv")
    with full.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for kind, options in sorted(truth.tables.items()):
            for mhz in clocks:
                writer.writerow([*kind, f"{mhz:.0f}", *map(repr, at_clock(options, mhz))])
    known = {(*kind, float(o.knob)) for kind, table in truth.tables.items() for o in table}
    if not effects.sweeps:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for kind, options in sorted(truth.tables.items()):
                writer.writerows([*kind, o.knob, repr(o.time), repr(o.energy)] for o in options)
        return watts
    tool = REPOSITORY / "build/release/bench/swept_profile"
    settings = (watts, effects.sweep_noise, effects.drift, seed)
    command = [str(tool), str(full), *map(repr, settings)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, header, *rows = said.splitlines()
    with path.open("w", encoding="utf-8") as file:
        print(header, file=file)
        for row in rows:
            stage, instruction, clock = row.split(",")[:3]
            if instruction == "blocking" or (int(stage), instruction, float(clock)) in known:
                print(row, file=file)
    return float(first.split()[-1])


class Run:
    """One job on one machine."""

    def __init__(self, job: Job, effects: Effects, folder: Path, options: Any) -> None:
        self.job, self.effects, self.folder, self.options = job, effects, folder, options
        truth = read_profile(job.path())
        measured = folder / "profile.csv"
        self.watts = write_measured(measured, truth, effects, job.watts, options.seed)
        self.stages = truth.num_stages
        self.profile = measured
        self.arguments = job.arguments(measured, truth.num_stages, self.watts)
        self.lines: list[str] = []  # Of computations, in all runs so far.
        self.transfers = "0s"  # As --comm-delay takes them.
        self.latency_at: list[str] = []  # Of clocks that have their own.
        self.iterations = 0  # Of these.
        ranks = truth.num_stages // job.virtual_stages
        shape = [*("--stages", str(truth.num_stages), "--microbatches", str(job.microbatches))]
        shape += ["--virtual-stages", str(job.virtual_stages), "--format", "csv"]
        schedule = parse_schedule(perseus(["schedule", job.schedule, *shape]))
        dag = build_dag(schedule, Fixed(comm_delay=[effects.transfer]))
        self.pipeline = cost_pipeline(truth, dag, [job.watts] * ranks, 1)
        self.ranks = ranks
        # The sweep has called for each clock once on each rank.
        chance = random.Random(f"calls {options.seed}")
        clocks = sorted({o.knob for table in truth.tables.values() for o in table})
        self.calls: list[tuple[int, float, float]] = []
        for rank in range(ranks if effects.latency > 0 else 0):
            for knob in clocks:
                drawn = effects.latency_of(knob) + effects.latency_spread * chance.gauss(0, 1)
                self.calls.append((rank, float(knob), max(0.0, drawn)))

    def plan(self, conditions: dict[str, float]) -> tuple[list[Option], dict[str, Any]]:
        """Plan as the server does for these conditions."""
        flags = ["--noise", repr(conditions["noise"])]
        flags += ["--set", f"rank_noise={conditions['rank_noise']!r}"]
        if conditions["noise"] > 0:
            flags += ["--set", f"noise_correlation={conditions['noise_correlation']!r}"]
        if min(conditions["rare_noise"], conditions["rare_noise_share"]) > 0:
            flags += ["--set", f"rare_noise={conditions['rare_noise']!r}"]
            flags += ["--set", f"rare_noise_share={conditions['rare_noise_share']!r}"]
        spread = min(conditions["switch_latency_spread"], conditions["switch_latency"])
        flags += ["--switch-latency", f"{conditions['switch_latency']!r}s"]
        flags += ["--set", f"switch_latency_spread={spread!r}s", "--call-ahead", "predicted"]
        flags += ["--set", f"min_call_interval={CLIENT_INTERVAL}s"]
        flags += self.latency_at
        flags += ["--switch-stall", f"{conditions['switch_stall']!r}s"]
        flags += ["--comm-delay", self.transfers]
        out = self.folder / "out"
        at = ["--at", "1.0x", "--effort", str(self.options.effort)]
        perseus(["plan", *self.arguments, *flags, *at, "-o", out])
        plan: dict[str, Any] = json.loads((out / "plan.json").read_text(encoding="utf-8"))
        self.curve = read_frontier(out / "frontier.csv")
        return self._chosen(plan), plan

    def _chosen(self, plan: dict[str, Any]) -> list[Option]:
        chosen = self.pipeline.baseline()
        for entry, order in zip(plan["ranks"], self.pipeline.dag.rank_order, strict=True):
            for computation, i in zip(entry["computations"], order, strict=True):
                knob = float(computation["knob"])
                (chosen[i],) = (o for o in self.pipeline.options[i] if float(o.knob) == knob)
        return chosen

    def machine(self, plan: list[Option], seed: int, iterations: int) -> Machine:
        """Return the machine, at the start of a run of a plan."""
        effects = self.effects
        knobs = {option.knob for options in self.pipeline.options for option in options}
        scenario = Scenario(
            target=1.0,
            iterations=iterations,
            seed=seed,
            computation_noise=effects.noise,
            rank_noise=effects.rank_noise,
            correlation=effects.correlation,
            latency=effects.latency,
            latency_spread=effects.latency_spread,
            latency_at={knob: effects.latency_of(knob) for knob in knobs},
            stall=effects.stall,
            interval=CLIENT_INTERVAL,
            ahead="predicted",
            reacts=False,
        )
        return Machine(effects, self.ranks, self.pipeline, scenario, lambda _: plan, self.curve)

    def measured(self, plan: list[Option], seed: int, iterations: int) -> tuple[Measured, Machine]:
        """Run a plan, and maximum clocks with the same draws."""
        count = SETTLING + iterations
        machine = self.machine(plan, seed, count)
        with Recorder(machine.calls):
            ours = machine.run().iterations[SETTLING:]
        base = self.machine(self.pipeline.baseline(), seed, count).run().iterations[SETTLING:]
        base_time = statistics.fmean(each.time for each in base)
        late = [100 * (a.time - b.time) / base_time for a, b in zip(ours, base, strict=True)]
        joules = math.fsum(each.drawn for each in ours) / math.fsum(each.drawn for each in base)
        error = statistics.stdev(late) / math.sqrt(len(late))
        return Measured(100 * (1 - joules), statistics.fmean(late), error), machine

    def estimated(self, machine: Machine) -> tuple[dict[str, float], dict[str, float]]:
        """Return what ranks and server measured, and what they plan for."""
        dag = self.pipeline.dag
        whole = Counter((rank, row) for rank, _, row, _, _ in machine.seen)
        steady = {
            (rank, row)
            for (rank, row), count in whole.items()
            if row > 0 and count >= STEADY * machine.iterations
        }
        counted = Counter(rank for rank, _ in steady)
        for rank, n, row, mhz, length in sorted(machine.seen):
            is_steady = (rank, row) in steady
            if not is_steady and counted[rank] >= ENOUGH:
                continue
            action = dag.steps[dag.rank_order[rank][row]][0]
            self.lines.append(
                f"time {rank} {self.iterations + n} {row} {mhz:.0f} {1e9 * length!r} "
                f"{action.stage} {action.type} {int(is_steady)}"
            )
        self.iterations += machine.iterations
        lines = self.lines + machine.rows
        self.calls += machine.calls
        lines += [f"call {rank} {mhz:.0f} {int(1e9 * length)}" for rank, mhz, length in self.calls]
        tool = REPOSITORY / "build/release/bench/estimate_conditions"
        settings = {
            "schedule": self.job.schedule,
            "stages": self.stages,
            "virtual_stages": self.job.virtual_stages,
            "microbatches": self.job.microbatches,
            "blocking_power": self.watts,
        }
        corrected = self.folder / "corrected.csv"
        said = subprocess.run(
            [tool, json.dumps(settings), self.profile, corrected],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.arguments = self.job.arguments(corrected, self.stages, self.watts)
        rows = [line.split() for line in said.splitlines()]
        transfers = [row for row in rows if row[0] == "transfer"]
        self.transfers = ",".join(f"{row[2]}s" for row in transfers)
        if len(transfers) < self.stages - 1:  # As DelaysOf() of the server.
            seconds = [float(row[2]) for row in transfers] or [0.0]
            self.transfers = f"{statistics.median(seconds)!r}s"
        own = [f"{row[1]}={row[2]}s" for row in rows if row[0] == "latency"]
        self.latency_at = ["--set", "switch_latency_at=" + ",".join(own)] if own else []
        rows = [row for row in rows if row[0] in NAMES]
        return {r[0]: float(r[1]) for r in rows}, {r[0]: float(r[3]) for r in rows}


ASSUMED = dict(zip(NAMES, (0.01, 0.0, 0.0, 0.020, 0.005, 0.0, 0.0, 0.0), strict=True))


def rows_of(job: Job, effects: Effects, options: Any) -> Iterator[tuple[str, str]]:
    """Yield a table row of the assumed conditions, and those of plans for what was measured."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(job, effects, Path(folder), options)
        conditions = measured = ASSUMED
        turns = {"assumed": options.iterations, "measured": options.iterations}
        turns["measured again"] = options.last
        for turn, (name, iterations) in enumerate(turns.items()):
            plan, document = run.plan(conditions)
            result, machine = run.measured(plan, 1000 + turn, iterations)
            predicted = document["expected"]["saving_percent"]
            cells = (
                f"{predicted:.2f} | {result.saving:.2f} | {result.saving - predicted:+.2f} | "
                f"{result.late:+.3f} +- {2 * result.late_error:.3f}"
            )
            measured, conditions = run.estimated(machine)
            yield name, cells
        yield "figures", ", ".join(f"{name} {measured[name]:.4f}" for name in NAMES)


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--effort", type=float, default=0.25)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--last", type=int, default=1000, help="iterations of the last plan")
    parser.add_argument("--jobs", default="", help="only jobs whose names contain one of these")
    parser.add_argument("--alone", default="BERT", help="the job that has each effect alone")
    parser.add_argument("--seed", type=int, default=1, help="of the sweep")
    parser.add_argument("--without", choices=TOGETHER, action="append", default=[])
    options = parser.parse_args()
    absent = [field for effect in options.without for field in TOGETHER[effect]]
    effects = replace(Effects(), **dict.fromkeys(absent, 0.0))
    wanted = [word for word in options.jobs.split(",") if word]
    heading = "planned for | predicted % | measured % | off | late % |"
    print(f"| job | {heading}\n|---|---|---|---|---|---|")
    for job in JOBS:
        if wanted and not any(word in job.name for word in wanted):
            continue
        for name, cells in rows_of(job, effects, options):
            print(
                f"<!-- {cells} -->" if name == "figures" else f"| {job.name} | {name} | {cells} |"
            )
    print(f"\n| effect alone | {heading}\n|---|---|---|---|---|---|", flush=True)
    for job in JOBS:
        if options.alone and options.alone in job.name:
            for effect, fields in TOGETHER.items():
                alone = replace(NONE, **{field: getattr(Effects(), field) for field in fields})
                for name, cells in rows_of(job, alone, options):
                    if name != "figures":
                        print(f"| {effect} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
