# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random planning jobs: schedules, tables, ranks, delays and constraints of every kind."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .binary import perseus
from .dag import BACKWARD, FORWARD, INPUT, RECOMPUTE, WEIGHT, Fixed, parse_schedule
from .plan_check import Job
from .random_work import random_work
from .tables import knob_is_number, read_profile

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULES = (
    "gpipe",
    "1f1b",
    "looped-bfs",
    "interleaved-1f1b",
    "megatron-interleaved",
    "interleaved-zero-bubble",
    "zbv-zero-bubble",
    "dualpipev",
    "early-recomputation-1f1b",
)
POINTS = ("1.0x", "1.0x", "1.013x", "1.1x", "1.6x", "4x", "min-energy", "fastest", "tstar")


@dataclass(frozen=True)
class RandomJob:
    """What perseus is asked, and the same in the oracle's own words."""

    arguments: list[str]
    constraints: list[str]
    at: str
    job: Job
    conditions: list[str]  # Under which the plan is to hold; the oracle's job knows none.


def _rows(rng: random.Random, stages: int, parts: tuple[str, ...], unit: float) -> list[str]:
    """Return the lines of a profile: noisy, with equal, dominated and missing options."""
    labels = rng.random() < 0.3
    count = rng.choice((1, 2, 3, 5, 8, 14))
    clocks = [1410 - 45 * k for k in range(count)]
    knobs = [f"{clock}MHz/{12 + k}SM" if labels else str(clock) for k, clock in enumerate(clocks)]
    noise = rng.choice((0.0, 0.0, 0.002, 0.05))
    tensor_ranks = rng.choice((0, 0, 0, 1, 2, 3))
    data_ranks = rng.choice((0, 0, 2))
    spread = rng.random() < 0.4
    sparse = rng.random() < 0.2
    header = ["stage", "instruction", "knob" if labels else "frequency", "time", "energy"]
    header += ["tp_rank"] * bool(tensor_ranks) + ["dp_rank"] * bool(data_ranks)
    header += ["time_std"] * spread
    lines = [",".join(header)]
    grid = rng.random() < 0.2
    odd = rng.choice(("", "", "", "", "", "flat time", "flat energy", "no energy"))
    for stage in range(stages):
        for part in parts:
            work = {FORWARD: 1.0, BACKWARD: 2.0, INPUT: 1.1, WEIGHT: 0.9, RECOMPUTE: 1.1}[part]
            work *= 1.0 + 0.2 * rng.random() * (stage % 3)
            for k, (knob, clock) in enumerate(zip(knobs, clocks, strict=True)):
                if sparse and k and rng.random() < 0.3:
                    continue
                speed = clock / 1410
                time = work * (1 if odd == "flat time" else 0.2 + 0.8 / speed)
                if grid:
                    time = round(4 * time) / 4
                energy = time * (120 + 300 * speed**2.5)
                if odd in ("flat energy", "no energy"):
                    energy = work * (400 if odd == "flat energy" else 0)
                for tensor_rank in range(max(tensor_ranks, 1)):
                    for data_rank in range(max(data_ranks, 1)):
                        t = unit * time * (1 + noise * rng.random())
                        e = unit * energy * (1 + noise * rng.uniform(-1, 1))
                        cells = [str(stage), part, knob, repr(t), repr(e)]
                        cells += [str(tensor_rank)] * bool(tensor_ranks)
                        cells += [str(data_rank)] * bool(data_ranks)
                        cells += [repr(0.01 * t * rng.random())] * spread
                        lines.append(",".join(cells))
    if not labels:
        body = lines[1:]
        rng.shuffle(body)
        lines[1:] = body
    return lines


def _waiting(rng: random.Random, rows: list[str], stages: int, unit: float) -> list[str]:
    """Return rows that say what a GPU draws while it waits, at some clocks or all labels."""
    header = rows[0].split(",")
    place = {name: header.index(name) for name in header}
    knob_at = place.get("frequency", place.get("knob", 0))
    knobs = list(dict.fromkeys(row.split(",")[knob_at] for row in rows[1:]))
    lines = []
    of: list[int | None] = [None] if rng.random() < 0.5 else list(range(stages))
    if len(of) > 1 and rng.random() < 0.3:
        of = [None, *(stage for stage in of[1:] if rng.random() < 0.5)]
    for stage in of:
        highest = rng.uniform(20, 120)
        least = rng.choice((0.3, 0.6, 1.0))
        if all(knob_is_number(knob) for knob in knobs):
            chosen = rng.sample(knobs, rng.randint(1, len(knobs)))
            # Below all that computations were measured at.
            chosen += [repr(min(map(float, knobs)) * 0.6)] * (rng.random() < 0.3)
            speeds = {knob: float(knob) / max(map(float, knobs)) for knob in chosen}
        else:
            speeds = {knob: rng.random() for knob in knobs}
        for knob, speed in speeds.items():
            for copy in range(2 if "dp_rank" in place else 1):
                seconds = unit * rng.uniform(0.5, 2)
                watts = highest * (least + (1 - least) * speed**2) * rng.uniform(0.95, 1.05)
                cells = {
                    "stage": "" if stage is None else str(stage),
                    "instruction": "blocking",
                    header[knob_at]: knob,
                    "time": repr(seconds),
                    "energy": repr(watts * seconds),
                    "dp_rank": str(copy),
                    "tp_rank": "0",
                }
                lines.append(",".join(cells.get(name, "") for name in header))
    return lines


