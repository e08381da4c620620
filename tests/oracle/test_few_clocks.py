# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Plans of few clocks are the best of all sets of so many clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .few_clocks_check import compare_few_clocks
from .small_cases import FEW_CLOCKS, SmallCase

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("most", [2, 3])
@pytest.mark.parametrize("case", FEW_CLOCKS[:3], ids=str)
def test_few_clocks_are_proven(
    case: SmallCase, most: int, sosp24: Path, perseus_program: Path
) -> None:
    """The plan says so, and it is so."""
    del sosp24, perseus_program
    result = compare_few_clocks(case, most)
    assert result.claims_proof
    assert result.clocks <= most
    assert -1e-4 <= result.excess_percent <= 1e-4
