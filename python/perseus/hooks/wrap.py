# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Wrappers around methods of single objects."""

from __future__ import annotations

import functools
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
        self._before: Any = None
        self._entry: _Entry | None = None  # None: it is not there.

    def put(self, on: bool) -> None:
        """Put it on, or take it off."""
        attributes = vars(self._owner)
        if self._entry is not None:
            self._entry.switch(on)
        if on and self._entry is None:
            original = getattr(self._owner, self._name)
            if not callable(original):
                raise TypeError(f"{type(self._owner).__name__} has no method {self._name}")
            self._before = attributes.get(self._name)
            self._entry = _Entry.of(self._owner, self._name, original, self._make(original))
            setattr(self._owner, self._name, self._entry)
        elif not on and self._entry is not None and attributes.get(self._name) is self._entry:
            self._entry = None
            if self._before is None:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._before)
        # Else another has wrapped ours since: it stays below that, and only passes on while off.


class _Entry(functools.partial):  # type: ignore[type-arg]
    """What stands in the place of a method: it has the method's name, signature and docstring.

    A `partial` without arguments, as calling one costs no frame of Python.
    """

    _owner: Any
    _name: str
    _functions: tuple[Callable[..., Any], Callable[..., Any]]

    @classmethod
    def of(
        cls,
        owner: Any,
        name: str,
        original: Callable[..., Any],
        wrapped: Callable[..., Any],
    ) -> _Entry:
        """Return one that is on."""
        entry = cls(wrapped)
        functools.update_wrapper(entry, original, updated=())
        entry._owner, entry._name, entry._functions = owner, name, (original, wrapped)
        return entry

    def switch(self, on: bool) -> None:
        """Call the wrapper, or the method itself."""
        entry: Any = self
        entry.__setstate__((self._functions[on], (), {}, vars(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Be the method itself in a copy of the owner: a copy has no Perseus attached."""
        return getattr, (self._owner, self._name)
