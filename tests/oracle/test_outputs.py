# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random jobs: what all outputs say of one plan is the same (`python -m oracle.full outputs`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .output_check import check_outputs
from .random_jobs import random_job

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(1000, 1020))
def test_outputs_agree(seed: int, tmp_path: Path, perseus_program: Path) -> None:
    """Tables, --json, plan.json, the report and explain."""
    del perseus_program
    assert check_outputs(random_job(seed, tmp_path, conditions=True), 0.02) == []
