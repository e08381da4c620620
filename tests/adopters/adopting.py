# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Three trainers unlike our examples, with a server and an agent on simulated GPUs.

    adopting.py [NAME...] [--steps N] [--measured M]

Runs each with Perseus, unaided, and without; prints what was saved, what the emulator says of the
plan, and whether the losses are the same. Exits with 1 where they are not, or where saving or time
are further from the emulator than `MOST_POINTS` and `MOST_TIME`.

It runs in a Python with PyTorch (scripts/zeus-venv). `PERSEUS_BINARY` and `PERSEUS_CLIENT_LIBRARY`
name what was built.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "examples" / "torch_pipeline"), str(ROOT / "python")]

from harness import perseus, scaled, services  # noqa: E402
from perseus import simulate  # noqa: E402
from perseus.analysis import synth  # noqa: E402

TORCH = os.environ.get("PERSEUS_TORCH_PYTHON") or str(ROOT / "build/zeus-venv/bin/python")
BINARY = os.environ.get("PERSEUS_BINARY", "")
IDLE_WATTS = "83.64"
MOST_POINTS, MOST_TIME = 0.3, 0.2  # Percentage points of saving and of time.
PATIENCE = 600.0
GPUS = """
[[gpus]]
count = {ranks}
min_clock_mhz = 960
max_clock_mhz = 1410
clock_step_mhz = {clock_step}
idle_watts = 83.64
call_ms = 3
settle_ms = 0
"""

Line = dict[str, Any]


@dataclass(frozen=True)
class Adopter:
    """A trainer, and its job as the emulator must be told of it."""

    name: str
    ranks: int
    schedule: str
    stages: int
    virtual: int
    microbatches: int
    dp: int
    scale: float  # Times the modelled seconds of GPT-3 1.3B on A100s.


ADOPTERS = {
    each.name: each
    for each in (
        Adopter("interleaved", 2, "interleaved-1f1b", 4, 2, 4, 1, 0.4),
        Adopter("by_hand", 4, "1f1b", 2, 1, 4, 2, 0.2),
        Adopter("copies", 2, "1f1b", 1, 1, 1, 2, 0.4),
    )
}


