# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random small projects, ordinary and degenerate."""

from __future__ import annotations

import random
from typing import Any

_KINDS = (
    "convex",
    "any",
    "one option",
    "equal times",
    "equal costs",
    "zero costs",
    "zero durations",
    "integers",
    "tiny steps",
    "huge spread",
)


def _curve(rng: random.Random, kind: str, unit: float, watts: float) -> list[list[float]]:
    count = 1 if kind == "one option" else rng.randint(1, 7)
    if kind == "convex":
        time, cost, slope = rng.uniform(0, 5), 0.0, rng.uniform(0.1, 1)
        points = [[time, cost]]
        for _ in range(count - 1):
            step = rng.uniform(0.01, 2)
            time += step
            cost += slope * step
            slope *= rng.uniform(1.01, 4)
            points.append([time, cost])
        # Mirrored in time: steep where fast, flat where slow.
        last = points[-1][0] + points[0][0]
        points = [[last - t, c] for t, c in points]
    elif kind == "integers":
        points = [[float(rng.randint(0, 6)), float(rng.randint(-4, 12))] for _ in range(count)]
    elif kind == "equal times":
        time = rng.uniform(0, 3)
        points = [[time, rng.uniform(-5, 20)] for _ in range(count)]
    elif kind == "equal costs":
        cost = rng.uniform(-5, 20)
        points = [[rng.uniform(0, 5), cost] for _ in range(count)]
    elif kind == "zero costs":
        points = [[rng.uniform(0, 5), 0.0] for _ in range(count)]
    elif kind == "zero durations":
        points = [[0.0, rng.uniform(0, 9)], *([rng.uniform(0, 2), -1.0] for _ in range(count - 1))]
    elif kind == "tiny steps":
        time = rng.uniform(1, 2)
        points = [[time + k * 1e-6, 5 - k * rng.uniform(1e-6, 1e-5)] for k in range(count)]
    elif kind == "huge spread":
        points = [[10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-3, 3)] for _ in range(count)]
    else:
        points = [[rng.uniform(0, 10), rng.uniform(-20, 40)] for _ in range(count)]
    rng.shuffle(points)
    return [[t * unit, c * unit * watts] for t, c in points]


def random_networks(seed: int, count: int) -> list[dict[str, Any]]:
    """Return ``count`` random projects in the frontier tool's input format.

    Parameters
    ----------
    seed
        The same seed gives the same projects.
    count
        How many.

    Notes
    -----
    From 1 to 14 activities; sparse to dense precedences, with and without
    delays; parts that are not connected; curves that are convex, not convex or
    degenerate; time units from 1 microsecond to 100 s, prices from 1 mW to 10 kW.
    """
    rng = random.Random(seed)
    networks: list[dict[str, Any]] = []
    for _ in range(count):
        size = rng.randint(1, 14)
        density = rng.choice((0.0, 0.1, 0.25, 0.5, 0.9))
        unit = 10.0 ** rng.randint(-6, 2)
        watts = 10.0 ** rng.randint(-3, 4)
        only = rng.choice((None, "convex", "any", *_KINDS))
        delays = rng.random() < 0.3
        activities = []
        for _ in range(size):
            kind = only if only and rng.random() < 0.8 else rng.choice(_KINDS)
            activities.append(_curve(rng, kind, unit, watts))
        rank = list(range(size))
        rng.shuffle(rank)
        precedences = [
            [i, j, rng.uniform(0, 3) * unit if delays and rng.random() < 0.5 else 0.0]
            for i in range(size)
            for j in range(size)
            if rank[i] < rank[j] and rng.random() < density
        ]
        networks.append({"activities": activities, "precedences": precedences})
    return networks
