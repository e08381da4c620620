# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Plans for single iterations, made beside training and followed by the client."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import perseus
from planner_jobs import csv_of, needs_library, profile

pytestmark = [
    needs_library,
    pytest.mark.skipif(
        not os.path.exists(os.environ.get("PERSEUS_CLIENT_LIBRARY", "")),
        reason="PERSEUS_CLIENT_LIBRARY names no library",
    ),
]

MICROBATCHES = 4


def planner() -> perseus.Planner:
    """Return the planner of two stages."""
    settings: dict[str, Any] = {"effort": 0.01}
    return perseus.Planner(csv_of(profile(2)), "1f1b", MICROBATCHES, 75, **settings)


def stats_with(client: perseus.Client, plans: int, late: int) -> perseus.Stats:
    """Wait until the counters say so, or for long."""
    stats = client.stats()
    assert stats is not None
    for _ in range(300):
        now = client.stats()
        assert now is not None
        stats = now
        if (stats.step_plans, stats.step_plans_late) == (plans, late):
            break
        time.sleep(0.05)
    return stats


def test_a_job_plans_its_coming_steps_and_counts_late_ones() -> None:
    """The lengths of a batch are handed over in the step before it."""
    made = planner()
    with perseus.Job() as job:
        job.plan_with(made, rank=1)
        job.coming([1.0, 2.0, 0.5, 1.0])
        assert job._step_planner is not None
        assert job._step_planner.wait(30)
        for lengths in ([2.0, 2.0, 1.0, 1.0], [1.0, 1.0, 1.0, 3.0], None):
            with job.step(work=lengths):
                assert job._step_planner.wait(30)
        assert stats_with(job.client, 3, 0).step_plans == 3
        # For an iteration that is over: not used.
        own = [c for c in made.baseline.computations if c.rank == 1]
        assert job.client.step_plan(0, own)
        with job.step():
            pass
        stats = stats_with(job.client, 3, 1)
        assert (stats.step_plans, stats.step_plans_late) == (3, 1)
        counted = job.report()["step_plans"]
        assert counted == {"planned": 3, "skipped": 0, "failed": 0, "last_error": ""}


def test_what_cannot_be_planned_is_counted_and_training_goes_on() -> None:
    """Another number of microbatches, and rows that make no sense."""
    with perseus.Job() as job:
        job.plan_with(planner(), rank=0)
        with job.step(work=[1.0]):
            pass
        assert job._step_planner is not None
        assert job._step_planner.wait(30)
        report = job.report()["step_plans"]
        assert isinstance(report, dict)
        assert report["failed"] == 1
        assert "the work of 1 microbatch" in report["last_error"]
        assert not job.client.step_plan(5, [])


def test_a_plan_that_is_not_handed_over_is_not_counted() -> None:
    """Closed while it planned."""
    made = planner()
    with perseus.Job() as job:
        job.plan_with(made, rank=0)
        stepper = job._step_planner
        assert stepper is not None
        stepper.close()
        stepper._plan(1, (1.0, 1.0, 1.0, 1.0))
        assert (stepper.planned, stepper.failed) == (0, 0)
