# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""`perseus fleet plan` equals linear programs on the frontiers that `perseus frontier` prints."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import REPOSITORY, RefusedError, perseus, read_frontier
from .fleet_site import best_ratios, best_throughput, carried

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = REPOSITORY / "examples/gpt3-1.3b-a100-sxm.csv"
BLOCKING_WATTS = 83.64
RANKS = 4
EXACT = 1e-7
SITES = 16


@dataclass
class Sites:
    """Random site files, with what the programs of fleet_site.py read.

    Attributes
    ----------
    folder
        Where frontiers are written.
    curves
        Frontier and time at maximum clocks of each schedule and number of microbatches.
    """

    folder: Path
    curves: dict[tuple[str, int], tuple[list[list[float]], float]] = field(default_factory=dict)

    def curve(self, schedule: str, microbatches: int) -> tuple[list[list[float]], float]:
        """Return a frontier as `perseus frontier` prints it, and the baseline's time."""
        key = (schedule, microbatches)
        if key not in self.curves:
            path = self.folder / f"{schedule}-{microbatches}.csv"
            shape = ["--schedule", schedule, "--microbatches", str(microbatches)]
            shape += ["--blocking-power", str(BLOCKING_WATTS)]
            text = perseus(["frontier", PROFILE, *shape, "--json", "-o", path])
            points = read_frontier(path)
            corners = [list(pair) for pair in zip(points.times, points.energies, strict=True)]
            self.curves[key] = (corners, json.loads(text)["baseline"]["iteration_time_s"])
        return self.curves[key]

    def make(self, seed: int) -> tuple[Path, dict[str, Any]]:
        """Return a site file, and the same site as a value."""
        draw = random.Random(seed)
        objective = draw.choice(["throughput", "throughput", "max-min", "max-min-tenants"])
        nodes = 0 if objective == "max-min-tenants" else draw.choice([0, 0, 2, 3])
        site: dict[str, Any] = {
            "nodes": [{"parent": None, "limit_watts": 0.0}],
            "meter_factor": draw.choice([1.0, 1.25]),
            "objective": "tenants" if objective == "max-min-tenants" else objective,
            "jobs": [],
        }
        text = ""
        for k in range(nodes):
            parent = draw.randrange(len(site["nodes"]))
            limit = draw.uniform(4e3, 12e3)
            site["nodes"].append({"parent": parent, "limit_watts": limit})
            text += f'[[limit]]\nname = "node-{k + 1}"\npower = "{limit!r}W"\n'
            text += f'parent = "{f"node-{parent}" if parent else "site"}"\n'
        for k in range(draw.randint(1, 6)):
            text += self.add_job(draw, site, f"job-{k}")
        full = sum(
            job["pipelines"] * job["frontier"][0][1] / job["frontier"][0][0] + job["fixed_watts"]
            for job in site["jobs"]
        )
        budget = site["meter_factor"] * full * draw.uniform(0.4, 1.05)
        site["nodes"][0]["limit_watts"] = budget
        path = self.folder / f"site-{seed}.toml"
        path.write_text(
            f'power = "{budget!r}W"\nobjective = "{objective}"\npue = {site["meter_factor"]!r}\n'
            + text
        )
        return path, site

    def add_job(self, draw: random.Random, site: dict[str, Any], name: str) -> str:
        """Add a job to a site, and return its table."""
        schedule, microbatches = draw.choice([("1f1b", 4), ("1f1b", 8), ("gpipe", 6)])
        frontier, full_speed = self.curve(schedule, microbatches)
        pipelines = draw.choice([1, 1, 2, 4])
        slowdown = draw.choice([None, None, 0.0, 0.1, 0.25, 0.5])
        node = draw.randrange(len(site["nodes"]))
        job: dict[str, Any] = {
            "tenant": draw.choice(["", "a", "b"]),
            "frontier": frontier,
            "full_speed_seconds": full_speed,
            "waiting_watts": RANKS * BLOCKING_WATTS,
            "pipelines": pipelines,
            "late": [],
            "fixed_watts": draw.choice([0.0, 250.0]),
            "weight": draw.choice([1.0, 0.5, 3.0]),
            "slowest_seconds": None if slowdown is None else full_speed * (1 + slowdown),
            "least_watts": 0.0,
            "shares": [[node, 1.0]],
        }
        site["jobs"].append(job)
        lines = [
            "[[job]]",
            f'name = "{name}"',
            f'profile = "{PROFILE}"',
            f'schedule = "{schedule}"',
            f"microbatches = {microbatches}",
            f"blocking_power = {BLOCKING_WATTS}",
            f"dp = {pipelines}",
            f"weight = {job['weight']!r}",
            f'fixed_power = "{job["fixed_watts"]!r}W"',
            f'at = "{f"node-{node}" if node else "site"}"',
        ]
        if job["tenant"]:
            lines.append(f'tenant = "{job["tenant"]}"')
        if slowdown is not None:
            lines.append(f'max_slowdown = "{100 * slowdown:g}%"')
        return "\n".join(lines) + "\n"


def broken_limits(site: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Return the limits that the plans of an answer break."""
    errors = []
    for n, node in enumerate(site["nodes"]):
        watts = sum(
            carried(site, job).get(n, 0.0) * share["power_w"] * site["meter_factor"]
            for job, share in zip(site["jobs"], answer["jobs"], strict=True)
        )
        if watts > node["limit_watts"] * (1 + 1e-9):
            errors.append(f"node {n}: {watts} W of {node['limit_watts']} W")
    return errors


def test_bound_equals_linear_program(tmp_path: Path) -> None:
    """The bound is that of HiGHS, and plans keep every limit and come close to it."""
    sites = Sites(tmp_path)
    answered = 0
    for seed in range(SITES):
        path, site = sites.make(seed)
        if site["objective"] == "throughput":
            theirs = best_throughput(site)
        else:
            ratios = best_ratios(site)
            theirs = None if ratios is None else min(ratios)
        try:
            answer = json.loads(perseus(["fleet", "plan", path, "--json", "--effort", "0.1"]))
        except RefusedError:
            assert theirs is None, f"site {seed} can be divided"
            continue
        answered += 1
        assert theirs is not None, f"site {seed} cannot be divided"
        assert answer["objective_bound"] == pytest.approx(theirs, rel=EXACT), seed
        assert broken_limits(site, answer) == [], seed
        assert answer["objective"] <= answer["objective_bound"] * (1 + EXACT), seed
    assert answered >= SITES // 2
