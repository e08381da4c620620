# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The check of plans itself: it accepts an honest plan and finds each lie."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .cases import network_of
from .dag import FORWARD, one_forward_one_backward, parse_schedule, replay
from .lp import LinearProgram
from .plan_check import Job, check_plan
from .tables import Option, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from .dag import Pipeline

CLOCKS = (1400, 1200, 1000)


def small_profile(stages: int) -> Profile:
    """Return three clocks for every stage."""
    return Profile(
        {
            (stage, kind): [
                Option(str(clock), work * 1400 / clock, work * (6 + 4 * (clock / 1400) ** 3))
                for clock in CLOCKS
            ]
            for stage in range(stages)
            for kind, work in ((FORWARD, 1.0 + 0.1 * stage), ("backward", 2.0))
        },
        0,
    )


def describe(pipeline: Pipeline, pick: Callable[[int], int], requested: float) -> dict[str, Any]:
    """Return plan.json of the plan that gives computation i its option number pick(i)."""
    dag = pipeline.dag
    chosen = [options[pick(i)] for i, options in enumerate(pipeline.options)]
    time = replay(dag, [o.time for o in chosen])
    energy = pipeline.energy(chosen, time)
    baseline = pipeline.baseline()
    baseline_time = replay(dag, [o.time for o in baseline])
    baseline_energy = pipeline.energy(baseline, baseline_time)
    bracket = LinearProgram(network_of(pipeline)).solve(time)
    bound = bracket.lower + sum(pipeline.blocking) * time
    return {
        "stages": len(dag.rank_order),
        "microbatches": len({a.microbatch for step in dag.steps for a in step}),
        "requested_time_s": requested,
        "baseline": {"iteration_time_s": baseline_time, "energy_j": baseline_energy},
        "iteration_time_s": time,
        "energy_j": energy,
        "lower_bound_j": bound,
        "gap_percent": 100 * (energy / bound - 1),
        "saving_percent": 100 * (1 - energy / baseline_energy),
        "average_power_w": energy / time,
        "ranks": [
            {
                "computations": [
                    {
                        "type": action.type,
                        "stage": action.stage,
                        "microbatch": action.microbatch,
                        "knob": float(chosen[i].knob),
                        "duration_s": chosen[i].time,
                        "fused": len(dag.steps[i]) > 1,
                    }
                    for i in order
                    for action in dag.steps[i]
                ]
            }
            for order in dag.rank_order
        ],
    }


def one_clock_slower(i: int) -> int:
    """Pick the middle clock for every third computation."""
    return 1 if i % 3 == 0 else 0


def honest() -> tuple[dict[str, Any], Job]:
    """Return a plan of three stages and four microbatches and its job."""
    job = Job(small_profile(3), one_forward_one_backward(3, 4), [2.5])
    return describe(job.pipeline(), one_clock_slower, 25.0), job


def test_honest_plan_is_accepted() -> None:
    """No complaint."""
    plan, job = honest()
    assert check_plan(plan, job) == []


@pytest.mark.parametrize(
    "name",
    ["iteration_time_s", "energy_j", "lower_bound_j", "gap_percent", "saving_percent"],
)
@pytest.mark.parametrize("factor", [1 + 1e-6, 1 - 1e-6])
def test_wrong_figures_are_found(name: str, factor: float) -> None:
    """A figure that is off by a millionth."""
    plan, job = honest()
    plan[name] *= factor
    assert check_plan(plan, job) != []


def test_wrong_plans_are_found() -> None:
    """Another clock, another order, a missing computation, too late."""
    plan, job = honest()
    for change in ("knob", "unknown knob", "order", "missing", "late", "baseline", "duration"):
        lie = copy.deepcopy(plan)
        order = lie["ranks"][1]["computations"]
        if change == "knob":
            order[2]["knob"] = 1000
        elif change == "unknown knob":
            order[2]["knob"] = 1234
        elif change == "order":
            order[0], order[1] = order[1], order[0]
        elif change == "missing":
            del order[-1]
        elif change == "late":
            lie["requested_time_s"] = plan["iteration_time_s"] * (1 - 1e-15)
        elif change == "baseline":
            lie["baseline"]["energy_j"] *= 1 + 1e-9
        else:
            order[0]["duration_s"] *= 1 + 1e-15
        assert check_plan(lie, job) != [], change


def test_bound_above_the_optimum_is_found() -> None:
    """A consistent plan whose lower bound is not one."""
    plan, job = honest()
    plan["lower_bound_j"] *= 1 + 1e-6
    plan["gap_percent"] = 100 * (plan["energy_j"] / plan["lower_bound_j"] - 1)
    assert any("above the optimum" in error for error in check_plan(plan, job))


def test_broken_constraints_are_found() -> None:
    """Each constraint, on a plan that ignores it; and on one that keeps it."""
    plan, job = honest()
    steady = describe(job.pipeline(), lambda _: 1, 25.0)
    for name, value in (
        ("granularity", "phase"),
        ("granularity", "stage-type"),
        ("granularity", "stage"),
        ("time_margin", 1.5),
    ):
        strict = Job(job.profile, job.schedule, job.blocking_power)
        setattr(strict, name, value)
        assert check_plan(plan, strict) != [], name
        steady["requested_time_s"] = 60.0
        assert check_plan(steady, strict) == [], name


def test_fused_steps() -> None:
    """A forward and a backward that run as one share a clock."""
    schedule = parse_schedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\r\n")
    job = Job(small_profile(1), schedule, [2.5])
    plan = describe(job.pipeline(), lambda i: i % 2, 40.0)
    assert check_plan(plan, job) == []
    plan["ranks"][0]["computations"][1]["knob"] = 1000
    assert any("fused" in error for error in check_plan(plan, job))
