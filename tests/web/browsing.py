# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Chromium, driven by Playwright, for tests of the server's page.

Every page is watched: a request that leaves the server, an error in the console or an exception
fails the test that made it.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "server"))
from api_calls import BINARY as BINARY

sync_api = pytest.importorskip("playwright.sync_api", reason="there is no Playwright")

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None
)
PATIENCE_MS = 60_000  # That only a hang misses.

WatchedPage = Any
Browser = Any


class Surfer:
    """A browser on one server.

    Parameters
    ----------
    browser
        Of Playwright.
    url
        Of the server, without a slash at the end.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self.url = url
        self.faults: list[str] = []
        # Lines that a test expects of the console, such as of a server that was killed.
        self.allowed = re.compile("$^")

    def open(self, address: str = "", **options: Any) -> WatchedPage:
        """Open the page at what follows the # in `address`; options are those of a context."""
        context = self._browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}} | options
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        page.on("request", self._see)
        page.goto(f"{self.url}/{address}")
        return page

    def _hear(self, message: Any) -> None:
        text = str(message.text)
        if message.type in ("error", "warning") and not self.allowed.search(text):
            self.faults.append(f"console: {text}")

    def _see(self, request: Any) -> None:
        if not request.url.startswith(self.url + "/"):
            self.faults.append(f"request: {request.url}")


def expect(locator: Any) -> Any:
    """Wait until what is said of the locator holds."""
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    return sync_api.expect(locator)
