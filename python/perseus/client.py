# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The client of one rank."""

from __future__ import annotations

import atexit
import ctypes
import enum
import json
import math
import operator
import os
import warnings
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from perseus import extension
from perseus import library as abi
from perseus.library import Instruction
from perseus.shared_library import LibraryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from perseus.planner import Computation

_INT32 = 2**31
_MOST_WORDS = 65_536
_NOBODY = ctypes.c_void_p.from_param(None)
_INT64 = ctypes.c_int64.from_param
_INSTRUCTIONS: dict[Any, int] = {
    "forward": 0,
    "backward": 1,
    "backward_input": 2,
    "backward_weight": 3,
    "recompute": 4,
    "F": 0,
    "B": 1,
    "I": 2,
    "W": 3,
    "R": 4,
    **{int(kind): int(kind) for kind in Instruction},
}


def _nothing(*_words: object) -> int:
    return 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class State(enum.IntEnum):
    """What a client is doing now."""

    CONNECTING = 0
    PROFILING = 1
    WAITING = 2
    FOLLOWING = 3
    RELEASED = 4
    CLOSED = 5


class Level(enum.IntEnum):
    """How finely clocks follow the plan."""

    COMPUTATION = 0
    PHASE = 1
    STAGE = 2
    OFF = 3


@dataclass(frozen=True)
class Stats:
    """Counters since the client was opened; see `perseus_client_stats` in perseus/client.h.

    Attributes
    ----------
    latency
        Clock calls by how long they took: element i counts those under 2^i * 10 microseconds
        that are in no element before it.
    """

    state: State
    level: Level
    clock_mhz: int
    plan_version: int
    iterations: int
    instructions: int
    lost_events: int
    calls: int
    coalesced: int
    refused: int
    early: int
    on_time: int
    late: int
    missed: int
    order_mismatches: int
    server_errors: int
    reports_dropped: int
    call_seconds: float
    latency_seconds: float
    overhead_share: float
    last_iteration_seconds: float
    latency: tuple[int, ...]
    step_plans: int
    step_plans_late: int
    joules: float
    saving_percent: float
    saving_least_percent: float
    saving_most_percent: float


class _Step:
    """`with client.step(i):`."""

    __slots__ = ("_client", "_iteration", "tokens")

    def __init__(self, client: Client, iteration: int, tokens: int) -> None:
        self._client = client
        self._iteration = iteration
        self.tokens = tokens

    def __enter__(self) -> _Step:
        self._client.step_begin(self._iteration)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.step_end(self.tokens)


class _InstructionScope:
    """`with client.instruction("forward", stage, microbatch):`."""

    __slots__ = ("_client", "_kind", "_microbatch", "_stage")

    def __init__(self, client: Client, kind: object, stage: int, microbatch: int) -> None:
        self._client = client
        self._kind = kind
        self._stage = stage
        self._microbatch = microbatch

    def __enter__(self) -> _InstructionScope:
        self._client.instruction_begin(self._kind, self._stage, self._microbatch)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.instruction_end(self._kind, self._stage, self._microbatch)


