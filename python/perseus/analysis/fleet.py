# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus fleet emulate`: a site for some days, under one rule of dividing power after the other.

Nothing runs on a GPU. docs/explanation/fleet.md defines every rule and figure.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perseus import program
from perseus.analysis import fleet_days as days
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KWH, _MWH = 3.6e6, 3.6e9
_MOST_EVENTS = 10_000
# Of fleet-days.json: a figure, and what one unit of its name is.
_FIGURES = (
    ("work_lost_percent", "lost_percent", 1.0),
    ("energy_kwh", "joules", _KWH),
    ("cost", "cost", 1.0),
    ("co2_kg", "co2_grams", 1e3),
    ("over_limit_s", "over_seconds", 1.0),
    ("over_limit_most_w", "over_most_watts", 1.0),
    ("over_limit_kwh", "over_joules", _KWH),
    ("steepest_rise_w_per_s", "rise_watts_per_second", 1.0),
    ("steepest_fall_w_per_s", "fall_watts_per_second", 1.0),
    ("deadlines_missed", "deadlines_missed", 1.0),
    ("too_slow_job_hours", "too_slow_seconds", days.HOUR),
    ("fairness", "fairness", 1.0),
    ("plan_changes", "plan_changes", 1.0),
)
_UNITS = {
    "time": {"ms": 1e-3, "s": 1, "min": 60, "h": days.HOUR, "d": days.DAY},
    "power": {"W": 1, "kW": 1e3, "MW": 1e6},
}


class _Table:
    """A table of the site file, whose values are checked as they are taken."""

    def __init__(self, where: str, values: object, keys: str) -> None:
        if not isinstance(values, dict):
            raise PlannerError(f"{where}: expected a table, found {values!r}")
        self.where = where
        self._values: dict[str, Any] = values
        known = keys.split()
        for key in values:
            if key not in known:
                raise PlannerError(
                    f"{where}: unknown key '{key}'; expected one of {', '.join(known)}"
                )

    def fail(self, key: str, expected: str) -> PlannerError:
        """Return the error about a value."""
        found = self._values.get(key, "nothing")
        return PlannerError(f"{self.where}: {key}: expected {expected}, found {found!r}")

    def get(self, key: str) -> Any:
        """Return a value, None where there is none."""
        return self._values.get(key)

    def tables(self, key: str, keys: str) -> list[_Table]:
        """Return the tables of a list."""
        found = self._values.get(key, [])
        if not isinstance(found, list):
            raise self.fail(key, f"tables [[emulate.{key}]]")
        return [_Table(f"{self.where} {key} {k + 1}", each, keys) for k, each in enumerate(found)]

    def text(self, key: str) -> str | None:
        """Return a text."""
        found = self.get(key)
        if found is not None and (not isinstance(found, str) or not found):
            raise self.fail(key, "a text that is not empty")
        return found

    def number(self, key: str, least: float = 0, most: float = 1e12) -> float | None:
        """Return a number."""
        found = self.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self.fail(key, "a number")
        if not least <= found <= most:
            raise self.fail(key, f"a number from {least:g} to {most:g}")
        return float(found)

    def seconds(self, key: str, *, above_zero: bool = False) -> float | None:
        """Return a time, "18h" or a number of seconds."""
        found = self.get(key)
        if isinstance(found, str):
            found = quantity(found, "time")
            if found is None:
                raise self.fail(key, 'a time such as "18h", "30min" or "90s"')
        else:
            found = self.number(key)
        if above_zero and found is not None and not found > 0:
            raise self.fail(key, "a time above 0")
        return None if found is None else float(found)

    def share(self, key: str, most: float = 1.0, *, above_zero: bool = False) -> float | None:
        """Return a share, "95%" or 0.95."""
        found = self.get(key)
        share = found
        if isinstance(found, str):
            match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*%\s*", found)
            try:
                share = float(match.group(1)) / 100 if match else float(found)
            except ValueError:
                share = None
        if found is None:
            return None
        is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not is_number or not (0 < share <= most if above_zero else 0 <= share <= most):
            raise self.fail(key, f'a share such as "{50 * most:g}%", up to {100 * most:g} %')
        return float(share)

    def ramp(self, key: str) -> float:
        """Return watts a second, as "20kW/min"; infinite where there is no ramp."""
        found = self.get(key)
        if found is None:
            return math.inf
        power, _, time = found.rpartition("/") if isinstance(found, str) else ("", "", "")
        watts = quantity(power, "power") if time in ("s", "min") else None
        if watts is None or not 0 < watts <= 1e12:
            raise self.fail(key, 'a power in a time above 0, such as "20kW/min" or "500W/s"')
        return watts / _UNITS["time"][time]


