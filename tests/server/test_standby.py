# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Two servers on one store: one is active, the other stands by and takes over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
import postgres
from api_calls import BINARY
from drill import PROFILE, SETTINGS
from serving import GoneError, Server

# What is predicted are 5 s, on a machine that does nothing else.
TAKE_OVER_SECONDS = 30.0
JOB = {"job": SETTINGS, "profile_csv": PROFILE, "client_key": "night", "name": "night"}


@contextlib.contextmanager
def _store(kind: str, folder: Path) -> Iterator[str]:
    """Give a store of this kind."""
    if kind == "sqlite":
        yield f"sqlite:{folder / 'jobs.db'}"
        return
    if missing := postgres.why_missing(pooler=kind == "pgbouncer"):
        pytest.skip(missing)
    with postgres.Postgres() as database:
        if kind == "postgresql":
            yield database.uri()
            return
        with postgres.PgBouncer(database) as pooler:
            yield pooler.uri()


def _wait_until_active(server: Server) -> float:
    start = time.monotonic()
    while not server.is_active():
        assert time.monotonic() < start + TAKE_OVER_SECONDS, server.log()
        time.sleep(0.02)
    return time.monotonic() - start


def _listed(*servers: Server) -> str:
    """Return what the command line lists, which knows the addresses of all."""
    urls = ",".join(server.url for server in servers)
    command = [str(BINARY), "job", "list", "--server", urls]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _check_stands_by(server: Server, active: Server) -> None:
    status, health = server.call("GET", "/healthz")
    assert (status, health["status"]) == (200, "standby"), health
    assert server.call("GET", "/readyz")[0] == 503
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/api/v1/jobs", data=b"{}")
    assert refused.value.code == 503
    assert refused.value.headers["Perseus-Active"] == active.url
    assert refused.value.headers["Retry-After"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "pgbouncer"])
def test_a_server_that_stands_by_takes_over(kind: str, tmp_path: Path) -> None:
    """Clients go on, and nothing that was acknowledged is lost."""
    with _store(kind, tmp_path) as store:
        one = Server(BINARY, store)
        two = Server(BINARY, store, is_standby=True)
        status, job = one.call("POST", "/api/v1/jobs", JOB)
        assert status == 201, job
        path = f"/api/v1/jobs/{job['id']}"
        _check_stands_by(two, one)
        assert "night" in _listed(two, one)
        one.kill()
        _wait_until_active(two)
        assert two.call("GET", path)[1]["name"] == "night"
        assert two.call("PUT", path + "/point", {"at": "1.2x"})[0] == 200
        assert "night" in _listed(one, two)
        # The first comes back, and stands by until the second ends in order.
        one = Server(BINARY, store, is_standby=True)
        _check_stands_by(one, two)
        assert two.stop() == 0, two.log()
        _wait_until_active(one)
        assert one.call("GET", path)[1]["at"] == "1.2x"
        assert one.stop() == 0, one.log()


def test_a_server_that_slept_is_not_active_any_more(tmp_path: Path) -> None:
    """It writes nothing over its successor, says so, and stands by."""
    with _store("postgresql", tmp_path) as store:
        one = Server(BINARY, store)
        two = Server(BINARY, store, is_standby=True)
        job = one.call("POST", "/api/v1/jobs", JOB)[1]
        path = f"/api/v1/jobs/{job['id']}"
        os.kill(one.pid, signal.SIGSTOP)
        _wait_until_active(two)
        assert two.call("PUT", path + "/point", {"at": "1.2x"})[0] == 200
        os.kill(one.pid, signal.SIGCONT)
        with contextlib.suppress(GoneError):  # It may end the connection, too.
            status, answer = one.call("PUT", path + "/point", {"at": "1.3x"})
            assert status == 503, answer
        end = time.monotonic() + TAKE_OVER_SECONDS
        while " standby active=" not in one.log() or one.is_active():
            assert time.monotonic() < end, one.log()
            time.sleep(0.02)
        assert " not_active " in one.log()
        _check_stands_by(one, two)
        assert two.call("GET", path)[1]["at"] == "1.2x"
        assert one.stop() == 0, one.log()
        assert two.stop() == 0, two.log()


def test_a_server_takes_the_store_again_after_its_database_was_away(tmp_path: Path) -> None:
    """As soon as it is back, and with all that was acknowledged."""
    if missing := postgres.why_missing():
        pytest.skip(missing)
    with postgres.Postgres() as database:
        server = Server(BINARY, database.uri())
        job = server.call("POST", "/api/v1/jobs", JOB)[1]
        database.kill()
        end = time.monotonic() + TAKE_OVER_SECONDS
        while " not_active " not in server.log():
            assert time.monotonic() < end, server.log()
            time.sleep(0.02)
        database.start()
        _wait_until_active(server)
        assert server.call("GET", f"/api/v1/jobs/{job['id']}")[1]["name"] == "night"
        assert server.stop() == 0, server.log()
