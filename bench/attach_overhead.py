#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What perseus.attach costs a training step: paired, in one run, with its interval.

One process trains with the real hooks of torch.distributed.pipelining (2 stages of an interleaved
schedule and 8 microbatches: 32 computations a step). Steps come in groups of five, in random
order: without Perseus; without it once more, by a schedule of its own, which says what the
measurement itself is worth; with it attached and idle (a server that has no plan yet); with a
server that cannot be reached; and with it following a plan that changes the clock of a simulated
GPU within the step. The difference within a group is what counts, so that a machine that gets
slower or faster for a while distorts nothing.

    build/zeus-venv/bin/python bench/attach_overhead.py [--step-ms 14] [--groups 400] [--load 2]
        [--before CLONE]

`--load`: so many programs that do nothing but compute run beside it. `--before`: a second process
does the same with the Python and the libraries of another clone, group by group in turn.

A computation is real arithmetic, then loops until it took its share of the step's processor time.
So each step computes for as long, and what a step takes beyond that is the hooks' and PyTorch's
own. Two clocks: "processor", of the thread that trains, which other programs on the machine distort
less; and "wall". Figures are milliseconds: means of the middle half, with their 95 % interval by
bootstrap. What the client's own threads take (of another core) is said beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Whose Python and libraries are measured.
CLONE = Path(os.environ.get("PERSEUS_MEASURED_CLONE", Path(__file__).resolve().parent.parent))
BUILT = CLONE / "build/release/src"
os.environ.setdefault("PERSEUS_CLIENT_LIBRARY", str(BUILT / "training/client/libperseus_client.so"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(CLONE / "python"))

import perseus  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from perseus import simulate  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.pipelining import PipelineStage, schedules  # noqa: E402

STAGES, MICROBATCHES = 2, 8
COMPUTATIONS = 2 * STAGES * MICROBATCHES
MODES = ("without", "control", "idle", "unreachable", "following")
CLOCKS = (1410, 1260, 1110, 960)
PATIENCE = 180.0
NOBODY = "http://127.0.0.1:9"


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


def profile(step_seconds: float) -> str:
    """Return a profile in which slower is cheaper, and every computation can be slower."""
    rows = ["stage,instruction,frequency,time,energy"]
    for stage in range(STAGES):
        for kind, parts in (("forward", 1), ("backward", 2)):
            seconds = step_seconds / (COMPUTATIONS * 1.5) * parts
            for mhz in CLOCKS:
                slow = CLOCKS[0] / mhz
                rows.append(f"{stage},{kind},{mhz},{seconds * slow},{seconds * 300 / slow}")
    return "\n".join(rows) + "\n"


def post(url: str, body: object) -> dict[str, Any]:
    """Post JSON."""
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.loads(answer.read()))


def trimmed(values: list[float]) -> float:
    """Return the mean of the middle half: not of steps in which the machine stood still."""
    cut = len(values) // 4
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def interval(differences: list[float]) -> tuple[float, float, float]:
    """Return the trimmed mean and its 95 % interval, by bootstrap."""
    chance = random.Random(1)
    count = len(differences)
    means = sorted(trimmed(chance.choices(differences, k=count)) for _ in range(2000))
    return trimmed(differences), means[49], means[1949]


class Bench:
    """A schedule of each mode."""

    def __init__(self, folder: Path, url: str, step_seconds: float) -> None:
        width, rounds = 32, 1
        simulate.create(
            folder / "gpus",
            f"[[gpus]]\ncount = 3\nclocks_mhz = {sorted(CLOCKS)}\ncall_ms = 2\nsettle_ms = 0\n",
        )
        job = {"schedule": "interleaved-1f1b", "stages": STAGES, "virtual_stages": STAGES}
        job |= {"microbatches": MICROBATCHES, "blocking_power": 85, "at": "1.2x"}
        body = {"client_key": "on", "job": job, "profile_csv": profile(step_seconds)}
        planned = post(f"{url}/api/v1/jobs", body)["id"]
        idle = post(f"{url}/api/v1/jobs", {"client_key": "off", "job": job})["id"]
        self.schedules = {mode: make(width, rounds) for mode in MODES}
        for schedule in self.schedules.values():
            last_fixed(schedule, step_seconds)
        self.attached = {}
        for index, (mode, server, identity) in enumerate(
            (("idle", url, idle), ("unreachable", NOBODY, "none"), ("following", url, planned))
        ):
            job_of_mode = perseus.Job(
                server,
                job_id=identity,
                device=f"simulated:{folder}/gpus",
                gpu_index=index,
                timeline="host",
                min_interval_seconds=0.002,
                # It is the cost of calls that is measured: they are never to become fewer.
                max_overhead=1.0,
            )
            self.attached[mode] = perseus.attach(self.schedules[mode], job=job_of_mode, strict=True)
        self.x = torch.randn(MICROBATCHES * 16, width)
        self.target = torch.randn(MICROBATCHES * 16, width)

    def step(self, mode: str) -> None:
        """Run one."""
        self.schedules[mode].step(self.x, target=self.target)

    def close(self) -> None:
        """Take Perseus off."""
        for attached in self.attached.values():
            attached.detach()
            if attached.job is not None:
                attached.job.close()

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

    def group(self, chance: random.Random) -> dict[str, tuple[float, float, float]]:
        """Run a step of each mode; returns its processor time, wall time and others' processor."""
        seen = {}
        for mode in chance.sample(MODES, len(MODES)):
            process, thread, wall = time.process_time(), time.thread_time(), time.perf_counter()
            self.step(mode)
            taken = time.thread_time() - thread
            passed = time.perf_counter() - wall
            seen[mode] = taken, passed, time.process_time() - process - taken
        return seen

    def calls(self) -> float:
        """Return the clock calls of a step."""
        stats: Any = self.attached["following"].report()["stats"]
        return float(stats.calls / stats.iterations)