def quantity(text: str, kind: str) -> float | None:
    """Return a number with a unit in seconds or watts; None where it is none."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]+)\s*", text)
    if not match or match.group(2) not in _UNITS[kind]:
        return None
    return float(match.group(1)) * _UNITS[kind][match.group(2)]


def read_series(path: Path, columns: Mapping[str, float], seconds: float) -> days.Series:
    """Read a CSV of two columns: time_h (hours) or time (ISO 8601), and a value a joule.

    `columns` are the names that the value may have, and the joules for which it then is. Times
    begin at 0. The series must last as long as the days.
    """
    with path.open(encoding="utf-8", newline="") as file:
        lines = ((line, row) for line, row in enumerate(csv.reader(file), 1))
        rows = [(line, row) for line, row in lines if row and not row[0].startswith("#")]
    expected = f"two columns, 'time_h' (hours) or 'time' (ISO 8601) and {' or '.join(columns)}"
    if not rows or len(rows[0][1]) != 2 or rows[0][1][0] not in ("time_h", "time"):
        raise PlannerError(f"{path}: expected {expected}")
    kind, column = rows[0][1]
    if column not in columns:
        raise PlannerError(f"{path}: expected {expected}, found '{column}'")
    if len(rows) < 2:
        raise PlannerError(f"{path}: it has no rows; give at least one time with its value")
    times, values = [], []
    for line, row in rows[1:]:
        try:
            time, value = row
            if kind == "time":
                moment = datetime.fromisoformat(time.replace("Z", "+00:00"))
                if moment.tzinfo is None:
                    moment = moment.replace(tzinfo=timezone.utc)
                times.append(moment.timestamp())
            else:
                times.append(float(time) * days.HOUR)
            values.append(float(value) / columns[column])
        except ValueError as error:
            raise PlannerError(f"{path}:{line}: expected a time and a number: {error}") from None
        if not math.isfinite(times[-1] + values[-1]) or times[-1] < 0:
            raise PlannerError(f"{path}:{line}: expected a time and a number that are finite")
        if len(times) > 1 and not times[-1] > times[-2]:
            raise PlannerError(
                f"{path}:{line}: this time is not after that of the row before; sort the rows by "
                "time and leave out doubles"
            )
    # The last value holds as long as the one before.
    end = 2 * times[-1] - times[-2] - times[0] if len(times) > 1 else math.inf
    if end < seconds:
        raise PlannerError(
            f"{path} ends after {end / days.DAY:.4g} days, and {seconds / days.DAY:.4g} are "
            "emulated; give a longer series, or fewer --days"
        )
    return days.Series(np.array(times) - times[0], np.array(values))


def make_site(curves: Mapping[str, Any], folder: Path, seconds: float) -> tuple[days.Site, str]:
    """Return the site of `perseus fleet curves`, and the currency of its prices.

    Raises
    ------
    PlannerError
        The table [emulate] is wrong.
    """
    table = _Table(
        f"{curves['site']}: [emulate]",
        curves["emulate"] or {},
        "price carbon currency ramp_up ramp_down work noise straggler_rate straggler_duration "
        "straggler_slowdown event job",
    )
    parents = [node["parent"] for node in curves["limits"]]
    slowdown = table.get("straggler_slowdown")
    if isinstance(slowdown, str):
        slowdown = slowdown.strip().removesuffix("x")
    try:
        slowdown = 1.2 if slowdown is None else float(slowdown)
    except (TypeError, ValueError):
        slowdown = math.nan
    if not 1 < slowdown <= 100:
        raise table.fail("straggler_slowdown", 'a factor such as "1.2x", up to 100')

    def job_of(row: Mapping[str, Any]) -> days.Job:
        model = curves["models"][row["model"]]
        parts: dict[int, float] = {}
        for node, part in row["at"] or [(0, 1.0)]:
            at: int | None = node
            while at is not None:
                parts[at] = parts.get(at, 0.0) + part
                at = parents[at]
        return days.Job(
            name=row["name"],
            group=row["group"],
            gpus=model["gpus"] * row["pipelines"],
            pipelines=row["pipelines"],
            weight=row["weight"],
            fixed_watts=row["fixed_w"],
            least_watts=row["least_w"],
            waiting_watts=model["waiting_w"],
            slowest_seconds=row["slowest_s"],
            max_clocks=tuple(model["max_clocks"]),
            frontier=np.array(model["frontier"]),
            plans=np.array(model["plans"]),
            clocks=np.array(model["clocks_mhz"]),
            caps=np.array(model["caps_w"]),
            late=[tuple(point) for point in row["late"]],
            parts=[(node, min(part, 1.0)) for node, part in sorted(parts.items()) if part > 0],
            meter=curves["pue"],
            noise=table.share("noise", 0.25) or 0.0,
            straggler_rate=table.share("straggler_rate") or 0.0,
            straggler_seconds=table.seconds("straggler_duration", above_zero=True) or days.HOUR,
            slowdown=slowdown,
        )

    site = days.Site(
        limits=[node["limit_w"] for node in curves["limits"]],
        names=[node["name"] for node in curves["limits"]],
        parents=parents,
        meter=curves["pue"],
        jobs=[job_of(row) for row in curves["jobs"]],
        ramp_up=table.ramp("ramp_up"),
        ramp_down=table.ramp("ramp_down"),
        work=table.share("work", above_zero=True) or 1.0,
    )
    _add_events(site, table, seconds)
    _add_jobs(site, table)
    if price := table.text("price"):
        columns = {"price_per_kwh": _KWH, "price_per_mwh": _MWH}
        site.price = read_series(folder / price, columns, seconds)
    if carbon := table.text("carbon"):
        site.carbon = read_series(folder / carbon, {"co2_g_per_kwh": _KWH}, seconds)
    return site, table.get("currency") or ""


def _add_events(site: days.Site, table: _Table, seconds: float) -> None:
    for each in table.tables("event", "start duration power notice limit every"):
        name = each.text("limit") or site.names[0]
        if name not in site.names:
            raise each.fail("limit", f"the name of a limit ({', '.join(site.names)})")
        node = site.names.index(name)
        start, duration = each.seconds("start"), each.seconds("duration", above_zero=True)
        if start is None or duration is None:
            raise PlannerError(f"{each.where}: 'start' and 'duration' are missing")
        power = each.get("power")
        limit = quantity(power, "power") if isinstance(power, str) else each.number("power")
        if isinstance(power, str) and (match := re.fullmatch(r"\s*-([0-9.]+)\s*%\s*", power)):
            limit = (1 - float(match.group(1)) / 100) * site.limits[node]
        if limit is None or not limit > 0:
            raise each.fail("power", 'less power, such as "-25%", or a limit such as "30kW"')
        every = each.seconds("every")
        if every is not None and not every > duration:
            raise each.fail("every", "a time longer than the event's 'duration'")
        while start < seconds:
            notice = each.seconds("notice") or 0.0
            site.events.append(days.Event(start, start + duration, notice, node, limit))
            if len(site.events) > _MOST_EVENTS:
                raise PlannerError(
                    f"there are over {_MOST_EVENTS} events in these days; repeat them less often "
                    "(every), or emulate fewer days (--days)"
                )
            if every is None:
                break
            start += every


def _add_jobs(site: days.Site, table: _Table) -> None:
    copies: dict[str, int] = {}
    for each in table.tables(
        "job", "name arrives every spread lasts iterations deadline work noise straggler_rate"
    ):
        name = each.text("name")
        found = [job for job in site.jobs if name in (job.group, job.name)]
        if not found:
            names = ", ".join(sorted({job.group for job in site.jobs}))
            raise each.fail("name", f"the name of a job ({names})")
        copies.clear()
        for job in found:
            copy = copies.get(job.group, 0) if name == job.group else 0
            copies[job.group] = copy + 1
            arrives, every = each.seconds("arrives"), each.seconds("every")
            if arrives is not None or every is not None:
                job.arrives = (arrives or 0.0) + copy * (every or 0.0)
            job.spread = _or(each.seconds("spread"), job.spread)
            job.lasts = _or(each.seconds("lasts", above_zero=True), job.lasts)
            job.iterations = _or(each.number("iterations", 1), job.iterations)
            work = each.share("work", above_zero=True)
            deadline = each.seconds("deadline", above_zero=True)
            if deadline is not None:
                job.deadline = (deadline, _or(work, 1.0))
            elif work is not None:
                raise each.fail("work", "'deadline', too: by when so much work is due")
            job.noise = _or(each.share("noise", 0.25), job.noise)
            job.straggler_rate = _or(each.share("straggler_rate"), job.straggler_rate)


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


def _spread(answer: days.Answer, figure: str, factor: float) -> dict[str, float]:
    values = np.array([getattr(each, figure) for each in answer.figures]) / factor
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": float(values.mean()),
        "deviation": deviation,
        "least": float(values.min()),
        "most": float(values.max()),
    }


def _rule_json(site: days.Site, answer: days.Answer) -> dict[str, Any]:
    rule = answer.rule
    row: dict[str, Any] = {"rule": rule.name, "title": rule.title, "says": rule.says}
    row.update({name: _spread(answer, figure, factor) for name, figure, factor in _FIGURES})
    row["jobs"] = []
    for job, day in zip(site.jobs, answer.first):
        joules = sum(span.watts * (span.end - span.begin) for span in day.spans)
        each: dict[str, Any] = {
            "name": job.name,
            "from_s": day.arrives,
            "to_s": day.leaves,
            "iterations": day.iterations,
            "energy_kwh": joules / _KWH,
        }
        if job.deadline:
            each["deadline_missed"] = day.missed
        row["jobs"].append(each)
    return row


def emulate(
    path: str, *, length: float = 7.0, seeds: int = 1, seed: int = 0, output: str | None = None
) -> dict[str, Any]:
    """Return what each rule makes of some days of a site: the document of fleet-days.json.

    Parameters
    ----------
    path
        A site file (docs/reference/files.md).
    length
        Days; 0.5 is half a day.
    seeds, seed
        How often with other arrivals and stragglers, and the first seed.
    output
        A folder for fleet-days.json, power.csv (the power of the site minute by minute in the
        first seed) and power.png.
    """
    if not 0.001 <= length <= 366 or not 1 <= seeds <= 1000:
        raise PlannerError("give 0.001 to 366 days and 1 to 1000 seeds")
    seconds = length * days.DAY
    curves = program.answer("fleet", "curves", path)
    site, currency = make_site(curves, Path(path).parent, seconds)
    all_seeds = list(range(seed, seed + seeds))
    answers = days.simulate(site, seconds, all_seeds)
    deadlines = sum(
        job.deadline is not None and job.arrives + job.spread + job.deadline[0] <= seconds
        for job in site.jobs
    )
    document: dict[str, Any] = {
        "schema_version": 1,
        "site": curves["site"],
        "seconds": seconds,
        "seeds": all_seeds,
        "jobs": len(site.jobs),
        "gpus": sum(job.gpus for job in site.jobs),
        "deadlines": deadlines,
        **({"currency": currency} if currency else {}),
        "limits": [{"from_s": at, "limit_w": limit} for at, limit in site.limit_steps(seconds)],
        "rules": [_rule_json(site, answer) for answer in answers],
        "notes": curves["notes"] + _shortages(site),
    }
    if output is not None:
        write(Path(output), document, site, answers)
    return document


def _shortages(site: days.Site) -> list[dict[str, Any]]:
    """Say where a limit, or that of an event, is below what all jobs need."""
    least = [job.member(0).options[0][1] for job in site.jobs]
    notes = []
    for node, load in enumerate(days.node_loads(site, site.jobs, least)):
        limits = [event.limit_watts for event in site.events if event.node == node]
        limit = min([site.limits[node], *limits])
        if load > limit * (1 + 1e-12):
            text = (
                f"while all jobs are there, no rule can keep the limit '{site.names[node]}' of "
                f"{limit:.0f} W without pausing some: even as slow as their owners accept, they "
                f"need {math.ceil(load - limit)} W more"
            )
            notes.append({"severity": "odd", "text": text})
    return notes


def write(
    folder: Path, document: dict[str, Any], site: days.Site, answers: Sequence[days.Answer]
) -> None:
    """Write fleet-days.json, power.csv and power.png, each whole or not at all."""
    import pandas as pd
    from matplotlib.figure import Figure

    edges = np.arange(math.ceil(document["seconds"] / days.MINUTE) + 1) * days.MINUTE
    table = pd.DataFrame({"time_s": edges[:-1]})
    table["limit_w"] = [site.limit_within(0, float(at), 0) for at in edges[:-1]]
    for answer in answers:
        watts = days.mean_power(site, answer.first, edges)
        table[f"{answer.rule.name}_w"] = watts.round(3)
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    for name in ("limit", "max-clocks", "uniform-cap", "perseus"):
        axes.step(
            table["time_s"] / days.HOUR,
            table[f"{name}_w"] / 1e3,
            where="post",
            label=name,
            linewidth=0.8,
        )
    axes.set(xlabel="time, h", ylabel="power of the site, kW", ylim=(0, None))
    axes.legend(loc="lower right")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        text = json.dumps(document, indent=1) + "\n"
        Path(work, "fleet-days.json").write_text(text, encoding="utf-8")
        table.to_csv(Path(work, "power.csv"), index=False)
        figure.savefig(Path(work, "power.png"), dpi=150)
        for file in Path(work).iterdir():
            file.replace(folder / file.name)


def text_of(document: Mapping[str, Any]) -> str:
    """Return the table that the command prints."""
    many = len(document["seeds"]) > 1
    rules = document["rules"]
    currency = document.get("currency", "")
    columns = [
        ("work lost %", "work_lost_percent", 1.0, 2),
        ("energy MWh", "energy_kwh", 1e3, 3),
        (f"cost {currency}".strip(), "cost", 1.0, 2),
        ("CO2 t", "co2_kg", 1e3, 3),
        ("over limit min", "over_limit_s", 60.0, 1),
        ("by at most kW", "over_limit_most_w", 1e3, 2),
        ("deadlines missed", "deadlines_missed", 1.0, 1),
        ("too slow h", "too_slow_job_hours", 1.0, 1),
        ("fairness", "fairness", 1.0, 4),
        ("plan changes", "plan_changes", 1.0, 0),
    ]
    unknown = {"deadlines_missed"} if not document["deadlines"] else set()
    for name in ("cost", "co2_kg"):
        if all(rule[name]["most"] == 0 == rule[name]["least"] for rule in rules):
            unknown.add(name)
    columns = [column for column in columns if column[1] not in unknown]
    table = [["rule", *(column[0] for column in columns)]]
    for rule in rules:
        cells = [rule["title"]]
        for _, name, factor, decimals in columns:
            cell = f"{rule[name]['mean'] / factor:,.{decimals}f}"
            if many:
                cell += f" +- {rule[name]['deviation'] / factor:,.{decimals}f}"
            cells.append(cell)
        table.append(cells)
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))])
        for row in table
    ]
    notes = [f"Note: {note['text']}." for note in document["notes"]]
    about = (
        f"{document['jobs']} jobs on {document['gpus']} GPUs for "
        f"{document['seconds'] / days.DAY:.4g} days, {len(document['seeds'])} seeds; the usual "
        f"limit is {document['limits'][0]['limit_w']:,.1f} W. Nothing ran on a GPU: power and "
        "speed are those of profiles."
    )
    end = (
        "Work lost is against maximum clocks in the same days. Too slow: hours of jobs that were "
        "slower than their owners\naccept, or paused. Fairness is 1 where all jobs keep the same "
        "share of their work."
    )
    return "\n".join([*notes, about, "", *lines, "", end])


def main(arguments: Sequence[str]) -> int:
    """Answer `perseus fleet emulate`."""
    parser = argparse.ArgumentParser("perseus fleet emulate", description=__doc__)
    parser.add_argument("site", metavar="SITE.toml", help="the site file, with a table [emulate]")
    parser.add_argument("--days", type=float, default=7.0, help="how many days (default 7)")
    parser.add_argument(
        "--seeds", type=int, default=1, help="how often, with other arrivals and stragglers"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument(
        "-o", "--output", help="a folder for fleet-days.json, power.csv and power.png"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    document = emulate(
        given.site, length=given.days, seeds=given.seeds, seed=given.seed, output=given.output
    )
    print(json.dumps(document, indent=1) if given.json else text_of(document))
    return 0
