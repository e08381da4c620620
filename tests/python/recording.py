# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A client that writes down what hooks tell it, for the tests of hooks."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import perseus
from perseus import extension

LETTERS = {"forward": "F", "backward": "B", "backward_input": "I", "backward_weight": "W"}
NAMES = {kind.value: kind.name.lower() for kind in perseus.Instruction}


class Recorder:
    """A client that writes down what it is told."""

    state = perseus.State.FOLLOWING
    plan_version = 1
    listens = True
    job_id = ""
    last_error = ""
    compiled: Any = None
    addresses: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.log: list[list[Any]] = []

    @property
    def problems(self) -> object:
        """Another value where `last_error` is another."""
        return self.last_error

    def words(self, kind: Any, *computation: Any) -> tuple[Any, ...]:
        """Return a computation as `begin` and `end` take it."""
        return NAMES.get(kind, kind), *computation

    def begin(self, *words: Any) -> None:
        """A computation begins."""
        self.instruction_begin(*words)

    def end(self, *words: Any) -> None:
        """It ended."""
        self.instruction_end(*words)

    def stats(self) -> None:
        """None: closed."""

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> None:
            self.log.append([name, *arguments])

        return call


class CompiledRecorder(Recorder):
    """A client that writes down what the compiled wrappers tell it; they call it as C.

    Parameters
    ----------
    compiled
        `perseus._told`.
    """

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        tell = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int] * 3)

        def told_as(name: str) -> Any:
            return tell(lambda client, kind, *where: getattr(self, name)(NAMES[kind], *where))

        self.compiled = compiled
        self._functions = [told_as(name) for name in ("instruction_begin", "instruction_end")]
        places = [ctypes.cast(each, ctypes.c_void_p).value or 0 for each in self._functions]
        self.addresses = (0, *places)


def compiled() -> Any:
    """Return `perseus._told` of the library under test; None: it was not built."""
    return extension.load(os.environ.get("PERSEUS_CLIENT_LIBRARY", ""))


def recorder() -> Recorder:
    """Return a client that writes down what it is told, by compiled wrappers where there are."""
    module = compiled()
    return Recorder() if module is None else CompiledRecorder(module)


def recorded() -> tuple[perseus.Job, list[list[Any]]]:
    """Return a job and what its client is told."""
    client: Any = recorder()
    return perseus.Job(client=client, timeline="host"), client.log


def said_by(job: perseus.Job) -> None:
    """Wait until what a job complains of is said, which is done beside training."""
    assert job._speaker is not None
    job._speaker.close()


def actions(log: list[list[Any]], event: str = "instruction_begin") -> list[str]:
    """Return the computations that were told, as PyTorch writes them."""
    return [f"{e[2]}{LETTERS[e[1]]}{e[3]}" for e in log if e[0] == event]


def steps_of(log: list[list[Any]], mark: int = 0) -> list[str]:
    """Return how steps began and ended, from a place in the log on."""
    return [e[0] for e in log[mark:] if e[0].startswith("step")]


def told(log: list[list[Any]]) -> dict[str, list[str]]:
    """Return what a client was told of computations and steps."""
    ends = actions(log, "instruction_end")
    return {"begins": actions(log), "ends": ends, "steps": steps_of(log)}


class Store:
    """As `torch.distributed.Store`."""

    def __init__(self, broken: bool = False) -> None:
        self.values: dict[str, Any] = {}
        self.lock = threading.Lock()
        self.broken = broken

    def add(self, key: str, more: int) -> int:
        """Add to a count."""
        if self.broken:
            raise ConnectionError
        with self.lock:
            self.values[key] = self.values.get(key, 0) + more
            return int(self.values[key])

    def compare_set(self, key: str, expected: str, value: str) -> bytes:
        """Set a value that is not there yet, and return what is there then."""
        if self.broken:
            raise ConnectionError
        with self.lock:
            return bytes(self.values.setdefault(key, value.encode()))

    def set(self, key: str, value: str) -> None:
        """Set a value."""
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        """Return a value."""
        return bytes(self.values[key])

    def check(self, keys: list[str]) -> bool:
        """Return whether they have values."""
        return all(key in self.values for key in keys)
