# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus store copy`: servers before and after answer the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from api_calls import BINARY, await_running, create, register_all, sweep
from drill import RANKS, SETTINGS
from postgres import Postgres, why_missing
from serving import Server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """Start a PostgreSQL for all tests, each with a database of its own."""
    if why := why_missing():
        pytest.skip(why)
    with Postgres() as started:
        yield started


def database(postgres: Postgres, name: str) -> str:
    """Make an empty database; return its address."""
    postgres.run(f"CREATE DATABASE {name}", "postgres")
    return postgres.uri(name)


def copy(source: str, target: str, code: int = 0) -> str:
    """Run it; return what it prints, or what it refuses."""
    command = [str(BINARY), "store", "copy", "--from", source, "--to", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def fill(server: Server) -> None:
    """Make jobs in several states, with all that is stored of them."""
    path = create(server, name="given", client_key="k1")
    register_all(server, path)
    await_running(server, path)
    assert server.call("PUT", path + "/point", {"at": "1.1x"})[0] == 200
    body = {"mode": "act", "threshold": 0.07, "window": 32}
    assert server.call("PUT", path + "/detection", body)[0] == 200
    straggler = {"pipeline": 1, "factor": 1.2}
    assert server.call("POST", path + "/stragglers", straggler)[0] == 201
    await_running(server, path)
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"} | {"model": "gpt"}
    status, job = server.call("POST", "/api/v1/jobs", {"client_key": "k2", "job": settings})
    assert status == 201, job
    measured = f"/api/v1/jobs/{job['id']}"
    for rank in range(RANKS):
        gpu = {"gpu": {"name": "A100"}, "clocks_mhz": [1000, 1200, 1400]}
        body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
        assert server.call("POST", measured + "/ranks", body | gpu)[0] == 200
        sweep(server, measured, rank, time_std=0.01)
    await_running(server, measured)
    over = create(server, name="over")
    assert server.call("POST", over + "/finish")[0] == 200


def answers(server: Server) -> dict[str, Any]:
    """All that a server says of what it stores."""
    jobs = server.call("GET", "/api/v1/jobs")[1]["jobs"]
    assert len(jobs) == 3
    said: dict[str, Any] = {"profiles": server.call("GET", "/api/v1/profiles")}
    for profile in said["profiles"][1]["profiles"]:
        path = f"/api/v1/profiles/{profile['id']}"
        said[path] = server.call("GET", path)
    for job in jobs:
        path = f"/api/v1/jobs/{job['id']}"
        for what in ("", "/ranks", "/frontier", "/plan.json", "/stragglers", "/detection"):
            said[path + what] = server.call("GET", path + what)
        for rank in range(RANKS):
            said[f"{path} {rank}"] = server.call("GET", f"{path}/plan?rank={rank}&after=-1")
    return said


def served(store: str) -> dict[str, Any]:
    """Start a server on a store, and return its answers."""
    server = Server(BINARY, store)
    said = answers(server)
    assert server.stop() == 0, server.log()
    return said


def test_servers_before_and_after_answer_the_same(postgres: Postgres, tmp_path: Path) -> None:
    """From a file to PostgreSQL, and back into another file."""
    source = f"sqlite:{tmp_path / 'jobs.db'}"
    server = Server(BINARY, source)
    fill(server)
    assert server.stop() == 0, server.log()
    before = served(source)
    target = database(postgres, "moved")
    said = copy(source, target)
    rows = dict(line.split() for line in said.splitlines() if len(line.split()) == 2)
    assert (rows["jobs"], rows["profiles"], rows["ranks"]) == ("3", "1", str(2 * RANKS))
    assert "all rows were read back" in " ".join(said.split())
    after = served(target)
    assert after == before
    back = f"sqlite:{tmp_path / 'back.db'}"
    copy(target, back)
    assert served(back) == before
    # The source is as it was.
    assert served(source) == before


def test_wrong_uses_get_a_sentence(tmp_path: Path) -> None:
    """And leave nothing behind."""
    source = f"sqlite:{tmp_path / 'jobs.db'}"
    server = Server(BINARY, source)
    assert server.stop() == 0, server.log()
    here = sorted(tmp_path.iterdir())
    target = f"sqlite:{tmp_path / 'new.db'}"
    assert "name the same store" in copy(source, source, code=2)
    missing = f"sqlite:{tmp_path / 'none.db'}"
    assert "no such file" in copy(missing, target, code=2)
    assert "sqlite:FILE" in copy("jobs.db", target, code=2)
    assert "the name of the store is empty" in copy(source, "", code=2)
    hushed = "postgresql://perseus:hush-hush@127.0.0.1:1/x"
    said = copy(source, hushed, code=2)
    assert "cannot be reached" in said
    assert "hush" not in said
    for words in (["--from", source], ["--to", target]):
        command = [str(BINARY), "store", "copy", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "is missing; name the store" in done.stderr
    assert sorted(tmp_path.iterdir()) == here
