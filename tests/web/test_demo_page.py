# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""perseus demo --page: real ranks on simulated GPUs, seen in Chromium."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browsing import BINARY, Browser, Surfer, expect
from serving import Server


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """Start the demo; give the address that it prints."""
    process = subprocess.Popen(
        [str(BINARY), "demo", "--page", "--no-straggler"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("page "))
    yield line.split()[2].rstrip("/")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_a_straggler_arrives_and_the_point_moves(browser: Browser, demo: str) -> None:
    """The page shows what happens to real ranks, and its point is theirs."""
    surfer = Surfer(browser, demo)
    server = Server.__new__(Server)  # The demo's own; only its address is known.
    server.url = demo
    page = surfer.open()
    row = page.locator("tbody tr")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("8 following")
    expect(row.locator("td").nth(3)).not_to_contain_text("n/a")
    expect(row.locator("td").nth(4)).to_contain_text("kW")
    row.locator("a").click()
    stragglers = page.locator('[data-figure="Stragglers"]')
    plan = page.locator('[data-figure="Plan"]')
    expect(stragglers.locator(".value")).to_have_text("0")
    expect(page.locator(".cell")).to_have_count(8)

    # The iteration that the ranks timed.
    expect(page.locator("#measured-words")).to_contain_text("lined up")
    expect(page.locator(".lanes")).to_have_count(3)

    path = f"/api/v1/jobs/{page.url.rsplit('/', 1)[1]}"
    server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.2})
    expect(stragglers.locator(".value")).to_have_text("1")
    expect(plan).to_contain_text("allows for a straggler")
    server.call("DELETE", path + "/stragglers")
    expect(stragglers.locator(".value")).to_have_text("0")

    page.locator("#point").focus()
    page.keyboard.press("PageUp")
    page.click("#apply")
    expect(page.locator("#outcome")).to_contain_text("The target is")
    job = server.call("GET", path)[1]
    expect(plan).to_contain_text(f"target {job['at']}")
    # The ranks follow: what they measure is as long as the plan says, and not as before.
    predicted = job["plan"]["iteration_time_s"]
    assert predicted > job["frontier"]["fastest_s"]
    page.wait_for_function(
        "least => parseFloat(document.querySelector("
        "'[data-figure=\"Iteration time now\"] .value').textContent) > least",
        arg=(predicted + job["frontier"]["fastest_s"]) / 2,
    )
    assert surfer.faults == []