def _conditions(rng: random.Random, unit: float) -> list[str]:
    """Return the flags of noise, late clocks and how much slower an iteration may be."""
    flags = ["--noise", rng.choice(("0.5%", "2%")), "--max-slowdown", rng.choice(("1%", "5%"))]
    if rng.random() < 0.7:
        flags += ["--switch-latency", repr(unit * rng.choice((0.01, 0.2)))]
        flags += ["--call-ahead", rng.choice(("none", "end", "predicted"))]
    return flags


def random_job(
    seed: int,
    folder: Path,
    largest: int = 4,
    plain: bool = False,
    work: bool = False,
    conditions: bool = False,
    waiting: bool = False,
) -> RandomJob:
    """Return the job of a seed; its files are written to ``folder``.

    Parameters
    ----------
    seed
        The same seed gives the same job.
    folder
        An existing folder.
    largest
        At most so many ranks, and twice as many microbatches.
    plain
        Without constraints.
    work
        With a work table: microbatches differ.
    conditions
        One job in eight has some, and at most two ranks.
    waiting
        The profile says what GPUs draw while they wait, by clock.
    """
    rng = random.Random(seed)
    conditions = conditions and seed % 8 == 0
    largest = min(largest, 2) if conditions else largest
    name = rng.choice(SCHEDULES)
    ranks = rng.randint(1, largest)
    virtual = 1
    microbatches = rng.randint(1, 2 * largest)
    if name in ("zbv-zero-bubble", "dualpipev"):
        virtual = 2
        if name == "dualpipev":
            microbatches += 2 * ranks
    elif name not in ("gpipe", "1f1b", "early-recomputation-1f1b"):
        virtual = rng.randint(1, 3)
        microbatches = ranks * rng.randint(1, 3)
    stages = ranks * virtual
    parts = rng.choice(
        ((FORWARD, BACKWARD), (FORWARD, INPUT, WEIGHT), (FORWARD, BACKWARD, INPUT, WEIGHT))
    )
    if name == "early-recomputation-1f1b" and rng.random() < 0.7:
        parts = (*parts, RECOMPUTE)
    unit = rng.choice((1e-6, 1e-3, 0.05, 0.05, 1.0, 400.0))
    profile_path = folder / f"profile{seed}.csv"
    rows = _rows(rng, stages, parts, unit)
    if waiting:
        rows += _waiting(random.Random(7_919 * seed + 3), rows, stages, unit)
    profile_path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    profile = read_profile(profile_path)

    shape = ["--stages", str(stages), "--virtual-stages", str(virtual)]
    shape += ["--microbatches", str(microbatches)]
    text = perseus(["schedule", name, *shape, "--format", "csv"])
    schedule = parse_schedule(text)
    arguments = [str(profile_path)]
    if rng.random() < 0.2:
        schedule_path = folder / f"schedule{seed}.csv"
        schedule_path.write_text(text, encoding="utf-8")
        arguments += ["--schedule-file", str(schedule_path)]
    else:
        arguments += ["--schedule", name, *shape]

    powers = [rng.choice((0.0, 2000.0, *(round(rng.uniform(0, 110), 2) for _ in range(8))))]
    if rng.random() < 0.4:
        powers = [round(rng.uniform(0, 110), 2) for _ in range(ranks)]
    arguments += ["--blocking-power", ",".join(map(repr, powers))]
    job = Job(profile, schedule, powers)
    if profile.tensor_parallel_ranks == 0 and rng.random() < 0.4:
        job.tensor_parallel = rng.choice((1, 2, 8))
        arguments += ["--tp", str(job.tensor_parallel)]
    if rng.random() < 0.4:
        job.split_ratio = rng.choice((0.3, 0.45, 0.7))
        arguments += ["--set", f"split_ratio={job.split_ratio!r}"]
    delays: list[float] = []
    if rng.random() < 0.3:
        delays = [unit * rng.uniform(0, 0.3)]
        if stages > 1 and rng.random() < 0.5:
            delays = [unit * rng.uniform(0, 0.3) for _ in range(stages - 1)]
        arguments += ["--comm-delay", ",".join(map(repr, delays))]
    loading = unit * rng.uniform(0, 0.2) if rng.random() < 0.3 else 0.0
    overhead = unit * rng.uniform(0, 3) if rng.random() < 0.3 else 0.0
    job.fixed = Fixed(delays, loading, overhead)
    arguments += ["--set", f"data_loading={loading!r}"] if loading else []
    arguments += ["--set", f"iteration_overhead={overhead!r}"] if overhead else []

    if work:
        # Of its own, so that a job is the same with and without.
        job.work, more = random_work(random.Random(7_919 * seed + 1), schedule, folder, seed)
        arguments += more
    constraints: list[str] = []
    if not plain and rng.random() < 0.7:
        kinds = rng.sample(("granularity", "margin"), rng.choice((1, 1, 2)))
        if "granularity" in kinds:
            job.granularity = rng.choice(("phase", "stage-type", "stage"))
            constraints += ["--granularity", job.granularity]
        if "margin" in kinds:
            job.time_margin = rng.choice((0.0, 0.01, 0.05))
            job.margin_sigmas = rng.choice((0.0, 1.0, 3.0))
            if "time_std" not in rows[0]:  # Refused: there is no spread to multiply.
                job.margin_sigmas = 0.0
            margin = [f"{job.margin_sigmas:g}sigma"] * bool(job.margin_sigmas)
            margin += [f"{100 * job.time_margin:g}%"] * bool(job.time_margin)
            constraints += ["--time-margin", ",".join(margin)] if margin else []
    at = rng.choice(POINTS)
    under: list[str] = []
    if conditions:
        under = _conditions(random.Random(7_919 * seed + 2), unit)
    return RandomJob(arguments, constraints, at, job, under)
