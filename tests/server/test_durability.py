# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a server acknowledged outlives kills; a server that computes stops.

200 kills instead of ten: python tests/server/drill.py --perseus BINARY.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import drill
import postgres
from api_calls import BINARY
from drill import PROFILE, SETTINGS
from serving import Server
from stops import run_stops


def test_nothing_acknowledged_is_lost() -> None:
    """Ten kills at random moments."""
    done = drill.run(BINARY, kills=10, seed=3)
    assert done.acknowledged > 20


@pytest.mark.parametrize(
    ("servers", "pooled", "kills"), [(1, False, 4), (2, False, 6), (2, True, 4)]
)
def test_nothing_is_lost_of_what_servers_on_postgresql_acknowledged(
    servers: int, pooled: bool, kills: int
) -> None:
    """Servers, and the PostgreSQL under them, are killed while work goes on."""
    if missing := postgres.why_missing(pooler=pooled):
        pytest.skip(missing)
    done = drill.run_cluster(BINARY, kills, seed=5, servers=servers, pooled=pooled)
    assert done.acknowledged > 10


def test_a_stopped_server_overwrites_nothing() -> None:
    """Three stops; 50: python tests/server/drill.py --store postgresql --stops 50."""
    if missing := postgres.why_missing():
        pytest.skip(missing)
    job = {"job": SETTINGS, "profile_csv": PROFILE}
    assert run_stops(BINARY, 3, 1, job, pooled=False) == []


def test_a_job_that_has_ended_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Its profile is not read then, and does not count as another one."""
    server = Server(BINARY, tmp_path / "jobs.db")
    body = {"job": SETTINGS, "profile_csv": PROFILE, "client_key": "night"}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    assert server.call("POST", f"/api/v1/jobs/{job['id']}/finish", {})[0] == 200
    assert server.stop() == 0
    server = Server(BINARY, tmp_path / "jobs.db")
    status, again = server.call("POST", "/api/v1/jobs", body)
    assert (status, again["id"]) == (200, job["id"])
    status, refused = server.call("POST", "/api/v1/jobs", body | {"job": SETTINGS | {"dp": 7}})
    assert status in (409, 422), refused
    server.stop()


def test_a_server_stops_though_it_computes(tmp_path: Path) -> None:
    """SIGTERM waits for no walk of a frontier."""
    server = Server(BINARY, tmp_path / "jobs.db")
    settings = SETTINGS | {"microbatches": 700, "stages": 8, "data_parallel": 1, "coarse_watts": 0}
    rows = [line.split(",") for line in PROFILE.splitlines()[1:] if line.startswith("0")]
    profile = PROFILE.splitlines()[0] + "\n"
    for stage in range(8):
        for _, name, clock, seconds, joules in rows:
            profile += f"{stage},{name},{clock},{float(seconds) * (1 + stage / 37)},{joules}\n"
    body = {"job": settings, "profile_csv": profile}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    time.sleep(1)
    assert not server.call("GET", f"/api/v1/jobs/{job['id']}")[1]["refined"]
    start = time.monotonic()
    assert server.stop() == 0, server.log()
    assert time.monotonic() - start < 30