class Run:
    """A folder with the GPUs of an adopter, on which it trains."""

    def __init__(self, adopter: Adopter, folder: Path, clock_step: int = 75) -> None:
        self.adopter, self.folder = adopter, folder
        folder.mkdir(parents=True, exist_ok=True)
        synth.write(self._modelled(clock_step), folder / "modelled")
        scaled(folder / "modelled" / "profile.csv", folder / "profile.csv", adopter.scale)
        self.clock_step = clock_step
        self.make_gpus()

    def make_gpus(self) -> None:
        """Make GPUs that have computed nothing."""
        config = GPUS.format(ranks=self.adopter.ranks, clock_step=self.clock_step)
        simulate.create(self.folder / "gpus", config)

    def _modelled(self, clock_step: int) -> synth.Spec:
        return synth.Spec(
            model="gpt3-1.3b",
            gpu="a100-sxm",
            partition="uniform",
            min_clock=960,
            clock_step=clock_step,
            microbatch_size=4,
            schedule=self.adopter.schedule,
            stages=self.adopter.stages,
            virtual_stages=self.adopter.virtual,
            microbatches=self.adopter.microbatches,
        )

    def _shape(self) -> list[str]:
        shape = {
            "schedule": self.adopter.schedule,
            "stages": self.adopter.stages,
            "virtual-stages": self.adopter.virtual,
            "microbatches": self.adopter.microbatches,
        }
        return [word for key, value in shape.items() for word in (f"--{key}", str(value))]

    @contextlib.contextmanager
    def cluster(self) -> Iterator[dict[str, str]]:
        """Run server and agent; yields the environment that names them to a trainer."""
        with services(BINARY, self.folder, f"simulated:{self.folder}/gpus") as named:
            yield {"PERSEUS_SERVER": named[1], "PERSEUS_DEVICE": named[3]}

    def start(
        self, label: str, steps: int, *options: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start the trainer as its owner does; what it writes goes to the folder `label`."""
        (self.folder / label).mkdir(exist_ok=True)
        command = [TORCH, "-B", "-m", "torch.distributed.run", "--rdzv-id", self.adopter.name]
        command += ["--nproc-per-node", str(self.adopter.ranks)]
        command += [str(HERE / f"{self.adopter.name}.py"), str(self.folder / label)]
        command += ["--steps", str(steps), *options]
        paths = [str(ROOT / "python"), str(HERE)]
        all_of = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        with (self.folder / label / "said").open("ab") as said:
            return subprocess.Popen(command, env=all_of | environment, stdout=said, stderr=said)

    def said(self, label: str) -> str:
        """Return what the trainer printed."""
        return (self.folder / label / "said").read_text()

    def finish(self, label: str, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a trainer, which must be a good one."""
        status = process.wait(PATIENCE)
        if status != 0:
            raise RuntimeError(f"{label} ended with {status}: {self.said(label)[-3000:]}")

    def lines(self, label: str, rank: int) -> list[Line]:
        """Return the steps of a rank."""
        path = self.folder / label / f"rank-{rank}"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def steps(self, label: str) -> list[list[Line]]:
        """Return the steps, each with the lines of all ranks."""
        rows = [self.lines(label, rank) for rank in range(self.adopter.ranks)]
        return [list(step) for step in zip(*rows, strict=False)]

    def losses(self, label: str) -> dict[int, list[list[str]]]:
        """Return the losses of each step, by rank; a step that ran twice had the same."""
        losses: dict[int, list[list[str]]] = {}
        for rows in self.steps(label):
            now = [row["losses"] for row in rows]
            if losses.setdefault(rows[0]["step"], now) != now:
                raise RuntimeError(f"step {rows[0]['step']} has other losses the second time")
        return losses

    def emulated(self, plan: Path) -> Line:
        """Return what the emulator says of a plan, with what computations really take."""
        options = ["emulate", str(self.folder / "profile.csv"), "--plan", str(plan), *self._shape()]
        options += ["--blocking-power", IDLE_WATTS, "--dp", str(self.adopter.dp)]
        options += ["--iterations", "10", "--switch-latency", "0ms", "--switch-stall", "0ms"]
        return dict(json.loads(perseus(BINARY, *options, "--json")))


def follows(rows: Sequence[Line]) -> bool:
    """Return whether all ranks follow one plan."""
    versions = {row["plan_version"] if row["state"] == "following" else -1 for row in rows}
    return len(versions) == 1 and versions.pop() > 0


def mean(rows: Sequence[Sequence[Line]]) -> tuple[float, float]:
    """Return seconds and joules of a step."""
    seconds = statistics.fmean(step[0]["seconds"] for step in rows)
    return seconds, statistics.fmean(sum(row["joules"] for row in step) for step in rows)


def prove(adopter: Adopter, folder: Path, steps: int, measured: int) -> bool:
    """Run all of it for one trainer; False: it is not as it should be."""
    begun = time.monotonic()
    run = Run(adopter, folder)
    plan = folder / "plan.json"
    with run.cluster() as environment:
        run.finish("with", run.start("with", steps, "--perseus", **environment))
        server = environment["PERSEUS_SERVER"]
        (job,) = json.loads(perseus(BINARY, "job", "list", "--server", server, "--json"))["jobs"]
        perseus(BINARY, "job", "export", job["id"], "--server", server, "-o", str(plan))
        with urllib.request.urlopen(f"{server}/api/v1/jobs/{job['id']}", timeout=10) as answer:
            predicted = json.loads(answer.read())["plan"]
    run.make_gpus()
    last = ["--only-last", str(measured)]
    run.finish("without", run.start("without", steps, *last))

    rows = run.steps("with")
    version = rows[-1][0]["plan_version"]
    first = next((i for i in range(steps) if all(follows(step) for step in rows[i:])), steps)
    same = [step for step in rows[-measured:] if step[0]["plan_version"] == version]
    (seconds, joules), (most_seconds, most_joules) = (
        mean(same),
        mean(run.steps("without")[-measured:]),
    )
    saved, time_more = 100 * (1 - joules / most_joules), 100 * (seconds / most_seconds - 1)
    foretold = run.emulated(plan)
    points = abs(saved - foretold["saving_percent"])
    late = abs(time_more - foretold["slowdown_percent"])
    expected = most_seconds * (1 + (foretold["slowdown_percent"] + MOST_TIME) / 100)
    late_steps = sum(step[0]["seconds"] > expected for step in same)
    equal = run.losses("with") == run.losses("without")
    interval = predicted["saving_interval"]
    least, most = interval["least_percent"], interval["most_percent"]
    print(
        f"{adopter.name}: all follow after {first} steps; mean of the last {len(same)} of {steps}",
        f"  saved     {saved:6.2f} %, emulated {foretold['saving_percent']:6.2f} %",
        f"  time      {time_more:+6.2f} %, emulated {foretold['slowdown_percent']:+6.2f} %",
        f"  late      {late_steps} steps, by more than {MOST_TIME} %",
        f"  predicted  {predicted['saving_percent']:6.2f} % ({least:.2f} to {most:.2f} %)",
        f"  losses    {'the same, bit for bit' if equal else 'NOT the same'}",
        f"  took      {time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}",
        sep="\n",
        flush=True,
    )
    for line in dict.fromkeys(run.said("with").splitlines()):
        if "perseus:" in line:
            print(f"  said      {line}")
    settled = first <= steps - measured and len(same) == measured
    return settled and equal and points <= MOST_POINTS and late <= MOST_TIME


def main() -> int:
    """Run those that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(ADOPTERS), metavar="NAME")
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--measured", type=int, default=40, help="steps at the end")
    parser.add_argument("--keep", type=Path, help="a new folder for what was written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perseus-adopters-") as temporary:
        folder = options.keep or Path(temporary)
        good = [
            prove(ADOPTERS[name], folder / name, options.steps, options.measured)
            for name in options.names
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
