# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How long the sequences of each microbatch are: what a data loader knows before the step."""

from __future__ import annotations

import random

REFERENCE = 16  # Tokens of a sequence in the profile, and of all where lengths do not vary.
SHORTEST, LONGEST = 4, 32
SPREAD = 0.5  # Standard deviation of the logarithm.


def lengths_of(seed: int | None, iteration: int, replica: int, microbatches: int) -> list[int]:
    """Return the tokens of a sequence of each microbatch of one pipeline; all alike: no seed."""
    if seed is None:
        return [REFERENCE] * microbatches
    draw = random.Random(f"{seed} {iteration} {replica}")
    return [
        min(max(round(REFERENCE * draw.lognormvariate(0, SPREAD)), SHORTEST), LONGEST)
        for _ in range(microbatches)
    ]


def work_of(lengths: list[int]) -> list[float]:
    """Return how many times as long as in the profile each microbatch lasts."""
    return [length / REFERENCE for length in lengths]
