# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The process of `perseus serve`: its log, its start and end, stops, silent clients."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import drill  # noqa: F401 (it knows where postgres is)
import postgres
from drill import PROFILE, SETTINGS
from serving import Server

BINARY = Path(os.environ.get("PERSEUS_BINARY", "build/release/src/cli/perseus"))
# Long enough that only what hangs misses it.
PATIENCE_SECONDS = 30.0
# More than the server takes for a machine that is busy.
STOP_SECONDS = 2.5
# Nobody listens there.
NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nothing"


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """Give the writing end of a pipe that is full and that nobody reads."""
    reading, writing = os.pipe()
    flags = fcntl.fcntl(writing, fcntl.F_GETFL)
    fcntl.fcntl(writing, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    fcntl.fcntl(writing, fcntl.F_SETFL, flags)
    yield writing
    os.close(reading)
    os.close(writing)


def free_port() -> int:
    """Find a port that nobody has now."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        return int(finder.getsockname()[1])


def start(port: int, store: str, *options: str, error: int | None = None) -> subprocess.Popen[str]:
    """Start a server without waiting for it."""
    return subprocess.Popen(
        [
            *(str(BINARY), "serve", "--listen", f"127.0.0.1:{port}"),
            *("--store", store, *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if error is None else error,
        text=True,
    )


def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, Any, Any]:
    """Ask once it listens; return status, JSON and headers of the answer."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()), answer.headers
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.02)
        finally:
            connection.close()


def wait_until_ready(port: int) -> None:
    """Return once the server takes work."""
    end = time.monotonic() + PATIENCE_SECONDS
    while ask(port, "GET", "/readyz")[0] != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


def end_of(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> float:
    """Send a signal; return how long the process took to end, with status 0."""
    begin = time.monotonic()
    process.send_signal(number)
    assert process.wait(PATIENCE_SECONDS) == 0
    return time.monotonic() - begin


def test_a_blocked_standard_error_stops_nothing(tmp_path: Path) -> None:
    """Nobody reads the log: requests are answered, and SIGTERM is obeyed."""
    port = free_port()
    with full_pipe() as error:
        store = f"sqlite:{tmp_path / 'jobs.db'}"
        server = start(port, store, "--log-level", "debug", error=error)
        try:
            wait_until_ready(port)
            created = ask(port, "POST", "/api/v1/jobs", {"job": SETTINGS, "profile_csv": PROFILE})
            assert created[0] == 201
            # More lines than wait for a reader.
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
            for _ in range(1500):
                client.request("GET", "/api/v1/jobs")
                answer = client.getresponse()
                assert answer.status == 200
                answer.read()
            client.close()
            assert end_of(server) < 5
        finally:
            server.kill()
            server.wait()


def test_a_blocked_standard_output_stops_nothing(tmp_path: Path) -> None:
    """Nobody reads the line that it is ready."""
    port = free_port()
    with full_pipe() as output:
        server = subprocess.Popen(
            [
                *(str(BINARY), "serve", "--listen", f"127.0.0.1:{port}"),
                *("--store", f"sqlite:{tmp_path / 'jobs.db'}"),
            ],
            stdout=output,
            stderr=output,
            text=True,
        )
        try:
            wait_until_ready(port)
            assert end_of(server) < 5
        finally:
            server.kill()
            server.wait()


@pytest.mark.parametrize("is_blocked", [False, True])
def test_it_obeys_while_a_commit_does_not_end(tmp_path: Path, is_blocked: bool) -> None:
    """What was acknowledged is there afterwards; the change under way gets no answer."""
    port = free_port()
    store = tmp_path / "jobs.db"
    with contextlib.ExitStack() as stack:
        error = stack.enter_context(full_pipe()) if is_blocked else None
        server = start(port, f"sqlite:{store}", error=error)
        stack.callback(server.wait)
        stack.callback(server.kill)
        wait_until_ready(port)
        new = {"job": SETTINGS, "profile_csv": PROFILE}
        path = "/api/v1/jobs/" + ask(port, "POST", "/api/v1/jobs", new)[1]["id"]
        assert ask(port, "PUT", path + "/point", {"at": "1.1x"})[0] == 200
        other = stack.enter_context(
            contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=60))
        )
        other.execute("BEGIN IMMEDIATE")
        client = stack.enter_context(
            contextlib.closing(http.client.HTTPConnection("127.0.0.1", port))
        )
        client.request("PUT", path + "/point", json.dumps({"at": "1.2x"}))
        # Its request has been read when the next one of the same worker is answered.
        assert ask(port, "GET", path)[0] == 200
        assert end_of(server) < 4
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            client.getresponse()
    again = Server(BINARY, store)
    assert again.call("GET", path)[1]["at"] == "1.1x"
    assert again.stop() == 0, again.log()


