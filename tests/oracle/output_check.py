# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Reads every output of one plan as a user would: all say the same of it, and least is least."""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binary import RefusedError, perseus
from .output_doors import (
    NUMBER,
    are_believable,
    decimals,
    emulation_errors,
    frontier_errors,
    negative_zeros,
    number,
    page_text,
    python_errors,
)

if TYPE_CHECKING:
    from .random_jobs import RandomJob

# A row of the table: "> min energy, T*   5.1234  +1.00 %  1,234.5  12.34 %  567.8  0.012 %".
_ROW = re.compile(
    rf"^(?P<mark>[> ]) (?P<label>.*?)  +(?P<time>{NUMBER})  +(?P<slower>{NUMBER}) %"
    rf"  +(?P<energy>{NUMBER})  +(?P<saving>{NUMBER}) %  +(?P<power>{NUMBER})"
    rf"  +(?P<gap>{NUMBER}) %$"
)


def _shown_gap(percent: float) -> float:
    """Return a gap as it is printed: rounded up, three decimals."""
    return max(0.0, math.ceil(1000 * percent - 1e-6) / 1000)


def _gap(row: dict[str, Any]) -> float:
    """Return the gap to the highest bound that is proven."""
    return float(row.get("discrete_bound", row)["gap_percent"])


# Figures that plan.json and --json call by one name; the first ones Python has, too.
_FIGURES = [
    *("requested_time_s", "iteration_time_s", "energy_j", "average_power_w", "gap_percent"),
    *("lower_bound_j", "saving_percent", "knob_changes", "distinct_knobs"),
]


def _differences(what: str, have: dict[str, Any], want: dict[str, Any]) -> list[str]:
    keys = [*_FIGURES, "notes", "conditions", "expected"]
    return [
        f"{what} says {key} {have.get(key)!r}, --json {want.get(key)!r}"
        for key in keys
        if have.get(key) != want.get(key)
    ]


def _expected_errors(text: str, page: str, printed: dict[str, Any]) -> list[str]:
    """Compare what the plan comes to under its conditions, in words and in --json."""
    expected = printed.get("expected")
    if expected is None or not are_believable(printed):
        return []
    errors = []
    said = re.search(rf"Emulated saving ({NUMBER}) %, slowdown ({NUMBER}) %", text)
    wanted = (expected["saving_percent"], expected["slowdown_percent"])
    for k, value in enumerate(wanted, start=1):
        if said is None or abs(number(said[k]) - value) > decimals(said[k]):
            errors.append(f"plan says {said and said[0]!r}, not {value!r}")
    shown = f"{abs(expected['saving_percent']):.2f} %"
    if shown not in page:
        errors.append(f"the report does not show the expected saving, {shown}")
    if sum(point["name"] == "without_conditions" for point in printed["points"]) > 1:
        errors.append("two plans hold")
    return errors


def _table_errors(text: str, printed: dict[str, Any]) -> list[str]:
    """Compare the table of the terminal with the points of --json."""
    errors = []
    milli_time = "time ms" in text
    milli_energy = "energy mJ" in text
    rows = [match for match in map(_ROW.match, text.splitlines()) if match]
    chosen = [row for row in rows if row["mark"] == ">"]
    if not are_believable(printed):
        return [f"the terminal shows {len(rows)} rows that cannot be believed"] if rows else []
    if len(chosen) != 1:
        return [f"{len(chosen)} rows of the table are marked"]
    points = [point for point in printed["points"] if point["feasible"] and not point["chosen"]]
    for row in rows:
        time = number(row["time"]) / (1000 if milli_time else 1)
        energy = number(row["energy"]) / (1000 if milli_energy else 1)
        wanted = printed if row["mark"] == ">" else None
        if wanted is None:
            near = 0.6e-4 / (1000 if milli_time else 1)
            # Two rows may be of nearly one time.
            wanted = min(
                (
                    point
                    for point in points
                    if abs(point["iteration_time_s"] - time) <= near
                    and abs(point["saving_percent"] - number(row["saving"])) <= 0.006
                ),
                key=lambda point: abs(_shown_gap(_gap(point)) - number(row["gap"])),
                default=None,
            )
        if wanted is None:
            errors.append(f"no point of --json is the row {row['label']!r}")
            continue
        if abs(energy - wanted["energy_j"]) > 0.06 / (1000 if milli_energy else 1):
            errors.append(f"row {row['label']!r}: {energy} J, not {wanted['energy_j']}")
        if abs(number(row["gap"]) - _shown_gap(_gap(wanted))) > 1e-9:
            errors.append(f"row {row['label']!r}: gap {row['gap']}, not {_gap(wanted)}")
    return errors


