# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Wrappers around methods of single objects."""

from __future__ import annotations

from typing import Any, Callable


class Wrap:
    """A wrapper around a method of one object, which can be put on and taken off."""

    def __init__(
        self,
        owner: Any,
        name: str,
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._owner = owner
        self._name = name
        self._make = make
        self._active = False
        self._before: Any = None
        self._entry: Any = None  # None: it is not there.

    def put(self, on: bool) -> None:
        """Put it on, or take it off."""
        self._active = on
        attributes = vars(self._owner)
        if on and self._entry is None:
            self._before = attributes.get(self._name)
            original = getattr(self._owner, self._name)
            wrapped = self._make(original)

            def entry(*args: Any, **kwargs: Any) -> Any:
                return wrapped(*args, **kwargs) if self._active else original(*args, **kwargs)

            self._entry = entry
            setattr(self._owner, self._name, entry)
        elif not on and self._entry is not None and attributes.get(self._name) is self._entry:
            self._entry = None
            if self._before is None:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._before)
        # Else another has wrapped ours since: it stays below that, and only passes on while off.
