# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How quick the server's page is, in Chromium: many jobs, many ranks, many events.

Run ``build/venv/bin/python bench/page.py`` after a build. Needs what tests/web needs.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/server"))
from api_calls import BINARY
from drill import PROFILE, SETTINGS
from serving import Server

STAGES = 2  # Of the profile.


class Wire:
    """One kept connection to a server, for many small requests."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def post(self, path: str, body: object) -> dict[str, Any]:
        """Send; return the answer."""
        self._connection.request("POST", path, json.dumps(body))
        with self._connection.getresponse() as answer:
            text = answer.read()
            assert answer.status in (200, 201, 202), text
            return dict(json.loads(text))


def view_seconds(page: Page, address: str, ready: str) -> float:
    """Return how long it takes until what `ready` names is drawn."""
    begin = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(ready)
    return time.perf_counter() - begin


def heap_bytes(page: Page) -> float:
    """Return what the page's script holds, after its garbage is gone."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize"))


def large_job(wire: Wire, ranks: int) -> str:
    """Create a job of so many ranks, all joined; return its id."""
    settings = SETTINGS | {"data_parallel": ranks // STAGES}
    job = wire.post("/api/v1/jobs", {"name": "large", "job": settings, "profile_csv": PROFILE})[
        "id"
    ]
    for rank in range(ranks):
        place = {"dp_rank": rank // STAGES, "pp_rank": rank % STAGES, "node": f"n{rank // 8}"}
        wire.post(f"/api/v1/jobs/{job}/ranks", {"rank": rank} | place)
    return str(job)


def measure(server: Server, jobs: int, ranks: int, events: int) -> None:
    """Fill the server, then look at it."""
    wire = Wire(server.url)
    for i in range(jobs):
        body = {"client_key": f"k{i}", "name": f"job {i}", "job": SETTINGS, "profile_csv": PROFILE}
        wire.post("/api/v1/jobs", body)
    job = large_job(wire, ranks)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto("about:blank")
        first = view_seconds(page, server.url + "/", "tbody tr")
        page.wait_for_function("!document.querySelector('#tally').textContent.includes('reading')")
        print(f"{jobs + 1} jobs: first rows after {first:.2f} s")
        page.goto("about:blank")
        drawn = view_seconds(page, f"{server.url}/#/job/{job}", "[data-figure=State] .value")
        page.wait_for_selector(".cell")
        print(
            f"job of {ranks} ranks: figures after {drawn:.2f} s, grid of "
            f"{page.locator('.cell').count()} cells"
        )
        page.wait_for_selector("#apply")
        heaps = []
        for _ in range(2):
            for i in range(events // 4):
                wire.post(f"/api/v1/jobs/{job}/stragglers", {"rank": i % 2, "factor": 1.1 + i % 7})
                server.call("DELETE", f"/api/v1/jobs/{job}/stragglers")
            heaps.append(heap_bytes(page))
        print(
            f"script's memory: {heaps[0] / 1e6:.1f} MB after {events // 2} events, "
            f"{heaps[1] / 1e6:.1f} MB after {events}"
        )
        browser.close()


def main() -> None:
    """Start a server, and measure."""
    parser = argparse.ArgumentParser(description="How quick the server's page is.")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--ranks", type=int, default=8192)
    parser.add_argument("--events", type=int, default=4000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(BINARY, Path(folder) / "jobs.db")
        try:
            measure(server, arguments.jobs, arguments.ranks, arguments.events)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
