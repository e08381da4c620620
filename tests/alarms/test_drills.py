# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Each alarm fires in a drill that causes it: real programs, real faults, a real Prometheus.

PERSEUS_CLIENT_LIBRARY=... PERSEUS_BINARY=... python -m pytest tests/alarms/test_drills.py

PERSEUS_DRILLS=all also plays the slow ones (scripts/prove alarms).
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from api_calls import create, register_all
from drill import PROFILE, SETTINGS
from monitoring import NODE_EXPORTER, ROOT, needs_prometheus, rule_names
from stage import GPUS, LIBRARY, RANKS, Stage, profile

Drill = Callable[[Stage], None]
SLOW = pytest.mark.skipif(
    os.environ.get("PERSEUS_DRILLS") != "all", reason="slow: PERSEUS_DRILLS=all plays it"
)
DRILLS: dict[str, tuple[Drill, bool]] = {}


def drill(alarm: str, *, quick: bool = False) -> Callable[[Drill], Drill]:
    """Say which alarm a drill causes."""

    def note(function: Drill) -> Drill:
        assert alarm not in DRILLS
        DRILLS[alarm] = (function, quick)
        return function

    return note


@drill("PerseusServerDown", quick=True)
def server_down(stage: Stage) -> None:
    """The server is killed."""
    server = stage.serve()
    prometheus = stage.watch(server)
    server.kill()
    assert prometheus.await_alarm("PerseusServerDown")["job"] == "perseus"


@drill("PerseusStoreAway", quick=True)
def store_away(stage: Stage) -> None:
    """The file of the store is deleted under the server."""
    server = stage.serve()
    prometheus = stage.watch(server)
    (stage.folder / "jobs.db").unlink()
    body = {"job": SETTINGS, "profile_csv": PROFILE}
    assert server.call("POST", "/api/v1/jobs", body)[0] == 503
    prometheus.await_alarm("PerseusStoreAway")


@drill("PerseusCertificateExpires")
def certificate_expires(stage: Stage) -> None:
    """The server gets a certificate that ends in 13 days."""
    certificate, key = stage.folder / "cert.pem", stage.folder / "key.pem"

    def issue(days: int) -> None:
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-subj", "/CN=127.0.0.1"),
                *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", str(days)),
                *("-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        key.chmod(0o600)

    issue(365)
    server = stage.serve("--tls-cert", str(certificate), "--tls-key", str(key))
    prometheus = stage.watch(server)
    prometheus.await_series("perseus_certificate_expiry_timestamp_seconds")
    issue(13)
    os.kill(server.pid, 1)
    prometheus.await_alarm("PerseusCertificateExpires")
    issue(365)
    os.kill(server.pid, 1)
    prometheus.await_end("PerseusCertificateExpires")


@drill("PerseusConnectionsNearLimit")
def connections_near_limit(stage: Stage) -> None:
    """Clients keep 18 connections to a server that takes 20, beside Prometheus' own."""
    server = stage.serve("--max-connections", "20")
    prometheus = stage.watch(server)
    host, _, port = server.url.rpartition("/")[2].partition(":")
    with contextlib.ExitStack() as held:
        for _ in range(18):
            held.enter_context(socket.create_connection((host, int(port))))
        prometheus.await_alarm("PerseusConnectionsNearLimit")
    prometheus.await_end("PerseusConnectionsNearLimit")


@drill("PerseusJobsDamaged")
def jobs_damaged(stage: Stage) -> None:
    """A cell of the store is overwritten."""
    server = stage.serve()
    path = create(server)
    assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(stage.folder / "jobs.db")) as store, store:
        change = "UPDATE jobs SET target = '{\"' WHERE id = ?"
        assert store.execute(change, (path.rpartition("/")[2],)).rowcount == 1
    server = stage.serve()
    # It reads its jobs by itself, on a busy machine before Prometheus has started.
    prometheus = stage.watch(server, is_well=False)
    assert server.call("GET", path)[0] == 422
    prometheus.await_alarm("PerseusJobsDamaged")
    assert server.call("DELETE", path)[0] == 204
    prometheus.await_end("PerseusJobsDamaged")


@drill("PerseusJobFailed")
def job_failed(stage: Stage) -> None:
    """All ranks measure stage 0, and none stage 1."""
    server = stage.serve()
    prometheus = stage.watch(server)
    path = create(server, profile_csv=None)
    register_all(server, path)
    row = {"stage": 0, "instruction": "forward", "frequency": 1400, "time": 0.1, "energy": 9}
    for rank in range(RANKS):
        body = {"rank": rank, "rows": [row], "blocking_power_w": 20, "done": True}
        assert server.call("POST", path + "/measurements", body)[0] == 200
    prometheus.await_alarm("PerseusJobFailed")


@drill("PerseusRanksComplain", quick=True)
def ranks_complain(stage: Stage) -> None:
    """The agent is killed while a job trains."""
    server = stage.serve()
    node = stage.node(server.url)
    training = stage.train(server, node, profile())
    prometheus = stage.watch(server, node)
    node.agent.close()
    assert prometheus.await_alarm("PerseusRanksComplain")["job_id"] == training.id


