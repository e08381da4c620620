# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""What the frontier, the emulation and Python say of a plan that `perseus plan` has printed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import tempfile
import warnings
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binary import REPOSITORY, Curve, perseus, perseus_binary

if TYPE_CHECKING:
    from .random_jobs import RandomJob

NUMBER = r"[-+\u2212]?[\d,]+(?:\.\d+)?"
_UNITS = {"s": 1, "ms": 1e-3, "J": 1, "mJ": 1e-3, "kJ": 1e3, "MJ": 1e6, "W": 1, "kW": 1e3}
_UNITS |= {"GJ": 1e9, "MW": 1e6}
# The row "energy, J   3,672.0  3,613.8  -1.58 %" of an emulation.
_ROW = re.compile(
    rf"^ *(?P<label>[a-z][\w ,]*?), (?P<unit>\w+)  +(?P<before>{NUMBER})  +(?P<after>{NUMBER})"
    rf"  +(?P<change>{NUMBER}) %$"
)
_SPLIT = re.compile(
    rf"^(?P<label>[a-z ]+?)  +(?P<before>{NUMBER})  +{NUMBER} %  +(?P<after>{NUMBER})  +{NUMBER} %$"
)
# The row "min energy, T*   2.4750  +65.00 %   547.8  10.49 %  221.3" of a frontier.
_POINT = re.compile(
    rf"^(?P<label>\S.*?)?  +(?P<time>{NUMBER})  +(?P<slower>{NUMBER}) %  +(?P<energy>{NUMBER})"
    rf"  +(?P<saving>{NUMBER}) %  +(?P<power>{NUMBER})$"
)


def number(text: str) -> float:
    """Return a number as tables show it."""
    return float(text.replace(",", "").replace("\u2212", "-"))


def negative_zeros(where: str, text: str) -> list[str]:
    """Say where a text shows less than nothing: -0, -0.000 %."""
    found = re.search(r"(?<![\w.,])[-\u2212]0(?:[.,]0+)?(?![\w.,]*\d)[^\n]{0,12}", text)
    return [f"{where} shows {found[0]!r}"] if found else []


def page_text(page: str) -> str:
    """Return what a browser shows of a report, as one line."""
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def are_believable(document: dict[str, Any]) -> bool:
    """Return whether the terminal and a report show figures: nothing is implausible."""
    return all(note["severity"] == "odd" for note in document["notes"])


def decimals(text: str) -> float:
    """Return half of the last digit that a table shows."""
    _, _, rest = text.partition(".")
    return 0.5 * 10.0 ** -len(rest) * (1 + 1e-9)


def _is_near(shown: str, value: float, scale: float = 1) -> bool:
    return abs(number(shown) * scale - value) <= (decimals(shown) * scale + 1e-9 * abs(value))