def last_fixed(schedule: Any, step_seconds: float) -> None:
    """Let each computation take a fixed processor time, below the hooks."""
    for stage in schedule._stages:
        for name, parts in (("forward_one_chunk", 1), ("backward_one_chunk", 2)):
            seconds = step_seconds / (COMPUTATIONS * 1.5) * parts
            setattr(stage, name, _fixed(getattr(stage, name), seconds))


def _fixed(original: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        until = time.thread_time() + seconds
        result = original(*args, **kwargs)
        while time.thread_time() < until:
            pass
        return result

    return wrapped


def train(folder: Path, step_seconds: float) -> None:
    """Run a group for each line that comes in, and answer with what its steps took."""
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    command = [str(BUILT / "cli/perseus"), "serve", "--listen", "127.0.0.1:0"]
    command += ["--store", f"sqlite:{folder}/jobs.db"]
    log = folder / "log"
    with log.open("w") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + PATIENCE
        while "ready at " not in log.read_text():
            if time.monotonic() > deadline:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
        bench = Bench(folder, log.read_text().split("ready at ")[1].split()[0], step_seconds)
        bench.until_following()
        print("ready", flush=True)
        chance = random.Random(0)
        for _ in sys.stdin:
            print(json.dumps([bench.group(chance), bench.calls()]), flush=True)
        bench.close()
    finally:
        server.terminate()
        server.wait()


class Trainer:
    """The process that trains with one clone, and what the steps of each mode took."""

    def __init__(self, clone: Path, step_ms: float) -> None:
        command = [sys.executable, __file__, "--train", f"--step-ms={step_ms}"]
        self.process = subprocess.Popen(
            command,
            env=os.environ | {"PERSEUS_MEASURED_CLONE": str(clone)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.groups: list[dict[str, tuple[float, float, float]]] = []
        self.calls = 0.0
        if self._answer() != "ready":
            raise SystemExit(f"{clone} does not train")

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def group(self) -> None:
        """Let it run one."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seen, self.calls = json.loads(self._answer())
        self.groups.append(seen)

    def say(self) -> None:
        """Print the table."""
        step = statistics.median(group["without"][0] for group in self.groups)
        print(f"{len(self.groups)} groups; without Perseus: {step * 1e3:.3f} ms of processor")
        for mode in MODES[1:]:
            for place, label in enumerate(("processor", "wall")):
                differences = [
                    1e3 * (group[mode][place] - group["without"][place]) for group in self.groups
                ]
                mean, low, high = interval(differences)
                print(f"{mode:<12} {label:<10} {mean:+.4f} ms ({low:+.4f} to {high:+.4f} ms)")
            others = statistics.fmean(group[mode][2] for group in self.groups)
            print(f"{'':<12} client's threads {others * 1e3:.3f} ms")
        print(f"following: {self.calls:.1f} clock calls a step")


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=400)
    parser.add_argument("--step-ms", type=float, default=14)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        with tempfile.TemporaryDirectory() as name:
            train(Path(name), options.step_ms * 1e-3)
        return
    spin = [sys.executable, "-c", "while True: pass"]
    load = [subprocess.Popen(spin) for _ in range(options.load)]
    try:
        clones = [CLONE] if options.before is None else [CLONE, options.before.resolve()]
        trainers = [Trainer(clone, options.step_ms) for clone in clones]
        chance = random.Random(1)
        for _ in range(options.groups):
            for trainer in chance.sample(trainers, len(trainers)):
                trainer.group()
        for trainer, name in zip(trainers, ("now", "before"), strict=False):
            print(f"\n{name}:", end=" ")
            trainer.say()
            assert trainer.process.stdin is not None
            trainer.process.stdin.close()
            trainer.process.wait()
    finally:
        for program in load:
            program.kill()


if __name__ == "__main__":
    main()
