# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Skips what cannot run here, and says why."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from . import binary

sys.path.insert(0, str(binary.REPOSITORY / "python"))
os.environ.update(binary.package_environment())

if TYPE_CHECKING:
    from pathlib import Path


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let a module that skips as a whole (no highspy) pass."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session")
def perseus_program() -> Path:
    """Return the path of the perseus binary, or skip."""
    path = binary.perseus_binary()
    if not path.is_file():
        pytest.skip(f"no perseus binary at {path} (build it, or set PERSEUS_BINARY)")
    return path


@pytest.fixture(scope="session")
def frontier_program() -> Path:
    """Return the path of the frontier tool, or skip."""
    path = binary.frontier_tool()
    if not path.is_file():
        pytest.skip(f"no frontier_tool at {path} (build it, or set PERSEUS_FRONTIER_TOOL)")
    return path


@pytest.fixture(scope="session")
def fleet_program() -> Path:
    """Return the path of the tool that divides power, or skip."""
    path = binary.fleet_tool()
    if not path.is_file():
        pytest.skip(f"no fleet_tool at {path} (build it, or set PERSEUS_FLEET_TOOL)")
    return path


@pytest.fixture(scope="session")
def sosp24() -> Path:
    """Return the folder of the paper's measured data, or skip."""
    path = binary.shared_data() / "sosp24"
    if not path.is_dir():
        pytest.skip(f"no measured data at {path} (set PERSEUS_SHARED_DATA)")
    return path
