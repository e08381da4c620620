# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""No plan with few changes of clock is below the optimum that HiGHS proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .changes_check import OPTIMAL_PERCENT, compare_changes
from .small_cases import FEW_CLOCKS, SmallCase

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("most", [2, 6])
@pytest.mark.parametrize("case", [FEW_CLOCKS[0], FEW_CLOCKS[3]], ids=str)
def test_small_plans_are_the_optimum_and_say_so(
    case: SmallCase, most: int, sosp24: Path, perseus_program: Path
) -> None:
    """The bound is met, and HiGHS finds nothing better."""
    del sosp24, perseus_program
    result = compare_changes(case, most)
    assert result.proved
    assert abs(result.excess_percent) < OPTIMAL_PERCENT
    assert abs(result.gap_percent) < OPTIMAL_PERCENT
