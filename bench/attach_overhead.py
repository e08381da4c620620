#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What perseus.attach costs a training step of 100 ms: paired, in one run, with its interval.

One process trains with the real hooks of torch.distributed.pipelining (2 stages of an interleaved
schedule and 8 microbatches: 32 computations a step). Steps come in groups of three, in random
order: without Perseus, with it attached and idle (no plan; a client and a server that has none),
and with it following a plan that changes the clock at every computation, on a simulated GPU. The
difference within a group is what counts, so that a machine that gets slower or faster for a while
distorts nothing.

    build/zeus-venv/bin/python bench/attach_overhead.py [--groups 200]

Two measures. "cpu": the processor time of the thread that trains, which other programs do not
distort; each computation there is arithmetic of a fixed size. "wall": the time on the clock, of
steps that wait for a device instead (sleeps to a fixed moment), as a trainer's thread mostly does.
The interval is of the mean difference, 95 %, by bootstrap.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build/release/src"
os.environ.setdefault("PERSEUS_CLIENT_LIBRARY", str(BUILT / "client/libperseus_client.so"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from perseus import simulate  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.pipelining import PipelineStage, schedules  # noqa: E402

STAGES, MICROBATCHES = 2, 8
COMPUTATIONS = 2 * STAGES * MICROBATCHES
STEP_SECONDS = 0.100
MODES = ("without", "idle", "following")
CLOCKS = (1410, 1260, 1110, 960)
PATIENCE = 60.0


class Work(nn.Module):  # type: ignore[misc]
    """Arithmetic of a fixed size, whose backward takes as long again twice."""

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(rounds)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute it."""
        return self.layers(x)


def make(width: int, rounds: int) -> Any:
    """Return a schedule of this process alone."""
    stages = [
        PipelineStage(Work(width, rounds), i, STAGES, torch.device("cpu")) for i in range(STAGES)
    ]
    return schedules.ScheduleInterleaved1F1B(stages, MICROBATCHES, loss_fn=nn.functional.mse_loss)


def profile() -> str:
    """Return a profile in which slower is cheaper, and every computation can be slower."""
    rows = ["stage,instruction,frequency,time,energy"]
    for stage in range(STAGES):
        for kind, seconds in (("forward", 0.0021), ("backward", 0.0042)):
            for mhz in CLOCKS:
                slow = CLOCKS[0] / mhz
                rows.append(f"{stage},{kind},{mhz},{seconds * slow},{seconds * 300 / slow}")
    return "\n".join(rows) + "\n"


def post(url: str, body: object) -> dict[str, Any]:
    """Post JSON."""
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.loads(answer.read()))


def interval(differences: list[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval, by bootstrap."""
    chance = random.Random(1)
    count = len(differences)
    means = sorted(sum(chance.choices(differences, k=count)) / count for _ in range(2000))
    return sum(differences) / count, means[49], means[1949]


class Bench:
    """A schedule of each mode, and what its steps took."""

    def __init__(self, folder: Path, url: str, width: int, rounds: int) -> None:
        simulate.create(
            folder / "gpus",
            f"[[gpus]]\ncount = 2\nclocks_mhz = {sorted(CLOCKS)}\ncall_ms = 2\nsettle_ms = 0\n",
        )
        job = {"schedule": "interleaved-1f1b", "stages": STAGES, "virtual_stages": STAGES}
        job |= {"microbatches": MICROBATCHES, "blocking_power": 85, "at": "1.2x"}
        planned = post(
            f"{url}/api/v1/jobs", {"client_key": "on", "job": job, "profile_csv": profile()}
        )["id"]
        idle = post(f"{url}/api/v1/jobs", {"client_key": "off", "job": job})["id"]
        self.schedules = {mode: make(width, rounds) for mode in MODES}
        self.attached = {
            mode: perseus.attach(
                self.schedules[mode],
                url,
                job_id=identity,
                profile=False,
                device=f"simulated:{folder}/gpus",
                gpu_index=index,
                strict=True,
                min_interval_seconds=0.002,
                # It is the cost of calls that is measured: they are never to become fewer.
                max_overhead=1.0,
            )
            for index, (mode, identity) in enumerate((("idle", idle), ("following", planned)))
        }
        self.x = torch.randn(MICROBATCHES * 16, width)
        self.target = torch.randn(MICROBATCHES * 16, width)

    def step(self, mode: str) -> None:
        """Run one."""
        self.schedules[mode].step(self.x, target=self.target)

    def until_following(self) -> None:
        """Train until there is a plan and the durations are known."""
        deadline = time.monotonic() + PATIENCE
        steady = 0
        while steady < 20:
            for mode in MODES:
                self.step(mode)
            report = self.attached["following"].report()
            steady = steady + 1 if report["state"] == "following" else 0
            if time.monotonic() > deadline:
                raise SystemExit(f"no plan is followed: {report}")


def wait_instead(bench: Bench) -> None:
    """Let computations wait until a fixed moment after their begin, as for a device."""
    for schedule in bench.schedules.values():
        for stage in schedule._stages:
            for name, parts in (("forward", 1), ("backward", 2)):
                stage_method = f"{name}_maybe_with_nosync"
                setattr(stage, stage_method, _waiting(getattr(stage, stage_method), parts))


def _waiting(original: Callable[..., Any], parts: int) -> Callable[..., Any]:
    seconds = STEP_SECONDS / (COMPUTATIONS * 1.5) * parts

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        until = time.perf_counter() + seconds
        result = original(*args, **kwargs)
        time.sleep(max(0.0, until - time.perf_counter() - 1e-4))
        while time.perf_counter() < until:
            pass
        return result

    return wrapped


def measure(bench: Bench, groups: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Return the seconds of each mode's steps, group by group."""
    chance = random.Random(0)
    seen: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(groups):
        for mode in chance.sample(MODES, len(MODES)):
            begin = clock()
            bench.step(mode)
            seen[mode].append(clock() - begin)
    return seen


def report(label: str, seen: dict[str, list[float]], bench: Bench) -> None:
    """Print one table."""
    plain = seen["without"]
    usual = sorted(plain)[len(plain) // 2]
    print(f"{label}: {len(plain)} groups, a step without Perseus {usual * 1e3:.2f} ms (median)")
    for mode in MODES[1:]:
        # Groups in which the machine did something else are no pairs: the tenth farthest apart.
        differences = [(a - b) / usual for a, b in zip(seen[mode], plain, strict=True)]
        middle = sorted(differences)[len(differences) // 2]
        kept = sorted(differences, key=lambda d: abs(d - middle))[: len(differences) * 9 // 10]
        mean, low, high = (100 * value for value in interval(kept))
        print(f"  {mode:<10} {mean:+.3f} %   95 %: {low:+.3f} to {high:+.3f} %", end="")
        print(f"   all groups: {100 * sum(differences) / len(differences):+.3f} %", end="")
        stats: Any = bench.attached[mode].report()["stats"]
        print(f"   {stats.calls} clock calls, {stats.plan_version=}".replace("stats.", ""))


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=str(BUILT / "cli/perseus"))
    parser.add_argument("--groups", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dist.init_process_group(
            "gloo", store=dist.FileStore(f"{name}/store", 1), rank=0, world_size=1
        )
        command = [options.binary, "serve", "--listen", "127.0.0.1:0"]
        command += ["--store", f"sqlite:{name}/jobs.db"]
        log = folder / "log"
        with log.open("w") as file:
            server = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            deadline = time.monotonic() + PATIENCE
            while "ready at " not in log.read_text():
                if time.monotonic() > deadline:
                    raise SystemExit(log.read_text())
                time.sleep(0.05)
            url = log.read_text().split("ready at ")[1].split()[0]
            cpu = Bench(folder, url, 320, 5)
            cpu.until_following()
            report("cpu", measure(cpu, options.groups, time.thread_time), cpu)
            for attached in cpu.attached.values():
                attached.detach()
            wall = Bench(folder, url, 8, 1)
            wait_instead(wall)
            wall.until_following()
            report("wall", measure(wall, options.groups, time.perf_counter), wall)
            for attached in wall.attached.values():
                attached.detach()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
