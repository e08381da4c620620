# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a hostile or broken client does to a server, and what the server must answer.

python tests/hostile/attacks.py --perseus build/release/src/cli/perseus

10,000 connections that say nothing, some hundred that say a byte now and then, bodies
and addresses that are too long, too deep or no text, requests that two servers could
read in two ways, listeners that never read, resets. All the while a client that does
nothing wrong must be answered, and memory must not grow from round to round.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import select
import socket
import struct
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from drill import PROFILE, SETTINGS
from serving import Server

# Only a hang misses it.
PATIENCE = 30.0
MOST_RESIDENT_MIB = 512.0


def resident_mib(server: Server) -> float:
    """Return VmRSS of the server."""
    text = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


def connect(server: Server) -> socket.socket:
    """Open a connection."""
    where = urllib.parse.urlsplit(server.url)
    assert where.hostname is not None
    return socket.create_connection((where.hostname, where.port or 0), timeout=PATIENCE)


def answers(
    server: Server, request: bytes, *, ends: bool = False, most: int = 1
) -> list[tuple[int, bytes]]:
    """Send bytes; return status and body of each answer until the server closes or waits.

    Parameters
    ----------
    server
        Which.
    request
        Bytes.
    ends
        Close our sending side afterwards.
    most
        Do not wait for more answers than this.
    """
    with connect(server) as connection:
        got = b""
        # The server may answer and close before it has everything.
        try:
            connection.sendall(request)
            if ends:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        found: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < most and time.monotonic() < deadline:
            ready, _, _ = select.select([connection], [], [], PATIENCE if not found else 0.2)
            if not ready:
                break
            try:
                more = connection.recv(1 << 16)
            except OSError:
                break
            if not more:
                break
            got += more
            found, got = split(got, found)
        return found


def split(got: bytes, found: list[tuple[int, bytes]]) -> tuple[list[tuple[int, bytes]], bytes]:
    """Move whole answers from the bytes to the list."""
    while True:
        head, separator, rest = got.partition(b"\r\n\r\n")
        if not separator:
            return found, got
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            return found, got
        found.append((int(head.split(b" ")[1]), rest[:size]))
        got = rest[size:]


