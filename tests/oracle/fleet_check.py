# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares divisions of power with linear programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from perseus.analysis.fleet_days import Job, Site, fill, node_loads, schedule

from .binary import divide_sites
from .fleet_site import (
    INFINITY,
    Program,
    add_job,
    best_cost,
    best_ratios,
    best_throughput,
    carried,
    groups_of,
    least_power_range,
    random_site,
    site_limits,
)

# Of a figure: what two solvers may differ by.
EXACT = 1e-9
# The same for SciPy's programs, whose tolerance is larger.
PROGRAM = 1e-6


def near(ours: float, theirs: float, scale: float = 0.0) -> bool:
    """Return whether two figures are the same to 1e-9 of them, or of a scale."""
    return abs(ours - theirs) <= EXACT * max(abs(theirs), scale, 1e-9)


def point_errors(site: dict[str, Any], division: dict[str, Any]) -> list[str]:
    """Return what is impossible in the points of jobs."""
    errors = []
    for j, (job, share) in enumerate(zip(site["jobs"], division["jobs"], strict=True)):
        low, high = least_power_range(job)
        if not low * (1 - EXACT) <= share["x"] <= high * (1 + EXACT):
            errors.append(f"job {j}: x is {share['x']}, outside of {low} to {high}")
            continue
        program = Program()
        made = add_job(program, job, 0, 1.0)
        program.row(made.x, share["x"] * (1 - EXACT), high * (1 + EXACT))
        for column, watts in made.watts.items():
            program.highs.changeColCost(column, watts)
        if not program.solve():
            errors.append(f"job {j}: no program for x = {share['x']}")
        elif share["watts"] < (program.value(made.watts) + made.constant) * (1 - 10 * EXACT):
            errors.append(f"job {j}: {share['watts']} W are too few for x = {share['x']}")
        if not near(share["speed"], share["x"] * job["full_speed_seconds"]):
            errors.append(f"job {j}: speed {share['speed']} does not follow from x")
    return errors


def limit_errors(
    site: dict[str, Any], division: dict[str, Any], limits: list[float | None]
) -> list[str]:
    """Return limits that are broken, and sums that are wrong."""
    errors = []
    for n, (limit, node) in enumerate(zip(limits, division["nodes"], strict=True)):
        watts = sum(
            carried(site, job).get(n, 0.0) * share["watts"] * site["meter_factor"]
            for job, share in zip(site["jobs"], division["jobs"], strict=True)
        )
        if not near(node["watts"], watts):
            errors.append(f"node {n}: {node['watts']} W, but its jobs draw {watts} W")
        if limit is not None and watts > limit * (1 + 2e-12) + 1e-12:
            errors.append(f"node {n}: {watts} W, above its limit of {limit} W")
        if node["price"] < 0:
            errors.append(f"node {n}: a price of {node['price']}")
        free = limit is None or watts < limit * (1 - 1e-6)
        if free and node["price"] > 0:
            errors.append(f"node {n}: a price of {node['price']} without need")
    return errors


class OracleJob(Job):
    """A job whose owner accepts what is said, even if it is faster than maximum clocks."""

    def accepted(self, slow: int) -> float:
        """Return it."""
        del slow
        return INFINITY if self.slowest_seconds is None else self.slowest_seconds


def analysis_site(site: dict[str, Any]) -> tuple[Site, list[Job]]:
    """Return a site as perseus.analysis.fleet_days has it; plans are the frontier."""
    jobs: list[Job] = []
    for k, job in enumerate(site["jobs"]):
        points = np.array(sorted(job["frontier"]))
        jobs.append(
            OracleJob(
                name=str(k),
                group=str(k),
                gpus=1,
                pipelines=job["pipelines"],
                weight=job["weight"],
                fixed_watts=job["fixed_watts"],
                least_watts=job["least_watts"],
                waiting_watts=job["waiting_watts"],
                slowest_seconds=job["slowest_seconds"],
                max_clocks=(job["full_speed_seconds"], 0.0),
                frontier=points,
                plans=points,
                clocks=np.zeros((0, 3)),
                caps=np.zeros((0, 3)),
                late=[(time, energy) for time, energy in job["late"]],
                parts=sorted(carried(site, job).items()),
                meter=site["meter_factor"],
            )
        )
    limits = [INFINITY if limit is None else limit for limit in site_limits(site)]
    parents = [node["parent"] for node in site["nodes"]]
    names = [str(n) for n in range(len(limits))]
    return Site(limits, parents, names, site["meter_factor"], jobs), jobs


