# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A server for each test that asks for one: pytest_plugins = ["server_fixture"]."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY
from serving import Server

ZEUS_PLAN = "[[('forward', 1410), ('backward', 1200)], [('forward', 1000), ('backward', 1410)]]\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server with a plan for Zeus' clients; it must end as asked."""
    (tmp_path / "plan.py").write_text(ZEUS_PLAN)
    started = Server(BINARY, tmp_path / "jobs.db", "--zeus-plan", str(tmp_path / "plan.py"))
    yield started
    assert started.stop() == 0, started.log()
