# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Profiles as the oracle reads them: options per (stage, instruction)."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Option:
    """One measured way to run a computation.

    Attributes
    ----------
    knob
        Label of the setting, as the profile spells it.
    time
        Seconds.
    energy
        Joules, of all GPUs of the rank once a table is scaled.
    time_std
        Spread of the time, seconds; 0 where the profile states none.
    """

    knob: str
    time: float
    energy: float
    time_std: float = 0.0


Tables = dict[tuple[int, str], list[Option]]


@dataclass(frozen=True)
class Profile:
    """A profile: every option of every (stage, instruction), in file order."""

    tables: Tables
    tensor_parallel_ranks: int
    # Watts of a GPU that waits, by knob; of all stages (None), or of one.
    waiting: dict[int | None, dict[str, float]] = field(default_factory=dict)

    def waiting_watts(self, stage: int, knob: str) -> float | None:
        """Watts of one GPU of a stage that waits at a knob; None where no row says it.

        Linear between the clocks of two rows, and that of the nearest row outside.
        """
        rows = self.waiting.get(stage, self.waiting.get(None))
        if rows is None:
            return None
        if not knob_is_number(knob):
            return rows[knob]
        clock = float(knob)
        known = {float(label): watts for label, watts in rows.items()}
        if clock in known:
            return known[clock]
        above = [other for other in known if other > clock]
        below = [other for other in known if other < clock]
        if not above or not below:
            return known[max(below) if below else min(above)]
        high, low = min(above), max(below)
        return known[low] + (clock - low) / (high - low) * (known[high] - known[low])

    @property
    def num_stages(self) -> int:
        """Number of stages of the model."""
        return 1 + max(stage for stage, _ in self.tables)


def read_profile(path: Path) -> Profile:
    """Read a profile CSV, aggregating its tensor- and data-parallel ranks.

    Parameters
    ----------
    path
        CSV file with at least stage, instruction, frequency (or knob), time, energy.

    Returns
    -------
    Profile
        Times are maxima over ranks; energies are summed over tensor-parallel
        ranks and averaged over data-parallel ones.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = (line for line in file if line.strip() and not line.lstrip().startswith("#"))
        rows = [
            {(key or "").strip(): (value or "").strip() for key, value in row.items()}
            for row in csv.DictReader(lines)
        ]
    waiting: dict[int | None, dict[str, list[float]]] = {}
    for row in [row for row in rows if row["instruction"] == "blocking"]:
        knob = row["frequency"] if "frequency" in row else row["knob"]
        own = waiting.setdefault(int(row["stage"]) if row["stage"] else None, {})
        own.setdefault(knob, []).append(float(row["energy"]) / float(row["time"]))
    rows = [row for row in rows if row["instruction"] != "blocking"]
    groups: dict[tuple[int, str, str], dict[str, list[tuple[float, float, float]]]] = {}
    tensor_ranks: set[str] = set()
    for row in rows:
        knob = row["frequency"] if "frequency" in row else row["knob"]
        key = (int(row["stage"]), row["instruction"], knob)
        data_rank = row.get("dp_rank", "")
        if "tp_rank" in row:
            tensor_ranks.add(row["tp_rank"])
        group = groups.setdefault(key, defaultdict(list))
        spread = float(row.get("time_std") or 0.0)
        group[data_rank].append((float(row["time"]), float(row["energy"]), spread))
    tables: Tables = defaultdict(list)
    for (stage, instruction, knob), by_data_rank in groups.items():
        time, spread = max((t, s) for cells in by_data_rank.values() for t, _, s in cells)
        sums = [sum(e for _, e, _ in cells) for cells in by_data_rank.values()]
        tables[stage, instruction].append(Option(knob, time, sum(sums) / len(sums), spread))
    means = {
        stage: {knob: sum(watts) / len(watts) for knob, watts in own.items()}
        for stage, own in waiting.items()
    }
    return Profile(dict(tables), len(tensor_ranks), means)


def knob_is_number(knob: str) -> bool:
    """Whether a knob reads as a number."""
    try:
        float(knob)
    except ValueError:
        return False
    return True


def baseline_option(options: list[Option]) -> Option:
    """Return the option that savings are measured against: the highest clock, or fastest label."""
    if all(knob_is_number(option.knob) for option in options):
        return max(options, key=lambda option: float(option.knob))
    return min(options, key=lambda option: (option.time, option.energy))


def write_profile(path: Path, tables: Tables) -> None:
    """Write tables as a profile CSV, numbers to the last bit."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["stage", "instruction", "frequency", "time", "energy"])
        for (stage, instruction), options in sorted(tables.items()):
            for option in options:
                writer.writerow(
                    [stage, instruction, option.knob, repr(option.time), repr(option.energy)]
                )
