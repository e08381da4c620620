#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What perseus.attach costs a training step of 100 ms: paired, in one run, with its interval.

One process trains with the real hooks of torch.distributed.pipelining (2 stages of an interleaved
schedule and 8 microbatches: 32 computations a step). Steps come in groups of four, in random
order: without Perseus; without it once more, by a schedule of its own, which says what the
measurement itself is worth; with it attached and idle (a server that has no plan yet); and with it
following a plan that changes the clock of a simulated GPU within the step. The difference within a
group is what counts, so that a machine that gets slower or faster for a while distorts nothing.

    build/zeus-venv/bin/python bench/attach_overhead.py [--groups 200]

A computation is real arithmetic, then loops until it took its share of 100 ms of processor time.
So each step computes for as long, and what a step takes beyond that is the hooks' and PyTorch's
own. Two clocks: "processor", of the thread that trains, which other programs on the machine distort
less; and "wall". Then the calls that the hooks make are timed one by one ("its calls": a little
too much, as reading the clock is in it, and sure on a machine that does other things as well).
Figures are means without the tenth at either end, with their 95 % interval by bootstrap. What the
client's own threads take (of another core) is said beside it.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build/release/src"
os.environ.setdefault("PERSEUS_CLIENT_LIBRARY", str(BUILT / "training/client/libperseus_client.so"))
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
MODES = ("without", "control", "idle", "following")
CLOCKS = (1410, 1260, 1110, 960)
PATIENCE = 180.0


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


def trimmed(values: list[float]) -> float:
    """Return the mean without the tenth at either end: steps in which the machine stood still."""
    cut = len(values) // 10
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def interval(differences: list[float]) -> tuple[float, float, float]:
    """Return the trimmed mean and its 95 % interval, by bootstrap."""
    chance = random.Random(1)
    count = len(differences)
    means = sorted(trimmed(chance.choices(differences, k=count)) for _ in range(2000))
    return trimmed(differences), means[49], means[1949]


class TimedJob(perseus.Job):
    """A job that knows the processor time of its own calls, a little too high."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.spent = 0.0

    def step_begin(self) -> bool:
        """As `Job`."""
        begin = time.thread_time()
        mine = super().step_begin()
        self.spent += time.thread_time() - begin
        return mine

    def step_end(self, tokens: int = 0) -> None:
        """As `Job`."""
        begin = time.thread_time()
        super().step_end(tokens)
        self.spent += time.thread_time() - begin

    def begin(self, *arguments: Any) -> None:
        """As `Job`."""
        begin = time.thread_time()
        super().begin(*arguments)
        self.spent += time.thread_time() - begin

    def end(self, *arguments: Any) -> None:
        """As `Job`."""
        begin = time.thread_time()
        super().end(*arguments)
        self.spent += time.thread_time() - begin


class Bench:
    """A schedule of each mode, and what its steps took."""

    def __init__(self, folder: Path, url: str, make_job: type[perseus.Job]) -> None:
        width, rounds = 32, 1
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
        for schedule in self.schedules.values():
            last_fixed(schedule)
        self.attached = {
            mode: perseus.attach(
                self.schedules[mode],
                job=make_job(
                    url,
                    job_id=identity,
                    device=f"simulated:{folder}/gpus",
                    gpu_index=index,
                    timeline="host",
                    min_interval_seconds=0.002,
                    # It is the cost of calls that is measured: they are never to become fewer.
                    max_overhead=1.0,
                ),
                strict=True,
            )
            for index, (mode, identity) in enumerate((("idle", idle), ("following", planned)))
        }
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


def last_fixed(schedule: Any) -> None:
    """Let each computation take a fixed processor time, below the hooks."""
    for stage in schedule._stages:
        for name, parts in (("forward_one_chunk", 1), ("backward_one_chunk", 2)):
            setattr(stage, name, _fixed(getattr(stage, name), parts))


def _fixed(original: Callable[..., Any], parts: int) -> Callable[..., Any]:
    seconds = STEP_SECONDS / (COMPUTATIONS * 1.5) * parts

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        until = time.thread_time() + seconds
        result = original(*args, **kwargs)
        while time.thread_time() < until:
            pass
        return result

    return wrapped


@dataclass
class Taken:
    """Seconds of the steps of one mode, group by group."""

    processor: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)  # Processor time of other threads.


def measure(bench: Bench, groups: int) -> dict[str, Taken]:
    """Train, a step of each mode in each group."""
    chance = random.Random(0)
    seen = {mode: Taken() for mode in MODES}
    for _ in range(groups):
        for mode in chance.sample(MODES, len(MODES)):
            process, thread, wall = time.process_time(), time.thread_time(), time.perf_counter()
            bench.step(mode)
            taken = time.thread_time() - thread
            seen[mode].processor.append(taken)
            seen[mode].wall.append(time.perf_counter() - wall)
            seen[mode].others.append(time.process_time() - process - taken)
    return seen


def say(seen: dict[str, Taken], bench: Bench) -> None:
    """Print the table."""
    plain = seen["without"]
    step = statistics.median(plain.processor)
    print(f"{len(plain.wall)} groups; a step without Perseus: {step * 1e3:.3f} ms of processor")
    for mode in MODES[1:]:
        mine = seen[mode]
        for label, ours, theirs in (
            ("processor", mine.processor, plain.processor),
            ("wall", mine.wall, plain.wall),
        ):
            whole = statistics.median(theirs)
            differences = [(a - b) / whole for a, b in zip(ours, theirs, strict=True)]
            mean, low, high = (100 * value for value in interval(differences))
            untrimmed = 100 * statistics.fmean(differences)
            print(f"{mode:<10} {label:<10} {mean:+.4f} % ({low:+.4f} to {high:+.4f} %)", end="")
            print(f", untrimmed {untrimmed:+.4f} %")
        if mode == "control":
            continue
        stats: Any = bench.attached[mode].report()["stats"]
        others = 100 * statistics.fmean(mine.others) / step
        calls = stats.calls / stats.iterations
        print(
            f"{'':<10} client's threads: {others:.2f} % of a core; {calls:.1f} clock calls a step"
        )


def say_spent(bench: Bench, groups: int) -> None:
    """Print what the calls of `Job` themselves took, step by step."""
    for mode, attached in bench.attached.items():
        job: Any = attached.job
        spent = []
        for _ in range(groups):
            job.spent = 0.0
            bench.step(mode)
            spent.append(job.spent / STEP_SECONDS)
        mean, low, high = (100 * value for value in interval(spent))
        print(f"{mode:<10} its calls  {mean:+.4f} % ({low:+.4f} to {high:+.4f} %)", end="")
        print(f", untrimmed {100 * statistics.fmean(spent):+.4f} %")


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
            bench = Bench(folder, url, perseus.Job)
            bench.until_following()
            say(measure(bench, options.groups), bench)
            bench.close()
            timed = Bench(folder, url, TimedJob)
            timed.until_following()
            say_spent(timed, options.groups)
            timed.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
