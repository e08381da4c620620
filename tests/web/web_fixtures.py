# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A browser and a server for each test that asks for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "server"))
sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY
from serving import Server


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start the distribution's Chromium."""
    from browsing import CHROMIUM, sync_api

    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield started
        started.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server without jobs."""
    started = Server(BINARY, tmp_path / "jobs.db")
    yield started
    started.stop()


@pytest.fixture
def surfer(browser: Any, server: Server) -> Iterator[Any]:
    """Surf on that server; nothing may go wrong unseen."""
    from browsing import Surfer

    surfing = Surfer(browser, server.url)
    yield surfing
    for context in browser.contexts:
        context.close()
    assert surfing.faults == []
