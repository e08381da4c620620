# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A client that writes down what hooks tell it, for the tests of hooks."""

from __future__ import annotations

import threading
from typing import Any

import perseus

LETTERS = {"forward": "F", "backward": "B", "backward_input": "I", "backward_weight": "W"}


class Recorder:
    """A client that writes down what it is told."""

    state = perseus.State.FOLLOWING
    plan_version = 1
    listens = True
    job_id = ""
    last_error = ""

    def __init__(self) -> None:
        self.log: list[list[Any]] = []

    @property
    def problems(self) -> object:
        """Another value where `last_error` is another."""
        return self.last_error

    def words(self, *computation: Any) -> tuple[Any, ...]:
        """Return a computation as `begin` and `end` take it."""
        return computation

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


def recorded() -> tuple[perseus.Job, list[list[Any]]]:
    """Return a job and what its client is told."""
    client: Any = Recorder()
    return perseus.Job(client=client, timeline="host"), client.log


def said_by(job: perseus.Job) -> None:
    """Wait until what a job complains of is said, which is done beside training."""
    assert job._speaker is not None
    job._speaker.close()


def actions(log: list[list[Any]], event: str = "instruction_begin") -> list[str]:
    """Return the computations that were told, as PyTorch writes them."""
    return [f"{e[2]}{LETTERS[e[1]]}{e[3]}" for e in log if e[0] == event]


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