@drill("PerseusClocksRefused")
def clocks_refused(stage: Stage) -> None:
    """The driver refuses the clocks of one GPU."""
    server = stage.serve()
    node = stage.node(server.url)
    training = stage.train(server, node, profile())
    prometheus = stage.watch(server, node)
    query = 'perseus_job_client_events{kind="refused"}'
    assert prometheus.await_series(query)["value"][1] == "0"
    node.gpus.set_refuse(0, True)
    assert prometheus.await_alarm("PerseusClocksRefused")["job_id"] == training.id


@drill("PerseusRanksSlow")
def ranks_slow(stage: Stage) -> None:
    """One GPU becomes slower by half, and recovers."""
    node, training, prometheus = stage.watch_training()
    node.gpus.set_slowdown(0, 1.5)
    assert prometheus.await_alarm("PerseusRanksSlow")["job_id"] == training.id
    node.gpus.set_slowdown(0, 1)
    prometheus.await_end("PerseusRanksSlow")


@drill("PerseusIterationsLong")
def iterations_long(stage: Stage) -> None:
    """One GPU becomes slower by half, and all ranks wait for it."""
    node, training, prometheus = stage.watch_training()
    node.gpus.set_slowdown(1, 1.5)
    assert prometheus.await_alarm("PerseusIterationsLong")["job_id"] == training.id


@drill("PerseusDrift")
def drift(stage: Stage) -> None:
    """All GPUs become slower by a fifth."""
    node, training, prometheus = stage.watch_training()
    for gpu in range(RANKS):
        node.gpus.set_slowdown(gpu, 1.2)
    assert prometheus.await_alarm("PerseusDrift")["job_id"] == training.id


@drill("PerseusSavesNothing")
def saves_nothing(stage: Stage) -> None:
    """A job needs more energy at lower clocks."""
    server = stage.serve()
    prometheus = stage.watch(server)
    path = create(server, profile_csv=profile(lambda share: 1 / share))
    register_all(server, path)
    alarm = prometheus.await_alarm("PerseusSavesNothing")
    assert f"/api/v1/jobs/{alarm['job_id']}" == path


@drill("PerseusSavesLessThanPredicted")
def saves_less_than_predicted(stage: Stage) -> None:
    """Lower clocks save nothing, and the profile says that they do."""
    server = stage.serve()
    node = stage.node(server.url)
    training = stage.train(server, node, profile(), profile(lambda share: 1.0))
    prometheus = stage.watch(server, node)
    training.set("comparison", every=12, iterations=4)
    alarm = prometheus.await_alarm("PerseusSavesLessThanPredicted")
    assert alarm["job_id"] == training.id


@drill("PerseusClockNotGivenBack")
def clock_not_given_back(stage: Stage) -> None:
    """The trainers end, and the driver does not give clocks back."""
    server = stage.serve()
    node = stage.node(
        server.url, GPUS + 'errors = [{call = "reset_clock", every = 1, code = "timeout"}]\n'
    )
    training = stage.train(server, node, profile())
    prometheus = stage.watch(server, node)
    training.stop()
    assert prometheus.await_alarm("PerseusClockNotGivenBack")["gpu"]


@drill("PerseusClockConflict")
def clock_fought(stage: Stage) -> None:
    """A power cap slows GPUs whose clocks are set."""
    server = stage.serve()
    node = stage.node(server.url, GPUS + "throttle_reasons = 4\n")
    prometheus = stage.watch(server, node)
    stage.train(server, node, profile())
    assert prometheus.await_alarm("PerseusClockConflict")["gpu"] == node.gpus.uuid(0)


@drill("PerseusRelayServerAway")
def relay_server_away(stage: Stage) -> None:
    """The server of a relay is killed."""
    server = stage.serve()
    node = stage.node(server.url)
    stage.train(server, node, profile())
    prometheus = stage.watch(server, node)
    server.kill()
    prometheus.await_alarm("PerseusRelayServerAway")


@drill("PerseusFiguresStale")
def figures_stale(stage: Stage) -> None:
    """The agent is killed, and its file stays as it was."""
    server = stage.serve()
    node = stage.node(server.url)
    prometheus = stage.watch(server, node)
    node.agent.close()
    assert prometheus.await_alarm("PerseusFiguresStale")["file"].endswith("agent.prom")


@needs_prometheus
@pytest.mark.skipif(
    not (LIBRARY and NODE_EXPORTER), reason="no client library, or no node_exporter"
)
@pytest.mark.parametrize(
    "alarm",
    [pytest.param(name, marks=() if quick else SLOW) for name, (_, quick) in DRILLS.items()],
)
def test_an_alarm_fires_in_its_drill(alarm: str, tmp_path: Path) -> None:
    """One drill for each rule."""
    stage = Stage(tmp_path, alarm)
    try:
        DRILLS[alarm][0](stage)
    finally:
        stage.close()


def test_rules_drills_and_the_page_name_the_same_alarms() -> None:
    """A rule without a drill was never seen to fire."""
    page = (ROOT / "docs/how-to/alarms.md").read_text()
    told = re.findall(r"^\| `(Perseus\w+)` \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert [name for name, _ in told] == rule_names()
    assert sorted(DRILLS) == sorted(rule_names())
    for name, words in told:
        assert words.strip() == (DRILLS[name][0].__doc__ or "").splitlines()[0].rstrip("."), name
