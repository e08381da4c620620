# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles for tests of the planner in Python, and the command line beside it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

LIBRARY = os.environ.get("PERSEUS_PLANNER_LIBRARY", "")
needs_library = pytest.mark.skipif(
    not LIBRARY or not os.path.exists(LIBRARY), reason="PERSEUS_PLANNER_LIBRARY names no library"
)
ROOT = Path(__file__).resolve().parent.parent.parent


def profile(
    stages: int,
    seed: int = 1,
    split: bool = False,
    recompute: bool = False,
    spread: bool = False,
    labels: bool = False,
) -> dict[str, list[object]]:
    """Return a profile as columns: energies fall with the clock, but not all the way."""
    chance = random.Random(seed)
    kinds = ["forward", "backward_input", "backward_weight"] if split else ["forward", "backward"]
    kinds += ["recompute"] * recompute
    columns: dict[str, list[object]] = {
        name: [] for name in ("stage", "instruction", "frequency", "time", "energy")
    }
    if spread:
        columns["time_std"] = []
    for stage in range(stages):
        for kind in kinds:
            fastest = chance.uniform(0.01, 0.02) * (2 if kind == "backward" else 1)
            power = chance.uniform(280, 340)
            for clock in range(1410, 800, -105):
                time = fastest * (1410 / clock) ** 0.85
                columns["stage"].append(stage)
                columns["instruction"].append(kind)
                columns["frequency"].append(f"cap-{clock}" if labels else clock)
                columns["time"].append(time)
                columns["energy"].append(time * power * (0.3 + 0.7 * (clock / 1410) ** 2.4))
                if spread:
                    columns["time_std"].append(time * 0.004)
    return columns


def csv_of(columns: dict[str, list[object]]) -> str:
    """Return the CSV of a profile."""
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


@dataclass(frozen=True)
class CommandLine:
    """`perseus`, as it was built."""

    binary: str

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run it; its output is text."""
        return subprocess.run(
            [self.binary, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def plan(self, directory: Path, *arguments: object) -> dict[str, str]:
        """Return the texts that `perseus plan` writes."""
        done = self.run("plan", *arguments, "-o", directory)
        assert done.returncode == 0, done.stderr
        texts = [path for path in directory.iterdir() if path.suffix != ".pftrace"]
        return {path.name: path.read_text() for path in texts}

    def sentence(self, *arguments: object) -> str:
        """Return what it says of wrong input, without its own name."""
        done = self.run(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr.strip().removeprefix("perseus: ")


def command_line() -> CommandLine:
    """Return the binary that the tests are about; skip where there is none."""
    binary = os.environ.get("PERSEUS_BINARY") or shutil.which("perseus")
    if not binary:
        pytest.skip("set PERSEUS_BINARY to compare with the command line")
    return CommandLine(binary)
