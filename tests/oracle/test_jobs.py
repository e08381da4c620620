# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random jobs of every schedule: everything that is written is recomputed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .job_check import check_job
from .random_jobs import random_job

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(40))
def test_random_job(seed: int, tmp_path: Path, perseus_program: Path) -> None:
    """Delays, powers by rank, split and fused work, labels, constraints."""
    del perseus_program
    assert check_job(random_job(seed, tmp_path), 0.02) == []


@pytest.mark.parametrize("seed", range(100, 130))
def test_random_job_that_waits_at_clocks(seed: int, tmp_path: Path, perseus_program: Path) -> None:
    """The frontier, plan and baseline where what a GPU that waits draws depends on its clock."""
    del perseus_program
    assert check_job(random_job(seed, tmp_path, waiting=True), 0.02) == []


@pytest.mark.parametrize("seed", range(10))
def test_small_random_job_is_near_the_discrete_optimum(
    seed: int, tmp_path: Path, perseus_program: Path
) -> None:
    """Without constraints, and with the whole effort."""
    del perseus_program
    job = random_job(seed, tmp_path, largest=2, plain=True)
    assert check_job(job, 1.0, optimum_seconds=20.0) == []
