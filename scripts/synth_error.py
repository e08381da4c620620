#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Compare a modelled profile (`perseus synth`) with a measured one.

Both are CSV files with the columns stage, instruction, frequency, time and
energy; only rows that are in both are compared. Errors are absolute values in
percent of the measured value. Needs nothing but Python.
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


def relative_to_top(profile: dict[Key, Cost], tops: dict[tuple[int, str], int]) -> dict[Key, Cost]:
    """Divide every row by the row of its stage and instruction at one clock.

    Parameters
    ----------
    profile
        As `read_profile` gives it.
    tops
        The clock of each (stage, instruction).

    Returns
    -------
    dict
        The quotients, without the rows at these clocks, which are 1.
    """
    table = {}
    for (stage, instruction, mhz), (seconds, joules) in profile.items():
        top = tops.get((stage, instruction))
        if top is None or top == mhz:
            continue
        reference = profile[stage, instruction, top]
        table[stage, instruction, mhz] = (seconds / reference[0], joules / reference[1])
    return table


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


def print_summary(label: str, costs: list[Cost]) -> None:
    """Print how many rows there are, and their median and worst error.

    Parameters
    ----------
    label
        What the rows have in common.
    costs
        Errors of time and energy.
    """
    cells = [
        f"{pick([abs(cost[i]) for cost in costs]):>8.2f}" for i in (0, 1) for pick in (median, max)
    ]
    print(f"{label:<14} {len(costs):>5}  {' '.join(cells)}")


def print_errors(table: dict[Key, Cost], per_clock: bool, every: int, rows: bool) -> None:
    """Print errors per stage and instruction or per clock, and their summary.

    Parameters
    ----------
    table
        As `errors` gives it.
    per_clock
        Group by clock, highest first, instead of by stage and instruction.
    every
        With `per_clock`, print one clock of so many.
    rows
        Also print every row, with its sign.
    """
    if rows:
        print(f"{'stage':>5} {'instruction':<11} {'MHz':>6} {'time %':>8} {'energy %':>9}")
        for (stage, instruction, mhz), (time, energy) in table.items():
            print(f"{stage:>5} {instruction:<11} {mhz:>6} {time:>+8.2f} {energy:>+9.2f}")
    print(f"{'':<14} {'':>5}  {'time, %':<17} {'energy, %':<17}")
    print(f"{'':<14} {'rows':>5}  {'median':>8} {'worst':>8} {'median':>8} {'worst':>8}")
    if per_clock:
        clocks = sorted({mhz for _, _, mhz in table}, reverse=True)
        for clock in clocks[::every]:
            print_summary(f"{clock} MHz", [cost for key, cost in table.items() if key[2] == clock])
    else:
        for stage, instruction in sorted({key[:2] for key in table}):
            costs = [cost for key, cost in table.items() if key[:2] == (stage, instruction)]
            print_summary(f"{stage} {instruction}", costs)
    print_summary("all", list(table.values()))


def positive(text: str) -> int:
    """Parse a count, at least 1.

    Parameters
    ----------
    text
        As given on the command line.

    Returns
    -------
    int
        The count.
    """
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def main() -> int:
    """Run the command line.

    Returns
    -------
    int
        0, or 2 on bad input.
    """
    parser = argparse.ArgumentParser(description="Error of a modelled profile.")
    parser.add_argument("measured", type=Path)
    parser.add_argument("modelled", type=Path)
    parser.add_argument("--per-clock", action="store_true", help="group by clock, not by stage")
    parser.add_argument("--every", type=positive, default=1, help="print one clock of so many")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    parser.add_argument(
        "--relative",
        action="store_true",
        help="compare time and energy relative to the highest measured clock of each stage and "
        "instruction: the shape without the scale",
    )
    arguments = parser.parse_args()
    try:
        measured = read_profile(arguments.measured)
        modelled = read_profile(arguments.modelled)
        if arguments.relative:
            tops: dict[tuple[int, str], int] = {}
            for stage, instruction, mhz in measured.keys() & modelled.keys():
                tops[stage, instruction] = max(mhz, tops.get((stage, instruction), 0))
            measured = relative_to_top(measured, tops)
            modelled = relative_to_top(modelled, tops)
        table = errors(measured, modelled)
    except (OSError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        print(f"synth_error.py: not a profile: {error}", file=sys.stderr)
        return 2
    if not table:
        print("synth_error.py: the two profiles have no row in common", file=sys.stderr)
        return 2
    print_errors(table, arguments.per_clock, arguments.every, arguments.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