@pytest.mark.parametrize("is_stuck", [True, False])
def test_reports_that_the_store_did_not_take_are_told_of(tmp_path: Path, is_stuck: bool) -> None:
    """The last line of the log counts them, and the exit code is 1."""
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    created = server.call("POST", "/api/v1/jobs", {"job": SETTINGS, "profile_csv": PROFILE})
    path = "/api/v1/jobs/" + created[1]["id"]
    place = {"rank": 0, "dp_rank": 0, "pp_rank": 0}
    assert server.call("POST", path + "/ranks", place)[0] == 200
    reports = [{"rank": 0, "iteration": i, "plan_version": 0, "time_s": 5.5} for i in range(7)]
    with contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=60)) as other:
        if is_stuck:
            other.execute("BEGIN IMMEDIATE")
        assert server.call("POST", path + "/iterations", {"reports": reports})[0] == 202
        assert server.stop() == (1 if is_stuck else 0)
    assert ("reports_lost reports=7 " in server.log()) == is_stuck, server.log()


def test_it_answers_and_obeys_while_it_starts() -> None:
    """The database is away: the server listens, says so, and ends when it is told to."""
    port = free_port()
    server = start(port, NO_DATABASE)
    try:
        status, health, _ = ask(port, "GET", "/healthz")
        assert (status, health["status"]) == (200, "starting")
        assert "nobody" not in health["message"]  # Who asks has shown no token.
        assert ask(port, "GET", "/readyz")[:2] == (503, ask(port, "GET", "/healthz")[1])
        for path in ("/api/v1/jobs", "/metrics", "/no/such/path"):
            status, answer, headers = ask(port, "GET", path)
            assert status == 503
            assert "starting" in answer["error"]["message"]
            assert headers["Retry-After"] == "1"
        # The store itself tries for some seconds before it says so.
        end = time.monotonic() + PATIENCE_SECONDS
        while "database" not in ask(port, "GET", "/healthz")[1]["message"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert end_of(server) < 5
        assert server.stderr is not None
        log = server.stderr.read()
        assert "waiting_for_store" in log
        assert "stopped" in log
    finally:
        server.kill()
        server.wait()


def test_it_waits_for_a_database_that_is_not_there_yet() -> None:
    """PostgreSQL is started after the server, as at the boot of a machine."""
    if missing := postgres.why_missing():
        pytest.skip(missing)
    with postgres.Postgres() as database:
        database.kill()
        port = free_port()
        server = start(port, database.uri())
        try:
            assert ask(port, "GET", "/healthz")[1]["status"] == "starting"
            database.start()
            assert server.stdout is not None
            assert "ready at" in server.stdout.readline()
            assert ask(port, "GET", "/readyz")[0] == 200
            assert ask(port, "GET", "/healthz")[1] == {"status": "ok"}
            assert end_of(server) < 15
        finally:
            server.kill()
            server.wait()


def test_an_error_at_the_start_ends_it(tmp_path: Path) -> None:
    """What waiting cannot mend is said, and the exit code is 2."""
    (tmp_path / "jobs.db").write_text("this is no database" * 100)
    server = start(0, f"sqlite:{tmp_path / 'jobs.db'}")
    assert server.wait(PATIENCE_SECONDS) == 2
    assert server.stderr is not None
    assert "jobs.db" in server.stderr.read()


@pytest.mark.parametrize("store", ["foo:bar", "sqlite:FOLDER", "sqlite:FOLDER/no/a.db"])
def test_a_store_that_cannot_be_takes_no_address(tmp_path: Path, store: str) -> None:
    """Nothing listens before the store's name is known to be good."""
    server = start(0, store.replace("FOLDER", str(tmp_path)))
    assert server.wait(PATIENCE_SECONDS) == 2
    assert server.stderr is not None
    assert "listening" not in server.stderr.read()


def test_a_taken_port_makes_no_files(tmp_path: Path) -> None:
    """The address is taken before the store is touched."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = start(other.getsockname()[1], f"sqlite:{tmp_path / 'jobs.db'}")
        assert server.wait(PATIENCE_SECONDS) == 2
    assert server.stderr is not None
    assert "another program listens there" in server.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_listen_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    """A folder that is missing, or is a file."""
    (tmp_path / "file").write_text("")
    for folder in ("none", "file"):
        command = [str(BINARY), "serve", "--listen", f"unix:{tmp_path / folder}/sock"]
        command += ["--store", f"sqlite:{tmp_path / 'jobs.db'}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert f"there is no folder {tmp_path / folder}; make it, or" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def connect(server: Server) -> socket.socket:
    """Open a connection to a server."""
    port = int(server.url.rsplit(":", 1)[1])
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)


def read_answer(client: socket.socket) -> tuple[int, bytes]:
    """Read one answer: its status and body."""
    response = http.client.HTTPResponse(client)
    response.begin()
    return response.status, response.read()


def new_job(key: str) -> bytes:
    """Write the request that creates a job."""
    body = json.dumps({"job": SETTINGS, "profile_csv": PROFILE, "client_key": key}).encode()
    head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def keys(server: Server) -> set[str]:
    """List the client keys of all jobs."""
    return {str(job.get("client_key")) for job in server.call("GET", "/api/v1/jobs")[1]["jobs"]}


def await_stop(pid: int) -> None:
    """Wait until every thread of a process has stopped: kill() returns before that."""
    while any(
        (task / "stat").read_text().rpartition(")")[2].split()[0] != "T"
        for task in Path(f"/proc/{pid}/task").iterdir()
    ):
        time.sleep(0.01)


def test_changes_from_before_a_stop_are_not_made(tmp_path: Path) -> None:
    """A server that was stopped does not act on requests that clients gave up on."""
    server = Server(BINARY, tmp_path / "jobs.db")
    before, idle = connect(server), connect(server)
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for client in (before, idle):
        client.sendall(get)
        assert read_answer(client)[0] == 200
    os.kill(server.pid, signal.SIGSTOP)
    await_stop(server.pid)
    # On a connection that was there, and on one that nobody accepted yet; given up, and not.
    before.sendall(new_job("open-before"))
    gone, waiting, reading = connect(server), connect(server), connect(server)
    gone.sendall(new_job("gone"))
    gone.close()
    waiting.sendall(new_job("waiting"))
    reading.sendall(get)
    time.sleep(STOP_SECONDS)
    os.kill(server.pid, signal.SIGCONT)
    for client in (before, waiting):
        status, body = read_answer(client)
        assert status == 503, body
        assert b"was stopped for" in body
        assert b"send the request again" in body
    # Who only looks is answered.
    assert read_answer(reading)[0] == 200
    # Later requests are as good as ever, on old connections and new ones.
    time.sleep(1.5)
    for number, client in enumerate((idle, before, connect(server))):
        client.sendall(new_job(f"new-{number}"))
        assert read_answer(client)[0] == 201
    assert keys(server) == {"new-0", "new-1", "new-2"}
    metrics = server.call("GET", "/metrics")[1]
    assert "perseus_http_outdated_requests_total 3" in metrics
    assert server.stop() == 0, server.log()
    assert "did not run for" in server.log()


def test_a_connection_that_says_nothing_is_closed_after_ten_seconds(tmp_path: Path) -> None:
    """As docs/reference/http.md says."""
    server = Server(BINARY, tmp_path / "jobs.db")
    silent = connect(server)
    begin = time.monotonic()
    assert silent.recv(1) == b""
    assert 9 < time.monotonic() - begin < 25
    assert server.stop() == 0
