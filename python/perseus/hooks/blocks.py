# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The blocks of a trainer that `perseus.Job` returns: ``with job.step():`` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from perseus.hooks.job import Job


class Step:
    """`with job.step():`."""

    __slots__ = ("_job", "_mine", "tokens")

    def __init__(self, job: Job, tokens: int) -> None:
        self._job = job
        self._mine = False
        self.tokens = tokens

    def __enter__(self) -> Step:
        self._mine = self._job.begin_outer_step()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._mine:
            return
        if kind is None:
            self._job.step_end(self.tokens)
        else:
            self._job.step_abandon()


class Computation:
    """`with job.forward(0):`."""

    __slots__ = ("_job", "_kind", "_microbatch", "_stage", "_work")

    def __init__(
        self, job: Job, kind: str, microbatch: int, stage: int | None, work: float | None
    ) -> None:
        self._job = job
        self._kind = kind
        self._microbatch = microbatch
        self._stage = stage
        self._work = work

    def __enter__(self) -> Computation:
        self._job.begin(self._kind, self._microbatch, self._stage, self._work)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._job.end(self._kind, self._microbatch, self._stage)


class Skip:
    """`with job.skip():`."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    def __enter__(self) -> Skip:
        self._job.skip_begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._job.skip_end()
