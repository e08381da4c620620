# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes that depend on a revision, and tokens that are bound to jobs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, ask, await_running, create, job_command, register_all
from drill import PROFILE, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]


def test_a_change_may_depend_on_the_revision(server: Server) -> None:
    """ETag and If-Match."""
    path = create(server)
    register_all(server, path)
    await_running(server, path)
    _, headers, job = ask(server, "GET", path)
    tag = headers["ETag"]
    assert tag == f'"{job["revision"]}"'
    straggler = {"pipeline": 1, "factor": 1.3}
    assert server.call("POST", path + "/stragglers", straggler)[0] == 201
    # Whoever looked before that does not undo it unknowingly.
    status, headers, answer = ask(server, "DELETE", path + "/stragglers", If_Match=tag)
    assert (status, answer["error"]["code"]) == (412, "changed")
    assert len(server.call("GET", path + "/stragglers")[1]["stragglers"]) == 1
    now = headers["ETag"]
    assert now != tag
    assert ask(server, "DELETE", path + "/stragglers", If_Match=now)[0] == 204
    assert ask(server, "POST", path + "/finish", If_Match="17")[0] == 422
    assert ask(server, "POST", path + "/iterations", If_Match=now)[0] == 422
    status, headers, answer = ask(server, "POST", path + "/finish", If_Match="*")
    assert status == 200
    assert headers["ETag"] == f'"{answer["revision"]}"'


def test_the_command_line_says_how_to_give_a_token(tmp_path: Path) -> None:
    """And not what HTTP calls it."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {'0' * 16} somebody\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))
    assert "--token-file" in job_command(server, "list", fails=True)
    wrong = tmp_path / "wrong"
    wrong.write_text("1" * 16)
    refused = job_command(server, "list", "--token-file", str(wrong), fails=True)
    assert f"does not know the token in {wrong}" in refused
    assert "PERSEUS_TOKEN_FILE" in refused
    refused = job_command(server, "list", "--token-file", str(tokens), fails=True)
    assert "a server's file" in refused
    assert "Bearer" not in refused
    server.stop()


def test_a_token_may_be_bound_to_jobs(tmp_path: Path) -> None:
    """It sees, changes and creates only its jobs."""
    boss, alice, bob = ("0" * 16, "a" * 16, "b" * 16)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operate {boss} boss\ntrain {alice} alice key=alice-\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))

    def call(token: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(server.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def made(token: str, key: str) -> tuple[int, Any]:
        body = {"client_key": key, "job": SETTINGS, "profile_csv": PROFILE}
        return call(token, "POST", "/api/v1/jobs", body)

    try:
        status, other = made(boss, "bob-1")
        assert status == 201
        for key in ("bob-1", "bob-2", ""):
            status, answer = made(alice, key)
            assert (status, answer["error"]["field"]) == (422, "client_key")
        status, own = made(alice, "alice-1")
        assert status == 201
        theirs, mine = (f"/api/v1/jobs/{job['id']}" for job in (other, own))
        rows = {"rank": 0, "rows": []}
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/finish", {}),
            ("POST", "/measurements", rows),
            ("POST", "/iterations", {}),
            ("POST", "/ranks", {"rank": 0, "dp_rank": 0, "pp_rank": 0}),
            ("POST", "/stragglers", {"pipeline": 0, "factor": 2}),
            ("DELETE", "/stragglers", None),
            ("GET", "/plan?rank=0&after=-1", None),
            ("GET", "/events", None),
        ):
            assert call(alice, method, theirs + path, body)[0] == 404, path
        status, listed = call(alice, "GET", "/api/v1/jobs")
        assert [job["id"] for job in listed["jobs"]] == [own["id"]]
        assert call(alice, "GET", "/metrics")[0] == 403
        assert len(call(boss, "GET", "/api/v1/jobs")[1]["jobs"]) == 2
        assert call(alice, "POST", mine + "/finish", {})[0] == 200
        # A token of one job, by its id: read again without a restart.
        with tokens.open("a") as file:
            file.write(f"train {bob} bob job={other['id']}\n")
        os.kill(server.pid, signal.SIGHUP)
        end = time.monotonic() + 30
        while call(bob, "GET", theirs)[0] != 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert made(bob, "bob-1")[0] == 200
        assert made(bob, "bob-2")[0] == 422
        assert call(bob, "GET", mine)[0] == 404
        assert call(bob, "POST", theirs + "/finish", {})[0] == 200
    finally:
        assert server.stop() == 0, server.log()
