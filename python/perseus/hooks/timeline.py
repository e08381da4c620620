# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""When computations ran on a device to which they are only queued.

The host says when a computation was queued; the device's events say when it ran. Events are
recorded at its begin and end, which costs a few microseconds, and read when the step after theirs
ends: by then they are over, and nobody waits for them.

The two clocks are set against each other without waiting either. An event cannot be over on the
device before it was recorded on the host, and one that is seen to be over is: both bound the
difference of the clocks, and as the device is idle now and then (as in every pipeline) the first
bound is tight. Only the first step, and each thousandth, waits for one event.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections import deque
from typing import Any, Callable, Protocol

_REANCHOR_STEPS = 1000
_MAX_PENDING = 4

StepTimes = tuple[int, "list[float]", "list[float]"]
"""An iteration, and begin and end of its computations in seconds since its begin."""


class Event(Protocol):
    """What is needed of `torch.cuda.Event(enable_timing=True)`."""

    def record(self) -> None:
        """Queue it on the current stream."""

    def query(self) -> bool:
        """Return whether the device is past it."""

    def synchronize(self) -> None:
        """Wait until the device is past it."""

    def elapsed_time(self, end: Any) -> float:
        """Return the milliseconds from this event to `end`."""


class Timeline(Protocol):
    """Where `Job` gets the device's times from. Called from the thread that trains."""

    name: str
    dropped: int

    def step_begin(self, iteration: int) -> None:
        """An iteration begins."""

    def begin(self) -> None:
        """A computation begins."""

    def end(self) -> None:
        """It ended."""

    def step_end(self) -> None:
        """The iteration ended."""

    def step_abandon(self) -> None:
        """The iteration broke off: forget it."""

    def take(self) -> list[StepTimes]:
        """Return the times of earlier iterations that have become known."""


class _StepEvents:
    """The events of one iteration."""

    __slots__ = ("base", "begins", "ends", "host_begin", "host_records", "iteration")

    def __init__(self, iteration: int, host_begin: float, base: Event) -> None:
        self.iteration = iteration
        self.host_begin = host_begin
        self.base = base
        self.begins: list[Event] = []
        self.ends: list[Event] = []
        self.host_records: list[float] = []


class EventTimeline:
    """Times by events of a device.

    Parameters
    ----------
    make_event
        Returns a new event, as ``lambda: torch.cuda.Event(enable_timing=True)`` does.
    clock
        The host's, in seconds.
    name
        For `Job.report`.
    """

    def __init__(
        self,
        make_event: Callable[[], Event],
        clock: Callable[[], float] | None = None,
        name: str = "events",
    ) -> None:
        self.name = name
        self.dropped = 0
        self._make_event = make_event
        self._clock = clock or time.perf_counter
        self._free: list[Event] = []
        self._step: _StepEvents | None = None
        self._pending: deque[_StepEvents] = deque()
        self._origin: Event | None = None  # Device seconds are counted from it ...
        self._origin_seconds = 0.0  # ... where it is this.
        self._offset = 0.0  # The host's clock less the device's.
        self._steps = 0

    def step_begin(self, iteration: int) -> None:
        """An iteration begins."""
        if self._steps % _REANCHOR_STEPS == 0:
            self._anchor()
        self._steps += 1
        base = self._event()
        now = self._clock()
        base.record()
        self._step = _StepEvents(iteration, now, base)

    def begin(self) -> None:
        """A computation begins."""
        step = self._step
        if step is not None:
            event = self._event()
            step.host_records.append(self._clock())
            event.record()
            step.begins.append(event)

    def end(self) -> None:
        """It ended."""
        step = self._step
        if step is not None:
            event = self._event()
            event.record()
            step.ends.append(event)

    def step_end(self) -> None:
        """The iteration ended."""
        step, self._step = self._step, None
        if step is None:
            return
        if not step.begins or len(step.begins) != len(step.ends):
            self.dropped += 1
            return
        self._pending.append(step)
        if len(self._pending) > _MAX_PENDING:
            self._pending.popleft()
            self.dropped += 1

    def step_abandon(self) -> None:
        """The iteration broke off: forget it."""
        self._step = None  # Its events may still be queued: they are not used again.

    def take(self) -> list[StepTimes]:
        """Return the times of earlier iterations that have become known."""
        done: list[StepTimes] = []
        # Not of the iteration that has just ended: the device may be behind.
        while len(self._pending) > 1 and self._pending[0].ends[-1].query():
            done.append(self._resolve(self._pending.popleft()))
        return done

    def _event(self) -> Event:
        return self._free.pop() if self._free else self._make_event()

    def _anchor(self) -> None:
        """Wait until the device is here: its clock and the host's are then known."""
        self.dropped += len(self._pending)
        self._pending.clear()
        origin = self._event()
        origin.record()
        origin.synchronize()
        self._offset = self._clock()
        self._origin, self._origin_seconds = origin, 0.0

    def _resolve(self, step: _StepEvents) -> StepTimes:
        now = self._clock()
        assert self._origin is not None
        # From base to base: an event's milliseconds are a float of 24 bits.
        base = self._origin_seconds + self._origin.elapsed_time(step.base) / 1e3
        begins = [base + step.base.elapsed_time(event) / 1e3 for event in step.begins]
        ends = [base + step.base.elapsed_time(event) / 1e3 for event in step.ends]
        earliest = max(host - begin for host, begin in zip(step.host_records, begins))
        self._offset = max(self._offset, step.host_begin - base, earliest)
        self._offset = min(self._offset, now - ends[-1])
        self._free.append(self._origin)
        self._free += step.begins
        self._free += step.ends
        self._origin, self._origin_seconds = step.base, base
        shift = self._offset - step.host_begin
        return (
            step.iteration,
            [begin + shift for begin in begins],
            [end + shift for end in ends],
        )


def is_recording_graph() -> bool:
    """Return whether PyTorch records a CUDA graph on this thread's stream, and runs nothing."""
    torch: Any = sys.modules.get("torch")
    try:
        cuda = torch.cuda
        return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())
    except AttributeError:  # No PyTorch, or one without graphs.
        return False


def find_timeline(how: str, clock: Callable[[], float] | None) -> Timeline | None:
    """Return the timeline that "auto", "cuda" or "host" means now; None: the host's clock.

    Raises
    ------
    ValueError
        Another word.
    RuntimeError, ImportError
        "cuda", and PyTorch or a GPU is missing.
    """
    if how == "host":
        return None
    if how not in ("auto", "cuda"):
        raise ValueError(f"timeline is 'auto', 'cuda' or 'host', not {how!r}")
    torch: Any = sys.modules.get("torch")
    # A job that computes on a GPU has done so, or moved its model there, by now.
    if how == "auto" and (torch is None or not torch.cuda.is_initialized()):
        return None
    if torch is None:
        torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU of CUDA")
    cuda = torch.cuda
    return EventTimeline(lambda: cuda.Event(enable_timing=True), clock, name="cuda")