def post(path: str, body: bytes, *more: str) -> bytes:
    """Return a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def get(path: bytes, *more: bytes) -> bytes:
    """Return a request."""
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: localhost", *more, b"", b""])


@contextmanager
def honest_client(server: Server, path: str) -> Iterator[list[float]]:
    """Ask for a plan again and again; every answer must be there and right."""
    done = threading.Event()
    seconds: list[float] = []
    faults: list[str] = []

    def ask() -> None:
        while not done.is_set():
            started = time.monotonic()
            try:
                status, plan = server.call("GET", f"{path}/plan?rank=1")
            except Exception as error:
                faults.append(repr(error))
                return
            seconds.append(time.monotonic() - started)
            if status != 200 or len(plan["computations"]) != 4:
                faults.append(f"{status} {plan}")
            done.wait(0.01)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield seconds
    finally:
        done.set()
        asker.join()
    assert not faults, faults[0]
    assert seconds


def make_job(server: Server) -> str:
    """Create a job with a plan; return its path."""
    status, job = server.call("POST", "/api/v1/jobs", {"job": SETTINGS, "profile_csv": PROFILE})
    assert status == 201, job
    path = f"/api/v1/jobs/{job['id']}"
    for rank in range(4):
        place = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
        assert server.call("POST", path + "/ranks", place)[0] == 200
    assert server.call("GET", f"{path}/plan?rank=1&wait=30")[0] == 200
    return path


def bad_bodies(server: Server, path: str) -> int:
    """Each gets a 4xx with a sentence; return how many there were."""
    deep = 400_000
    no_json = [
        b"[" * deep,
        b'{"job":' * (deep // 7),
        b'{"rank": NaN, "dp_rank": 0, "pp_rank": 0}',
        b'{"name": "\xff\xfe", "job": {}}',
        b'{"name": "\\ud800", "job": {}}',
        b"\x00" * 1000,
        b"",
        b"null",
        b"7",
        b'"' + b"\\u0041" * 100_000 + b'"',
        b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    ]
    no_job = [
        b"{" + b'"job":{' * 1000 + b"}" * 1001,
        b'{"job":' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"job": {"stages": 1e400}}',
        b'{"job": {"stages": -0.0e0}}',
        b'{"name": "' + b"x" * 900_000 + b'", "job": {}}',
        b'{"job": {"schedule": "\\u0000"}}',
        b'{"job": {"profile": "/etc/passwd"}}',
        b'{"job": {"schedule_file": "../../../etc/passwd"}}',
    ]
    no_rank = [
        b'{"rank": 99999999999999999999999999999999999999, "dp_rank": 0, "pp_rank": 0}',
        b'{"rank": 1e308, "dp_rank": -1e308, "pp_rank": 0.5}',
        b'{"rank": 0, "rank": 3, "dp_rank": 0, "pp_rank": 0}',
    ]
    requests = [(place, text) for place in ("/api/v1/jobs", "/register_job") for text in no_job]
    requests += [(f"{path}/ranks", text) for text in no_rank]
    places = ["/api/v1/jobs", "/register_job"]
    places += [f"{path}/{what}" for what in ("ranks", "measurements", "iterations", "stragglers")]
    requests += [(place, text) for place in places for text in no_json]
    for place, text in requests:
        [(status, body)] = answers(server, post(place, text))
        assert 400 <= status < 500, (place, text[:60], status, body)
        assert json.loads(body)["error"]["message"], (place, text[:60])
        assert len(body) < 4096, (place, text[:60], len(body))
        assert b"root:" not in body
    return len(requests)


def too_much(server: Server, path: str) -> None:
    """What is over a limit is refused, at once where it says so itself."""
    announced = b"POST /register_job HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    for length in (str(1 << 21), str(1 << 40), str((1 << 63) - 1)):
        assert answers(server, announced + length.encode() + b"\r\n\r\n")[0][0] == 413, length
    for length in ("9" * 40, "-1", "+1", "0x10", "1 1", ""):
        assert answers(server, announced + length.encode() + b"\r\n\r\n")[0][0] == 400, length
    chunks = b"POST /register_job HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answers(server, chunks + (b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 64)[0][0] == 413
    assert answers(server, chunks + b"fffffffffffffffff\r\n")[0][0] in (400, 413)
    assert answers(server, get(b"/" + b"a" * 8000))[0][0] == 414
    assert answers(server, get(b"/healthz", b"X: " + b"a" * 40_000))[0][0] == 431
    assert answers(server, get(b"/healthz", *(b"X%d: 1" % i for i in range(200))))[0][0] == 431
    query = b"&".join(b"a%d=1" % i for i in range(100))
    assert answers(server, get(path.encode() + b"/plan?" + query))[0][0] == 400


def path_tricks(server: Server, path: str) -> int:
    """No address is a path of a file, and none reaches a route that it does not name."""
    job = path.encode()
    targets = [
        b"/../../../../etc/passwd",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"/..%2f..%2fetc%2fpasswd",
        b"/..%5c..%5cetc%5cpasswd",
        b"/api/v1/jobs/../../../etc/passwd",
        b"/api/v1/jobs/..%2f..%2fetc%2fpasswd",
        b"/api/v1/jobs/%2e%2e",
        b"/api/v1/jobs/.",
        b"/api/v1//jobs",
        b"//etc/passwd",
        b"/api/v1/jobs/%00",
        b"/api/v1/jobs/a%00.json",
        b"/api/v1/jobs/%ff%fe",
        b"/api/v1/jobs/%c0%ae%c0%ae",
        b"/api/v1/jobs/%",
        b"/api/v1/jobs/%zz",
        b"/api/v1/jobs/'%20OR%201=1--",
        b"/api/v1/jobs/j%27%3bDROP%20TABLE%20jobs%3b--",
        b"/api/v1/jobs/${jndi:ldap:%2f%2fx}",
        b"/api/v1/jobs/%0d%0aSet-Cookie:%20a",
        b"/openapi.json/../metrics",
        b"/openapi.json%00.html",
        b"file:///etc/passwd",
        b"http://example.com/../../etc/passwd",
        b"*",
        b"\\etc\\passwd",
        b"etc/passwd",
        job + b"/plan.json/../../secret",
        job + b"/plan?rank=0&rank=1",
        job + b"/plan?rank=%00",
        job + b"/plan.json?pipeline=../../etc/passwd",
    ]
    for target in targets:
        for status, body in answers(server, get(target), most=2):
            assert 400 <= status < 500, (target, status, body)
            assert b"root:" not in body
            assert b"\r\nSet-Cookie" not in body
    return len(targets)


def odd_requests(server: Server) -> None:
    """What two servers could read in two ways is refused; garbage ends in a close."""
    host = b"Host: localhost\r\n"
    smuggled = b"GET /api/v1/jobs HTTP/1.1\r\n" + host + b"\r\n"
    refused = [
        b"POST /healthz HTTP/1.1\r\n" + host + b"Content-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
        b"POST /healthz HTTP/1.1\r\n"
        + host
        + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        b"POST /healthz HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\n" + host + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + host + host + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + host + b" folded: 1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + host + b"A: b\x00c\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\n" + host + b"\r\n",
        b"GET /healthz\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 500,
        b"\r\n" * 20_000,
        bytes(random.Random(5).randrange(256) for _ in range(20_000)),
    ]
    for request in refused:
        found = answers(server, request, ends=True, most=3)
        assert len(found) <= 1, (request[:60], found)
        assert all(400 <= status <= 505 for status, _ in found), (request[:60], found)
    # A thousand at once on one connection: answered one by one, in order.
    found = answers(server, get(b"/healthz") * 1000, most=1001)
    assert [status for status, _ in found] == [200] * 1000
    method = answers(server, b"BREW /healthz HTTP/1.1\r\n" + host + b"\r\n")
    assert method[0][0] in (400, 405, 501)


def resets(server: Server, count: int) -> None:
    """Send half a request and reset."""
    requests = [b"", b"GET", get(b"/healthz"), post("/api/v1/jobs", b"{" * 100)[:-50]]
    for number in range(count):
        connection = connect(server)
        connection.sendall(requests[number % len(requests)])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def deaf_listeners(server: Server, path: str, count: int) -> None:
    """Ask for streams of events and never read, while events come."""
    with ExitStack() as open_ones:
        for _ in range(count):
            connection = open_ones.enter_context(connect(server))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(get(path.encode() + b"/events"))
        for _ in range(30):
            status, _ = server.call("POST", path + "/stragglers", {"pipeline": 0, "factor": 1.1})
            assert status == 201
            assert server.call("DELETE", path + "/stragglers")[0] == 204


def slow_senders(server: Server, count: int) -> float:
    """A byte now and then; return after how many seconds the last was closed."""
    started = time.monotonic()
    heads = [b"GET /healthz HTTP/1.1\r\nHost: ", b"POST /api/v1/jobs HTTP/1.1\r\nX: "]
    with ExitStack() as open_ones:
        waiting = [open_ones.enter_context(connect(server)) for _ in range(count)]
        for number, connection in enumerate(waiting):
            connection.sendall(heads[number % 2])
        while waiting:
            assert time.monotonic() - started < 2 * PATIENCE, f"{len(waiting)} are still open"
            time.sleep(0.25)
            still = []
            for connection in waiting:
                try:
                    connection.sendall(b"a")
                    ready, _, _ = select.select([connection], [], [], 0)
                    if ready:
                        text = connection.recv(4096)
                        assert not text or b" 408 " in text.split(b"\r\n")[0], text
                        continue
                except OSError:
                    continue
                still.append(connection)
            waiting = still
    return time.monotonic() - started


def silent_connections(server: Server, path: str, count: int) -> float:
    """Open connections that say nothing; return what memory they take at most, in MiB."""
    before = resident_mib(server)
    with ExitStack() as open_ones:
        for _ in range(count):
            open_ones.enter_context(connect(server))
        status, text = server.call("GET", "/metrics")
        assert status == 200
        now = re.search(r"^perseus_http_connections (\d+)", text, re.M)
        assert now is not None
        assert int(now[1]) >= count
        assert server.call("GET", f"{path}/plan?rank=0")[0] == 200
        return resident_mib(server) - before


def agitate(server: Server, path: str, seconds_of: list[float], reset_count: int) -> int:
    """One round of everything that is soon over; return how many requests at least."""
    sent = bad_bodies(server, path)
    too_much(server, path)
    sent += path_tricks(server, path)
    odd_requests(server)
    resets(server, reset_count)
    deaf_listeners(server, path, 20)
    seconds_of.append(resident_mib(server))
    return sent + 1000 + reset_count


def run(binary: Path, *, rounds: int, slow: int, silent: int, reset_count: int) -> str:
    """Attack a new server in every way; return what was measured."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, Path(folder) / "jobs.db", "--log-level", "warning")
        try:
            path = make_job(server)
            resident: list[float] = []
            with honest_client(server, path) as seconds:
                requests = sum(agitate(server, path, resident, reset_count) for _ in range(rounds))
                closed_after = slow_senders(server, slow)
                silent_mib = silent_connections(server, path, silent)
            most = max(*resident, resident_mib(server))
            status, jobs = server.call("GET", "/api/v1/jobs")
            assert (status, len(jobs["jobs"])) == (200, 1)
            assert server.stop() == 0, server.log()
            assert "exception" not in server.log().lower(), server.log()
        finally:
            server.kill()
    grown = resident[-1] - resident[len(resident) // 2]
    worst = sorted(seconds)[int(0.99 * len(seconds))]
    return (
        f"{rounds} rounds, {requests} hostile requests; resident after each: "
        f"{', '.join(f'{mib:.0f}' for mib in resident)} MiB (second half grew {grown:.1f})\n"
        f"{slow} slow senders were all closed after {closed_after:.1f} s\n"
        f"{silent} silent connections took {silent_mib:.1f} MiB; {most:.0f} MiB at most\n"
        f"the honest client was answered {len(seconds)} times, p99 {1000 * worst:.0f} ms, "
        f"worst {1000 * max(seconds):.0f} ms"
    )


def main() -> int:
    """Run it and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--silent", type=int, default=10_000)
    parser.add_argument("--resets", type=int, default=2000)
    arguments = parser.parse_args()
    print(
        run(
            arguments.perseus.resolve(),
            rounds=arguments.rounds,
            slow=arguments.slow,
            silent=arguments.silent,
            reset_count=arguments.resets,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
