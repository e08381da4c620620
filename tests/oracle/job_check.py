# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Checks everything that perseus plan writes for a job, not the plan alone."""

from __future__ import annotations

import ast
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binary import RefusedError, perseus, read_frontier
from .cases import network_of
from .dag import replay
from .frontier_check import compare, shape_errors
from .mip import DiscreteProgram
from .plan_check import check_plan, constraint_errors
from .run_plan import run_frontier

if TYPE_CHECKING:
    from .binary import Curve
    from .dag import Pipeline
    from .random_jobs import RandomJob


def requested_seconds(at: str, pipeline: Pipeline, curve: Curve) -> tuple[float, float]:
    """Return what a point means in seconds, and how far off (relative) is no error."""
    if at.endswith("x"):
        return float(at[:-1]) * replay(pipeline.dag, [o.time for o in pipeline.baseline()]), 0.0
    if at == "fastest":
        options = pipeline.options
        return replay(pipeline.dag, [min(o.time for o in own) for own in options]), 0.0
    if at == "tstar":
        effective = [pipeline.effective(i) for i in range(len(pipeline.options))]
        cheapest = [min((c, t) for t, c in own)[1] for own in effective]
        return replay(pipeline.dag, cheapest), 1e-9
    if at == "min-energy":
        least = min(curve.energies)
        slack = 1e-9 * abs(least)
        times = [t for t, e in zip(curve.times, curve.energies, strict=True) if e <= least + slack]
        return times[0], (times[-1] - times[0]) / times[0] + 1e-9
    return float(at), 0.0


def _zeus_errors(folder: Path, plan: dict[str, Any]) -> list[str]:
    path = folder / "zeus_plan.py"
    if not path.is_file():
        return []
    listed = ast.literal_eval(path.read_text(encoding="utf-8"))
    wanted = [[(c["type"], c["knob"]) for c in r["computations"]] for r in plan["ranks"]]
    return [] if listed == wanted else ["zeus_plan.py differs from plan.json"]


def _explain_errors(folder: Path, plan: dict[str, Any], power: float) -> list[str]:
    text = perseus(["explain", folder / "plan.json", "--json"])
    explained = json.loads(text)
    saved = plan["baseline"]["energy_j"] - plan["energy_j"]
    # Shares are of effective energies: differences of sums of this size.
    scale = plan["baseline"]["energy_j"] + power * plan["baseline"]["iteration_time_s"]
    errors = []
    if abs(explained["saving_j"] - saved) > 1e-9 * scale:
        errors.append(f"explain: saving_j {explained['saving_j']!r}, not {saved!r}")
    computed = explained["saving_j"] - explained["iteration_saving_j"]
    computed -= explained.get("waiting_saving_j", 0.0)
    for name in ("by_stage", "by_type", "by_phase"):
        total = math.fsum(entry["saving_j"] for entry in explained[name])
        if abs(total - computed) > 1e-9 * scale:
            errors.append(f"explain: {name} sums to {total!r}, not {computed!r}")
    return errors


def check_job(random_job: RandomJob, effort: float, optimum_seconds: float = 0.0) -> list[str]:
    """Plan a job and say everything that is wrong with what comes out.

    Parameters
    ----------
    random_job
        The job.
    effort
        Of the search.
    optimum_seconds
        Where above 0, an unconstrained plan of at most 64 computations is compared with the
        discrete optimum, proven within so many seconds.
    """
    job = random_job.job
    pipeline = job.pipeline()
    highest = pipeline.baseline()
    # With labels each table has its own, so they may break a constraint.
    kept = not constraint_errors(job, pipeline, highest)
    baseline = replay(pipeline.dag, [o.time for o in highest]) if kept else math.inf
    arguments = ["plan", *random_job.arguments, *random_job.constraints]
    arguments += ["--at", random_job.at, "--effort", repr(effort)]
    errors: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        try:
            printed = json.loads(perseus([*arguments, "--json", "-o", folder]))
            plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        except RefusedError as error:
            # The highest clocks do not meet every time.
            curve = run_frontier(random_job.arguments)
            wanted, _ = requested_seconds(random_job.at, pipeline, curve)
            return [str(error)] if wanted >= baseline or not random_job.constraints else []
        except json.JSONDecodeError as error:
            return [f"what should be JSON is not: {error}"]
        curve = read_frontier(folder / "frontier.csv")
        again = Path(name) / "again"
        perseus([*arguments, "--json", "-o", again])
        for path in sorted(folder.iterdir()):
            if path.read_bytes() != (again / path.name).read_bytes():
                errors.append(f"{path.name} differs when it is made again")
        for key in ("requested_time_s", "iteration_time_s", "energy_j", "lower_bound_j"):
            if printed[key] != plan[key]:
                errors.append(f"--json says {key} {printed[key]!r}, plan.json {plan[key]!r}")
        errors += _zeus_errors(folder, plan)
        errors += _explain_errors(folder, plan, sum(pipeline.blocking))
    errors += check_plan(plan, job)
    wanted, tolerance = requested_seconds(random_job.at, pipeline, curve)
    have = plan["requested_time_s"]
    # The plan of least energy may be that of another row of the table.
    min_energy = random_job.at == "min-energy" and have in (
        point["requested_time_s"] for point in printed["points"]
    )
    if abs(have - wanted) > tolerance * wanted and not min_energy:
        errors.append(f"{random_job.at} is {have!r} s, not {wanted!r} s")
    if plan["optimality_gap"]["certified_error"] != 0:
        errors.append("certified_error is not 0 in the exact mode")
    if plan["gap_percent"] < -1e-9:
        errors.append(f"below the lower bound: gap {plan['gap_percent']!r} %")
    # Over an iteration of the requested length, as both would wait for its end.
    power = sum(pipeline.blocking)
    ours, theirs = (
        entry["energy_j"] - power * entry["iteration_time_s"] for entry in (plan, plan["baseline"])
    )
    if wanted >= baseline and ours - theirs > 1e-11 * (abs(theirs) + power * wanted):
        errors.append(f"worse than the highest clocks: effective energy {ours!r} over {theirs!r}")
    network = network_of(pipeline)
    errors += shape_errors(curve, network, power, 1e-8)
    compared = compare(curve, network, 8, power)
    if compared.difference > 1e-8:
        errors.append(f"frontier is off by {compared.difference!r}")
    if optimum_seconds and not random_job.constraints and len(pipeline.options) <= 64:
        optimum = DiscreteProgram(pipeline, seconds=optimum_seconds).solve(have)
        summed = abs(optimum.best) + power * have
        scale = max(optimum.best + power * have, 1e-3 * summed)
        excess = 100 * (ours - optimum.best) / scale if scale > 0 else 0.0  # No energy at all.
        if optimum.proved and excess > 0.02:
            errors.append(f"{excess:.4f} % above the discrete optimum")
    return errors
