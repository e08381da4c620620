# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
r"""Simulated GPUs: to try a trainer with Perseus on any machine.

    python -m perseus.simulate create /tmp/gpus --gpus 4
    perseus agent run --driver simulated:/tmp/gpus --socket /tmp/agent.sock \
        --journal /tmp/agent.journal

They live in a file that every process maps: clients, agents and `perseus doctor` name it as
``simulated:/tmp/gpus``, and a trainer runs computations on them:

>>> from perseus import simulate
>>> simulate.create("/tmp/gpus", "[[gpus]]\ncount = 4\n")
>>> gpus = simulate.Gpus("/tmp/gpus")
>>> forward = simulate.Table([(1410, 0.010, 3.2), (1200, 0.011, 2.6)])
>>> gpus.run(0, forward).joules
3.2

`docs/how-to/simulated-gpus.md` describes the configuration.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perseus import library as abi
from perseus.client import is_measured_by_calls
from perseus.shared_library import LibraryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MISSING = "libperseus_client.so is older than this Python package: it has no simulated GPUs"


class SimulatedError(RuntimeError):
    """A configuration that is wrong, or a file that cannot be made or opened."""


class _Cost(ctypes.Structure):
    """`perseus_simulated_cost`."""

    _fields_ = (
        ("mhz", ctypes.c_double),
        ("seconds", ctypes.c_double),
        ("joules", ctypes.c_double),
    )


class _Kernel(ctypes.Structure):
    """`perseus_simulated_kernel`."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("gpu", ctypes.c_int32),
        ("id", ctypes.c_uint64),
        ("start_mhz", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
        ("seconds", ctypes.c_double),
        ("joules", ctypes.c_double),
        ("begin_seconds", ctypes.c_double),
        ("end_seconds", ctypes.c_double),
    )


class _Snapshot(ctypes.Structure):
    """`perseus_simulated_snapshot`."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("at_seconds", ctypes.c_double),
        ("clock_mhz", ctypes.c_int32),
        ("locked_mhz", ctypes.c_int32),
        ("joules", ctypes.c_double),
        ("watts", ctypes.c_double),
        ("set_calls", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Run:
    """A computation that has ended: seconds and joules it took, and when it ran."""

    seconds: float
    joules: float
    start_mhz: int
    begin_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class Snapshot:
    """A GPU as it is now.

    Attributes
    ----------
    clock_mhz, locked_mhz
        The clock in effect, and the last that was asked for (0: none).
    joules
        Since the file was made; exact, not as the GPU's counter shows it.
    set_calls
        Calls so far that locked a clock.
    """

    at_seconds: float
    clock_mhz: int
    locked_mhz: int
    joules: float
    watts: float
    set_calls: int


class Table:
    """What a computation takes: rows of MHz, seconds and joules, as in a profile."""

    def __init__(self, rows: Iterable[Sequence[float]]) -> None:
        self.rows = [(float(mhz), float(seconds), float(joules)) for mhz, seconds, joules in rows]
        self._array = (_Cost * len(self.rows))(*(_Cost(*row) for row in self.rows))


class Launched:
    """A computation that was begun with `Gpus.launch`."""

    __slots__ = ("_gpus", "_raw")

    def __init__(self, gpus: Gpus, raw: _Kernel) -> None:
        self._gpus = gpus
        self._raw = raw

    def wait(self) -> Run:
        """Sleep until it has ended."""
        raw = self._raw
        self._gpus._call("perseus_simulated_wait", ctypes.byref(raw))
        return Run(raw.seconds, raw.joules, raw.start_mhz, raw.begin_seconds, raw.end_seconds)


def create(path: str | os.PathLike[str], config: str = "[[gpus]]\n") -> None:
    """Make the file `path`, or replace it.

    Parameters
    ----------
    path
        Of the file.
    config
        TOML, as docs/how-to/simulated-gpus.md describes it.

    Raises
    ------
    SimulatedError
        The configuration is wrong, or the file cannot be written.
    LibraryError
        No libperseus_client.
    """
    library = _library()
    message = ctypes.c_void_p()
    status = library.perseus_simulated_create(
        os.fsencode(path), config.encode(), ctypes.byref(message)
    )
    _check(library, status, message)


class Gpus:
    """The GPUs of a file. Methods raise `SimulatedError`; any thread may call them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._library = _library()
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        status = self._library.perseus_simulated_open(
            os.fsencode(path), ctypes.byref(handle), ctypes.byref(message)
        )
        _check(self._library, status, message)
        self.path = os.fspath(path)
        self._handle = handle.value
        weakref.finalize(self, self._library.perseus_simulated_close, handle.value)

    def __len__(self) -> int:
        return int(self._library.perseus_simulated_count(self._handle))

    def now(self) -> float:
        """Return the GPUs' time in seconds."""
        return float(self._library.perseus_simulated_now(self._handle))

    def uuid(self, gpu: int) -> str:
        """Return a GPU's UUID; empty: no such GPU."""
        text = ctypes.create_string_buffer(128)
        self._library.perseus_simulated_uuid(self._handle, gpu, text, len(text))
        return text.value.decode()

    def read(self, gpu: int) -> Snapshot:
        """Return a GPU as it is now."""
        raw = _Snapshot(struct_size=ctypes.sizeof(_Snapshot))
        self._call("perseus_simulated_read", gpu, ctypes.byref(raw))
        return Snapshot(*(getattr(raw, field[0]) for field in _Snapshot._fields_[2:]))

    def launch(self, gpu: int, table: Table, ready_seconds: float = 0) -> Launched:
        """Begin a computation, as on a stream: when the one before it on this GPU has ended.

        Parameters
        ----------
        gpu
            Its index.
        table
            What it takes.
        ready_seconds
            When, on `now`'s time, all that it waits for was there: it begins then, however late
            this process woke up. 0: now. While a client of this process measures a profile and has
            no device times (`perseus.Client.step_times`), it begins now: else it would seem shorter
            than it is.
        """
        if ready_seconds and is_measured_by_calls():
            ready_seconds = 0
        raw = _Kernel(struct_size=ctypes.sizeof(_Kernel))
        self._call(
            "perseus_simulated_launch",
            gpu,
            table._array,
            ctypes.sizeof(_Cost),
            len(table.rows),
            ready_seconds,
            ctypes.byref(raw),
        )
        return Launched(self, raw)

    def run(self, gpu: int, table: Table, ready_seconds: float = 0) -> Run:
        """Run a computation to its end; as `launch`."""
        return self.launch(gpu, table, ready_seconds).wait()

    def set_slowdown(self, gpu: int, times: float) -> None:
        """Make computations take so many times as long; 1: as in their table."""
        self._call("perseus_simulated_set_slowdown", gpu, times)

    def set_refuse(self, gpu: int, refuse: bool) -> None:
        """Let calls that set a clock lack the right, or have it again."""
        self._call("perseus_simulated_set_refuse", gpu, int(refuse))

    def _call(self, function: str, *arguments: object) -> None:
        message = ctypes.c_void_p()
        call = getattr(self._library, function)
        status = call(self._handle, *arguments, ctypes.byref(message))
        _check(self._library, status, message)


