# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the planner is told, from Python's values to those of the library."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Optional, Union

from perseus import planner_library as abi
from perseus import profile_table
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Optional[Callable[[float], object]]
    # Of a job: docs/reference/files.md has the keys.
    Setting = Union[
        str, int, float, bool, Sequence[float], Mapping[str, object], "os.PathLike[str]", None
    ]


def as_bytes(text: str) -> bytes:
    """Return what C reads as the text."""
    if "\0" in text:
        raise PlannerError("a text with a zero byte in it cannot be read")
    return text.encode("utf-8", "surrogateescape")


def number(value: object, what: str) -> str:
    """Return a finite number as text that gives the same number back."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise PlannerError(f"{what} must be a number, not {value!r}")
    return repr(float(value))


def factors(work: Sequence[float]) -> list[float]:
    """Return the work of each microbatch as numbers."""
    if isinstance(work, (str, bytes, Mapping)) or not hasattr(work, "__iter__"):
        raise PlannerError(
            f"work must be a list with one number for each microbatch, not {work!r:.60}"
        )
    return [float(number(jsonable(factor), "work")) for factor in work]


def jsonable(value: object) -> object:
    """Return what JSON can hold of NumPy's values, paths and sequences."""
    item = getattr(value, "tolist", None)  # NumPy's arrays and scalars.
    if callable(item):
        return item()
    if isinstance(value, os.PathLike):
        return profile_table.path_text(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [jsonable(element) for element in value]
    return value


def settings_json(settings: Mapping[str, object]) -> bytes:
    """Return the settings that are given, as the JSON of a job file."""
    given = {key: jsonable(value) for key, value in settings.items() if value is not None}
    if not isinstance(given.get("at", ""), str):
        at = given["at"]
        raise PlannerError(
            f'at={at!r} may mean two things: write "{at}x" for a factor of the time at maximum '
            f'clocks, "{at}s" for seconds'
        )
    for key, value in given.items():
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        for part, each in parts:
            try:
                json.dumps({part: each}, allow_nan=False)
            except (TypeError, ValueError) as error:
                name = f"{key}.{part}" if part else key
                if isinstance(each, float):  # Only what is no finite number is refused.
                    message = f"'{name}' is {each}; give a number"
                else:
                    message = f"'{name}': a setting cannot be read: {error}"
                raise PlannerError(message) from None
    return json.dumps(given).encode()


def schedule_into(source: abi.Input, schedule: object, settings: dict[str, Setting]) -> None:
    """Put a schedule where it belongs: its text, its file, or its name."""
    if schedule is None:
        return
    text = profile_table.schedule_csv(schedule)
    if text is not None:
        source.schedule_csv = encoded = as_bytes(text)
        source.schedule_csv_size = abi.size_of(encoded)
    elif isinstance(schedule, os.PathLike):
        settings["schedule_file"] = profile_table.path_text(schedule)
    elif isinstance(schedule, str):
        settings["schedule_file" if schedule.endswith(".csv") else "schedule"] = schedule
    else:
        raise PlannerError(
            "the schedule must be a name, a path, the text of PyTorch's CSV, or an object with a "
            f"pipeline_order, not {type(schedule).__name__}"
        )
