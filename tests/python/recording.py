# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A client that writes down what hooks tell it, for the tests of hooks."""

from __future__ import annotations

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


def actions(log: list[list[Any]], event: str = "instruction_begin") -> list[str]:
    """Return the computations that were told, as PyTorch writes them."""
    return [f"{e[2]}{LETTERS[e[1]]}{e[3]}" for e in log if e[0] == event]
