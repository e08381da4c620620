# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""examples/torch_pipeline on sequences of varying lengths: a plan for each iteration.

`PERSEUS_TORCH_PYTHON`, else build/zeus-venv, is a Python with PyTorch.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TORCH = os.environ.get("PERSEUS_TORCH_PYTHON") or str(ROOT / "build/zeus-venv/bin/python")
LIBRARIES = ("PERSEUS_CLIENT_LIBRARY", "PERSEUS_PLANNER_LIBRARY", "PERSEUS_BINARY")

pytestmark = [
    pytest.mark.skipif(not os.path.exists(TORCH), reason="no PyTorch: run scripts/zeus-venv"),
    pytest.mark.skipif(
        not all(os.environ.get(name) for name in LIBRARIES), reason=f"{LIBRARIES} are needed"
    ),
]

COUNTS = re.compile(
    r"^4 ranks, (\d+) iterations: (\d+) began with a plan of their own, (\d+) plans came too late, "
    r"(\d+) were overtaken, (\d+) failed$",
    re.MULTILINE,
)


def test_the_example_trains_on_variable_lengths() -> None:
    """Losses are those without Perseus; iterations follow plans of their own; none is lost.

    What is saved depends on a machine that wakes its processes in time: the example itself holds
    it against the plans, here only that they predict something.
    """
    done = subprocess.run(
        [TORCH, "-B", "examples/torch_pipeline/run.py", "--variable-lengths", "7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = done.stdout
    assert "losses are the same, bit for bit" in said, said + done.stderr
    predicted = re.search(r"^ +as these plans predict +[0-9.]+ +[0-9.]+ +([-0-9.]+) %", said, re.M)
    assert predicted is not None, said
    assert float(predicted[1]) > 5
    counts = COUNTS.search(said)
    assert counts is not None, said
    iterations, used, late, overtaken, failed = map(int, counts.groups())
    assert failed == 0
    # All ranks followed plans of their steps before anything was measured.
    assert used >= 4 * 4
    # One for each iteration and rank, and one for the batch that was read ahead and not trained
    # on. That one may still be waiting for its iteration, or for its plan.
    assert 4 * iterations - 4 <= used + late + overtaken <= 4 * (iterations + 1)
