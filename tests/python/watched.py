# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Objects of frameworks that are not as hooks know them, and a client that breaks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from recording import Recorder

OWN_NAMES = {"own", "told", "strange"}


def _raise_lookup(_name: str) -> Any:
    raise AttributeError


def _raise_other(_name: str) -> Any:
    raise RuntimeError


# Answers that the hooks get instead of an attribute.
STRANGE: dict[str, Callable[[str], Any]] = {
    "missing": _raise_lookup,
    "raises": _raise_other,
    "none": lambda _name: None,
    "text": lambda _name: "text",
    "object": lambda _name: object(),
}


class Watched:
    """An object that tells which of its names the hooks touch, and may hide them from these."""

    def __init__(self) -> None:
        self.told: set[str] = set()
        self.strange: dict[str, Callable[[str], Any]] = {}

    def __getattribute__(self, name: str) -> Any:
        get = object.__getattribute__
        if name in OWN_NAMES or name.startswith("__"):
            return get(self, name)
        caller = sys._getframe(1).f_globals["__name__"]
        if caller.startswith("perseus."):
            get(self, "told").add(name)
            if name in get(self, "strange"):
                return get(self, "strange")[name](name)
        return get(self, name)


class Breaking(Recorder):
    """A client that breaks at its nth call."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def __getattr__(self, name: str) -> Any:
        def call(*_arguments: Any) -> None:
            self.left -= 1
            if self.left < 0:
                raise RuntimeError

        return call
