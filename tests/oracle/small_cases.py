# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Small pipelines cut from the measured profiles, for proven discrete optima."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cases import Case, emulation_cases
from .tables import Profile, Tables, baseline_option

if TYPE_CHECKING:
    from .tables import Option


@dataclass(frozen=True)
class SmallCase:
    """Some stages and every n-th clock of a measured profile."""

    source: str
    stages: int
    microbatches: int
    stride: int
    slowdown: float

    def __str__(self) -> str:
        """Name for test identifiers."""
        shape = f"{self.stages}x{self.microbatches}"
        return f"{self.source}-{shape}-every{self.stride}-{self.slowdown}x"

    def original(self) -> Case:
        """Return the measured case it is cut from."""
        return next(c for c in emulation_cases((self.microbatches,)) if c.name == self.source)

    def profile(self) -> Profile:
        """Cut the table: the first stages and, as the last, the profile's last."""
        whole = self.original().profile()
        kept = [*range(self.stages - 1), whole.num_stages - 1]
        tables: Tables = {}
        for stage, original in enumerate(kept):
            for instruction in ("forward", "backward"):
                tables[stage, instruction] = self._thin(whole.tables[original, instruction])
        return Profile(tables, 0)

    def _thin(self, options: list[Option]) -> list[Option]:
        top = baseline_option(options)
        rest = sorted((o for o in options if o is not top), key=lambda o: -float(o.knob))
        return [top, *rest[self.stride - 1 :: self.stride]]


QUICK = [
    SmallCase("gpt3-a100", 2, 3, 4, 1.0),
    SmallCase("bloom-a40", 2, 4, 2, 1.02),
    SmallCase("gpt3-a100", 4, 4, 1, 1.0),
    SmallCase("bloom-a40", 4, 4, 1, 1.05),
]

FULL = [
    *QUICK,
    SmallCase("gpt3-a100", 2, 2, 1, 1.0),
    SmallCase("bloom-a40", 2, 2, 1, 1.0),
    SmallCase("gpt3-a100", 2, 4, 2, 1.02),
    SmallCase("bloom-a40", 2, 3, 4, 1.05),
    SmallCase("gpt3-a100", 3, 2, 2, 1.0),
    SmallCase("gpt3-a100", 3, 3, 1, 1.0),
    SmallCase("bloom-a40", 3, 3, 4, 1.0),
    SmallCase("gpt3-a100", 3, 4, 2, 1.05),
    SmallCase("bloom-a40", 3, 4, 2, 1.0),
    SmallCase("gpt3-a100", 4, 3, 2, 1.0),
    SmallCase("bloom-a40", 4, 3, 6, 1.05),
    SmallCase("gpt3-a100", 4, 4, 6, 1.1),
    SmallCase("gpt3-a100", 4, 4, 1, 1.1),
    SmallCase("bloom-a40", 4, 4, 1, 1.0),
    SmallCase("gpt3-a100", 4, 6, 1, 1.0),
    SmallCase("gpt3-a100", 4, 6, 1, 1.05),
    SmallCase("bloom-a40", 4, 6, 1, 1.0),
    SmallCase("gpt3-a100", 6, 6, 1, 1.0),
]

# So few clocks that all sets of some of them can be tried.
FEW_CLOCKS = [
    SmallCase("gpt3-a100", 2, 3, 12, 1.02),
    SmallCase("bloom-a40", 2, 4, 14, 1.05),
    SmallCase("gpt3-a100", 3, 4, 12, 1.0),
    SmallCase("bloom-a40", 3, 3, 14, 1.02),
    SmallCase("gpt3-a100", 4, 4, 14, 1.05),
    SmallCase("bloom-a40", 4, 4, 14, 1.02),
    SmallCase("gpt3-a100", 3, 3, 10, 1.1),
    SmallCase("bloom-a40", 2, 6, 12, 1.0),
]
