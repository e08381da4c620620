# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the workers of the tests of hooks in trainers of others.

`PERSEUS_FRAMEWORKS_PYTHON`, else build/frameworks-venv (scripts/frameworks-venv makes it), is a
Python with these packages.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = os.environ.get("PERSEUS_FRAMEWORKS_PYTHON") or str(
    ROOT / "build/frameworks-venv/bin/python"
)
BINARY = os.environ.get("PERSEUS_BINARY", "")


def needs(package: str) -> pytest.MarkDecorator:
    """Return what skips tests without a package of scripts/frameworks-venv."""
    found = Path(PYTHON).parents[1].glob(f"lib/python3*/site-packages/{package}")
    return pytest.mark.skipif(not any(found), reason=f"no {package}: run scripts/frameworks-venv")


needs_frameworks = pytest.mark.skipif(
    not os.path.exists(PYTHON), reason="no Megatron-Core and DeepSpeed: run scripts/frameworks-venv"
)


def scenario(worker: str, *arguments: str) -> Any:
    """Run a scenario of a worker and return what it printed."""
    done = subprocess.run(
        [PYTHON, "-B", str(HERE / worker), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "python"),
            "OMP_NUM_THREADS": "1",
            "DS_ACCELERATOR": "cpu",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def planned(schedule: dict[str, Any], stages: int, microbatches: int) -> list[list[str]]:
    """Return the order that Perseus plans for, a row for each rank."""
    if not BINARY:
        pytest.skip("PERSEUS_BINARY names no binary")
    command = [BINARY, "schedule", str(schedule["schedule"]), "--stages", str(stages)]
    command += ["--microbatches", str(microbatches), "--format", "csv"]
    command += ["--virtual-stages", str(schedule.get("virtual_stages", 1))]
    if "microbatch_group_size" in schedule:
        command += ["--microbatch-group-size", str(schedule["microbatch_group_size"])]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return [[a for a in row if a] for row in csv.reader(io.StringIO(done.stdout))]