def schedule_errors(site: dict[str, Any]) -> list[str]:
    """Return what is wrong with the schedule of perseus.analysis."""
    theirs = best_cost(site)
    made, jobs = analysis_site(site)
    periods = site["periods"]
    limits = [
        [INFINITY if w is None else w for w in period["limit_watts"] or made.limits]
        for period in periods
    ]
    shares = schedule(
        made,
        jobs,
        [job.member(0).bound for job in jobs],
        [period["seconds"] for period in periods],
        [period["price_per_joule"] for period in periods],
        limits,
        [(j, t, iterations) for j, t, iterations in site["deadlines"] if iterations > 0],
    )
    if theirs is None or shares is None:
        return [] if theirs is None and shares is None else [f"a schedule: {shares}, {theirs}"]
    errors = []
    cost = scale = 0.0
    for t, (period, row) in enumerate(zip(periods, shares, strict=True)):
        watts = [share[1] * site["meter_factor"] for share in row]
        paid = period["price_per_joule"] * period["seconds"]
        cost += paid * sum(watts)
        scale += abs(paid) * sum(watts)
        for n, load in enumerate(node_loads(made, jobs, watts)):
            if load > limits[t][n] * (1 + PROGRAM):
                errors.append(f"node {n}: {load} W, above its limit of {limits[t][n]} W")
    for j, last, iterations in site["deadlines"]:
        done = sum(periods[t]["seconds"] * shares[t][j][0] for t in range(last + 1))
        if done < iterations * (1 - PROGRAM):
            errors.append(f"job {j}: {done} of {iterations} iterations by period {last}")
    if abs(cost - theirs) > PROGRAM * max(abs(theirs), scale):
        errors.append(f"cost {cost}, theirs {theirs}")
    return errors


def fill_errors(site: dict[str, Any], theirs: float) -> list[str]:
    """Return what is wrong with the division of perseus.analysis."""
    made, jobs = analysis_site(site)
    curves = [job.member(0).bound for job in jobs]
    x = fill(made, jobs, curves, made.limits)
    ours = sum(job.value(each) for job, each in zip(jobs, x, strict=True))
    if abs(ours - theirs) > PROGRAM * max(theirs, 1e-3):
        return [f"perseus.analysis: {ours}, theirs {theirs}"]
    return []


def site_errors(site: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Return what is wrong with the answer for a site; nothing if it is the best division."""
    if site["objective"] == "schedule":
        return schedule_errors(site)
    ratios: list[float] | None = None
    if site["objective"] == "throughput":
        theirs = best_throughput(site)
    else:
        ratios = best_ratios(site)
        theirs = None if ratios is None else min(ratios)
    if theirs is None:
        return [] if answer.get("infeasible") else ["there is a division where none can be"]
    if "error" in answer:
        # Tenants are divided under one limit only.
        several = sum(limit is not None for limit in site_limits(site)) > 1
        if site["objective"] == "tenants" and several and not answer["infeasible"]:
            return []
        return [f"refused: {answer['error']}"]
    bound = answer["bound"]
    errors = point_errors(site, bound) + limit_errors(site, bound, site_limits(site))
    if site["objective"] == "throughput":
        errors += fill_errors(site, theirs)
    if not near(bound["objective"], theirs):
        errors.append(f"objective {bound['objective']}, theirs {theirs}")
    for g, (members, weight) in enumerate(groups_of(site) if ratios else []):
        jobs = [(site["jobs"][j]["weight"], bound["jobs"][j]["speed"]) for j in members]
        by_tenant = site["objective"] == "tenants"
        ours = sum((w if by_tenant else 1.0) * speed for w, speed in jobs) / weight
        # The levels above the first rest on those before.
        if ratios and abs(ours - ratios[g]) > 1e-8 * max(ratios[g], 1e-3):
            errors.append(f"group {g}: ratio {ours}, theirs {ratios[g]}")
    return errors


def check(first: int, count: int) -> list[str]:
    """Return what is wrong with `count` random sites."""
    sites = [random_site(seed) for seed in range(first, first + count)]
    errors = []
    for seed, site, answer in zip(
        range(first, first + count), sites, divide_sites(sites), strict=True
    ):
        kind = f"site {seed} ({site['objective']}, {len(site['nodes'])} nodes)"
        errors += [f"{kind}: {error}" for error in site_errors(site, answer)]
    return errors
