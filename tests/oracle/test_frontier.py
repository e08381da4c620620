# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The frontier equals certified linear programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import perseus, solve_networks
from .cases import Case, network_of
from .dag import (
    BACKWARD,
    FORWARD,
    RECOMPUTE,
    Fixed,
    build_dag,
    cost_pipeline,
    parse_schedule,
)
from .frontier_check import compare, shape_errors
from .measured import measured
from .network_check import check_project
from .random_networks import random_networks
from .run_plan import run_frontier
from .tables import Option, read_profile, write_profile

if TYPE_CHECKING:
    from pathlib import Path

# Relative changes by rounding the input to the solver's integers, and by the solver itself.
QUANTISATION = 1e-8
EXACT = 1e-9
POINTS = 50


@pytest.mark.parametrize("case", measured((12, 24)), ids=str)
def test_frontier_equals_linear_program(case: Case) -> None:
    """frontier.csv against 50 linear programs, and its form."""
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
@pytest.mark.usefixtures("frontier_program")
def test_solver_equals_linear_program_on_pipelines(case: Case) -> None:
    """The general solver on the same pipelines, the program given its integers."""
    pipeline = case.pipeline()
    project = pipeline_project(case)
    (answer,) = solve_networks([project])
    exact, quantisation, errors = check_project(project, answer, POINTS, sum(pipeline.blocking))
    assert errors == []
    assert exact.bracket <= 1e-11
    assert exact.difference <= EXACT
    assert quantisation.difference <= QUANTISATION


def test_frontier_of_early_recomputation(tmp_path: Path) -> None:
    """Its recomputations are activities of their own, early ones without the gradient's wait."""
    stages, microbatches, power = 3, 5, 80.0
    tables = {
        (stage, kind): [
            Option(str(mhz), work * (8 + 20 * 1410 / mhz), work * (1500 + 3 * (mhz / 100) ** 2.3))
            for mhz in range(1410, 800, -90)
        ]
        for stage in range(stages)
        for kind, work in ((FORWARD, 1 + stage / 7), (BACKWARD, 2.0), (RECOMPUTE, 0.9 - stage / 9))
    }
    path = tmp_path / "profile.csv"
    write_profile(path, tables)
    shape = ["--stages", str(stages), "--microbatches", str(microbatches)]
    name = "early-recomputation-1f1b"
    schedule = parse_schedule(perseus(["schedule", name, *shape, "--format", "csv"]))
    assert sum(len(step) == 1 and step[0].type == RECOMPUTE for step in schedule[0]) == 2
    pipeline = cost_pipeline(read_profile(path), build_dag(schedule, Fixed()), [power])
    curve = run_frontier([path, "--schedule", name, *shape, "--blocking-power", repr(power)])
    network = network_of(pipeline)
    assert shape_errors(curve, network, stages * power, QUANTISATION) == []
    assert compare(curve, network, POINTS, stages * power).difference <= QUANTISATION


def pipeline_project(case: Case) -> dict[str, Any]:
    """Return a case as a project for the frontier tool."""
    pipeline = case.pipeline()
    return {
        "activities": [pipeline.effective(i) for i in range(len(pipeline.options))],
        "precedences": pipeline.dag.precedences,
    }


@pytest.mark.usefixtures("frontier_program")
def test_solver_equals_linear_program_on_random_networks() -> None:
    """200 random projects, ordinary and degenerate."""
    projects = random_networks(20240501, 200)
    for number, (project, answer) in enumerate(
        zip(projects, solve_networks(projects), strict=True)
    ):
        exact, quantisation, errors = check_project(project, answer)
        assert errors == [], number
        assert exact.bracket <= 1e-10, number
        assert exact.difference <= EXACT, number
        assert quantisation.difference <= QUANTISATION, number
