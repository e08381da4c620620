# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The frontier equals certified linear programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import solve_networks
from .cases import Case, network_of
from .frontier_check import compare, shape_errors
from .measured import measured
from .network_check import check_project
from .random_networks import random_networks
from .run_plan import run_frontier

if TYPE_CHECKING:
    from pathlib import Path

# What rounding the input to the solver's integers may change, and what the
# solver itself may.
QUANTISATION = 1e-8
EXACT = 1e-9
POINTS = 50


@pytest.mark.parametrize("case", measured((12, 24)), ids=str)
def test_frontier_equals_linear_program(case: Case, perseus_program: Path) -> None:
    """frontier.csv against 50 linear programs, and its form."""
    del perseus_program
    pipeline = case.pipeline()
    network = network_of(pipeline)
    curve = run_frontier(case.arguments())
    power = sum(pipeline.blocking)
    assert shape_errors(curve, network, power, QUANTISATION) == []
    result = compare(curve, network, POINTS, power)
    assert result.points >= POINTS
    assert result.bracket <= 1e-11
    assert result.difference <= QUANTISATION


@pytest.mark.parametrize("case", measured((12,)), ids=str)
def test_solver_equals_linear_program_on_pipelines(case: Case, frontier_program: Path) -> None:
    """The general solver on the same pipelines, the program given its integers."""
    del frontier_program
    pipeline = case.pipeline()
    project = pipeline_project(case)
    (answer,) = solve_networks([project])
    exact, quantisation, errors = check_project(project, answer, POINTS, sum(pipeline.blocking))
    assert errors == []
    assert exact.bracket <= 1e-11
    assert exact.difference <= EXACT
    assert quantisation.difference <= QUANTISATION


def pipeline_project(case: Case) -> dict[str, Any]:
    """Return a case as a project for the frontier tool."""
    pipeline = case.pipeline()
    return {
        "activities": [pipeline.effective(i) for i in range(len(pipeline.options))],
        "precedences": pipeline.dag.precedences,
    }


def test_solver_equals_linear_program_on_random_networks(frontier_program: Path) -> None:
    """200 random projects, ordinary and degenerate."""
    del frontier_program
    projects = random_networks(20240501, 200)
    for number, (project, answer) in enumerate(
        zip(projects, solve_networks(projects), strict=True)
    ):
        exact, quantisation, errors = check_project(project, answer)
        assert errors == [], number
        assert exact.bracket <= 1e-10, number
        assert exact.difference <= EXACT, number
        assert quantisation.difference <= QUANTISATION, number
