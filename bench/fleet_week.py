# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""A site of 40 measured jobs on paper: cuts of power, tiers, a week of events, a week of prices.

Usage: python bench/fleet_week.py DATA [--sections cuts tiers events price] [--keep FOLDER]

DATA is the folder with sosp24/ (the paper's published measurements). Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import cpu_seconds, print_header
from oracle.binary import perseus_binary

HOURS = 1.0  # Of the sections without days.
COPIES = 10
PIPELINES = 4
FULL_KW = 10000  # A limit that binds nobody.
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PYTHON = EXAMPLES.parent / "python"


@dataclass(frozen=True)
class Table:
    """A measured table, and what its owners accept in the section `tiers`."""

    name: str
    path: str
    blocking_power: float
    tier: str


TABLES = (
    Table(
        "gpt3-175b-a100",
        "sosp24/sosp24_data/emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv",
        83.64,
        "10%",
    ),
    Table(
        "bloom-176b-a40",
        "sosp24/sosp24_data/emulation/stage_profile/bloom+a40_bf16.csv",
        70.38,
        "25%",
    ),
    Table("bloom-3b-a40", "sosp24/derived/A40_bloom-3b_dp1_tp1_pp8_mbs4_nmb128.csv", 70.38, "50%"),
    Table(
        "wide-resnet-a40",
        "sosp24/derived/A40_wide-resnet101_8_dp1_tp1_pp8_mbs32_nmb48.csv",
        70.38,
        "100%",
    ),
)


class Site:
    """Writes site files and runs them."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.data = data
        self.folder = folder
        self.binary = perseus_binary()

    def run(
        self,
        name: str,
        watts: float,
        days: float,
        *,
        tiers: bool = False,
        weights: tuple[int, ...] = (1, 1, 1, 1),
        emulate: str = "",
        seeds: int = 1,
    ) -> dict[str, Any]:
        """Emulate a site of all tables; return its JSON, with CPU seconds added."""
        text = f"power = {watts!r}\n"
        for table, weight in zip(TABLES, weights, strict=True):
            text += (
                f'[[job]]\nname = "{table.name}"\ncount = {COPIES}\nprofile = '
                f'"{(self.data / table.path).resolve()}"\nschedule = "1f1b"\nstages = 8\n'
                f"microbatches = 96\nblocking_power = {table.blocking_power}\nweight = {weight}\n"
                f"dp = {PIPELINES}\n"
            )
            if tiers:
                text += f'max_slowdown = "{table.tier}"\n'
        path = self.folder / f"{name}.toml"
        path.write_text(text + "[emulate]\n" + emulate, encoding="utf-8")
        spent, output = cpu_seconds(
            [
                *("env", f"PYTHONPATH={PYTHON}", f"PERSEUS_BINARY={self.binary}"),
                *(sys.executable, "-m", "perseus", "fleet", "emulate", path, "--days", repr(days)),
                *("--seeds", str(seeds), "--json", "-o", self.folder / name),
            ]
        )
        answer: dict[str, Any] = json.loads(output)
        answer["cpu_s"] = spent
        return answer


def rules(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rules of an answer by name."""
    return {rule["rule"]: rule for rule in answer["rules"]}


def full_watts(site: Site) -> float:
    """Return what the site draws at maximum clocks."""
    answer = site.run("full", FULL_KW * 1e3, HOURS / 24)
    return float(rules(answer)["max-clocks"]["energy_kwh"]["mean"]) / HOURS * 1e3


def number(rule: dict[str, Any], figure: str, digits: int, factor: float = 1) -> str:
    """Format the mean of a figure, with its deviation where there is one."""
    spread = rule[figure]
    text = f"{spread['mean'] / factor:.{digits}f}"
    if spread["deviation"] > 0:
        text += f" ± {spread['deviation'] / factor:.{digits}f}"
    return text


def static_tables(site: Site, watts: float, sections: list[str]) -> None:
    """Print the work lost under constant limits."""
    cases: list[tuple[str, dict[str, Any]]] = []
    if "cuts" in sections:
        cases.append(("Work lost (%), all jobs of one weight", {}))
    if "tiers" in sections:
        cases.append(
            (
                "Work lost (%), owners accept 10, 25, 50 and 100 % longer iterations",
                {"tiers": True},
            )
        )
        cases.append(("Work lost (%), weights 1, 2, 4 and 8 by table", {"weights": (1, 2, 4, 8)}))
    for number_of_case, (title, options) in enumerate(cases):
        cuts = (10, 25, 40)
        columns = [
            rules(
                site.run(
                    f"static-{number_of_case}-{cut}", watts * (1 - cut / 100), HOURS / 24, **options
                )
            )
            for cut in cuts
        ]
        print(
            f"\n{title}; (!): the limit is not kept; (p): jobs are paused or slower than accepted\n"
        )
        print("| rule | " + " | ".join(f"{cut} % less" for cut in cuts) + " |")
        print("|---" * (len(cuts) + 1) + "|")
        for name, rule in columns[0].items():
            cells = []
            for column in columns:
                mark = " (!)" if column[name]["over_limit_s"]["mean"] > 0 else ""
                mark += " (p)" if column[name]["too_slow_job_hours"]["mean"] > 0 else ""
                cells.append(number(column[name], "work_lost_percent", 2) + mark)
            print(f"| {rule['title']} | " + " | ".join(cells) + " |")


DISTURBED = 'noise = "1%"\nstraggler_rate = "2%"\nstraggler_duration = "1h"\n'


def week_table(answer: dict[str, Any], *, price: bool) -> None:
    """Print the figures of a week."""
    head = ["rule", "work lost %", "energy MWh"]
    head += ["cost EUR"] if price else []
    head += ["over limit min", "at most kW", "steepest fall kW/min", "too slow job h"]
    head += ["fairness", "plan changes"]
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for rule in answer["rules"]:
        cells = [
            rule["title"],
            number(rule, "work_lost_percent", 3),
            number(rule, "energy_kwh", 3, 1e3),
        ]
        if price:
            cells.append(number(rule, "cost", 1))
        cells += [
            number(rule, "over_limit_s", 1, 60),
            number(rule, "over_limit_most_w", 2, 1e3),
            number(rule, "steepest_fall_w_per_s", 2, 1e3 / 60),
            number(rule, "too_slow_job_hours", 1),
            number(rule, "fairness", 4),
            number(rule, "plan_changes", 0),
        ]
        print("| " + " | ".join(cells) + " |")
    print(f"\nCPU: {answer['cpu_s']:.0f} s, frontiers and plans included.")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sections", nargs="+", default=["cuts", "tiers", "events", "price"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="keep site files, JSON and pages here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        site = Site(arguments.data, folder)
        print_header([], site.binary)
        watts = full_watts(site)
        print(
            f"{COPIES * len(TABLES)} jobs of {PIPELINES} x 8 x 96; "
            f"{watts / 1e3:.2f} kW at maximum clocks."
        )
        static_tables(site, watts, arguments.sections)
        if "events" in arguments.sections:
            print(
                "\nA week of events: 25 % less for 3 h every day, 30 % less for 30 min every 60 h,"
            )
            print("both known 30 s before; noise 1 %, 2 % of GPUs straggle each day\n")
            events = DISTURBED
            for start, duration, every, power in (
                ("18h", "3h", "24h", "-25%"),
                ("10h", "30min", "60h", "-30%"),
            ):
                events += (
                    f'[[emulate.event]]\nstart = "{start}"\nduration = "{duration}"\n'
                    f'every = "{every}"\npower = "{power}"\nnotice = "30s"\n'
                )
            answer = site.run("events", watts, 7, emulate=events, seeds=arguments.seeds)
            week_table(answer, price=False)
            print("\nThe same with ramps of 80 kW/min down and 40 kW/min up, 5 min of notice\n")
            ramps = 'ramp_down = "80kW/min"\nramp_up = "40kW/min"\n'
            events = ramps + events.replace('"30s"', '"5min"')
            answer = site.run("ramps", watts, 7, emulate=events, seeds=arguments.seeds)
            week_table(answer, price=False)
        if "price" in arguments.sections:
            print(
                "\nA week under a made-up day-ahead price; 97 % of each day's work is asked for\n"
            )
            shutil.copy(EXAMPLES / "day-ahead.csv", folder / "day-ahead.csv")
            priced = 'price = "day-ahead.csv"\ncurrency = "EUR"\nwork = "97%"\n'
            answer = site.run("price", watts, 7, emulate=priced + DISTURBED, seeds=arguments.seeds)
            week_table(answer, price=True)


if __name__ == "__main__":
    main()
