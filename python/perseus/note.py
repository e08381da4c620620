# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the checks of a profile and a job have found."""

from __future__ import annotations

import ctypes
import warnings
from typing import TYPE_CHECKING, NamedTuple

from perseus import planner_library as abi

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEVERITIES = ("odd", "implausible")


class ImplausibleWarning(UserWarning):
    """No GPU and no job is like that: a wrong unit, most likely."""


class Note(NamedTuple):
    """What is odd or implausible in a profile or a job.

    Attributes
    ----------
    severity
        "odd" (perhaps not what was meant) or "implausible" (a wrong unit, most likely).
    text
        One sentence, without a full stop.
    source
        The file that it is about; "" where there is none.
    line, column
        In that file; None: the file as a whole.
    """

    severity: str
    text: str
    source: str
    line: int | None
    column: int | None

    def __str__(self) -> str:
        """Say it with its place."""
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return f"{place}: {self.text}" if place else self.text


def notes_of(kind: str, handle: ctypes.c_void_p) -> list[Note]:
    """Return the notes of a handle of the library, "planner" or "plan"."""
    library = abi.load()
    found = []
    for index in range(getattr(library, f"perseus_{kind}_note_count")(handle)):
        struct = abi.sized(abi.NoteStruct)
        get = getattr(library, f"perseus_{kind}_get_note")
        abi.check(get(handle, index, ctypes.byref(struct), None))
        found.append(
            Note(
                _SEVERITIES[struct.severity],
                struct.text.decode("utf-8", "replace"),
                struct.source.decode("utf-8", "replace"),
                struct.line or None,
                struct.column or None,
            )
        )
    return found


def are_believable(notes: Sequence[Note]) -> bool:
    """Return whether figures of what these notes are about may be shown as a result."""
    return all(note.severity == "odd" for note in notes)


def warn_of(notes: Sequence[Note], stacklevel: int) -> None:
    """Warn of what is implausible, at the line of whoever called."""
    for note in notes:
        if note.severity != "odd":
            warnings.warn(str(note), ImplausibleWarning, stacklevel=stacklevel + 1)
