# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus with Perseus' rules, and a real node_exporter, for drills."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging" / "prometheus"
RULES = FOLDER / "perseus-alerts.yml"
PATIENCE = 120.0  # Seconds that only a hang misses.
MINUTE = 0.25  # Seconds that a minute of a rule's `for` lasts here: an hour is 15 s.

NODE_EXPORTER = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")), reason="there is no Prometheus"
)

CONFIGURATION = """\
global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: perseus
    scheme: {scheme}
    tls_config: {{insecure_skip_verify: true}}
    static_configs: [{{targets: ["{target}"]}}]
"""
NODE_JOB = """\
  - job_name: node
    static_configs: [{{targets: ["{target}"]}}]
"""


def rule_names() -> list[str]:
    """Return the names of all rules."""
    return re.findall(r"- alert: (\w+)", RULES.read_text())


def hastened(rules: str) -> str:
    """Return rules whose `for` counts short minutes; nothing else is changed."""
    units = {"m": 1, "h": 60}

    def shorter(found: re.Match[str]) -> str:
        return f"for: {round(1000 * MINUTE * int(found[1]) * units[found[2]])}ms"

    hasty = re.sub(r"\bfor: (\d+)([mh])$", shorter, rules, flags=re.MULTILINE)
    assert hasty.count("ms\n") == rules.count(" for: ")
    return hasty


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(holds: Callable[[], Any], what: str) -> Any:
    """Wait until it holds; return what it returned."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError(what)


class Program:
    """A process with its log in a folder."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class NodeExporter(Program):
    """A node_exporter that reads figures of agents and relays from a folder."""

    def __init__(self, folder: Path, figures: Path) -> None:
        assert NODE_EXPORTER is not None
        self.address = f"127.0.0.1:{free_port()}"
        command = [NODE_EXPORTER, f"--web.listen-address={self.address}"]
        command += ["--collector.disable-defaults", "--collector.textfile"]
        command += [f"--collector.textfile.directory={figures}"]
        super().__init__(command, folder / "node_exporter.log")


class Prometheus(Program):
    """A Prometheus that scrapes a server and perhaps a node, with our rules.

    Parameters
    ----------
    folder
        For its files.
    url
        The server's.
    node
        The address of a node_exporter.
    """

    def __init__(self, folder: Path, url: str, node: str = "") -> None:
        rules = folder / "alerts.yml"
        rules.write_text(hastened(RULES.read_text()))
        scheme, _, target = url.partition("://")
        config = CONFIGURATION.format(rules=rules, target=target, scheme=scheme)
        (folder / "prometheus.yml").write_text(
            config + (NODE_JOB.format(target=node) if node else "")
        )
        self._address = f"127.0.0.1:{free_port()}"
        command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}"]
        command += [f"--web.listen-address={self._address}"]
        command += [f"--storage.tsdb.path={folder / 'data'}"]
        super().__init__(command, folder / "prometheus.log")

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the series of a query; none while it starts."""
        url = f"http://{self._address}/api/v1/query?query={urllib.parse.quote(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return list(json.load(answer)["data"]["result"])
        except OSError:
            return []

    def check(self, query: str) -> None:
        """Fail where Prometheus does not understand a query."""
        url = f"http://{self._address}/api/v1/query?query={urllib.parse.quote(query)}"
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from error

    def await_series(self, query: str) -> dict[str, Any]:
        """Return the first series of a query, once there is one."""
        return dict(until(lambda: self.ask(query), f"there is no {query}")[0])

    def alarms(self) -> set[str]:
        """Return the names of the alarms that fire."""
        return {one["metric"]["alertname"] for one in self.ask('ALERTS{alertstate="firing"}')}

    def await_alarm(self, name: str) -> dict[str, Any]:
        """Wait until an alarm fires; return its labels."""
        query = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
        return dict(self.await_series(query)["metric"])

    def await_end(self, name: str) -> None:
        """Wait until an alarm fires no more."""
        until(lambda: name not in self.alarms(), f"{name} does not end")
