# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A profile, as the planner has read it."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

from perseus.display import axes_of, optional, table


class Option(NamedTuple):
    """What one computation takes and uses at one clock: seconds, and joules of one GPU."""

    stage: int
    instruction: str
    frequency: str
    time: float
    energy: float


class Profile:
    """What each computation costs at each clock: `Planner.profile`.

    Attributes
    ----------
    options
        One for each stage, instruction and clock, as aggregated over the ranks of the file.
    name
        Of its file, or as it was given.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self.name = name
        self.options = tuple(
            Option(int(row[0]), row[1], row[2], float(row[3]), float(row[4]))
            for row in list(csv.reader(io.StringIO(text)))[1:]
        )

    def __len__(self) -> int:
        """How many options there are."""
        return len(self.options)

    @property
    def stages(self) -> int:
        """How many stages it has."""
        return 1 + max(option.stage for option in self.options)

    def __repr__(self) -> str:
        """Say how much it holds."""
        return f"<perseus.Profile {self.name}: {self.stages} stages, {len(self)} options>"

    def _repr_html_(self) -> str:
        """Return its options as a table."""
        return table(f"Profile {self.name}", Option._fields, self.options)

    def csv(self) -> str:
        """Return it as a CSV that the planner reads."""
        return self._text

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the index (stage, instruction, frequency)."""
        frame = optional("pandas", "to_frame()").DataFrame(self.options, columns=Option._fields)
        return frame.set_index(list(Option._fields[:3]))

    def plot(self, axes: Any = None) -> Any:
        """Draw the energy of each computation over its time on axes of Matplotlib; return these."""
        axes = axes_of(axes)
        for key in dict.fromkeys(option[:2] for option in self.options):
            those = sorted((o.time, o.energy) for o in self.options if o[:2] == key)
            axes.plot(*zip(*those), marker=".", label=f"{key[1]}, stage {key[0]}")
        axes.set(xlabel="time, s", ylabel="energy, J", title=f"Profile {self.name}")
        axes.legend(fontsize="small")
        return axes
