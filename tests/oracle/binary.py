# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs the programs under test through their documented interfaces."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY = Path(__file__).resolve().parents[2]


def perseus_binary() -> Path:
    """Path of the perseus binary: PERSEUS_BINARY, or the release build's."""
    default = REPOSITORY / "build/release/src/cli/perseus"
    return Path(os.environ.get("PERSEUS_BINARY", default)).absolute()


def frontier_tool() -> Path:
    """Path of the general solver's tool: PERSEUS_FRONTIER_TOOL, or beside the binary's build."""
    build = perseus_binary().parents[2]
    return Path(os.environ.get("PERSEUS_FRONTIER_TOOL", build / "tests/frontier/frontier_tool"))


def fleet_tool() -> Path:
    """Path of the tool that divides power: PERSEUS_FLEET_TOOL, or beside the binary's build."""
    build = perseus_binary().parents[2]
    return Path(os.environ.get("PERSEUS_FLEET_TOOL", build / "tests/fleet/fleet_tool"))


def package_environment() -> dict[str, str]:
    """Return the environment in which Python finds the package, the program and the planner."""
    build = perseus_binary().parents[2]
    library = build / "src/training/planner_c/libperseus_planner.so"
    return {
        "PERSEUS_PLANNER_LIBRARY": str(library),
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "python"),
        "PERSEUS_BINARY": str(perseus_binary()),
    }


def shared_data() -> Path:
    """Folder of the paper's measured data: PERSEUS_SHARED_DATA, or beside the checkout."""
    return Path(os.environ.get("PERSEUS_SHARED_DATA", REPOSITORY.parent / "shared/data"))


def seeds(first: int, count: int) -> range:
    """Return the seeds of random cases: half of them without PERSEUS_SLOW_TESTS=1."""
    slow = os.environ.get("PERSEUS_SLOW_TESTS", "0") != "0"
    return range(first, first + (count if slow else count // 2))


class RefusedError(Exception):
    """Perseus has refused what it was given (exit code 2)."""


def perseus(arguments: Sequence[str | Path]) -> str:
    """Run perseus and return its standard output.

    Parameters
    ----------
    arguments
        Command-line arguments.

    Raises
    ------
    RefusedError
        With the program's own message, where it refuses (exit code 2).
    RuntimeError
        Where it fails in any other way.
    """
    command = [str(perseus_binary()), *map(str, arguments)]
    if command[1] in ("plan", "frontier", "emulate"):
        command.append("--accept-implausible")  # Random jobs know no GPU.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise RefusedError(f"{' '.join(command)}: {done.stderr.strip()}")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Curve:
    """A piecewise-linear frontier: breakpoints with times ascending."""

    times: list[float]
    energies: list[float]
    slopes: list[float]

    def at(self, time: float, waiting_power: float = 0.0) -> float:
        """Energy at a time; beyond the last breakpoint it waits."""
        if time >= self.times[-1]:
            return self.energies[-1] + waiting_power * (time - self.times[-1])
        if len(self.times) == 1:
            return self.energies[0]
        low, high = 0, len(self.times) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.times[middle] <= time:
                low = middle
            else:
                high = middle
        span = self.times[high] - self.times[low]
        share = (time - self.times[low]) / span
        return self.energies[low] + share * (self.energies[high] - self.energies[low])


def read_frontier(path: Path) -> Curve:
    """Read frontier.csv."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Curve(
        [float(row["iteration_time_s"]) for row in rows],
        [float(row["energy_j"]) for row in rows],
        [float(row["slope_w"]) for row in rows],
    )


def solve_networks(networks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Solve general project networks with the frontier tool, one JSON line each."""
    return ask_tool(frontier_tool(), networks)


def divide_sites(sites: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Divide the power of sites with the fleet tool, one JSON line each (fleet_site.py)."""
    return ask_tool(fleet_tool(), sites)


def ask_tool(tool: Path, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ask a program that answers each line of JSON with one."""
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([str(tool)], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{tool.name}: exit {done.returncode}: {done.stderr.strip()}")
    answers: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(questions):
        raise RuntimeError(f"{tool.name}: {len(questions)} asked, {len(answers)} answered")
    return answers