def _check(library: ctypes.CDLL, status: int, message: ctypes.c_void_p) -> None:
    text = abi.take_message(library, message)
    if status != abi.OK:
        raise SimulatedError(text or abi.STATUS_NAMES.get(status, f"status {status}"))


def _library() -> ctypes.CDLL:
    library = abi.load()
    if not hasattr(library, "perseus_simulated_create"):
        raise LibraryError(_MISSING)
    handle, i32, double = ctypes.c_void_p, ctypes.c_int32, ctypes.c_double
    text = (ctypes.c_char_p, ctypes.c_size_t)
    message = ctypes.POINTER(ctypes.c_void_p)
    kernel = ctypes.POINTER(_Kernel)
    costs = ctypes.POINTER(_Cost)
    status, size = ctypes.c_int, ctypes.c_size_t
    declarations: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("create", status, (ctypes.c_char_p, ctypes.c_char_p, message)),
        ("open", status, (ctypes.c_char_p, ctypes.POINTER(handle), message)),
        ("close", None, (handle,)),
        ("count", i32, (handle,)),
        ("now", double, (handle,)),
        ("uuid", ctypes.c_size_t, (handle, i32, *text)),
        ("read", status, (handle, i32, ctypes.POINTER(_Snapshot), message)),
        ("launch", status, (handle, i32, costs, size, size, double, kernel, message)),
        ("wait", status, (handle, kernel, message)),
        ("set_slowdown", status, (handle, i32, double, message)),
        ("set_refuse", status, (handle, i32, ctypes.c_int, message)),
    )
    for name, result, arguments in declarations:
        function = getattr(library, f"perseus_simulated_{name}")
        function.restype = result
        function.argtypes = arguments
    return library


def _create_command(arguments: argparse.Namespace) -> None:
    if arguments.config is not None:
        config = sys.stdin.read() if arguments.config == "-" else Path(arguments.config).read_text()
    else:
        config = f"[[gpus]]\ncount = {arguments.gpus}\n"
    create(arguments.file, config)
    print(f"{arguments.file}: {len(Gpus(arguments.file))} simulated GPUs")
    print(f"Use them with: perseus agent run --driver simulated:{arguments.file} ...")


def _show_command(arguments: argparse.Namespace) -> None:
    gpus = Gpus(arguments.file)
    for gpu in range(len(gpus)):
        now = gpus.read(gpu)
        locked = f"locked at {now.locked_mhz} MHz" if now.locked_mhz else "not locked"
        print(
            f"{gpu}  {gpus.uuid(gpu)}  {now.clock_mhz} MHz, {locked}, {now.watts:.0f} W, "
            f"{now.joules:.1f} J"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m perseus.simulate``."""
    parser = argparse.ArgumentParser(
        prog="python -m perseus.simulate",
        description="Simulated GPUs, in a file that every process shares.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("create", help="make the file, or replace it")
    make.add_argument("file")
    make.add_argument("--gpus", type=int, default=1, help="so many, all alike (default 1)")
    make.add_argument(
        "--config", help="a file of TOML instead (docs/how-to/simulated-gpus.md); -: stdin"
    )
    make.set_defaults(run=_create_command)
    show = commands.add_parser("show", help="say what each GPU does now")
    show.add_argument("file")
    show.set_defaults(run=_show_command)
    arguments = parser.parse_args(argv)
    try:
        arguments.run(arguments)
    except (SimulatedError, LibraryError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
