# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles and schedules as the planner reads them, from what a Python program has."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from typing import Any

from perseus.planner_error import PlannerError


def _plain(value: object) -> object:
    """Return a cell of a table in Python's own types: NumPy's scalars have `item`."""
    item = getattr(value, "item", None)
    if callable(item):
        value = item()
    return "" if value is None else value


def _column(name: object, values: object) -> list[object]:
    """Return a column as a list: a pandas, polars or NumPy one, or any iterable."""
    for method in ("tolist", "to_list"):
        convert = getattr(values, method, None)
        if callable(convert):
            values = convert()
            break
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise PlannerError(f"column {name!r} of the profile is no list of values")
    return [_plain(value) for value in values]


def profile_csv(table: object) -> str:
    """Return the CSV of a table: a DataFrame, or a mapping of columns.

    Numbers keep all their digits. Columns keep their order and names.
    """
    names = list(table) if isinstance(table, Mapping) else list(getattr(table, "columns", ()))
    if not names:
        raise PlannerError(
            "the profile must be a path, the text of a CSV, a DataFrame, or a dict of columns "
            f"(stage, instruction, frequency, time, energy), not {type(table).__name__}"
        )
    source: Any = table
    columns = [_column(name, source[name]) for name in names]
    lengths = {str(name): len(values) for name, values in zip(names, columns)}
    if len(set(lengths.values())) > 1:
        raise PlannerError(f"the columns of the profile differ in length: {lengths}")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*columns))
    return out.getvalue()


def schedule_csv(schedule: object) -> str | None:
    """Return PyTorch's CSV of a schedule: its own text, or an object of torch's.

    None where it is neither, but the name of a schedule or a file.
    """
    if isinstance(schedule, str):
        return schedule if "\n" in schedule or "," in schedule else None
    order = getattr(schedule, "pipeline_order", schedule)
    if not isinstance(order, Mapping):
        return None
    rows = [
        ",".join("" if action is None else str(action) for action in order[rank])
        for rank in sorted(order)
    ]
    return "\n".join(rows) + "\n"


def is_path(value: object) -> bool:
    """Whether a profile is the path of a file: no text with lines, no table."""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and "\n" not in value)


def path_text(value: str | os.PathLike[str]) -> str:
    """Return a path as text."""
    path = os.fspath(value)
    if not isinstance(path, str) or "\0" in path:
        raise PlannerError(f"{path!r} is no path")
    return path
