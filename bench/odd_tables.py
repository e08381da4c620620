# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Write tables of cards on which a sweep could stop too early, for bench/recovered_profile.

    build/venv/bin/python bench/odd_tables.py FOLDER [STAGES]

Eight stages, or as many as given, with the times of a transformer; modelled, not measured.
"""

import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path

STATIC_WATTS = 70.0
Cell = tuple[float, float]  # Seconds over those at the highest clock, and watts.


def plain(mhz: float, highest: float) -> Cell:
    """Return the cell of a card with a smooth curve whose voltage ends at two thirds."""
    share = mhz / highest
    volts = max(share, 0.66)
    return 0.15 + 0.85 / share, STATIC_WATTS + 250 * share * volts * volts


def capped(mhz: float, highest: float) -> Cell:
    """Return the cell of a card that is at its power cap above 84 % of its highest clock."""
    knee = 0.84 * highest
    seconds, watts = plain(min(mhz, knee), knee)
    # Above the knee: the times of the knee but for a little, and the watts of the cap.
    return seconds * (1 - 0.004 * max(0.0, mhz / knee - 1)), watts


def steps(mhz: float, highest: float) -> Cell:
    """Return the cell of a card whose power falls only at every tenth of its clocks."""
    seconds, _ = plain(mhz, highest)
    width = highest / 10
    _, watts = plain(math.ceil(mhz / width) * width, highest)
    return seconds, watts


def bump(mhz: float, highest: float) -> Cell:
    """Return the cell of a card that draws up to 12 % more at a tenth of its clocks."""
    seconds, watts = plain(mhz, highest)
    place = (mhz / highest - 0.9) / 0.04
    return seconds, watts * (1 + 0.12 * math.exp(-place * place))


def moody(mhz: float, highest: float) -> Cell:
    """Return the cell of a card whose times and powers jump from clock to clock."""
    seconds, watts = plain(mhz, highest)
    return seconds * (1 + 0.015 * math.sin(mhz)), watts * (1 + 0.02 * math.sin(2.3 * mhz))


# The cell, the highest and the lowest clock, and the step between two.
TABLES: dict[str, tuple[Callable[[float, float], Cell], int, int, int]] = {
    "plain": (plain, 1410, 810, 15),
    "few": (plain, 1410, 960, 30),
    "few-capped": (capped, 1740, 870, 30),
    "few-steps": (steps, 1410, 810, 30),
    "wide": (plain, 1410, 210, 15),
    "capped": (capped, 1740, 855, 15),
    "steps": (steps, 1410, 810, 15),
    "bump": (bump, 1410, 810, 15),
    "moody": (moody, 1410, 810, 15),
}


def main(folder: Path, stages: int) -> None:
    """Write one file for each table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (cell, highest, lowest, step) in TABLES.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["stage", "instruction", "frequency", "time", "energy"])
            for stage in range(stages):
                share = 1.08 if stage == stages - 1 else 1.0
                for instruction, base in (("forward", 0.1), ("backward", 0.19)):
                    for mhz in range(highest, lowest - 1, -step):
                        seconds, watts = cell(mhz, highest)
                        seconds *= base * share
                        rows.writerow([stage, instruction, mhz, seconds, seconds * watts])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8)
