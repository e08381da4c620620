# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The frontier of an iteration's time and energy."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

from perseus.display import axes_of, optional, table
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from perseus import planner_library as abi

_COLUMNS = ["time_seconds", "energy_joules", "slope_watts"]


class Frontier:
    """The exact lower bound of an iteration's energy at each time, and its named points.

    Attributes
    ----------
    time_seconds, energy_joules, slope_watts
        Corners of a convex curve, times ascending; the slope is the price of a second to the
        right.
    fastest_seconds, min_energy_seconds, tstar_seconds
        T_min, the time of least energy, and T*, beyond which slower clocks save nothing.
    baseline_time_seconds, baseline_energy_joules
        Every computation at its highest clock.
    certified_error
        Relative; 0 where the frontier is exact.
    fitted
        Whether it is one of an exponential fit, which bounds nothing.
    """

    def __init__(self, struct: abi.FrontierStruct, csv: str) -> None:
        count = struct.count
        self.time_seconds: tuple[float, ...] = tuple(struct.time_seconds[:count])
        self.energy_joules: tuple[float, ...] = tuple(struct.energy_joules[:count])
        self.slope_watts: tuple[float, ...] = tuple(struct.slope_watts[:count])
        self.fastest_seconds: float = struct.fastest_seconds
        self.min_energy_seconds: float = struct.min_energy_seconds
        self.tstar_seconds: float = struct.tstar_seconds
        self.baseline_time_seconds: float = struct.baseline_time_seconds
        self.baseline_energy_joules: float = struct.baseline_energy_joules
        self.total_blocking_power_watts: float = struct.total_blocking_power_watts
        self.certified_error: float = struct.certified_error
        self.fitted = bool(struct.fitted)
        self._csv = csv

    def __len__(self) -> int:
        """How many corners there are."""
        return len(self.time_seconds)

    def __repr__(self) -> str:
        """Say where it begins and ends."""
        return (
            f"<perseus.Frontier: {len(self)} points from {self.fastest_seconds:.6g} s to "
            f"{self.tstar_seconds:.6g} s>"
        )

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Corners as (seconds, joules)."""
        return tuple(zip(self.time_seconds, self.energy_joules))

    def energy_at(self, seconds: float) -> float:
        """Return the least energy, in joules, of an iteration that takes so long."""
        times = self.time_seconds
        if not seconds >= times[0]:
            raise PlannerError(
                f"no plan takes {seconds:.6g} s: the fastest takes {times[0]:.6g} s", "infeasible"
            )
        last = len(times) - 1
        k = min(bisect.bisect_right(times, seconds) - 1, last)
        if k == last:
            waiting = self.total_blocking_power_watts * (seconds - times[last])
            return self.energy_joules[last] + waiting
        share = (seconds - times[k]) / (times[k + 1] - times[k])
        return self.energy_joules[k] + share * (self.energy_joules[k + 1] - self.energy_joules[k])

    def csv(self) -> str:
        """Return the text of `frontier.csv` (docs/reference/files.md)."""
        return self._csv

    def to_frame(self) -> Any:
        """Return the corners as a pandas DataFrame with the index time_seconds."""
        frame = optional("pandas", "to_frame()").DataFrame(self._rows(), columns=_COLUMNS)
        return frame.set_index(_COLUMNS[0])

    def plot(self, axes: Any = None) -> Any:
        """Draw it on axes of Matplotlib, with its named points; return the axes."""
        axes = axes_of(axes)
        axes.plot(self.time_seconds, self.energy_joules)
        named = {
            "maximum clocks": (self.baseline_time_seconds, self.baseline_energy_joules),
            "least energy": (self.min_energy_seconds, self.energy_at(self.min_energy_seconds)),
        }
        for label, (seconds, joules) in named.items():
            axes.plot([seconds], [joules], "o", label=label)
        axes.set(xlabel="iteration time, s", ylabel="energy, J", title="Frontier")
        axes.legend()
        return axes

    def _repr_html_(self) -> str:
        """Return its corners as a table."""
        return table(repr(self).strip("<>"), _COLUMNS, self._rows())

    def _rows(self) -> list[tuple[float, float, float]]:
        return list(zip(self.time_seconds, self.energy_joules, self.slope_watts))
