# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Ramps, spectrum and ballast of a power: docs/explanation/emulation.md, "Shape of the power"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST = 0.005
LONGEST = 0.02
MOST_VALUES = 1 << 21
LOW, HIGH, COLUMNS = 0.1, 20.0, 48
TOLERANCE = 1e-9


@dataclass
class Shape:
    """What perseus emulate states under ``power_shape``."""

    interval: float
    count: int
    ramps: dict[str, tuple[float, float] | None]
    rms: float
    band_rms: float | None  # None: the job is too short to tell the band's ends apart.
    share: float
    parts: NDArray[np.float64]  # Of the variance, by frequency.
    hertz: NDArray[np.float64]
    columns: NDArray[np.float64]
    ballast: float


def interval_of(seconds: float) -> float | None:
    """Return the length of a sample for a job that takes so long; None: it is too long."""
    interval = SHORTEST
    while seconds / interval + 2 > MOST_VALUES:
        interval *= 2
    return interval if interval <= LONGEST else None


def ramp(watts: NDArray[np.float64], count: int, window: float) -> tuple[float, float] | None:
    """Return the fastest rise and fall between neighbouring windows of ``count`` values."""
    if len(watts) < 2 * count:
        return None
    means = np.convolve(watts, np.full(count, 1 / count), "valid")
    changes = (means[count:] - means[:-count]) / window
    return max(0.0, float(changes.max())), max(0.0, float(-changes.min()))


def ballast(watts: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return the least power above ``watts`` that changes by ``step`` from value to value at most.

    By its definition, the greatest of all cones: quadratic, for short jobs.
    """
    places = np.arange(len(watts))
    held = [float((watts - step * np.abs(places - k)).max()) for k in places]
    return np.array(held)


def shape_of(
    watts: list[float], interval: float, band: tuple[float, float], limit: float = 0.0
) -> Shape:
    """Return the shape of a power given by means over intervals."""
    values = np.array(watts)
    count = len(values)
    ramps = {
        "ramp_1s": ramp(values, round(1 / interval), 1.0),
        "ramp_100ms": ramp(values, round(0.1 / interval), 0.1),
    }
    swings = values - values.mean()
    size = 1 << (count - 1).bit_length()
    powers = np.abs(np.fft.rfft(swings, size)) ** 2 / (size * count)
    if size > 1:
        powers[1 : (size + 1) // 2] *= 2
    hertz = np.arange(len(powers)) / (size * interval)
    powers[0] = 0.0
    resolved = (band[1] - band[0]) * (count * interval) >= 1 - 1e-9
    inside = (hertz >= band[0]) & (hertz <= band[1])
    variance = float((swings**2).mean())
    edges = LOW * (HIGH / LOW) ** (np.arange(COLUMNS + 1) / COLUMNS)
    edges[-1] = np.inf
    in_columns = powers * (hertz <= HIGH)
    columns, _ = np.histogram(hertz, bins=edges, weights=in_columns)
    return Shape(
        interval,
        count,
        ramps,
        math.sqrt(variance),
        math.sqrt(float(powers[inside].sum())) if resolved else None,
        float(powers[inside].sum()) / variance if variance else 0.0,
        powers * inside,
        hertz,
        np.sqrt(columns),
        float((ballast(values, limit * interval) - values).sum()) * interval if limit else 0.0,
    )


def shape_errors(
    have: dict[str, Any] | None, seconds: float, want: Shape | None, scale: float
) -> list[str]:
    """Say in what a stated shape differs.

    Parameters
    ----------
    have
        ``power_shape`` of emulation.json.
    seconds
        How long the job took.
    want
        The simulated shape; None: none is to be stated.
    scale
        Watts of which rounding is a share.
    """
    if have is None or want is None:
        return [f"power_shape of {seconds!r} s is {have}"] if have or want else []
    errors = []

    def check(name: str, stated: float, true: float, least: float) -> None:
        if not abs(stated - true) <= TOLERANCE * max(abs(true), least):
            errors.append(f"power_shape: {name} is {stated!r}, simulated {true!r}")

    check("interval_s", have["interval_s"], want.interval, 0.0)
    if have["values"] != want.count:
        return [*errors, f"power_shape: {have['values']} values, simulated {want.count}"]
    for (name, true), window in zip(want.ramps.items(), (1.0, 0.1), strict=True):
        stated = have[name]
        if stated is None or true is None:
            if stated is not true:
                errors.append(f"power_shape: {name} is {stated}, simulated {true}")
            continue
        check(f"rise of {name}", stated["rise_w_per_s"], true[0], scale / window)
        check(f"fall of {name}", stated["fall_w_per_s"], true[1], scale / window)
    # Of differences of powers: squares of what rounding leaves are far below.
    check("rms_w", have["rms_w"], want.rms, scale)
    stated_band = have["band"]
    unresolved = [name for name in ("rms_w", "share", "strongest_hz") if stated_band[name] is None]
    if want.band_rms is None:
        if len(unresolved) != 3:
            errors.append(f"power_shape: the band is not resolved, but stated as {stated_band}")
    elif unresolved:
        errors.append(f"power_shape: {unresolved} of the band are not stated")
    else:
        check("rms_w of the band", stated_band["rms_w"], want.band_rms, scale)
    if want.band_rms is not None and not unresolved and want.rms > 1e-6 * scale:
        check("share", stated_band["share"], want.share, 1e3)
        near = round(stated_band["strongest_hz"] * (len(want.parts) - 1) * 2 * want.interval)
        strongest = float(want.parts.max())
        nearby = float(want.parts[max(0, near - 2) : near + 3].max())
        if strongest > 0 and nearby < (1 - 1e-6) * strongest:
            errors.append(f"power_shape: the strongest is not at {stated_band['strongest_hz']} Hz")
    for k, (column, true_rms) in enumerate(zip(have["spectrum"], want.columns, strict=True)):
        check(f"column {k}", column["rms_w"], float(true_rms), 10 * scale)
    check("ballast_j", have["ballast_j"], want.ballast, scale * seconds)
    return errors
