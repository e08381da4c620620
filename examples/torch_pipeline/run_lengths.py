# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""run.py --variable-lengths: each iteration follows a plan that was made for its lengths."""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from pathlib import Path

from harness import (
    MICROBATCHES,
    MOST_POINTS,
    PIPELINES,
    RANKS_IN_PIPELINE,
    VIRTUAL_STAGES,
    Figures,
    iterations_of,
    losses_of,
    mean,
    perseus,
    prepare,
    services,
    train,
)
from lengths import lengths_of, work_of
from perseus import Planner

WATTS = 83.64  # Of a GPU that waits.


def run_lengths(schedule: str, binary: str, folder: Path, measured: int, seed: int) -> bool:
    """Run all of it for one schedule; False: it is not as it should be."""
    begun = time.monotonic()
    driver = prepare(schedule, binary, folder)
    profile = folder / "truth.csv"
    print(
        f"{schedule}, lengths that vary: a server, an agent, and 4 processes that train with "
        "Perseus ...",
        flush=True,
    )
    common = ["--measured", str(measured), "--variable-lengths", str(seed)]
    on, off = folder / "with", folder / "without"
    with services(binary, folder, driver) as named:
        name = f"torch-{schedule}-lengths"
        train(folder, on, schedule, *common, *named, "--run", name, "--profile", str(profile))
    rows = iterations_of(on)
    print(f"{schedule}: the same {len(rows)} iterations without Perseus ...", flush=True)
    train(folder, off, schedule, *common, "--iterations", str(len(rows)))

    planned = mean(rows, "planned", measured)
    baseline = mean(iterations_of(off), "planned", measured)
    iterations = [int(row["iteration"]) for row in rows if row["phase"] == "planned"]
    saved = planned.saving(baseline)
    at_maximum, for_each, alone, for_all = _Prediction(schedule, binary, folder).of(
        seed, iterations
    )
    foretold = for_each.saving(at_maximum)
    same = losses_of(on) == losses_of(off)
    digest = hashlib.sha256("".join(losses_of(on)).encode()).hexdigest()[:16]

    print(f"\n{schedule}, one iteration, {PIPELINES} pipelines of {RANKS_IN_PIPELINE} GPUs")
    print(f"{'':<34}{'time s':>9}{'energy J':>10}{'saving':>9}")
    _print_row("maximum clocks", baseline, baseline)
    _print_row("a plan for each iteration", planned, baseline)
    _print_row("  as these plans predict", for_each, at_maximum)
    _print_row("  if each pipeline planned alone", alone, at_maximum)
    _print_row("one plan for all, by the emulator", for_all, at_maximum)
    _print_counts(on, len(rows))
    print(f"losses {'are the same, bit for bit' if same else 'DIFFER'}: {digest}")
    print(f"{time.monotonic() - begun:.0f} s in all")
    return same and abs(saved - foretold) <= MOST_POINTS


class _Prediction:
    """What plans predict for these iterations: means of all pipelines, waiting included."""

    def __init__(self, schedule: str, binary: str, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._profile = folder / "truth.csv"
        virtual = VIRTUAL_STAGES[schedule]
        self._planner = Planner(
            self._profile, schedule, MICROBATCHES, WATTS, virtual_stages=virtual
        )
        self._job = ["--schedule", schedule, "--virtual-stages", str(virtual)]
        self._job += ["--microbatches", str(MICROBATCHES), "--blocking-power", str(WATTS)]
        perseus(binary, "plan", str(self._profile), *self._job, "-o", f"{folder}/one/")

    def of(self, seed: int, iterations: list[int]) -> tuple[Figures, ...]:
        """Return the figures of maximum clocks, a plan for each, such plans alone, one for all.

        The same lengths give the same plan: those for each are the ones that the ranks followed.
        """
        kinds: tuple[list[Figures], ...] = ([], [], [], [])
        for iteration in iterations:
            works = [
                work_of(lengths_of(seed, iteration, replica, MICROBATCHES))
                for replica in range(PIPELINES)
            ]
            pipelines = [self._pipeline(work, works) for work in works]
            for kind, figures in zip(kinds, zip(*pipelines, strict=True), strict=True):
                longest = max(each.seconds for each in figures)
                waited = sum(longest - each.seconds for each in figures)
                joules = sum(each.joules for each in figures)
                kind.append(Figures(longest, joules + RANKS_IN_PIPELINE * WATTS * waited))
        return tuple(
            Figures(
                statistics.fmean(each.seconds for each in kind),
                statistics.fmean(each.joules for each in kind),
            )
            for kind in kinds
        )

    def _pipeline(self, work: list[float], all_works: list[list[float]]) -> tuple[Figures, ...]:
        alone = self._planner.plan(work=work)
        others = [other for other in all_works if other is not work]
        among = self._planner.plan(work=work, others=others)
        seconds = alone.requested_time_seconds
        joules = alone.energy_joules / (1 - alone.saving_percent / 100)
        table = self._folder / "work.csv"
        rows = [f"{microbatch},{factor!r}" for microbatch, factor in enumerate(work)]
        table.write_text("\n".join(["microbatch,factor", *rows]) + "\n")
        replay = ["emulate", str(self._profile), *self._job, "--work", str(table)]
        replay += ["--plan", f"{self._folder}/one/plan.json", "--iterations", "2", "--json"]
        replay += ["--switch-latency", "0ms", "--switch-stall", "0ms"]
        one = json.loads(perseus(self._binary, *replay))
        return (
            Figures(seconds, joules),
            Figures(among.iteration_time_seconds, among.energy_joules),
            Figures(alone.iteration_time_seconds, alone.energy_joules),
            Figures(
                seconds * (1 + one["slowdown_percent"] / 100),
                joules * (1 - one["saving_percent"] / 100),
            ),
        )


def _print_row(label: str, figures: Figures, against: Figures) -> None:
    line = f"{label:<34}{figures.seconds:9.4f}{figures.joules:10.1f}"
    if figures is not against:
        late = 100 * (figures.seconds / against.seconds - 1)
        line += f"{figures.saving(against):8.2f} %   time {late:+.2f} %"
    print(line)


def _print_counts(out: Path, iterations: int) -> None:
    """Say what became of the plans of all ranks."""
    reports = [json.loads(path.read_text()) for path in sorted(out.glob("report-*.json"))]
    stats = [report["stats"] for report in reports]
    asked = [report["step_plans"] for report in reports]
    print(
        f"{len(reports)} ranks, {iterations} iterations: "
        f"{sum(each['step_plans'] for each in stats)} began with a plan of their own, "
        f"{sum(each['step_plans_late'] for each in stats)} plans came too late, "
        f"{sum(each['skipped'] for each in asked)} were overtaken, "
        f"{sum(each['failed'] for each in asked)} failed"
    )
