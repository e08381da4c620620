# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs hooks_worker.py in the Python that has a framework.

`PERSEUS_TORCH_PYTHON`, else build/zeus-venv (scripts/zeus-venv makes it), has PyTorch;
`PERSEUS_FRAMEWORKS_PYTHON`, else build/frameworks-venv (scripts/frameworks-venv), the others.
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
TORCH = os.environ.get("PERSEUS_TORCH_PYTHON") or str(ROOT / "build/zeus-venv/bin/python")
FRAMEWORKS = os.environ.get("PERSEUS_FRAMEWORKS_PYTHON") or str(
    ROOT / "build/frameworks-venv/bin/python"
)
LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.environ.get("PERSEUS_BINARY", "")

needs_torch = pytest.mark.skipif(
    not os.path.exists(TORCH), reason="no PyTorch: run scripts/zeus-venv"
)
needs_frameworks = pytest.mark.skipif(
    not os.path.exists(FRAMEWORKS), reason="no Megatron-Core: run scripts/frameworks-venv"
)
needs_programs = pytest.mark.skipif(
    not (LIBRARY and BINARY), reason="PERSEUS_CLIENT_LIBRARY and PERSEUS_BINARY are needed"
)


def needs(package: str) -> pytest.MarkDecorator:
    """Return what skips tests without a package of scripts/frameworks-venv."""
    found = Path(FRAMEWORKS).parents[1].glob(f"lib/python3*/site-packages/{package}")
    return pytest.mark.skipif(not any(found), reason=f"no {package}: run scripts/frameworks-venv")


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a trainer."""
    own = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    return {**os.environ, **own, **more}


def scenario(framework: str, name: str, *arguments: str) -> Any:
    """Run a scenario of hooks_worker.py and return what it printed."""
    python = TORCH if framework in ("torch", "ddp") else FRAMEWORKS
    done = subprocess.run(
        [python, "-B", str(HERE / "hooks_worker.py"), framework, name, *arguments],
        env=environment(),
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


def flat(order: list[str]) -> list[str]:
    """Return an order with the halves of fused computations one after the other."""
    return [
        half
        for action in order
        for half in (action[1 : action.index(")")].split(";") if action[0] == "(" else [action])
    ]
