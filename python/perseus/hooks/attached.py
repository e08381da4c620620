# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the hooks of all frameworks share: what `attach` returns, and the job that it makes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import uuid
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from perseus.client import State
from perseus.hooks.devices import add_gpu
from perseus.hooks.job import Job
from perseus.hooks.layout import (
    DEFAULT_SERVER,
    Layout,
    default_device,
    job_body,
    run_key,
)
from perseus.hooks.speaker import say_once, speaker_of_ranks
from perseus.hooks.wrap import Wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from perseus.hooks.report import Report

_log = logging.getLogger("perseus")

_STORE_KEY = "perseus/run"
_COMING = "coming"
# At most, until the client has found that there is no agent: milliseconds.
_DEVICE_SECONDS = 1.0
_Batch = TypeVar("_Batch")


def _nothing(_batch: object) -> Sequence[Sequence[float]]:
    return ()


class AttachError(RuntimeError):
    """Perseus cannot be attached; only `attach(strict=True)` raises it."""


class _RefusedError(AttachError):
    """The job's client could not be opened, and its job has said why."""


class Attached:
    """What `attach` returns: the hooks on a schedule, until `detach` or the end of a ``with``.

    Attributes
    ----------
    job
        The `perseus.Job` that the hooks tell; None: attaching failed, and training is untouched.
    reason
        Why it failed; empty: it did not.
    """

    def __init__(self, job: Job | None, reason: str = "") -> None:
        self.job = job
        self.reason = reason
        self.tokens: int | Callable[[], int] = 0
        self._undo: list[Callable[[], None]] = []
        self._computations: list[Wrap] = []
        _all.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be None in a copy: a copied schedule has no Perseus attached."""
        return type(None), ()

    def __bool__(self) -> bool:
        return self.job is not None

    def metrics(self) -> dict[str, float]:
        """Return `perseus.Job.metrics`; empty where attaching failed."""
        return {} if self.job is None else self.job.metrics()

    def wait_until(self, state: str, timeout: float = 60.0) -> bool:
        """Wait as `perseus.Job.wait_until`; False at once where attaching failed."""
        return self.job is not None and self.job.wait_until(state, timeout)

    def report(self) -> Report:
        """Return `perseus.Job.report`, or why there is none."""
        if self.job is None:
            return {"state": "detached", "last_error": self.reason}
        return self.job.report()

    def ahead(
        self,
        batches: Iterable[_Batch],
        work: Callable[[_Batch], Sequence[float]],
        others: Callable[[_Batch], Sequence[Sequence[float]]] = _nothing,
    ) -> Iterator[_Batch]:
        """Go through the batches, one of which is a step each, and say what comes next.

        Reads one batch ahead, so that it is planned for while the one before it trains: see
        `attach(planner=...)`. Without a planner, and where attaching failed, it goes through them
        all the same.

        Parameters
        ----------
        batches
            What the trainer goes through. An exception in it is raised in its place.
        work
            Of a batch: how many times as long as in the planner's profile each of its microbatches
            lasts. All ranks of a pipeline must come to the same numbers.
        others
            Of a batch: the same for the other data-parallel pipelines, where this rank knows them.
            Those with less work then run slower, since they would wait for the slowest.
        """
        iterator = iter(batches)
        failure: BaseException | None = None
        waiting: list[_Batch] = []
        self._read(iterator, waiting, work, others)
        while waiting:
            try:
                self._read(iterator, waiting, work, others)
            except Exception as error:
                failure = error
            yield waiting.pop(0)
            if failure is not None:
                raise failure

    def _read(
        self,
        iterator: Iterator[_Batch],
        waiting: list[_Batch],
        work: Callable[[_Batch], Sequence[float]],
        others: Callable[[_Batch], Sequence[Sequence[float]]],
    ) -> None:
        """Put the next batch behind those that wait, and say how much work it is."""
        for batch in iterator:
            waiting.append(batch)
            break
        else:
            return
        if self.job is None:
            return
        try:
            step = self.job.next_iteration + len(waiting) - 1
            self.job.coming(work(batch), step, others(batch))
        except Exception as error:
            self.job.fail("the work of a coming batch is not known", error, about=_COMING)
        else:
            self.job.recover(_COMING)

    def detach(self) -> None:
        """Take the hooks off and close the job; the clock goes back. May be called again."""
        job = self.job
        for wrap in self._computations:
            self._guarded(functools.partial(wrap.put, False))
        self._computations.clear()
        while self._undo:
            self._guarded(self._undo.pop())
        if job is not None:
            job.gpu = None
            self._guarded(job.close)

    def _guarded(self, end: Callable[[], None]) -> None:
        try:
            end()
        except Exception as error:
            if self.job is not None:
                self.job.fail("not all of Perseus could be taken off", error, about="off")

    def _listen(self, on: bool) -> None:
        """Put the wrappers of the stages on, or take them off while nobody asks for them."""
        for wrap in self._computations:
            wrap.put(on)

    def keep(self, wrap: Wrap) -> None:
        """Put a wrapper on until `detach`."""
        wrap.put(True)
        self._undo.append(lambda: wrap.put(False))

    def tokens_of_iteration(self) -> int:
        """Return what `tokens` says of the iteration that ended."""
        if not callable(self.tokens):
            return self.tokens
        try:
            return int(self.tokens())
        except Exception as error:
            if self.job is not None:
                self.job.fail("the function for tokens failed", error)
            return 0

    @contextlib.contextmanager
    def attaching(self, framework: str, strict: bool, said: str = "") -> Iterator[None]:
        """Within it, attach: where that fails, all is taken off again, and it says once why.

        Parameters
        ----------
        framework
            What it is attached to, for people.
        strict
            Raise `AttachError` instead.
        said
            A reason that was said before, which is not said again.
        """
        try:
            yield
        except Exception as error:
            self.detach()
            self.job = None
            self.reason = str(error) or type(error).__name__
            if strict:
                raise AttachError(self.reason) from error
            if self.reason != said and not isinstance(error, _RefusedError):
                say_once(f"not attached to {framework}: {self.reason}")

    def __enter__(self) -> Attached:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()


_all: weakref.WeakSet[Attached] = weakref.WeakSet()


def open_job(
    place: Layout,
    *,
    schedule: Callable[[], dict[str, object]],
    stages: int,
    microbatches: int,
    device: object,
    server: str | None,
    name: str | None,
    run: str | None,
    job_id: str | None,
    profile: bool | str | os.PathLike[str],
    settings: Mapping[str, object] | None,
    labels: Mapping[str, str] | None,
    strict: bool,
    options: dict[str, Any],
) -> Job:
    """Return the job of this rank; where none is named, all ranks make the same one.

    Parameters
    ----------
    schedule
        Says what a job says of the order, where one is made.
    device
        Of PyTorch, that computes; None: its current CUDA device, where there is CUDA.
    server, name, run, job_id, profile, settings, labels, strict, options
        As for `perseus.attach`.
    """
    body = None
    if job_id is None and not os.environ.get("PERSEUS_JOB_ID"):
        given = None if isinstance(profile, bool) else Path(profile).read_text("utf-8")
        body = job_body(
            place,
            schedule=schedule(),
            stages=stages,
            microbatches=microbatches,
            run=run or run_key() or _agreed_run(),
            name=name,
            profile_csv=given,
            settings=settings,
            labels=labels,
        )
    _add_device_options(device, place, options)
    gpu = tuple(options.get(key) for key in ("device", "gpu_uuid", "gpu_index"))
    _detach_from(gpu)
    job = Job(
        server or os.environ.get("PERSEUS_SERVER") or DEFAULT_SERVER,
        job_id=job_id,
        job=body,
        rank=place.rank,
        dp_rank=place.dp_rank,
        pp_rank=place.pp_rank,
        tp_rank=place.tp_rank,
        profile=profile is True,
        strict=strict,
        speaker=speaker_of_ranks(),
        **options,
    )
    if job.client.state == State.CLOSED:
        raise _RefusedError(job.last_error)  # Not closed: it may wait to speak for other ranks.
    job.gpu = gpu
    job.wait_for_complaint(_DEVICE_SECONDS if _has_no_agent(options["device"]) else 0)
    return job


def _detach_from(gpu: tuple[object, ...]) -> None:
    """Take off what this process had attached on the same GPU, which has one owner."""
    for attached in list(_all):
        if attached.job is not None and attached.job.gpu == gpu:
            attached.detach()
            _log.info("perseus: another schedule is attached now; the one before is detached")


def _has_no_agent(device: object) -> bool:
    """Return whether the client will find no agent to talk to."""
    kind, _, socket = str(device).partition(":")
    return kind == "agent" and not os.access(socket, os.R_OK | os.W_OK)


def _agreed_run() -> str:
    """Return a name for this run that the ranks agree on through their store, without waiting."""
    own = f"run-{uuid.uuid4().hex[:16]}"
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available() or not distributed.is_initialized():
        return own  # There is one rank.
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    agreed = c10d._get_default_store().compare_set(_STORE_KEY, "", own)
    return bytes(agreed).decode()


def _add_device_options(device: object, place: Layout, options: dict[str, Any]) -> None:
    """Say which device, GPU and timeline, where the caller did not."""
    options.setdefault("device", default_device())
    if options["device"] is None:
        options["device"] = ""  # Not that of the environment.
    torch = importlib.import_module("torch")
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = torch.device(device)
    options.setdefault("timeline", "cuda" if chosen.type == "cuda" else "host")
    add_gpu(chosen, place.rank, options)
