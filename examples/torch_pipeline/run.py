#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Profile, plan, straggler, report: a small GPT on 4 processes and simulated GPUs.

Starts a server, an agent and train.py, with Perseus and without, and holds against each other:
the losses (the same, bit for bit), what Perseus saved, and what `perseus emulate` says that its
plan saves. Exits with 1 where losses differ or the two savings differ by over a percentage point.

    python run.py [--schedule 1f1b|interleaved-1f1b|zbv-zero-bubble|all]

It needs PyTorch, the package `perseus` (folder python/) with its library, and the command line.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "build" / "release" / "src"
if (BUILT / "client" / "libperseus_client.so").exists():  # In the repository.
    os.environ.setdefault("PERSEUS_CLIENT_LIBRARY", str(BUILT / "client/libperseus_client.so"))
    sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate  # noqa: E402

VIRTUAL_STAGES = {"1f1b": 1, "interleaved-1f1b": 2, "zbv-zero-bubble": 2}
PIPELINES, RANKS_IN_PIPELINE, MICROBATCHES = 2, 2, 8
CLOCKS = {"min_clock_mhz": 960, "max_clock_mhz": 1410, "clock_step_mhz": 75}
PATIENCE = 60  # Seconds until a program is ready.
# Times the modelled seconds: stages of half the layers run twice as long, so that each computation
# is several clock calls long on a busy machine, too.
SCALES = {"1f1b": 0.4, "interleaved-1f1b": 0.8, "zbv-zero-bubble": 0.8}
MOST_POINTS = 1.0  # Percentage points between what is saved and what was foretold.


@dataclass(frozen=True)
class Figures:
    """Means of an iteration, of all pipelines."""

    seconds: float
    joules: float

    def saving(self, baseline: Figures) -> float:
        """Return the percentage of energy that is saved against a baseline."""
        return 100 * (1 - self.joules / baseline.joules)


def start(command: list[str], log: Path) -> subprocess.Popen[str]:
    """Start a program of ours; what it says goes to a file."""
    with log.open("w") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, text=True)


