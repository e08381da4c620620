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


def _there(path: Path, what: str) -> Path:
    if not path.exists():
        pytest.skip(f"there is no {path} ({what})")
    return path


@pytest.fixture(scope="session", autouse=True)
def perseus_program() -> Path:
    """Return the path of the perseus binary, or skip."""
    return _there(binary.perseus_binary(), "build it, or set PERSEUS_BINARY")


@pytest.fixture(scope="session")
def frontier_program() -> Path:
    """Return the path of the frontier tool, or skip."""
    return _there(binary.frontier_tool(), "build it, or set PERSEUS_FRONTIER_TOOL")


@pytest.fixture(scope="session")
def fleet_program() -> Path:
    """Return the path of the tool that divides power, or skip."""
    return _there(binary.fleet_tool(), "build it, or set PERSEUS_FLEET_TOOL")


@pytest.fixture(scope="session")
def sosp24() -> Path:
    """Return the folder of the paper's measured data, or skip."""
    return _there(binary.shared_data() / "sosp24", "set PERSEUS_SHARED_DATA")
