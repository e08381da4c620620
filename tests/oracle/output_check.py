# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Reads every output of one plan as a user would: all say the same of it, and least is least."""

from __future__ import annotations

import json
import math
import re
import tempfile
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binary import perseus

if TYPE_CHECKING:
    from .random_jobs import RandomJob

# A row of the table: "> T_economic, T*   5.1234  +1.00 %  1,234.5  12.34 %  567.8  0.012 %".
_NUMBER = r"[-+]?[\d,]+(?:\.\d+)?"
_ROW = re.compile(
    rf"^(?P<mark>[> ]) (?P<label>.*?)  +(?P<time>{_NUMBER})  +(?P<slower>{_NUMBER}) %"
    rf"  +(?P<energy>{_NUMBER})  +(?P<saving>{_NUMBER}) %  +(?P<power>{_NUMBER})"
    rf"  +(?P<gap>{_NUMBER}) %$"
)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _shown_gap(percent: float) -> float:
    """Return a gap as it is printed: rounded up, three decimals."""
    return max(0.0, math.ceil(1000 * percent - 1e-6) / 1000)


def _gap(row: dict[str, Any]) -> float:
    """Return the gap to the highest bound that is proven."""
    return float(row.get("discrete_bound", row)["gap_percent"])


def _page_text(page: str) -> str:
    """Return what a browser shows of a report, as one line."""
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def _differences(what: str, have: dict[str, Any], want: dict[str, Any]) -> list[str]:
    keys = (
        *("requested_time_s", "iteration_time_s", "energy_j", "average_power_w", "gap_percent"),
        *("lower_bound_j", "saving_percent", "knob_changes", "distinct_knobs", "notes"),
    )
    return [
        f"{what} says {key} {have[key]!r}, --json {want[key]!r}"
        for key in keys
        if have[key] != want[key]
    ]


def _table_errors(text: str, printed: dict[str, Any]) -> list[str]:
    """Compare the table of the terminal with the points of --json."""
    errors = []
    milli_time = "time ms" in text
    milli_energy = "energy mJ" in text
    rows = [match for match in map(_ROW.match, text.splitlines()) if match]
    chosen = [row for row in rows if row["mark"] == ">"]
    if len(chosen) != 1:
        return [f"{len(chosen)} rows of the table are marked"]
    points = [point for point in printed["points"] if point["feasible"] and not point["chosen"]]
    for row in rows:
        time = _number(row["time"]) / (1000 if milli_time else 1)
        energy = _number(row["energy"]) / (1000 if milli_energy else 1)
        wanted = printed if row["mark"] == ">" else None
        if wanted is None:
            near = 0.6e-4 / (1000 if milli_time else 1)
            wanted = next(
                (
                    point
                    for point in points
                    if abs(point["iteration_time_s"] - time) <= near
                    and abs(point["saving_percent"] - _number(row["saving"])) <= 0.006
                ),
                None,
            )
        if wanted is None:
            errors.append(f"no point of --json is the row {row['label']!r}")
            continue
        if abs(energy - wanted["energy_j"]) > 0.06 / (1000 if milli_energy else 1):
            errors.append(f"row {row['label']!r}: {energy} J, not {wanted['energy_j']}")
        if abs(_number(row["gap"]) - _shown_gap(_gap(wanted))) > 1e-9:
            errors.append(f"row {row['label']!r}: gap {row['gap']}, not {_gap(wanted)}")
    return errors


def _report_errors(page: str, text: str, printed: dict[str, Any]) -> list[str]:
    """Compare report.html with --json and the terminal."""
    errors = []
    shown = _page_text(page)
    gap = f"{_shown_gap(_gap(printed)):.3f}"
    card = re.search(r"Certificate \u2264 ([\d.]+) %", shown)
    if card is None or card[1] != gap:
        errors.append(f"the card's gap is {card and card[1]}, not {gap}")
    if f"at most {gap} % more" not in shown:
        errors.append(f"the report's text has no gap of {gap} %")
    changes = re.search(r"(\d[\d,]*) changes? an iteration", re.sub(r"\s+", " ", text))
    on_page = re.search(r"Clock changes (\d+) changes? an iteration", shown)
    if changes is None or on_page is None or _number(changes[1]) != _number(on_page[1]):
        errors.append(f"changes: {changes and changes[0]} and {on_page and on_page[0]}")
    for note in printed["notes"]:
        if note["text"] not in shown:
            errors.append(f"the report has no note {note['text']!r}")
    if page.count('role="note"') < len(printed["notes"]):
        errors.append("the report's banner lacks notes")
    return errors


def check_outputs(random_job: RandomJob, effort: float) -> list[str]:
    """Plan a job and say where two outputs differ, or the least is not least.

    Parameters
    ----------
    random_job
        The job.
    effort
        Of the search.
    """
    arguments = ["plan", *random_job.arguments, *random_job.constraints]
    arguments += ["--at", random_job.at, "--effort", repr(effort)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        try:
            printed = json.loads(perseus([*arguments, "--json", "-o", folder]))
        except RuntimeError:
            return []  # No plan within the constraints: job_check.py judges that.
        text = perseus(arguments)
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        page = (folder / "report.html").read_text(encoding="utf-8")
        explained = json.loads(perseus(["explain", folder / "plan.json", "--json"]))
        explained_text = perseus(["explain", folder / "plan.json"])
    errors = _differences("plan.json", plan, printed)
    errors += _table_errors(text, printed)
    errors += _report_errors(page, text, printed)
    if (explained["saving_percent"], explained["notes"]) != (
        printed["saving_percent"],
        printed["notes"],
    ):
        errors.append("explain says another saving, or other notes")
    for note in printed["notes"]:
        for where, output in (("plan", text), ("explain", explained_text)):
            flat = re.sub(r"\s+", " ", output)
            if note["text"] not in flat:
                errors.append(f"{where} does not print the note {note['text']!r}")
    outputs = {"plan": text, "explain": explained_text, "report": _page_text(page)}
    for where, output in outputs.items():
        zero = re.search(r"[-\u2212]0(?:\.0+)?\s?%", output)
        if zero:
            errors.append(f"{where} prints {zero[0]!r}")
    points = {point["name"]: point for point in printed["points"] if point["feasible"]}
    economic = points.get("t_economic")
    if economic:
        least = min(point["energy_j"] for point in points.values())
        if economic["energy_j"] > least:
            errors.append(f"T_economic uses {economic['energy_j']!r} J, another row {least!r} J")
    if random_job.at == "economic" and economic and printed["energy_j"] != economic["energy_j"]:
        errors.append("the economic plan is not that of T_economic")
    marked = [point for point in points.values() if point["chosen"]]
    if not marked or any(point["energy_j"] != printed["energy_j"] for point in marked):
        errors.append("the chosen rows are not the plan")
    return errors