def frontier_errors(job: RandomJob, printed: dict[str, Any]) -> list[str]:
    """Compare `perseus frontier` with the plan: one set of figures, and no plan is below."""
    made = json.loads(perseus(["frontier", *job.arguments, "--json"]))
    text = perseus(["frontier", *job.arguments])
    table = perseus(["frontier", *job.arguments, "--csv"])
    errors = negative_zeros("frontier", text) + negative_zeros("frontier --json", json.dumps(made))
    errors += negative_zeros("frontier --csv", table)
    for key in ("t_min_s", "t_min_energy_s", "t_star_s", "certified_error"):
        if made[key] != printed["frontier"][key]:
            errors.append(f"frontier says {key} {made[key]!r}, plan {printed['frontier'][key]!r}")
    if made["baseline"] != printed["baseline"]:
        errors.append("frontier and plan have two baselines")
    # Those of conditions and target are the plan's alone.
    errors += [
        f"plan lacks the note {note['text']!r} of the frontier"
        for note in made["notes"]
        if note not in printed["notes"]
    ]
    rows = [
        (float(row["iteration_time_s"]), float(row["energy_j"]), float(row["slope_w"]))
        for row in csv.DictReader(io.StringIO(table))
    ]
    points = [(p["iteration_time_s"], p["energy_j"], p["slope_w"]) for p in made["frontier"]]
    if rows != points:
        errors.append("frontier --csv and --json are not the same")
    curve = Curve([p[0] for p in points], [p[1] for p in points], [p[2] for p in points])
    waiting = printed["blocking_power_w"]
    baseline = made["baseline"]
    slack = made["certified_error"] + 1e-9 * (abs(points[0][1]) + made["t_min_s"])
    for point in [*(p for p in printed["points"] if p["feasible"]), printed]:
        least = curve.at(max(point["iteration_time_s"], made["t_min_s"]), waiting)
        if point["energy_j"] < least - slack - 1e-9 * abs(least):
            errors.append(
                f"a plan uses {point['energy_j']!r} J, less than the frontier's {least!r}"
            )
        if point["lower_bound_j"] > point["energy_j"] + slack:
            errors.append(f"the lower bound {point['lower_bound_j']!r} is above the plan")
    time_unit, energy_unit = ("ms" if "time ms" in text else "s"), "J"
    for unit in _UNITS:
        if f"energy {unit}" in text:
            energy_unit = unit
    steepest = max(
        (abs((b[1] - a[1]) / (b[0] - a[0])) for a, b in zip(points, points[1:], strict=False)),
        default=0.0,
    )
    shown = [row for row in map(_POINT.match, text.splitlines()) if row]
    if bool(shown) != are_believable(made):
        errors.append(f"frontier prints {len(shown)} rows, with notes {made['notes']}")
    for row in shown:
        time = number(row["time"]) * _UNITS[time_unit]
        least = curve.at(min(max(time, points[0][0]), points[-1][0]))
        blur = decimals(row["energy"]) * _UNITS[energy_unit]
        blur += steepest * decimals(row["time"]) * _UNITS[time_unit]
        if abs(number(row["energy"]) * _UNITS[energy_unit] - least) > blur + slack:
            errors.append(f"frontier's row at {row['time']}: {row['energy']}, not {least!r} J")
        energy = baseline["energy_j"]
        saving = 100 * (1 - least / energy) if energy else 0.0
        blur = 100 * (blur + slack) / energy if energy else 0.0
        if abs(number(row["saving"]) - saving) > decimals(row["saving"]) + blur:
            errors.append(f"frontier's row at {row['time']}: {row['saving']} %, not {saving!r}")
    return errors


def _table_errors(text: str, made: dict[str, Any]) -> list[str]:
    """Compare the tables of `perseus emulate` with its --json."""
    errors = []
    before = made["baseline"]
    figures = {
        "energy": "energy_j",
        "all iterations": "time_s",
        "power of the job, mean": "average_w",
    }
    figures |= {"power of a GPU, mean": "gpu_average_w", "peak of a computation": "gpu_peak_w"}
    parts = {"useful": "useful_j", "intrinsic bloat": "intrinsic_bloat_j"}
    parts |= {"extrinsic bloat": "extrinsic_bloat_j", "blocking": "blocking_j"}
    seen = set()
    joules = 1.0
    for line in text.splitlines():
        head = re.match(r"where it goes, (\w+)", line)
        joules = _UNITS[head[1]] if head else joules
        row = _ROW.match(line)
        key = figures.get(row["label"]) if row else None
        scale = _UNITS[row["unit"]] if row and key else joules
        if row is None:
            row = _SPLIT.match(line)
            key = parts.get(row["label"]) if row else None
        if row is None or key is None:
            continue
        seen.add(key)
        for column, source in (("before", before), ("after", made)):
            if not _is_near(row[column], source[key], scale):
                errors.append(f"emulate's row {line!r} is not {key} {source[key]!r}")
        if "change" in row.re.groupindex and before[key] > 0:
            change = 100 * (made[key] / before[key] - 1)
            if abs(number(row["change"]) - change) > 0.00501:
                errors.append(f"emulate's row {line!r} does not change by {change!r} %")
    if seen != {*figures.values(), *parts.values()}:
        errors.append(f"emulate prints only the rows {sorted(seen)}")
    return errors


