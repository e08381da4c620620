#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""By how much a sweep errs about no clock set, where the host takes the times.

Simulated GPUs run with no clock set as at their highest clock, so each difference that a sweep sees
between the two is an error. Times come from the trainer's begin and end calls, and include what the
host takes to wake up. Each line is of one sweep: by how much an iteration with no clock set
seemed faster, what that is per computation, how many of its standard errors, and whether the plan
warns of it.

    build/venv/bin/python bench/unlocked_error.py [--sweeps 10] [--ranks 3] [--busy 0] [--ms 4]

`--busy`: so many processes that do nothing but compute run beside it, each half of the time.
`--ms`: what a computation takes, at the highest clock, in the mean.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build/release/src"
os.environ.setdefault("PERSEUS_CLIENT_LIBRARY", str(BUILT / "training/client/libperseus_client.so"))
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
from perseus import simulate  # noqa: E402

CLOCKS = (1410, 1260, 1110, 960)
MICROBATCHES = 4
SHARES = {"forward": 0.75, "backward": 1.25}  # Of the mean time.
PATIENCE = 300.0
WARNING = "with no clock set an iteration takes"


def table(seconds: float) -> simulate.Table:
    """Return what a computation takes."""
    rows = []
    for mhz in CLOCKS:
        slow = seconds * (0.3 + 0.7 * CLOCKS[0] / mhz)
        rows.append((mhz, slow, slow * (85 + 295 * (mhz / CLOCKS[0]) ** 2.2)))
    return simulate.Table(rows)


def train(server: str, folder: str, rank: int, ranks: int, seconds: float, done: Any) -> None:
    """Train as one pipeline of one stage, until all ranks have measured."""
    gpus = simulate.Gpus(f"{folder}/gpus")
    tables = {kind: table(share * seconds) for kind, share in SHARES.items()}
    with perseus.Job.for_pipeline(
        "1f1b",
        1,
        MICROBATCHES,
        run="sweep",
        dp=ranks,
        server=server,
        rank=rank,
        dp_rank=rank,
        device=f"simulated:{folder}/gpus",
        gpu_index=rank,
        profile_iterations=8,
        report_interval_seconds=0.2,
    ) as job:
        while min(done) == 0:
            with job.step():
                for microbatch in range(MICROBATCHES):
                    for kind, costs in tables.items():
                        job.begin(kind, microbatch, 0)
                        gpus.run(rank, costs)
                        job.end(kind, microbatch, 0)
            done[rank] = job.state == "following"


def compute() -> None:
    """Keep a core busy, half a second in each."""
    while True:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        time.sleep(0.5)


def ask(url: str) -> dict[str, Any]:
    """Get JSON."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return dict(json.loads(answer.read()))


def sweep(binary: Path, ranks: int, seconds: float) -> tuple[float, float, bool]:
    """Measure once; return the error per computation, its standard error, and the warning."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as file:
            server = subprocess.Popen(
                [binary, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/jobs.db"],
                stdout=file,
                stderr=file,
            )
        while "ready at" not in log.read_text():
            time.sleep(0.02)
        url = log.read_text().split("ready at ")[1].split()[0]
        clocks = ", ".join(str(mhz) for mhz in reversed(CLOCKS))
        simulate.create(
            f"{folder}/gpus",
            f"[[gpus]]\ncount = {ranks}\nclocks_mhz = [{clocks}]\ncall_ms = 1\nsettle_ms = 0\n",
        )
        context = multiprocessing.get_context("spawn")
        done = context.Array("i", ranks)
        processes = [
            context.Process(target=train, args=(url, folder, rank, ranks, seconds, done))
            for rank in range(ranks)
        ]
        try:
            for process in processes:
                process.start()
            for process in processes:
                process.join(PATIENCE)
            (head,) = ask(f"{url}/api/v1/jobs")["jobs"]
            job = ask(f"{url}/api/v1/jobs/{head['id']}")
            kept = max(
                ask(f"{url}/api/v1/profiles")["profiles"],
                key=lambda kept: float(kept["created_at"]),
            )
            text = ask(f"{url}/api/v1/profiles/{kept['id']}")["profile_csv"]
        finally:
            for process in processes:
                process.kill()
            server.kill()
            server.wait()
    header, *lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    rows = [dict(zip(header.split(","), line.split(","), strict=False)) for line in lines]
    sums = {}
    for knob in ("unlocked", str(CLOCKS[0])):
        own = [row for row in rows if row["frequency"] == knob and row["instruction"] in SHARES]
        times = [float(row["time"]) for row in own]
        sums[knob] = (sum(times), sum(float(row["time_std"]) for row in own), len(times))
    (free, free_std, count), (locked, locked_std, _) = sums["unlocked"], sums[str(CLOCKS[0])]
    warned = any(WARNING in note["text"] for note in job["notes"])
    return (locked - free) / count, math.hypot(free_std, locked_std) / count, warned


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--ms", type=float, default=4)
    parser.add_argument("--binary", type=Path, default=BUILT / "cli/perseus")
    options = parser.parse_args()
    busy = [multiprocessing.Process(target=compute, daemon=True) for _ in range(options.busy)]
    for process in busy:
        process.start()
    errors = []
    print(f"{'faster':>9} {'per computation':>16} {'std errors':>11}  warned")
    for _ in range(options.sweeps):
        error, std, warned = sweep(options.binary, options.ranks, options.ms * 1e-3)
        errors.append(error)
        share = error / (options.ms * 1e-3)
        sigmas = error / std if std > 0 else math.inf
        yes = "yes" if warned else "no"
        print(f"{share:>9.2%} {error * 1e6:>13.1f} us {sigmas:>11.1f}  {yes}", flush=True)
    spread = statistics.fmean(error**2 for error in errors) ** 0.5
    print(f"rms {spread * 1e6:.1f} us per computation, most {max(map(abs, errors)) * 1e6:.1f} us")
    for process in busy:
        process.kill()


if __name__ == "__main__":
    main()
