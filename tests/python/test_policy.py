# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Rival policies: what their plans keep to, and that `perseus emulate` says the same of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import perseus
from perseus.analysis import policy
from planner_jobs import needs_library

pytestmark = needs_library

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def planner() -> perseus.Planner:
    """Return the planner of the example, with fewer microbatches."""
    return perseus.Planner(EXAMPLES / "gpt3-1.3b-a100-sxm.csv", "1f1b", 6, 83.64)


def _clocks(plan: policy.RivalPlan) -> list[set[int]]:
    return [{mhz for _, mhz in rank} for rank in plan.clocks]


def test_each_keeps_to_what_it_is(planner: perseus.Planner) -> None:
    """One clock; one a rank; no longer than at maximum clocks; less energy than those."""
    usual = planner.baseline
    target = 1.1 * usual.iteration_time_seconds
    plans = {name: policy.plan(planner, name, target) for name in policy.NAMES}
    assert len(set().union(*_clocks(plans["zeus-global"]))) == 1
    assert all(len(own) == 1 for own in _clocks(plans["zeus-per-stage"]))
    assert plans["envpipe"].seconds <= usual.iteration_time_seconds * (1 + 1e-9)
    best = planner.plan("1.1x", effort=0.1)
    for name, plan in plans.items():
        assert plan.seconds <= target, name
        assert best.energy_joules < plan.joules < usual.energy_joules, name


def test_what_cannot_be_is_refused(planner: perseus.Planner) -> None:
    """A time that is too short, a name, a schedule with split backwards."""
    with pytest.raises(perseus.PlannerError, match="its fastest takes"):
        policy.plan(planner, "zeus-per-stage")
    with pytest.raises(perseus.PlannerError, match="the names are zeus-global"):
        policy.plan(planner, "zeus")
    profile = EXAMPLES / "gpt3-1.3b-a100-sxm.csv"
    split = perseus.Planner(
        profile, "zbv-zero-bubble", 8, 83.64, stages=4, virtual_stages=2, split_ratio=0.5
    )
    with pytest.raises(perseus.PlannerError, match="whole forwards and backwards"):
        policy.plan(split, "envpipe")


@pytest.mark.skipif("PERSEUS_BINARY" not in os.environ, reason="PERSEUS_BINARY names no program")
@pytest.mark.parametrize("name", policy.NAMES)
def test_emulate_says_the_same(planner: perseus.Planner, name: str, tmp_path: Path) -> None:
    """Of the plan that is written."""
    plan = policy.plan(planner, name, 1.1 * planner.baseline.iteration_time_seconds)
    (tmp_path / "plan.py").write_text(plan.text, encoding="utf-8")
    command = [os.environ["PERSEUS_BINARY"], "emulate", str(EXAMPLES / "gpt3-1.3b-a100-sxm.csv")]
    command += ["--schedule", "1f1b", "--microbatches", "6", "--blocking-power", "83.64"]
    command += ["--plan", str(tmp_path / "plan.py"), "--iterations", "1", "--json"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert said["time_s"] == pytest.approx(plan.seconds, rel=1e-9)
    assert said["energy_j"] == pytest.approx(plan.joules, rel=1e-9)
