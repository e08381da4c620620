# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Plans whose computations share knobs are the best of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .grouped_check import GRANULARITIES, MOST_SHORT, compare_grouped
from .small_cases import SmallCase
from .tables import write_profile

if TYPE_CHECKING:
    from pathlib import Path

CASES = [
    SmallCase("gpt3-a100", 4, 6, 2, 1.02),
    SmallCase("bloom-a40", 4, 6, 1, 1.05),
    SmallCase("bloom-a40", 6, 8, 3, 1.1),
]


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_grouped_plan_is_optimal(
    case: SmallCase, granularity: str, sosp24: Path, perseus_program: Path, tmp_path: Path
) -> None:
    """No plan with the same groups saves a hundredth of a point more."""
    del sosp24, perseus_program
    profile = case.profile()
    power = case.original().blocking_power
    path = tmp_path / "profile.csv"
    write_profile(path, profile.tables)
    arguments: list[str | Path] = [path, "--schedule", "1f1b", "--stages", str(case.stages)]
    arguments += ["--microbatches", str(case.microbatches), "--blocking-power", repr(power)]
    result = compare_grouped(
        arguments, profile, case.microbatches, power, granularity, case.slowdown
    )
    assert result.proved
    assert result.errors == []
    assert result.short <= MOST_SHORT * (1 + 1e-6)
