# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Plans are within 0.02 % of the proven discrete optimum on small pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .discrete_check import compare_with_optimum
from .small_cases import QUICK, SmallCase

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_plan_is_near_the_discrete_optimum(
    case: SmallCase, sosp24: Path, perseus_program: Path
) -> None:
    """At most 0.02 % above, and never below."""
    del sosp24, perseus_program
    result = compare_with_optimum(case)
    assert result.proved
    assert result.errors == []
    assert -1e-6 <= result.excess_percent <= 0.02
