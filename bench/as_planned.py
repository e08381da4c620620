#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Hold what the running system does against its plan, and say what calling ahead of time wins.

Runs `perseus demo` (simulated GPUs, real server, agent, clients and clock calls of 15 ms)
without a straggler, with clocks called for ahead of time and not, and holds time and energy of
its iterations against `perseus emulate` of the same plan: clocks in time, clocks asked for when
the computation before has ended (`--call-ahead end`), and when their own begins.

    bench/as_planned.py [--binary build/release/src/cli/perseus] [--iterations 30]

Energies are of one pipeline of four GPUs. Run it on an idle machine: clock calls that wake up
late are late.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPELINES = 2
LATENCY = "15ms"
EMULATED = 10  # Iterations.


@dataclass(frozen=True)
class Figures:
    """Means of one iteration."""

    seconds: float
    joules: float


def demo(binary: Path, folder: Path, iterations: int, ahead: bool) -> tuple[Figures, Figures]:
    """Return the baseline and the planned iterations of one run."""
    command = [str(binary), "demo", "--no-straggler", "--iterations", str(iterations)]
    command += ["--keep", str(folder)] + ([] if ahead else ["--call-ahead", "none"])
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    parts: dict[str, list[tuple[float, float]]] = {"baseline": [], "planned": []}
    with (folder / "rounds.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            # Each part begins with an iteration in which predictions are still the plan's.
            if row["part"] in parts and int(row["number"]) > 0:
                parts[row["part"]].append((float(row["time"]), float(row["energy"])))

    def mean(rows: list[tuple[float, float]]) -> Figures:
        return Figures(
            statistics.fmean(seconds for seconds, _ in rows),
            statistics.fmean(joules for _, joules in rows) / PIPELINES,
        )

    return mean(parts["baseline"]), mean(parts["planned"])


def emulate(binary: Path, folder: Path, options: list[str]) -> Figures:
    """Return what the emulator says of the plan that the demo followed."""
    job = json.loads((folder / "job.json").read_text())["job"]
    command = [str(binary), "emulate", str(folder / "profile.csv"), "--plan"]
    command += [
        str(folder / "plan.json"),
        "--schedule",
        job["schedule"],
        "--iterations",
        str(EMULATED),
    ]
    command += ["--microbatches", str(job["microbatches"])]
    command += ["--blocking-power", str(job["blocking_power"]), "--json", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    run = json.loads(done.stdout)
    return Figures(run["time_s"] / EMULATED, run["energy_j"] / EMULATED)


def main() -> None:
    """Run all of it and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/src/cli/perseus")
    parser.add_argument("--iterations", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ahead, late = Path(name) / "ahead", Path(name) / "late"
        baseline, on = demo(arguments.binary, ahead, arguments.iterations, ahead=True)
        _, off = demo(arguments.binary, late, arguments.iterations, ahead=False)
        stall = ["--switch-stall", "0ms"]
        latency = ["--switch-latency", LATENCY, *stall]
        in_time = emulate(arguments.binary, ahead, ["--switch-latency", "0ms", *stall])
        after = emulate(arguments.binary, ahead, [*latency, "--call-ahead", "end"])
        own = emulate(arguments.binary, late, latency)
    rows = [
        ("maximum clocks, demo", baseline, None),
        ("emulated, clocks in time", in_time, None),
        ("demo, called ahead of time", on, in_time),
        ("emulated, --call-ahead end", after, None),
        ("emulated, called at the begin", own, None),
        ("demo, called at the begin", off, own),
    ]
    print(
        f"{'one pipeline, one iteration':<32} {'time s':>8} {'energy J':>9}  against the emulator"
    )
    for label, figures, against in rows:
        line = f"{label:<32} {figures.seconds:8.4f} {figures.joules:9.1f}"
        if against is not None:
            line += f"  time {figures.seconds / against.seconds - 1:+.2%}"
            line += f", energy {figures.joules / against.joules - 1:+.2%}"
        print(line)
    print(
        f"calling ahead of time: time {on.seconds / off.seconds - 1:+.2%}, "
        f"energy {on.joules / off.joules - 1:+.2%} against calling at the begin"
    )


if __name__ == "__main__":
    main()
