# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Compares a frontier with certified linear programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .lp import LinearProgram, Network

if TYPE_CHECKING:
    from .binary import Curve


@dataclass(frozen=True)
class Comparison:
    """How far a frontier is from linear programs.

    Attributes
    ----------
    points
        Number of times compared.
    difference
        Largest distance of the frontier to the certified bracket, relative.
    bracket
        Largest width of a bracket, relative: what the programs leave open.
    """

    points: int
    difference: float
    bracket: float


def sample_times(curve: Curve, network: Network, count: int) -> list[float]:
    """Times that span a frontier: uniform ones, and breakpoints and their middles.

    The least of them is the network's own fastest, so that it is feasible
    whatever the frontier claims.
    """
    first, last = network.fastest, network.cheapest
    uniform = (count + 1) // 2
    times = {first + (last - first) * k / max(uniform - 1, 1) for k in range(uniform)}
    breakpoints = [t for t in curve.times if t > first]
    rest = max(count - len(times), 2)
    for k in range(rest):
        if not breakpoints:
            break
        i = k * len(breakpoints) // rest
        time = breakpoints[i]
        if k % 2 and i + 1 < len(breakpoints):
            time = 0.5 * (time + breakpoints[i + 1])
        times.add(min(time, last))
    k = 0
    while len(times) < count and last > first:
        times.add(first + (last - first) * ((k + 1) * 0.6180339887498949 % 1.0))
        k += 1
    # Downwards, as the dual simplex restarts best.
    return sorted(times, reverse=True)


def compare(
    curve: Curve,
    network: Network,
    count: int,
    waiting_power: float = 0.0,
    magnitude: float | None = None,
) -> Comparison:
    """Compare a frontier with linear programs at ``count`` times.

    Parameters
    ----------
    curve
        The frontier under test.
    network
        The same problem for the linear program.
    count
        Number of times.
    waiting_power
        Watts that time itself costs: the curve holds cost + power x time.
    magnitude
        What differences are relative to; the energy itself by default.
    """
    program = LinearProgram(network)
    times = sample_times(curve, network, count)
    worst = width = 0.0
    for time in times:
        bracket = program.solve(time)
        lower = bracket.lower + waiting_power * bracket.time
        upper = bracket.upper + waiting_power * bracket.time
        energy = curve.at(bracket.time, waiting_power)
        # Energies are sums of this size; where they cancel out, digits are lost.
        summed = abs(upper - waiting_power * bracket.time) + waiting_power * bracket.time
        scale = magnitude or max(abs(upper), 1e-3 * summed) or 1.0
        worst = max(worst, (lower - energy) / scale, (energy - upper) / scale)
        width = max(width, (upper - lower) / scale)
    return Comparison(len(times), worst, width)


def shape_errors(
    curve: Curve, network: Network, waiting_power: float, tolerance: float
) -> list[str]:
    """Say what is wrong with the form of a frontier; empty if nothing is.

    Checked: times ascend, slopes never rise (convexity) and end at 0, slopes agree with
    the energies, and the first and last breakpoints are T_min and T*.
    """
    errors = []
    for name, have, want in (
        ("first", curve.times[0], network.fastest),
        ("last", curve.times[-1], network.cheapest),
    ):
        if abs(have - want) > tolerance * want:
            errors.append(f"{name} breakpoint at {have!r}, not {want!r}")
    if curve.slopes[-1] != 0:
        errors.append(f"slope {curve.slopes[-1]!r} in the last row")
    for i in range(len(curve.times) - 1):
        span = curve.times[i + 1] - curve.times[i]
        if span <= 0:
            errors.append(f"times do not ascend at row {i + 1}")
            continue
        # Slopes that differ only beyond the digits of a double print as equal.
        if curve.slopes[i] < curve.slopes[i + 1]:
            errors.append(f"slopes rise at row {i + 1}")
        fall = curve.energies[i] - curve.energies[i + 1] + waiting_power * span
        slack = 1e-13 * (abs(curve.energies[i]) + waiting_power * curve.times[i])
        slack += 1e-15 * curve.times[i] * curve.slopes[i]
        if abs(fall - curve.slopes[i] * span) > slack + tolerance * abs(fall):
            errors.append(f"slope {curve.slopes[i]!r} of row {i} does not match the energies")
    return errors
