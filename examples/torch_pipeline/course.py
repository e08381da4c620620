# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Which iterations of a run are measured: the same on all ranks."""

from __future__ import annotations

import argparse

import perseus
import torch
import torch.distributed as dist

MOST_ITERATIONS = 500
SETTLED = 4  # Iterations of one plan before those that count.


class Course:
    """What is measured when: the same on all ranks, as they decide it together.

    With Perseus: "profile" until all ranks follow one plan, "planned", "straggler", "well".
    Without: "planned" and "straggler" as the first iterations, the others only train.
    """

    def __init__(self, options: argparse.Namespace, attached: perseus.Attached | None) -> None:
        self.options = options
        self.attached = attached
        self.phase = "profile" if attached else "planned"
        self.left = options.measured
        self.steady = 0
        self.version = -1

    def next(self, iteration: int) -> str | None:
        """Return the phase of the next iteration; None: training is over."""
        if self.phase == "profile":
            self._wait_for_plans()
            if self.phase == "profile" and iteration > MOST_ITERATIONS:
                raise SystemExit("there was no plan that all ranks follow")
            return self.phase
        self.left -= 1
        if self.left > 0 or self.phase == "plain":
            return None if iteration == self.options.iterations else self.phase
        if not self.attached:
            self.phase = {"planned": "straggler", "straggler": "plain"}[self.phase]
            self.left = self.options.measured
            return self.phase
        following = {"planned": "straggler", "straggler": "well", "well": ""}[self.phase]
        self.left = 3 if following == "well" else self.options.measured + SETTLED
        self.phase = following
        return following or None

    def _wait_for_plans(self) -> None:
        assert self.attached is not None
        report = self.attached.report()
        follows = report["state"] == "following"
        version = float(report["plan_version"]) if follows else -1.0
        seen = torch.tensor([version, -version], dtype=torch.float64)
        dist.all_reduce(seen, dist.ReduceOp.MIN)
        least, most = float(seen[0]), -float(seen[1])
        self.steady = self.steady + 1 if least == most == self.version >= 0 else 0
        self.version = int(most)
        if self.steady >= SETTLED:
            self.phase, self.left = "planned", self.options.measured


class CourseOfLengths(Course):
    """With lengths that vary: "profile" until all ranks follow plans of their steps, "planned".

    Without Perseus the iterations that were "planned" with it are measured; those before only
    train.
    """

    def __init__(self, options: argparse.Namespace, attached: perseus.Attached | None) -> None:
        super().__init__(options, attached)
        self.phase = "profile" if attached else self._without(0)

    def next(self, iteration: int) -> str | None:
        """Return the phase of the next iteration; None: training is over."""
        if not self.attached:
            if iteration == self.options.iterations:
                return None
            self.phase = self._without(iteration)
        elif self.phase == "planned":
            self.left -= 1
            return self.phase if self.left > 0 else None
        elif self._fewest_plans() >= SETTLED:
            self.phase = "planned"
        elif iteration > MOST_ITERATIONS:
            raise SystemExit("there were no plans that all ranks follow")
        return self.phase

    def _without(self, iteration: int) -> str:
        before = self.options.iterations - self.options.measured - iteration
        return "planned" if before <= 0 else "profile" if before == 1 else "plain"

    def _fewest_plans(self) -> int:
        """Return how many steps had a plan of their own, on the rank that had the fewest."""
        assert self.attached is not None
        stats = self.attached.report()["stats"]
        plans = torch.tensor(stats.step_plans if isinstance(stats, perseus.Stats) else 0)
        dist.all_reduce(plans, dist.ReduceOp.MIN)
        return int(plans)
