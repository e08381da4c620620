# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""examples/torch_pipeline: it runs, with the losses that it has without Perseus, and saves.

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
LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.environ.get("PERSEUS_BINARY", "")

pytestmark = [
    pytest.mark.skipif(not os.path.exists(TORCH), reason="no PyTorch: run scripts/zeus-venv"),
    pytest.mark.skipif(
        not (LIBRARY and BINARY), reason="PERSEUS_CLIENT_LIBRARY and PERSEUS_BINARY are needed"
    ),
]


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved-1f1b", "zbv-zero-bubble"])
def test_the_example_runs(schedule: str) -> None:
    """Profile, plan, straggler, report.

    Losses must be the same. What is saved is held against the emulator by the example itself, and
    depends on a machine that wakes its processes in time: here only that there was a plan.
    """
    done = subprocess.run(
        [TORCH, "-B", "examples/torch_pipeline/run.py", "--schedule", schedule],
        cwd=ROOT,
        env={**os.environ, "PERSEUS_BINARY": BINARY},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = done.stdout
    assert "losses are the same, bit for bit" in said, said + done.stderr
    saved = re.search(r"^planned +[0-9.]+ +[0-9.]+ +([-0-9.]+) %", said, re.MULTILINE)
    assert saved is not None, said
    assert "the emulator says of this plan" in said, said