class Client:
    """The client of one rank. Its methods never raise, and do nothing once it is closed.

    Where the library or an option is wrong the client is opened all the same, does nothing, and
    says why in `last_error` and in one warning; with ``strict=True`` the constructor raises.

    Parameters
    ----------
    server
        "http://127.0.0.1:7787", or "unix:/run/perseus-relay/server.sock"; None: no server.
    job_id, job
        The job to join, or the body of ``POST /api/v1/jobs`` as a mapping (all ranks may give the
        same: its ``client_key`` makes it one job).
    rank, dp_rank, pp_rank, tp_rank
        The position of this process.
    device
        "agent:/run/perseus/agent.sock", "nvml", "zeusd:SOCKET" or "simulated:FILE".
    gpu_uuid, gpu_index
        Which of the device's GPUs; the UUID wins. A UUID `"cuda:N"` is the N-th as CUDA counts, and
        is refused where GPUs of several models make the order unsure.
    shadow
        Everything runs, no clock is ever set.
    profile
        Sweep clocks during the first iterations where the server wants a profile.
    strict
        Wait for server and device, and raise `LibraryError` where one cannot be had.
    ahead
        False: a clock is called for when its computation begins, to compare.
    options
        Others of ``perseus_client_options`` by name: token, ca_file, node,
        min_interval_seconds, max_early_loss, max_overhead, report_interval_seconds,
        open_timeout_seconds, close_timeout_seconds, profile_iterations, profile_stride,
        min_profile_mhz, profile_coarse, profile_settling, profile_seed.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        job_id: str | None = None,
        job: Mapping[str, object] | None = None,
        rank: int = 0,
        dp_rank: int = 0,
        pp_rank: int = 0,
        tp_rank: int = 0,
        device: str | None = None,
        gpu_uuid: str | None = None,
        gpu_index: int = 0,
        shadow: bool = False,
        profile: bool = False,
        strict: bool = False,
        ahead: bool = True,
        **options: str | float,
    ) -> None:
        self._library: ctypes.CDLL | None = None
        self._handle: int | None = None
        self._failure = ""
        self._client = _NOBODY  # The handle as `begin` and `end` take it.
        self._words: dict[tuple[object, int, int], tuple[Any, ...]] = {}
        self._numbers: dict[int, Any] = {}  # Theirs: many of the same would fill the caches.
        # The module that tells C without ctypes, and where C has the client, its `begin` and `end`.
        self.compiled: Any = None
        self.addresses: tuple[int, ...] = ()
        # Of C, which does nothing once the client is closed. `begin` and `end` take `words`.
        self.begin: Callable[..., object] = _nothing
        self.end: Callable[..., object] = _nothing
        self._step_begin: Callable[..., object] = _nothing
        self._step_end: Callable[..., object] = _nothing
        self._listens: Callable[..., int] = _nothing
        self._problems: Callable[..., int] = _nothing
        self._has_device_times = False
        values: dict[str, object] = {
            "server": server,
            "job_id": job_id,
            "rank": rank,
            "dp_rank": dp_rank,
            "pp_rank": pp_rank,
            "tp_rank": tp_rank,
            "device": device,
            "gpu_uuid": gpu_uuid,
            "gpu_index": gpu_index,
            **options,
        }
        flags = abi.Flag(0)
        for wanted, flag in (
            (shadow, abi.Flag.SHADOW),
            (profile, abi.Flag.PROFILE),
            (strict, abi.Flag.STRICT),
            (not ahead, abi.Flag.NO_AHEAD),
        ):
            if wanted:
                flags |= flag
        try:
            values["job_json"] = None if job is None else json.dumps(job)
            self._open(values, flags)
        except (
            LibraryError,
            OSError,
            TypeError,
            ValueError,
            RecursionError,
            ctypes.ArgumentError,
        ) as error:
            self._failure = str(error)
            if strict:
                raise LibraryError(self._failure) from error
            self._say_failure()

    def _say_failure(self) -> None:
        warnings.warn(f"perseus: {self._failure}; training goes on without it", stacklevel=3)

    def _open(self, values: dict[str, object], flags: abi.Flag) -> None:
        library = abi.load()
        known = abi.Options()
        library.perseus_client_options_init(ctypes.byref(known), ctypes.sizeof(known))
        known.flags = int(flags)
        kinds = {name: kind for name, kind in abi.Options._fields_ if name not in _NO_OPTIONS}
        for name, value in values.items():
            if name not in kinds:
                raise TypeError(f"there is no option {name}")
            if value is not None:
                setattr(known, name, _option(name, kinds[name], value))
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        status = library.perseus_client_open(
            ctypes.byref(known), ctypes.byref(handle), ctypes.byref(message)
        )
        text = abi.take_message(library, message)
        if status != abi.OK:
            raise LibraryError(text or abi.STATUS_NAMES.get(status, f"status {status}"))
        self._handle = handle.value
        self._library = library
        self._client = ctypes.c_void_p.from_param(self._handle)
        self.begin = library.perseus_instruction_begin
        self.end = library.perseus_instruction_end
        self.compiled = extension.load(library._name)
        if self.compiled is not None:
            self.addresses = (self._handle or 0, *map(_address, (self.begin, self.end)))
            # Without an owner: it must not keep this client.
            teller = self.compiled.Teller(None, *self.addresses)
            self.begin, self.end = teller.begin, teller.end
        self._step_begin = library.perseus_step_begin
        self._step_end = library.perseus_step_end
        self._listens = library.perseus_client_listens
        self._problems = library.perseus_client_problems
        # Freed only when nobody can be in one of its methods any more: not at exit, where
        # daemon threads may still train.
        finalizer = weakref.finalize(self, library.perseus_client_close, handle.value)
        finalizer.atexit = False
        _clients.add(self)

    def step_begin(self, iteration: int) -> None:
        """Say that an iteration begins."""
        if self._library is not None:
            self._failure = ""  # Of the step before.
            try:
                self._step_begin(self._client, _INT64(iteration))
            except TypeError:
                self._failure = f"no number of an iteration: {iteration!r}"

    def step_end(self, tokens: int = 0) -> None:
        """Say that an iteration ended; `tokens` it had on this rank, 0: unknown."""
        try:
            self._step_end(self._client, _INT64(tokens))
        except TypeError:
            self._failure = f"no number of tokens: {tokens!r}"

    def step_abandon(self) -> None:
        """Say that the iteration broke off: it ends, and nothing of it is used."""
        library = self._library
        if library is not None:
            library.perseus_step_abandon(self._handle)

    def step_times(self, iteration: int, begins: Sequence[float], ends: Sequence[float]) -> None:
        """Say when the computations of an iteration that has ended ran on the device.

        Parameters
        ----------
        iteration
            That of `step_begin`.
        begins, ends
            Of its computations in the order of their begins, in seconds since the iteration began
            on the host's clock.
        """
        library = self._library
        if library is not None:
            self._has_device_times = True
            try:
                count = min(len(begins), len(ends))
                array = ctypes.c_double * count
                library.perseus_step_times(
                    self._handle, iteration, array(*begins[:count]), array(*ends[:count]), count
                )
            except (TypeError, ctypes.ArgumentError) as error:
                self._failure = f"no times of iteration {iteration!r}: {error}"

    def step_plan(self, iteration: int, computations: Iterable[Computation]) -> bool:
        """Give a plan for one iteration, made in this process: `Plan.computations` of this rank.

        It is followed from `step_begin` of that iteration on; where it comes later it is not
        used, and counted (`Stats.step_plans_late`). Iterations without one keep the last plan.

        Parameters
        ----------
        iteration
            That of `step_begin`.
        computations
            Of this rank of the pipeline, in order of execution; knobs are clocks in MHz.

        Returns
        -------
        bool
            False: rows that make no sense, or the client is closed.
        """
        library = self._library
        if library is None:
            return False
        try:
            rows = [_step_row(each) for each in computations]
            array = (abi.StepRow * len(rows))(*(abi.StepRow(*row) for row in rows))
            message = ctypes.c_void_p()
            status = library.perseus_step_plan(
                self._handle,
                iteration,
                array,
                ctypes.sizeof(abi.StepRow),
                len(rows),
                ctypes.byref(message),
            )
            text = abi.take_message(library, message)
        except (KeyError, TypeError, ValueError, ctypes.ArgumentError) as error:
            self._failure = f"no plan of iteration {iteration!r}: {error}"
            return False
        if text:
            self._failure = f"no plan of iteration {iteration!r}: {text}"
        return bool(status == abi.OK)

    def instruction_work(self, work: float) -> None:
        """Say how much work the computation that begins next is: tokens, or any unit."""
        library = self._library
        if library is not None:
            try:
                library.perseus_instruction_work(self._handle, work)
            except ctypes.ArgumentError:
                self._failure = f"no amount of work: {work!r}"

    def step_busy(self, kind: object, seconds: float) -> None:
        """Say how long the device was busy with computations of one kind in this iteration.

        Where begin and end say when computations were queued, and not when they ran; between
        `step_begin` and `step_end`.

        Parameters
        ----------
        kind
            As for `instruction_begin`.
        seconds
            As measured on the device, with its events, say.
        """
        library = self._library
        if library is not None:
            try:
                library.perseus_step_busy(self._handle, _INSTRUCTIONS[kind], seconds)
            except (KeyError, TypeError, ctypes.ArgumentError):
                self._failure = f"no busy time: {kind!r}, {seconds!r}"

    def step(self, iteration: int, tokens: int = 0) -> _Step:
        """Return a context manager around an iteration; its `tokens` may be set within."""
        return _Step(self, iteration, tokens)

    def instruction_begin(self, kind: object, stage: int = -1, microbatch: int = -1) -> None:
        """Say that a computation begins.

        Parameters
        ----------
        kind
            An `Instruction`, or its name or letter: "forward" or "F", "backward" or "B",
            "backward_input" or "I", "backward_weight" or "W", "recompute" or "R".
        stage, microbatch
            Counted from 0; -1: unknown, matched by order.
        """
        self.begin(*self.words(kind, stage, microbatch))

    def instruction_end(self, kind: object, stage: int = -1, microbatch: int = -1) -> None:
        """Say that a computation ended."""
        self.end(*self.words(kind, stage, microbatch))

    def words(self, kind: object, stage: int = -1, microbatch: int = -1) -> tuple[Any, ...]:
        """Return a computation as `begin` and `end` take it, ready for C; kept, as both are hot."""
        try:
            return self._words[kind, stage, microbatch]
        except (KeyError, TypeError):
            return self._new_words(kind, stage, microbatch)

    def _word(self, number: int) -> Any:
        if self.compiled is not None:
            return ctypes.c_int32(number).value
        word = self._numbers.get(number)
        if word is None:
            word = self._numbers[number] = ctypes.c_int32.from_param(number)
        return word

    def _new_words(self, kind: object, stage: int, microbatch: int) -> tuple[Any, ...]:
        try:
            numbers = _INSTRUCTIONS[kind], stage, microbatch
            words = tuple(self._word(number) for number in numbers)
        except (KeyError, TypeError, ctypes.ArgumentError):
            self._failure = f"no instruction: {kind!r}, {stage!r}, {microbatch!r}"
            return () if self.compiled is not None else (_NOBODY, 0, 0, 0)
        if self.compiled is None:
            words = self._client, *words
        if len(self._words) >= _MOST_WORDS:  # Microbatches that are counted on for ever.
            self._words.clear()
            self._numbers.clear()
        self._words[kind, stage, microbatch] = words
        return words

    def instruction(self, kind: object, stage: int = -1, microbatch: int = -1) -> _InstructionScope:
        """Return a context manager around a computation."""
        return _InstructionScope(self, kind, stage, microbatch)

    def set_straggler(self, id: int, delay: float, degree: float) -> bool:
        """Tell the server of a straggler: the paper's call. Returns at once.

        Parameters
        ----------
        id
            The rank that will be slow.
        delay
            In so many seconds.
        degree
            Its iteration time over the usual one (1.2: 20 % slower); 1: it is well again.

        Returns
        -------
        bool
            False: not a number that makes sense, or the client is closed.
        """
        library = self._library
        if library is None:
            return False
        try:
            if not -1 < operator.index(id) < _INT32:
                return False
            if not (math.isfinite(delay) and math.isfinite(degree)):
                return False
            status = library.perseus_straggler_set(self._handle, id, delay, degree, None)
        except (TypeError, ctypes.ArgumentError):
            return False
        return bool(status == abi.OK)

    def clear_straggler(self, id: int) -> bool:
        """Tell the server that rank `id` is well again."""
        return self.set_straggler(id, 0, 1)

    def stats(self) -> Stats | None:
        """Return the counters; None: closed."""
        library = self._library
        if library is None:
            return None
        raw = abi.StatsStruct()
        raw.struct_size = ctypes.sizeof(raw)
        if library.perseus_client_get_stats(self._handle, ctypes.byref(raw), None) != abi.OK:
            return None
        fields = {
            name: getattr(raw, name)
            for name, _ in abi.StatsStruct._fields_[3:]
            if name != "latency"
        }
        return Stats(
            state=State(raw.state), level=Level(raw.level), latency=tuple(raw.latency), **fields
        )

    @property
    def state(self) -> State:
        """What the client is doing now."""
        library = self._library
        if library is None:
            return State.CLOSED
        return State(library.perseus_client_get_state(self._handle))

    @property
    def plan_version(self) -> int:
        """The version of the plan that is followed; -1: none."""
        library = self._library
        if library is None:
            return -1
        return int(library.perseus_client_plan_version(self._handle))

    @property
    def listens(self) -> bool:
        """Whether computations are of use: False while there is no plan and no sweep.

        Then only a step's begin and end need to be said; where this changed in between, abandon
        the step.
        """
        return self._listens(self._client) != 0

    @property
    def problems(self) -> object:
        """Another value than before where `last_error` may be another. Asking waits for nobody."""
        return self._problems(self._client), self._failure

    def _text(self, function: str) -> str:
        library = self._library
        if library is None:
            return ""
        buffer = ctypes.create_string_buffer(2048)
        getattr(library, function)(self._handle, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    @property
    def job_id(self) -> str:
        """The id of the job, once the server gave one."""
        return self._text("perseus_client_job_id")

    @property
    def last_error(self) -> str:
        """The newest thing that went wrong, one sentence; empty: nothing did."""
        return self._text("perseus_client_last_error") or self._failure

    def close(self) -> None:
        """Give the clock back and send what is to be reported. May be called again."""
        library, self._library = self._library, None
        if library is not None:
            library.perseus_client_stop(self._handle)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_NO_OPTIONS = {"struct_size", "flags"}
_BITS = {ctypes.c_int32: 31, ctypes.c_int64: 63}


def _option(name: str, kind: Any, value: Any) -> Any:
    """Return an option as C takes it: a pointer or a number that it is not would be the end."""
    expected = "text"
    try:
        if kind is ctypes.c_char_p:
            return value if isinstance(value, bytes) else os.fsencode(value)
        if kind is ctypes.c_double:
            expected = "a number"
            if isinstance(value, (str, bytes)):
                raise TypeError
            return float(value)
        bits = _BITS[kind]
        expected = f"a whole number below 2^{bits}"
        number = operator.index(value)
        if not -(2**bits) <= number < 2**bits:
            raise OverflowError
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} is {value!r}; expected {expected}") from None
    return number


def _step_row(computation: Computation) -> tuple[float, ...]:
    fused = (-1, -1, -1)
    if computation.fused is not None:
        kind, stage, microbatch = computation.fused
        fused = (int(_INSTRUCTIONS[kind]), stage, microbatch)
    return (
        int(_INSTRUCTIONS[computation.instruction]),
        computation.stage,
        computation.microbatch,
        *fused,
        round(float(computation.knob)),
        0,
        computation.start_seconds,
        computation.duration_seconds,
    )


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def is_measured_by_calls() -> bool:
    """Return whether a client of this process measures a profile by the times of its calls."""
    return any(
        not client._has_device_times and client.state == State.PROFILING
        for client in list(_clients)
    )


@atexit.register
def _close_all() -> None:
    """Give the clocks back at once when the interpreter ends."""
    for client in list(_clients):
        client.close()
