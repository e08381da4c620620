# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Numbers drawn by chance (docs/explanation/emulation.md, "Noise"), without code of Perseus."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dag import Dag

SPREAD = math.sqrt(3)
COMPUTATION_WORD, STAGE_WORD, GPU_WORD, STRAGGLER_WORD, LATENCY_WORD = 1, 2, 3, 4, 5
RANK_WORD, RARE_WORD = 6, 7
MOST = 2 * SPREAD  # No draw is further from 0.
_MASK = (1 << 64) - 1


def splitmix64(x: int) -> int:
    """Return the next number of the generator of Steele, Lea and Flood 2014."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def hash_words(seed: int, *words: int) -> int:
    """Hash words under a seed."""
    h = seed
    for word in words:
        h = splitmix64(h ^ word)
    return h


def draw(sigma: float, seed: int, *words: int) -> float:
    """Return a noise factor: mean 1, standard deviation sigma."""
    if sigma == 0:
        return 1.0
    return 1 + sigma * standard(seed, *words)


def standard(seed: int, *words: int) -> float:
    """Return a draw with mean 0 and standard deviation 1."""
    h = hash_words(seed, *words)
    u = sum((((h >> shift) & 0xFFFF) + 0.5) / 65536 for shift in (0, 16, 32, 48))
    return SPREAD * (u - 2)


def rare(length: float, share: float, seed: int, *words: int) -> float:
    """Return what a computation adds to its factor because some take much longer; mean 0."""
    if length == 0 or share == 0:
        return 0.0
    uniform = (hash_words(seed, *words, RARE_WORD) >> 11) / 2**53
    own = 3 * (uniform / share) ** 2 if uniform < share else 0.0
    return length * (own - share)


def following(correlation: float, draws: list[float]) -> list[float]:
    """Let each draw follow the one before it; the first is as it was drawn."""
    followed = draws[:1]
    for fresh in draws[1:]:
        mixed = correlation * followed[-1] + math.sqrt(1 - correlation**2) * fresh
        followed.append(min(MOST, max(-MOST, mixed)))
    return followed


def computation_numbers(dag: Dag) -> list[int]:
    """Number the computations as the noise words do.

    By start when forwards, I and W take one unit, B two and fused pairs the sum of theirs; among
    those that start together lower ranks first.
    """
    units = [sum(2 if a.type == "backward" else 1 for a in step) for step in dag.steps]
    before: list[list[int]] = [[] for _ in units]
    for source, target, _ in dag.precedences:
        before[target].append(source)
    start = [0] * len(units)
    for i in dag.topological_order():
        start[i] = max((start[j] + units[j] for j in before[i]), default=0)
    numbers = [0] * len(units)
    ordered = sorted(range(len(units)), key=lambda i: (start[i], dag.rank[i], i))
    for number, i in enumerate(ordered):
        numbers[i] = number
    return numbers