def _report_errors(page: str, text: str, printed: dict[str, Any]) -> list[str]:
    """Compare report.html with --json and the terminal."""
    errors = []
    shown = page_text(page)
    gap = f"{_shown_gap(_gap(printed)):.3f}"
    if not are_believable(printed):
        if 'class="figures"' in page:
            errors.append("the report has a card that cannot be believed")
    elif "conditions" not in printed:  # Then the card is of the bound under them.
        card = re.search(r"Optimality gap \u2264 ([\d.]+) %", shown)
        if card is None or card[1] != gap:
            errors.append(f"the card's gap is {card and card[1]}, not {gap}")
        if f"at most {gap} % more" not in shown:
            errors.append(f"the report's text has no gap of {gap} %")
    changes = re.search(r"(\d[\d,]*) changes? an iteration", re.sub(r"\s+", " ", text))
    on_page = re.search(r"Clock changes (\d+) changes? an iteration", shown)
    if are_believable(printed) and (
        changes is None or on_page is None or number(changes[1]) != number(on_page[1])
    ):
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
    flags = [*random_job.constraints, *random_job.conditions]
    flags += ["--at", random_job.at, "--effort", repr(effort)]
    arguments = ["plan", *random_job.arguments, *flags]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        try:
            printed = json.loads(perseus([*arguments, "--json", "-o", folder]))
        except RefusedError:
            return []  # No plan within the constraints: job_check.py judges that.
        text = perseus(arguments)
        plan_json = (folder / "plan.json").read_text(encoding="utf-8")
        page = (folder / "report.html").read_text(encoding="utf-8")
        explained = json.loads(perseus(["explain", folder / "plan.json", "--json"]))
        explained_text = perseus(["explain", folder / "plan.json"])
    errors = _differences("plan.json", json.loads(plan_json), printed)
    errors += _expected_errors(re.sub(r"\s+", " ", text), page_text(page), printed)
    errors += frontier_errors(random_job, printed)
    errors += emulation_errors(random_job, flags, printed)
    errors += python_errors(random_job, flags, printed, plan_json, _FIGURES)
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
    outputs = {"plan": text, "explain": explained_text, "report": page_text(page)}
    outputs |= {"plan.json": plan_json, "plan --json": json.dumps(printed)}
    for where, output in outputs.items():
        errors += negative_zeros(where, output)
    points = {point["name"]: point for point in printed["points"] if point["feasible"]}
    min_energy = points.get("t_min_energy")
    if min_energy:  # The robust plan may end later than any of them.
        least = min(
            point["energy_j"] for name, point in points.items() if name != "without_conditions"
        )
        if min_energy["energy_j"] > least:
            errors.append(f"T_energy uses {min_energy['energy_j']!r} J, another row {least!r} J")
    if (
        random_job.at == "min-energy"
        and min_energy
        and not random_job.conditions
        and printed["energy_j"] != min_energy["energy_j"]
    ):
        errors.append("the min_energy plan is not that of T_energy")
    marked = [point for point in points.values() if point["chosen"]]
    if not marked or any(point["energy_j"] != printed["energy_j"] for point in marked):
        errors.append("the chosen rows are not the plan")
    return errors