def emulation_errors(job: RandomJob, flags: list[str], printed: dict[str, Any]) -> list[str]:
    """Compare `perseus emulate` with the plan; without noise it is the plan, twice."""
    arguments = ["emulate", *job.arguments, *flags, "--iterations", "2"]
    with tempfile.TemporaryDirectory() as name:
        made = json.loads(perseus([*arguments, "--json", "-o", name]))
        outputs = {
            file.name: file.read_text(encoding="utf-8") for file in Path(name).glob("*.[jch]*")
        }
    text = perseus(arguments)
    outputs["report.html"] = page_text(outputs["report.html"])
    errors = negative_zeros("emulate", text) + negative_zeros("emulate --json", json.dumps(made))
    for where, output in outputs.items():
        errors += negative_zeros(f"emulate's {where}", output)
    errors += [
        f"emulate's report has no note {note['text']!r}"
        for note in made["notes"]
        if note["text"] not in outputs["report.html"]
    ]
    flat = re.sub(r"\s+", " ", text)
    said = re.search(
        rf"Saving ({NUMBER}) % of the energy \(.*?\) for ({NUMBER}) % of the time", flat
    )
    if are_believable(made):
        errors += _table_errors(text, made)
    elif said is not None or "max-clocks" in text:
        errors.append("emulate shows figures that cannot be believed")
    if are_believable(made) and said is None:
        errors.append("emulate says no saving")
    if said is not None and not _is_near(said[1], made["saving_percent"]):
        errors.append(f"emulate says {said and said[0]!r}, --json {made['saving_percent']!r} %")
    if said is not None and not _is_near(said[2], made["slowdown_percent"]):
        errors.append(f"emulate says {said[0]!r}, --json {made['slowdown_percent']!r} %")
    if made["notes"] != printed["notes"]:
        errors.append("emulate has other notes than plan")
    for note in made["notes"]:
        if note["text"] not in flat:
            errors.append(f"emulate does not print the note {note['text']!r}")
    if "conditions" in printed:
        return errors
    pairs = (
        ("target_s", made["target_s"], printed["requested_time_s"]),
        ("time_s", made["time_s"], 2 * printed["iteration_time_s"]),
        ("energy_j", made["energy_j"], 2 * printed["energy_j"]),
        ("saving_percent", made["saving_percent"], printed["saving_percent"]),
    )
    for key, have, want in pairs:
        if abs(have - want) > 1e-9 * max(abs(want), 1 if key == "saving_percent" else 0):
            errors.append(f"emulate says {key} {have!r}, and the plan comes to {want!r}")
    return errors


def _settings(flags: list[str]) -> dict[str, Any]:
    """Return flags of the command line as a job file's keys."""
    settings: dict[str, Any] = {}
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        key = flag.removeprefix("--").replace("-", "_")
        if key == "set":
            key, _, value = value.partition("=")
        try:
            settings[key] = json.loads(f"[{value}]" if "," in value else value)
        except json.JSONDecodeError:
            settings[key] = value
    return settings


def python_errors(
    job: RandomJob, flags: list[str], printed: dict[str, Any], plan_json: str, figures: list[str]
) -> list[str]:
    """Plan the job with the Python package, and compare every figure of its plan.

    Parameters
    ----------
    job
        The job.
    flags
        Of the plan: its target, constraints and conditions.
    printed
        What `perseus plan --json` has printed.
    plan_json
        The file that it has written.
    figures
        Keys of --json that the plan has under the same name.
    """
    library = perseus_binary().parents[1] / "training/planner_c/libperseus_planner.so"
    os.environ.setdefault("PERSEUS_PLANNER_LIBRARY", str(library))
    folder = str(REPOSITORY / "python")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import perseus as package

    path: str | Path = job.arguments[0]
    settings = _settings([*job.arguments[1:], *flags])
    settings["accept_implausible"] = True  # As perseus() of binary.py.
    conditions = {
        key: settings.pop(key)
        for key in ("noise", "switch_latency", "max_slowdown", "call_ahead")
        if key in settings
    }
    if conditions:
        settings["conditions"] = conditions
    settings["schedule"] = settings.pop("schedule_file", settings.get("schedule"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = package.plan(path, **settings)
    errors = []
    if plan.json() != plan_json:
        errors.append("Python's plan is not plan.json")
    names = {"_s": "_seconds", "_j": "_joules", "_w": "_watts"}
    for key in figures:
        name = re.sub(r"_[sjw]$", lambda unit: names[unit[0]], key)
        if getattr(plan, name) != printed[key]:
            errors.append(f"Python says {name} {getattr(plan, name)!r}, --json {printed[key]!r}")
    notes = [(note["severity"], note["text"]) for note in printed["notes"]]
    if [(note.severity, note.text) for note in plan.notes] != notes:
        errors.append("Python has other notes than --json")
    said = {str(warning.message) for warning in caught}
    for note in plan.notes:
        warned = any(warning.endswith(note.text) for warning in said)
        if (note.severity != "odd") != warned:
            errors.append(f"Python's warnings are wrong about {note}")
    expected = printed.get("expected")
    if (plan.expected is None) != (expected is None):
        errors.append("Python and --json do not agree on what is expected")
    elif plan.expected is not None and expected is not None:
        have = plan.expected._asdict()
        for key, value in have.items():
            short = re.sub(r"_(seconds|joules)$", lambda unit: "_" + unit[1][0], key)
            if value != expected[short]:
                errors.append(f"Python expects {key} {value!r}, --json {expected[short]!r}")
    return errors
