# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Plans for iterations whose microbatches differ, made beside training."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perseus.client import Client
    from perseus.planner import Planner

_Lengths = tuple[float, ...]

_log = logging.getLogger("perseus")


class StepPlanner:
    """A thread that plans each iteration for its lengths and hands the client its part.

    The newest request counts: where planning takes longer than an iteration, some iterations keep
    the plan before. The same lengths give the same plan, so the ranks of a pipeline agree without
    a word, as long as all are told the same.

    Parameters
    ----------
    client
        Of this rank.
    planner
        Of the whole pipeline.
    rank
        Of the pipeline: which part of each plan is this process's.
    settings
        As for `Planner.plan`: at, effort, ...

    Attributes
    ----------
    planned, skipped, failed
        Iterations that were planned; whose request a newer one replaced; without a plan.
    """

    def __init__(
        self, client: Client, planner: Planner, rank: int, **settings: str | float | None
    ) -> None:
        self.planned = 0
        self.skipped = 0
        self.failed = 0
        self.last_error = ""
        self._client = client
        self._planner = planner
        self._rank = rank
        self._settings = settings
        self._changed = threading.Condition()
        self._request: tuple[int, _Lengths, tuple[_Lengths, ...]] | None = None
        self._busy = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="perseus-plan", daemon=True)
        self._thread.start()

    def coming(
        self, iteration: int, work: Sequence[float], others: Sequence[Sequence[float]] = ()
    ) -> None:
        """Say how much work each microbatch of a coming iteration is. Returns at once.

        `others`: the same of the other data-parallel pipelines.
        """
        with self._changed:
            if self._request is not None:
                self.skipped += 1
            self._request = (iteration, tuple(work), tuple(tuple(other) for other in others))
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left to plan, for so long at most; False: there still is."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._closed or (self._request is None and not self._busy), seconds
            )

    def close(self) -> None:
        """Plan no more. The plan that is being made is not used."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._request is not None)
                if self._closed or self._request is None:
                    return
                iteration, work, others = self._request
                self._request = None
                self._busy = True
            self._plan(iteration, work, others)

    def _plan(self, iteration: int, work: _Lengths, others: tuple[_Lengths, ...] = ()) -> None:
        try:
            plan = self._planner.plan(
                work=work,
                others=others,
                **self._settings,  # type: ignore[arg-type]
            )
            own = [each for each in plan.computations if each.rank == self._rank]
            if self._closed:
                return
            if not self._client.step_plan(iteration, own):
                raise PlannerError(self._client.last_error or "the client is closed")
            self.planned += 1
        except Exception as error:  # Training goes on with the plan before.
            self.failed += 1
            if not self.last_error:
                _log.warning("perseus: iteration %d keeps the plan before: %s", iteration, error)
            self.last_error = str(error)
