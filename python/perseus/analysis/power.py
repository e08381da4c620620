# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The power of an emulated job as the grid sees it: ramps, swings, spectrum, ballast.

Reads what `perseus emulate -o DIR --power-interval 5ms` writes; docs/explanation/emulation.md
("Shape of the power") defines every quantity.

>>> from perseus.analysis import power
>>> shape = power.shape(perseus.emulate("job.toml", power_interval=0.005), ramp_limit=50e3)
>>> shape["ramp_1s"]["rise_w_per_s"], shape["band"]["rms_w"], shape["ballast_j"]
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Watts = npt.NDArray[np.float64]

# Swings of large jobs trouble grids and turbines here (Choukse et al. 2025, arXiv 2508.14318).
CRITICAL_BAND = (0.1, 20.0)
_COLUMNS = 48
_LONGEST_INTERVAL = 0.02  # The band ends at 25 Hz at most.
_MOST_HZ = 25.0
_ROUNDING = 1e-9


def ramp(watts: Watts, interval: float, window: float) -> dict[str, float] | None:
    """Return the fastest changes of mean power from one window to the next; None: too short."""
    count = round(window / interval)
    if count < 1 or len(watts) < 2 * count:
        return None
    sums = np.concatenate(([0.0], np.cumsum(watts - watts.mean())))
    means = (sums[count:] - sums[:-count]) / count
    changes = (means[count:] - means[:-count]) / window
    return {
        "rise_w_per_s": max(0.0, float(changes.max())),
        "fall_w_per_s": max(0.0, float(-changes.min())),
    }


def ballast(watts: Watts, interval: float, ramp_limit: float) -> float:
    """Return the joules that a load beside the job burns so that no ramp passes the limit."""
    slopes = ramp_limit * interval * np.arange(len(watts))
    after = np.maximum.accumulate(watts + slopes) - slopes
    held = np.maximum.accumulate((after + slopes[::-1])[::-1])[::-1] - slopes[::-1]
    return max(0.0, float((held - watts).sum() * interval))


def shape(
    emulation: Mapping[str, Any],
    band: tuple[float, float] = CRITICAL_BAND,
    ramp_limit: float | None = None,
) -> dict[str, Any]:
    """Return the shape of an emulated job's power.

    Parameters
    ----------
    emulation
        What `perseus.emulate()` returns or emulation.json holds, with a power interval of at most
        20 ms; 5 ms is usual.
    band
        Two frequencies in Hz, the lower one first, at most 25.
    ramp_limit
        In watts per second: says what keeping it costs (`ballast_j`).

    Raises
    ------
    PlannerError
        With a sentence: the interval is too long, or the band is none.
    """
    interval = float(emulation["power_interval_s"])
    if interval > _LONGEST_INTERVAL * (1 + _ROUNDING):
        raise PlannerError(
            f"power is a mean over {interval:g} s here; emulate with --power-interval 5ms"
        )
    low, high = band
    if not 0 < low < high <= _MOST_HZ:
        raise PlannerError(
            f"the band is {low:g} to {high:g} Hz; expected two frequencies above 0 and at most "
            f"{_MOST_HZ:g} Hz, the lower one first"
        )
    whole = math.floor(float(emulation["time_s"]) / interval * (1 + 1e-12))
    watts: Watts = np.array(emulation["power_w"], dtype=np.float64)[:whole]
    if not len(watts):
        raise PlannerError("the job is shorter than one interval of its power")
    swings = watts - watts.mean()
    if swings.std() <= _ROUNDING * watts.mean():
        swings = np.zeros_like(watts)
    size = 1 << (len(watts) - 1).bit_length()
    hz = np.arange(1, size // 2 + 1) / (size * interval)
    # By Parseval these add up to the variance.
    parts = 2 * np.abs(np.fft.rfft(swings, size)[1:]) ** 2 / (size * len(watts))
    if len(parts):
        parts[-1] /= 2
    edges = np.geomspace(*CRITICAL_BAND, _COLUMNS + 1)
    inside = (hz >= CRITICAL_BAND[0]) & (hz <= CRITICAL_BAND[1])
    column = np.clip(np.searchsorted(edges, hz[inside], side="right") - 1, 0, _COLUMNS - 1)
    columns = np.sqrt(np.bincount(column, parts[inside], _COLUMNS))
    in_band = (hz >= low) & (hz <= high)
    band_variance = float(parts[in_band].sum())
    variance = float((swings**2).mean())
    resolved = (high - low) * len(watts) * interval >= 1 - _ROUNDING
    strongest = float(hz[in_band][parts[in_band].argmax()]) if band_variance > 0 else 0.0
    share = min(1.0, band_variance / variance) if variance > 0 else 0.0
    return {
        "interval_s": interval,
        "values": len(watts),
        "ramp_1s": ramp(swings, interval, 1),
        "ramp_100ms": ramp(swings, interval, 0.1),
        "rms_w": math.sqrt(variance),
        "band": {
            "from_hz": low,
            "to_hz": high,
            # None: the job is too short to tell the band's two ends apart.
            "rms_w": math.sqrt(band_variance) if resolved else None,
            "share": share if resolved else None,
            "strongest_hz": strongest if resolved else None,
        },
        "ballast_j": ballast(watts, interval, ramp_limit) if ramp_limit else 0.0,
        "spectrum": [
            {"from_hz": float(edges[k]), "to_hz": float(edges[k + 1]), "rms_w": float(columns[k])}
            for k in range(_COLUMNS)
        ],
    }


def _sentences(shaped: Mapping[str, Any]) -> str:
    def ramps(name: str) -> str:
        one = shaped[name]
        if one is None:
            return "the job is too short to say"
        return f"rises by {one['rise_w_per_s']:.5g} W/s at most, falls by {one['fall_w_per_s']:.5g}"

    band = shaped["band"]
    swing = (
        f"{band['rms_w']:.5g} W, {100 * band['share']:.2f} % of the variance, "
        f"most at {band['strongest_hz']:.3g} Hz"
        if band["rms_w"] is not None
        else "the job is too short to say"
    )
    lines = [
        f"Ramp over 1 s      {ramps('ramp_1s')}",
        f"Ramp over 100 ms   {ramps('ramp_100ms')}",
        f"Swing              {shaped['rms_w']:.5g} W (root mean square)",
        f"{band['from_hz']:g} to {band['to_hz']:g} Hz       {swing}",
    ]
    if shaped["ballast_j"]:
        lines.append(f"Ballast            {shaped['ballast_j']:.5g} J keep the ramp limit")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Answer `perseus power`."""
    parser = argparse.ArgumentParser(prog="perseus power", description=__doc__.splitlines()[0])
    parser.add_argument("emulation", help="emulation.json, made with --power-interval 5ms")
    parser.add_argument("--band", default="0.1-20", metavar="HZ-HZ", help="default: 0.1-20")
    parser.add_argument("--ramp-limit", type=float, metavar="W_PER_S", help="asks for the ballast")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    try:
        low, high = map(float, options.band.split("-"))
    except ValueError:
        parser.error(f"--band: expected two frequencies such as 0.1-20, got '{options.band}'")
    emulation = json.loads(Path(options.emulation).read_text(encoding="utf-8"))
    shaped = shape(emulation, (low, high), options.ramp_limit)
    print(json.dumps(shaped, indent=2) if options.json else _sentences(shaped))
    return 0
