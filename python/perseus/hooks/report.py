# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a job says of itself while it trains: a report for people, figures for loggers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypedDict

from perseus.client import State

if TYPE_CHECKING:
    from perseus.client import Stats


class StepPlans(TypedDict):
    """What became of the requests to plan a step."""

    planned: int
    skipped: int
    failed: int
    last_error: str


class Report(TypedDict, total=False):
    """What is going on. Where attaching failed there are `state` and `last_error` alone.

    Attributes
    ----------
    stats
        None: the client is closed. It counts the step plans that were used, and those that came
        too late.
    ignored_steps
        Nested, or in another thread at the same time.
    outside
        Computations outside of a step.
    timeline_dropped
        Steps whose device times came too late to be used.
    step_plans
        None: steps are not planned in this process.
    """

    state: str
    plan_version: int
    job_id: str
    last_error: str
    stats: Stats | None
    steps: int
    abandoned_steps: int
    ignored_steps: int
    outside: int
    timeline: str
    timeline_dropped: int
    step_plans: StepPlans | None


def metrics_of(stats: Stats | None) -> dict[str, float]:
    """Return the figures of a client; none where it is closed."""
    if stats is None:
        return {}
    figures = {
        "following": float(stats.state == State.FOLLOWING),
        "plan_version": float(stats.plan_version),
        "clock_mhz": float(stats.clock_mhz),
        "iteration_seconds": stats.last_iteration_seconds,
        "clock_calls": float(stats.calls),
        "clocks_late": float(stats.late + stats.missed),
        "overhead_percent": 100 * stats.overhead_share,
        "joules": stats.joules,
        "saving_percent": stats.saving_percent,
        "saving_least_percent": stats.saving_least_percent,
        "saving_most_percent": stats.saving_most_percent,
    }
    return {name: value for name, value in figures.items() if not math.isnan(value)}
