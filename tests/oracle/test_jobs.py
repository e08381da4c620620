# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random jobs of every schedule, also with microbatches that differ: all that is written."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import seeds, solve_networks
from .emulation_check import InfeasibleError, check_emulation
from .job_check import check_job
from .network_check import check_project
from .output_check import check_outputs
from .random_emulations import KINDS, random_emulation
from .random_jobs import random_job

if TYPE_CHECKING:
    from pathlib import Path

EXACT = 1e-9
POINTS = 8


@pytest.mark.parametrize("seed", seeds(0, 40))
def test_random_job(seed: int, tmp_path: Path) -> None:
    """Delays, powers by rank, split and fused work, labels, constraints."""
    assert check_job(random_job(seed, tmp_path), 0.02) == []


@pytest.mark.parametrize("seed", seeds(100, 30))
def test_random_job_that_waits_at_clocks(seed: int, tmp_path: Path) -> None:
    """The frontier, plan and baseline where what a GPU that waits draws depends on its clock."""
    assert check_job(random_job(seed, tmp_path, waiting=True), 0.02) == []


@pytest.mark.parametrize("work", [False, True])
@pytest.mark.parametrize("seed", seeds(0, 10))
def test_small_random_job_is_near_the_discrete_optimum(
    seed: int, work: bool, tmp_path: Path
) -> None:
    """Without constraints, and with the whole effort."""
    job = random_job(seed, tmp_path, largest=2, plain=True, work=work)
    assert check_job(job, 1.0, optimum_seconds=20.0) == []


@pytest.mark.parametrize("seed", seeds(0, 40))
@pytest.mark.usefixtures("frontier_program")
def test_frontier_equals_linear_program(seed: int, tmp_path: Path) -> None:
    """The solver on what a work table makes of a pipeline."""
    pipeline = random_job(seed, tmp_path, plain=True, work=True).job.pipeline()
    project = {
        "activities": [pipeline.effective(i) for i in range(len(pipeline.options))],
        "precedences": pipeline.dag.precedences,
    }
    (answer,) = solve_networks([project])
    exact, _, errors = check_project(project, answer, POINTS, sum(pipeline.blocking))
    assert errors == []
    assert exact.difference <= EXACT


@pytest.mark.parametrize("seed", seeds(0, 40))
def test_random_job_with_work(seed: int, tmp_path: Path) -> None:
    """Everything that is written, also where computations of different work share a clock."""
    assert check_job(random_job(seed, tmp_path, work=True), 0.02) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 6))
def test_emulation_equals_the_simulator(seed: int, kind: str, tmp_path: Path) -> None:
    """Noise, late clocks and stragglers on microbatches that differ."""
    with contextlib.suppress(InfeasibleError):
        assert check_emulation(random_emulation(seed, tmp_path, kind, work=True)) == []


@pytest.mark.parametrize("seed", seeds(1000, 20))
def test_outputs_agree(seed: int, tmp_path: Path) -> None:
    """Tables, --json, plan.json, the report and explain."""
    assert check_outputs(random_job(seed, tmp_path, conditions=True), 0.02) == []