def wait_for(log: Path, words: str, process: subprocess.Popen[str]) -> str:
    """Return the line of a log that has `words`."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines():
            if words in line:
                return line
        time.sleep(0.05)
    raise SystemExit(f"{process.args!r} is not ready: {log.read_text()}")


def stop(process: subprocess.Popen[str]) -> None:
    """End a program of ours."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def perseus(binary: str, *arguments: str) -> str:
    """Run the command line and return what it prints."""
    done = subprocess.run(
        [binary, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"perseus {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def make_gpus(folder: Path) -> str:
    """Make the simulated GPUs of this run; returns how a device names them."""
    config = f"[[gpus]]\ncount = {PIPELINES * RANKS_IN_PIPELINE}\n"
    config += "".join(f"{key} = {value}\n" for key, value in CLOCKS.items())
    # On real cards 10 to 20 ms, beside computations of that much longer.
    config += 'name = "Simulated A100"\nidle_watts = 83.64\ncall_ms = 3\nsettle_ms = 0\n'
    simulate.create(folder / "gpus", config)
    return f"simulated:{folder / 'gpus'}"


def train(folder: Path, out: Path, schedule: str, *options: str) -> None:
    """Run train.py to its end."""
    command = [sys.executable, str(HERE / "train.py"), "--schedule", schedule, "--out", str(out)]
    command += ["--gpus", str(folder / "gpus"), "--table", str(folder / "profile.csv")]
    command += ["--scale", str(SCALES[schedule]), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment |= {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, timeout=900)


def iterations_of(out: Path) -> list[dict[str, str]]:
    """Return what train.py measured."""
    with (out / "iterations.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def mean(rows: list[dict[str, str]], phase: str, last: int) -> Figures:
    """Return the mean of the last iterations of a phase."""
    chosen = [row for row in rows if row["phase"] == phase][-last:]
    return Figures(
        statistics.fmean(float(row["seconds"]) for row in chosen),
        statistics.fmean(float(row["joules"]) for row in chosen),
    )


def emulate(binary: str, profile: Path, schedule: str, plan: Path) -> float:
    """Return the percentage that the emulator says this plan saves."""
    arguments = ["emulate", str(profile), "--schedule", schedule, "--plan", str(plan)]
    arguments += ["--virtual-stages", str(VIRTUAL_STAGES[schedule])]
    arguments += ["--microbatches", str(MICROBATCHES), "--blocking-power", "83.64"]
    arguments += ["--dp", str(PIPELINES), "--iterations", "10", "--json"]
    arguments += ["--switch-latency", "0ms", "--switch-stall", "0ms"]
    run: dict[str, Any] = json.loads(perseus(binary, *arguments))
    return float(run["saving_percent"])


def scaled(source: Path, to: Path, scale: float) -> None:
    """Write the profile of what the simulated GPUs really take."""
    with source.open() as file, to.open("w") as out:
        rows: IO[str] = file
        for line in rows:
            cells = line.rstrip("\n").split(",")
            if not line.startswith("#") and cells[0] != "stage":
                cells[3:5] = [f"{float(cell) * scale:.9g}" for cell in cells[3:5]]
            out.write(",".join(cells) + "\n")


def losses_of(out: Path) -> list[str]:
    """Return all losses, of each pipeline."""
    return [(out / f"losses-{replica}.txt").read_text() for replica in range(PIPELINES)]


def run(schedule: str, binary: str, folder: Path, measured: int) -> bool:
    """Run all of it for one schedule; False: it is not as it should be."""
    begun = time.monotonic()
    folder.mkdir(parents=True)
    stages = RANKS_IN_PIPELINE * VIRTUAL_STAGES[schedule]
    options = ["--model", "gpt3-1.3b", "--gpu", "a100-sxm", "--stages", str(stages)]
    options += ["--schedule", schedule, "--virtual-stages", str(VIRTUAL_STAGES[schedule])]
    options += ["--partition", "uniform", "--microbatch-size", "4"]
    options += ["--microbatches", str(MICROBATCHES)]
    options += ["--min-clock", str(CLOCKS["min_clock_mhz"])]
    options += ["--clock-step", str(CLOCKS["clock_step_mhz"])]
    perseus(binary, "synth", *options, "-o", f"{folder}/")
    scaled(folder / "profile.csv", folder / "truth.csv", SCALES[schedule])
    driver = make_gpus(folder)

    print(
        f"{schedule}: a server, an agent, and 4 processes that train with Perseus ...", flush=True
    )
    socket = f"{folder}/agent.sock"
    server = start(
        [binary, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/jobs.db"],
        folder / "server.log",
    )
    agent = start(
        [
            binary,
            "agent",
            "--driver",
            driver,
            "--socket",
            socket,
            "--journal",
            f"{folder}/agent.journal",
            "--min-interval",
            "1ms",
        ],
        folder / "agent.log",
    )
    try:
        url = wait_for(folder / "server.log", "ready at", server).split()[-1]
        wait_for(folder / "agent.log", "event=start", agent)
        on = folder / "with"
        common = ["--measured", str(measured)]
        run_name = f"torch-{schedule}"
        train(
            folder, on, schedule, *common,
            "--server", url, "--device", f"agent:{socket}", "--run", run_name,
        )  # fmt: skip
        plan = folder / "plan.json"
        perseus(binary, "job", "export", run_name, "--server", url, "-o", str(plan))
        for row in perseus(binary, "job", "show", run_name, "--server", url).splitlines():
            print(f"    {row}")
    finally:
        stop(agent)
        stop(server)

    rows = iterations_of(on)
    print(f"{schedule}: the same {len(rows)} iterations without Perseus ...", flush=True)
    off = folder / "without"
    train(folder, off, schedule, *common, "--iterations", str(len(rows)))

    without = iterations_of(off)
    baseline, slow = (
        mean(without, "planned", measured - 1),
        mean(without, "straggler", measured - 1),
    )
    planned, answered = mean(rows, "planned", measured), mean(rows, "straggler", measured)
    foretold = emulate(binary, folder / "truth.csv", schedule, plan)
    saved = planned.saving(baseline)
    same = losses_of(on) == losses_of(off)
    digest = hashlib.sha256("".join(losses_of(on)).encode()).hexdigest()[:16]

    profile = sum(row["phase"] == "profile" for row in rows)
    print(f"\n{schedule}, one iteration, {PIPELINES} pipelines of {RANKS_IN_PIPELINE} GPUs")
    print(f"{'':<34}{'time s':>9}{'energy J':>10}{'saving':>9}")
    for label, figures, against in (
        ("maximum clocks", baseline, None),
        ("planned", planned, baseline),
        ("a straggler, maximum clocks", slow, None),
        ("a straggler, planned", answered, slow),
    ):
        line = f"{label:<34}{figures.seconds:9.4f}{figures.joules:10.1f}"
        if against is not None:
            line += f"{figures.saving(against):8.2f} %"
            line += f"   time {100 * (figures.seconds / against.seconds - 1):+.2f} %"
        print(line)
    print(
        f"the emulator says of this plan {foretold:24.2f} %   off by {saved - foretold:+.2f} points"
    )
    print(f"losses {'are the same, bit for bit' if same else 'DIFFER'}: {digest}")
    print(f"{profile} iterations until all ranks followed; {time.monotonic() - begun:.0f} s in all")
    return same and abs(saved - foretold) <= MOST_POINTS


def main() -> int:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    names = sorted(VIRTUAL_STAGES)
    parser.add_argument("--schedule", choices=[*names, "all"], default="1f1b")
    found = shutil.which("perseus") or str(BUILT / "cli" / "perseus")
    parser.add_argument("--binary", default=os.environ.get("PERSEUS_BINARY") or found)
    parser.add_argument("--measured", type=int, default=8, help="iterations of each phase")
    parser.add_argument("--keep", type=Path, help="a new folder for what was written")
    options = parser.parse_args()
    chosen = names if options.schedule == "all" else [options.schedule]
    with tempfile.TemporaryDirectory(prefix="perseus-torch-") as temporary:
        folder = options.keep or Path(temporary)
        good = [run(name, options.binary, folder / name, options.measured) for name in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
