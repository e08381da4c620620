# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What run.py starts and reads: simulated GPUs, a server, an agent, and train.py."""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "build" / "release" / "src"
if (BUILT / "training" / "client" / "libperseus_client.so").exists():  # In the repository.
    os.environ.setdefault(
        "PERSEUS_CLIENT_LIBRARY", str(BUILT / "training/client/libperseus_client.so")
    )
    planner = BUILT / "training" / "planner_c" / "libperseus_planner.so"
    os.environ.setdefault("PERSEUS_PLANNER_LIBRARY", str(planner))
    sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate  # noqa: E402
from perseus.analysis import synth  # noqa: E402

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


def prepare(schedule: str, binary: str, folder: Path) -> str:
    """Make the profile and the simulated GPUs; returns how a device names them."""
    folder.mkdir(parents=True)
    stages = RANKS_IN_PIPELINE * VIRTUAL_STAGES[schedule]
    spec = synth.Spec(
        model="gpt3-1.3b",
        gpu="a100-sxm",
        stages=stages,
        virtual_stages=VIRTUAL_STAGES[schedule],
        schedule=schedule,
        partition="uniform",
        microbatch_size=4,
        microbatches=MICROBATCHES,
        min_clock=CLOCKS["min_clock_mhz"],
        clock_step=CLOCKS["clock_step_mhz"],
    )
    synth.write(spec, folder)
    scaled(folder / "profile.csv", folder / "truth.csv", SCALES[schedule])
    return make_gpus(folder)


@contextlib.contextmanager
def services(binary: str, folder: Path, driver: str) -> Iterator[list[str]]:
    """Run a server and an agent; yields the options of train.py that name them."""
    socket = f"{folder}/agent.sock"
    store = f"sqlite:{folder}/jobs.db"
    journal = f"{folder}/agent.journal"
    serve = [binary, "serve", "--listen", "127.0.0.1:0", "--store", store]
    attend = [binary, "agent", "run", "--driver", driver, "--socket", socket, "--journal", journal]
    server = start(serve, folder / "server.log")
    agent = start([*attend, "--min-interval", "1ms"], folder / "agent.log")
    try:
        url = wait_for(folder / "server.log", "ready at", server).split()[-1]
        wait_for(folder / "agent.log", "event=start", agent)
        yield ["--server", url, "--device", f"agent:{socket}"]
    finally:
        stop(agent)
        stop(server)
