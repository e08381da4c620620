# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random sites, and the best division of their power by linear programs (HiGHS).

A site is what tests/fleet/fleet_tool.cc reads, one JSON object a line:

- `nodes`: `parent` (index or null) and `limit_watts` (null: none) of each; node 0 is the site.
- `jobs`: `frontier` and `late` ([seconds, joules] of one pipeline), `full_speed_seconds`,
  `waiting_watts`, `pipelines`, `fixed_watts`, `weight`, `slowest_seconds` (or null),
  `least_watts`, `shares` ([node, fraction]), `tenant`, `plans`.
- `meter_factor`, and `objective`: throughput, max-min, tenants or schedule; the last with `periods`
  (`seconds`, `price_per_joule`, `limit_watts`) and `deadlines` ([job, period, iterations]).

The programs here use energy and time: a job that does x iterations a second is a mean of corners
of E(T), each for a share of the iterations, and of waiting. No hull is taken and no power curve
is made.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import highspy

INFINITY = float("inf")


class Program:
    """A linear program, built row by row, that minimises."""

    def __init__(self) -> None:
        self.highs = highspy.Highs()  # type: ignore[no-untyped-call]
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self.highs.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self.columns = 0

    def column(self, lower: float = 0.0, upper: float = INFINITY, cost: float = 0.0) -> int:
        """Add a variable and return its index."""
        self.highs.addVar(lower, upper)
        self.highs.changeColCost(self.columns, cost)
        self.columns += 1
        return self.columns - 1

    def row(self, terms: dict[int, float], lower: float, upper: float) -> int:
        """Add a row and return its index."""
        self.highs.addRow(lower, upper, len(terms), list(terms), list(terms.values()))
        return int(self.highs.getNumRow()) - 1

    def solve(self) -> bool:
        """Return whether there is an optimum."""
        self.highs.run()
        return bool(self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def value(self, terms: dict[int, float]) -> float:
        """Return a sum of variables."""
        solution = self.highs.getSolution().col_value
        return sum(factor * solution[column] for column, factor in terms.items())


@dataclass
class JobColumns:
    """A job in a program: x and watts as sums of columns, watts with a constant."""

    x: dict[int, float] = field(default_factory=dict)
    watts: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0


def least_power_range(job: dict[str, Any]) -> tuple[float, float]:
    """Return the x that the owner accepts at least, and the x that is possible at most."""
    fastest = 1 / min(time for time, _ in job["frontier"])
    for time, _ in job["late"]:
        fastest = min(fastest, 1 / time)
    slowest = 1 / job["slowest_seconds"] if job["slowest_seconds"] else 0.0
    return min(slowest, fastest), fastest


def add_job(program: Program, job: dict[str, Any], least: float, factor: float) -> JobColumns:
    """Add a job: seconds of each second in which a pipeline works towards each corner, or waits."""
    made = JobColumns()
    low, high = least_power_range(job)
    pipelines = job["pipelines"] - len(job["late"])
    shares = {}
    for time, energy in job["frontier"]:
        column = program.column()
        shares[column] = 1.0
        made.x[column] = 1 / time
        made.watts[column] = factor * pipelines * energy / time
    wait = program.column()
    shares[wait] = 1.0
    made.watts[wait] = factor * pipelines * job["waiting_watts"]
    program.row(shares, 1, 1)
    made.constant = factor * job["fixed_watts"]
    for time, energy in job["late"]:
        made.constant += factor * job["waiting_watts"]
        for column, rate in made.x.items():
            made.watts[column] += factor * rate * (energy - job["waiting_watts"] * time)
    program.row(made.x, low, high)
    if least > 0:
        program.row(made.watts, least - made.constant, INFINITY)
    return made


def most_watts(job: dict[str, Any], factor: float) -> float:
    """Return the least watts at which the job is as fast as it can be."""
    program = Program()
    made = add_job(program, job, 0, factor)
    _, high = least_power_range(job)
    program.row(made.x, high, INFINITY)
    for column, watts in made.watts.items():
        program.highs.changeColCost(column, watts)
    assert program.solve()
    return program.value(made.watts) + made.constant


def add_jobs(program: Program, site: dict[str, Any]) -> list[JobColumns]:
    """Add all jobs of a site."""
    factor = site["meter_factor"]
    made = []
    for job in site["jobs"]:
        least = 0.0
        if job["least_watts"] > 0:
            least = min(factor * job["least_watts"], most_watts(job, factor) * (1 - 1e-13))
        made.append(add_job(program, job, least, factor))
    return made


def carried(site: dict[str, Any], job: dict[str, Any]) -> dict[int, float]:
    """Return the part of a job that each node carries."""
    parts: dict[int, float] = {}
    for start, fraction in job["shares"] or [[0, 1.0]]:
        node: int | None = start
        while node is not None:
            parts[node] = parts.get(node, 0.0) + fraction
            node = site["nodes"][node]["parent"]
    return parts


def add_limits(
    program: Program, site: dict[str, Any], jobs: list[JobColumns], limits: list[float | None]
) -> None:
    """Add a row for each limit."""
    for node, limit in enumerate(limits):
        if limit is None:
            continue
        terms: dict[int, float] = {}
        constant = 0.0
        for job, columns in zip(site["jobs"], jobs, strict=True):
            fraction = carried(site, job).get(node, 0.0)
            constant += fraction * columns.constant
            for column, watts in columns.watts.items():
                if fraction:
                    terms[column] = terms.get(column, 0.0) + fraction * watts / max(limit, 1.0)
        if terms:
            program.row(terms, -INFINITY, (limit - constant) / max(limit, 1.0))


def site_limits(site: dict[str, Any]) -> list[float | None]:
    """Return the limits of a site's nodes."""
    return [node["limit_watts"] for node in site["nodes"]]


def best_throughput(site: dict[str, Any]) -> float | None:
    """Return the most weighted sum of speeds; None where nothing fits."""
    program = Program()
    jobs = add_jobs(program, site)
    add_limits(program, site, jobs, site_limits(site))
    total: dict[int, float] = {}
    for job, columns in zip(site["jobs"], jobs, strict=True):
        for column, rate in columns.x.items():
            total[column] = job["weight"] * rate * job["full_speed_seconds"]
            program.highs.changeColCost(column, -total[column])
    return program.value(total) if program.solve() else None


def groups_of(site: dict[str, Any]) -> list[tuple[list[int], float]]:
    """Return for each group that rises together its jobs and what a unit of its ratio is."""
    jobs = site["jobs"]
    if site["objective"] == "max-min":
        return [([j], job["weight"]) for j, job in enumerate(jobs)]
    names = [job["tenant"] or f" {j}" for j, job in enumerate(jobs)]
    groups = []
    for name in dict.fromkeys(names):
        members = [j for j, other in enumerate(names) if other == name]
        groups.append((members, sum(jobs[j]["weight"] for j in members)))
    return groups


def ratio_terms(
    site: dict[str, Any], jobs: list[JobColumns], group: tuple[list[int], float]
) -> dict[int, float]:
    """Return a group's ratio as a sum of columns."""
    members, weight = group
    terms = {}
    for j in members:
        job = site["jobs"][j]
        scale = job["weight"] if site["objective"] == "tenants" else 1.0
        for column, rate in jobs[j].x.items():
            terms[column] = scale * rate * job["full_speed_seconds"] / weight
    return terms


def best_ratios(site: dict[str, Any]) -> list[float] | None:
    """Return all ratios of the max-min fair division, by one program a level and group."""
    groups = groups_of(site)
    fixed: dict[int, float] = {}

    def solve(goal: list[int]) -> float | None:
        """Return the largest level that all of `goal` can have, the others at least theirs.

        Rounding may make what just fits infeasible: then the others give way a little.
        """
        levels = (solve_with(goal, slack) for slack in (1e-12, 1e-11, 1e-10, 1e-9))
        return next((level for level in levels if level is not None), None)

    def solve_with(goal: list[int], slack: float) -> float | None:
        program = Program()
        jobs = add_jobs(program, site)
        add_limits(program, site, jobs, site_limits(site))
        level = program.column(0, INFINITY, -1)
        for g, group in enumerate(groups):
            terms = ratio_terms(site, jobs, group)
            if g in goal:
                program.row({**terms, level: -1.0}, 0, INFINITY)
            else:
                program.row(terms, fixed.get(g, floor) * (1 - slack), INFINITY)
        return program.value({level: 1.0}) if program.solve() else None

    floor = 0.0
    while len(fixed) < len(groups):
        left = [g for g in range(len(groups)) if g not in fixed]
        best = solve(left)
        if best is None:
            return None
        floor = best
        # Those that alone could not rise above it stay.
        for g in left:
            alone = solve([g])
            if alone is None or alone <= best * (1 + 1e-7) + 1e-12:
                fixed[g] = best
        if not any(g in fixed for g in left):
            raise RuntimeError("no group stays at the level of all")
    return [fixed[g] for g in range(len(groups))]


def best_cost(site: dict[str, Any]) -> float | None:
    """Return the least cost of the work over time; None where it cannot be done.

    A job that is paid for watts may draw more than its work needs, up to what it draws at its
    fastest: then it does more work.
    """
    program = Program()
    factor = site["meter_factor"]
    work: dict[int, dict[int, dict[int, float]]] = {}
    cost: dict[int, float] = {}
    constant = 0.0
    most = [most_watts(job, factor) for job in site["jobs"]]
    for t, period in enumerate(site["periods"]):
        jobs = add_jobs(program, site)
        for j, columns in enumerate(jobs):
            program.row(columns.watts, -INFINITY, most[j] - columns.constant)
        add_limits(program, site, jobs, period["limit_watts"] or site_limits(site))
        rate = period["price_per_joule"] * period["seconds"]
        for j, columns in enumerate(jobs):
            work.setdefault(j, {})[t] = {c: x * period["seconds"] for c, x in columns.x.items()}
            constant += rate * columns.constant
            for column, watts in columns.watts.items():
                cost[column] = rate * watts
                program.highs.changeColCost(column, cost[column])
    for j, last, iterations in site["deadlines"]:
        done = {
            c: x / max(iterations, 1e-9) for t in range(last + 1) for c, x in work[j][t].items()
        }
        program.row(done, 1 if iterations > 0 else 0, INFINITY)
    return program.value(cost) + constant if program.solve() else None


def random_job(draw: random.Random, nodes: int, spans: bool) -> dict[str, Any]:
    """Return a job whose frontier is convex, with corners that count and some that do not."""
    fastest = draw.uniform(0.2, 5)
    joules = draw.uniform(50, 5000)
    times, energies = [fastest], [joules]
    slope = draw.uniform(0.5, 4) * joules / fastest
    # Some have so many corners that the program begins with fewer.
    corners = draw.choice([draw.randrange(8), draw.randrange(8), 60])
    for _ in range(corners):
        slope *= draw.uniform(0.3, 0.9) ** min(1, 4 / corners)
        step = fastest * draw.uniform(0.01, 0.2) * min(1, 6 / corners)
        if energies[-1] - slope * step < joules / 10:
            break
        times.append(times[-1] + step)
        energies.append(energies[-1] - slope * step)
    waiting = draw.choice([0.0, 0.3, 0.6, 1.2]) * draw.random() * energies[-1] / times[-1]
    frontier = [[t, e] for t, e in zip(times, energies, strict=True)]
    if draw.random() < 0.3:
        frontier.append([fastest * 1.05, joules * 1.5])  # Above the hull.
    draw.shuffle(frontier)
    pipelines = draw.choice([1, 1, 2, 4, 8])
    late = []
    if draw.random() < 0.3:
        late = [[fastest * draw.uniform(1, 1.4), joules * draw.uniform(0.9, 1.3)]]
        late *= draw.randint(1, pipelines)
    shares: list[list[float]] = []
    if nodes > 1:
        shares = [[draw.randrange(nodes), 1.0]]
        if spans and draw.random() < 0.6:
            part = draw.choice([0.5, 0.25, draw.uniform(0.1, 0.9)])
            shares = [[draw.randrange(nodes), part], [draw.randrange(nodes), 1 - part]]
    return {
        "tenant": draw.choice(["", "a", "b", "c"]),
        "frontier": frontier,
        "full_speed_seconds": fastest * draw.uniform(1, 1.1),
        "waiting_watts": waiting,
        "pipelines": pipelines,
        "late": late,
        "fixed_watts": draw.choice([0.0, draw.uniform(0, 500)]),
        "weight": draw.choice([1.0, 1.0, draw.uniform(0.2, 5)]),
        "slowest_seconds": fastest * draw.choice([1.0, 1.1, 1.25, 1.5])
        if draw.random() < 0.5
        else None,
        "least_watts": draw.choice([0.0, 0.0, 0.0, joules / fastest * draw.uniform(0.2, 1.2)]),
        "shares": shares,
    }


def power_at(job: dict[str, Any], factor: float) -> tuple[float, float]:
    """Return the least watts that a job may draw, and those at its fastest."""
    program = Program()
    most = most_watts(job, factor)
    least = min(factor * job["least_watts"], most * (1 - 1e-13))
    made = add_job(program, job, least, factor)
    for column, watts in made.watts.items():
        program.highs.changeColCost(column, watts)
    assert program.solve()
    return program.value(made.watts) + made.constant, most


def random_site(seed: int) -> dict[str, Any]:
    """Return a site: one limit, a tree, or a tree with jobs that span it; for any objective."""
    draw = random.Random(seed)
    kind = draw.choice(["one", "tree", "spans"])
    count = 1 if kind == "one" else draw.randint(2, 8)
    parents: list[int | None] = [None, *(draw.randrange(n) for n in range(1, count))]
    jobs = [random_job(draw, count, kind == "spans") for _ in range(draw.randint(1, 9))]
    site: dict[str, Any] = {
        "nodes": [{"parent": parent, "limit_watts": None} for parent in parents],
        "jobs": jobs,
        "meter_factor": draw.choice([1.0, draw.uniform(1, 1.6)]),
        "objective": draw.choice(["throughput", "max-min", "tenants", "schedule"]),
    }
    ranges = [power_at(job, site["meter_factor"]) for job in jobs]
    for node in range(count):
        parts = [carried(site, job).get(node, 0.0) for job in jobs]
        least = sum(p * low for p, (low, _) in zip(parts, ranges, strict=True))
        most = sum(p * high for p, (_, high) in zip(parts, ranges, strict=True))
        if node == 0 or draw.random() < 0.6:
            share = draw.uniform(0, 1.1) if draw.random() > 0.03 else -0.02
            limit = least + share * (most - least)
            if share > 0:  # Closer to the least, only rounding would decide.
                limit = max(limit, least * (1 + 1e-6))
            site["nodes"][node]["limit_watts"] = max(0.0, limit)
    if site["objective"] == "schedule":
        site["periods"] = [
            {
                "seconds": draw.choice([60.0, 900.0, 3600.0]),
                "price_per_joule": draw.choice([draw.uniform(0, 1e-6), 0.0, draw.uniform(-1e-7, 0)])
                if draw.random() < 0.3
                else draw.uniform(1e-8, 1e-6),
                "limit_watts": [
                    None if limit is None else limit * draw.uniform(1.0, 1.4)
                    for limit in site_limits(site)
                ]
                if draw.random() < 0.4
                else [],
            }
            for _ in range(draw.randint(1, 6))
        ]
        site["deadlines"] = []
        for j, job in enumerate(jobs):
            if draw.random() < 0.7:
                last = draw.randrange(len(site["periods"]))
                seconds = sum(period["seconds"] for period in site["periods"][: last + 1])
                _, fastest = least_power_range(job)
                site["deadlines"].append([j, last, fastest * seconds * draw.uniform(0.1, 0.95)])
    return site
