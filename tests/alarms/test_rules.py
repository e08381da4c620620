# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The rules for alarms: by promtool, and on what a real Prometheus scrapes from a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from api_calls import BINARY, await_running, create, register_all
from drill import RANKS
from monitoring import FOLDER, ROOT, RULES, Prometheus, hastened, needs_prometheus, rule_names
from serving import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server."""
    started = Server(BINARY, tmp_path / "jobs.db")
    yield started
    started.stop()


@pytest.fixture
def prometheus(server: Server, tmp_path: Path) -> Iterator[Prometheus]:
    """Scrape that server."""
    started = Prometheus(tmp_path, server.url)
    yield started
    started.close()


def test_alarms_are_on_metrics_that_there_are() -> None:
    """A name that the server does not have would never fire."""
    files = [
        "src/server/ops/metrics.cc",
        "src/base/metrics/families.cc",
        "src/cli/node/agent.cc",
        "src/cli/node/relay.cc",
    ]
    source = "".join((ROOT / file).read_text() for file in files)
    reference = (ROOT / "docs/reference/metrics.md").read_text()
    names = set(re.findall(r"\bperseus_\w+", RULES.read_text()))
    assert len(names) >= 13
    for name in names:
        assert f'"{name}"' in source, name
    for name in re.findall(r'"((?:perseus|process)_\w+)"', source):
        assert f"`{name}" in reference, name


@needs_prometheus
def test_each_alarm_fires_when_it_should_and_none_on_a_healthy_server() -> None:
    """As promtool sees it."""
    command = ["promtool", "test", "rules", "perseus-alerts.test.yml"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = (FOLDER / "perseus-alerts.test.yml").read_text()
    for name in rule_names():
        assert f'alertname="{name}"' in tested, name


@needs_prometheus
def test_a_real_scrape_tells_jobs_apart_and_knows_what_they_draw(
    server: Server, prometheus: Prometheus
) -> None:
    """Labels of ours survive, and energies are those that ranks reported."""
    name = 'say "gpt\\3"\n'
    path = create(server, name=name)
    register_all(server, path)
    await_running(server, path)
    metric = prometheus.await_series("perseus_job_info")["metric"]
    assert metric["job"] == "perseus"
    assert f"/api/v1/jobs/{metric['job_id']}" == path
    assert metric["job_name"] == name
    reports = [
        {"rank": rank, "iteration": 1, "clocks": "max", "time_s": 0.5, "energy_j": 100}
        for rank in range(RANKS)
    ]
    status, answer = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202, answer
    assert prometheus.await_series("perseus_job_energy_joules_total")["value"][1] == str(
        100 * RANKS
    )
    assert prometheus.await_series("perseus_job_power_watts")["value"][1] == str(200 * RANKS)
    assert prometheus.await_series("perseus_job_iteration_time_seconds")["value"][1] == "0.5"
    assert prometheus.await_series("perseus_job_predicted_saved_joules_total")["value"][1] == "0"
    # Without a comparison the saving is unknown.
    assert not prometheus.ask("perseus_job_measured_saved_joules_total")
    assert prometheus.await_series("process_start_time_seconds < time()")


def test_only_for_is_hastened() -> None:
    """In drills minutes are short; windows, thresholds and days stay."""
    rules = "  expr: delta(a[15m]) > 14 * 86400\n  for: 2m\n  for: 1h\n"
    assert hastened(rules) == "  expr: delta(a[15m]) > 14 * 86400\n  for: 500ms\n  for: 15000ms\n"
