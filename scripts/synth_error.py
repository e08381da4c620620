#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Compare a modelled profile (`perseus synth`) with a measured one.

Both are CSV files with the columns stage, instruction, frequency, time and
energy; only rows that are in both are compared. Needs nothing but Python.
"""

import argparse
import csv
import sys
from pathlib import Path
from statistics import median

Key = tuple[int, str, int]
Cost = tuple[float, float]


def read_profile(path: Path) -> dict[Key, Cost]:
    """Read a profile.

    Parameters
    ----------
    path
        CSV file; lines that start with ``#`` are comments.

    Returns
    -------
    dict
        Seconds and joules by (stage, instruction, MHz).
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            (int(row["stage"]), row["instruction"], round(float(row["frequency"]))): (
                float(row["time"]),
                float(row["energy"]),
            )
            for row in rows
        }


def errors(measured: dict[Key, Cost], modelled: dict[Key, Cost]) -> dict[Key, Cost]:
    """Relate every modelled row to the measured one.

    Parameters
    ----------
    measured
        The truth.
    modelled
        What is judged.

    Returns
    -------
    dict
        Error of time and energy in percent (positive: modelled is more) of the
        rows that are in both.
    """
    return {
        key: (
            100 * (modelled[key][0] / seconds - 1),
            100 * (modelled[key][1] / joules - 1),
        )
        for key, (seconds, joules) in measured.items()
        if key in modelled
    }


def print_errors(table: dict[Key, Cost], per_clock: bool) -> None:
    """Print errors per stage and instruction, and their summary.

    Parameters
    ----------
    table
        As `errors` gives it.
    per_clock
        Also print every row.
    """
    print(f"{'stage':>5} {'instruction':<11} {'MHz':>6} {'time %':>8} {'energy %':>9}")
    if per_clock:
        for (stage, instruction, mhz), (time, energy) in table.items():
            print(f"{stage:>5} {instruction:<11} {mhz:>6} {time:>+8.2f} {energy:>+9.2f}")
    groups = sorted({(stage, instruction) for stage, instruction, _ in table})
    for stage, instruction in groups:
        of_group = [cost for key, cost in table.items() if key[:2] == (stage, instruction)]
        for name, pick in (("median", median), ("worst", max)):
            time, energy = (pick([abs(cost[i]) for cost in of_group]) for i in (0, 1))
            print(f"{stage:>5} {instruction:<11} {name:>6} {time:>8.2f} {energy:>9.2f}")
    for name, pick in (("median", median), ("worst", max)):
        time, energy = (pick([abs(cost[i]) for cost in table.values()]) for i in (0, 1))
        print(f"{'all':>5} {'':<11} {name:>6} {time:>8.2f} {energy:>9.2f}")


def main() -> int:
    """Run the command line.

    Returns
    -------
    int
        0, or 2 on bad input.
    """
    parser = argparse.ArgumentParser(description="Error of a modelled profile, per clock.")
    parser.add_argument("measured", type=Path)
    parser.add_argument("modelled", type=Path)
    parser.add_argument("--per-clock", action="store_true", help="print every row")
    arguments = parser.parse_args()
    try:
        table = errors(read_profile(arguments.measured), read_profile(arguments.modelled))
    except (OSError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        print(f"synth_error.py: not a profile: {error}", file=sys.stderr)
        return 2
    if not table:
        print("synth_error.py: the two profiles have no row in common", file=sys.stderr)
        return 2
    print_errors(table, arguments.per_clock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
