# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The alarms for Prometheus: by promtool, and by a real Prometheus on a real server."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, await_running, create, register_all
from drill import RANKS
from serving import Server

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging" / "prometheus"
RULES = FOLDER / "perseus-alerts.yml"
PATIENCE = 60.0  # Seconds that only a hang misses.

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")), reason="there is no Prometheus"
)

CONFIGURATION = """\
global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: perseus
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """A Prometheus that scrapes one server; its alarms do not wait."""

    def __init__(self, folder: Path, target: str) -> None:
        rules = folder / "alerts.yml"
        rules.write_text(re.sub(r"^ *for: .*\n", "", RULES.read_text(), flags=re.MULTILINE))
        config = folder / "prometheus.yml"
        config.write_text(CONFIGURATION.format(rules=rules, target=target))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{probe.getsockname()[1]}"
        with (folder / "prometheus.log").open("w") as log:
            self._process = subprocess.Popen(
                [
                    *(
                        "prometheus",
                        f"--config.file={config}",
                        f"--web.listen-address={self._address}",
                    ),
                    f"--storage.tsdb.path={folder / 'data'}",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the series of a query; none while it starts."""
        url = f"http://{self._address}/api/v1/query?query={urllib.parse.quote(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return list(json.load(answer)["data"]["result"])
        except OSError:
            return []

    def await_series(self, query: str) -> dict[str, Any]:
        """Return the first series of a query, once there is one."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := self.ask(query):
                return found[0]
            time.sleep(0.1)
        raise AssertionError(f"there is no {query}")

    def await_alarm(self, name: str) -> dict[str, Any]:
        """Wait until an alarm fires; return its labels."""
        query = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
        return dict(self.await_series(query)["metric"])

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server."""
    started = Server(BINARY, tmp_path / "jobs.db")
    yield started
    started.stop()


@pytest.fixture
def prometheus(server: Server, tmp_path: Path) -> Iterator[Prometheus]:
    """Scrape that server."""
    started = Prometheus(tmp_path, server.url.removeprefix("http://"))
    yield started
    started.close()


def test_alarms_are_on_metrics_that_there_are() -> None:
    """A name that the server does not have would never fire."""
    files = [
        "src/cluster/server/ops/metrics.cc",
        "src/base/metrics/process.cc",
        "src/cli/node/agent_metrics.cc",
        "src/cli/node/relay_metrics.cc",
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
    for name in re.findall(r"- alert: (\w+)", RULES.read_text()):
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
    assert prometheus.await_series("perseus_job_promised_saved_joules_total")["value"][1] == "0"
    # Nobody compared it, so nobody knows what was saved.
    assert not prometheus.ask("perseus_job_realised_saved_joules_total")
    assert prometheus.await_series("process_start_time_seconds < time()")


@needs_prometheus
def test_alarms_of_a_real_server(server: Server, prometheus: Prometheus) -> None:
    """A rank that complains, then a server that is killed."""
    path = create(server, name="complains")
    register_all(server, path)
    prometheus.await_series("perseus_job_info")
    assert not prometheus.ask("ALERTS")
    complaint = {"rank": 0, "state": "released", "error": "no agent"}
    assert (
        server.call("POST", path + "/iterations", {"reports": [], "clients": [complaint]})[0] == 202
    )
    assert f"/api/v1/jobs/{prometheus.await_alarm('PerseusRanksComplain')['job_id']}" == path
    server.kill()
    assert prometheus.await_alarm("PerseusServerDown")["job"] == "perseus"
