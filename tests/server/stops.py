# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A server that was stopped carries out nothing over what its successor acknowledged.

Of two servers on one PostgreSQL the active one gets SIGSTOP. Before that and while it is
stopped, clients send it changes and give up: they close their connections. The other server
takes over and acknowledges newer changes of the same things. The stopped one goes on, and
stands by; the active one must show the newer ones: the job's point, its stragglers, the
node of a rank.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import time
from pathlib import Path
from typing import Any

from cluster import Cluster
from serving import Server

# From SIGCONT to the look: what the stopped server still has in hand comes to its end.
SETTLE_SECONDS = 2.0
# The lease, and a machine that does other things.
TAKE_OVER_SECONDS = 30.0


class GivenUp:
    """Requests to one server whose clients will not wait for the answer."""

    def __init__(self, server: Server) -> None:
        self._port = int(server.url.rpartition(":")[2])
        self._sockets: list[socket.socket] = []
        self.sent = 0

    def send(self, method: str, path: str, body: object = None) -> None:
        """Send a change on a connection of its own."""
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        connection.sendall(head.encode() + text)
        self._sockets.append(connection)
        self.sent += 1

    def close(self) -> None:
        """Give up: close every connection."""
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.close()
        self._sockets = []


def _place(rank: int, node: str) -> dict[str, Any]:
    return {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2, "node": node}


def _old_changes(clients: GivenUp, path: str, number: int) -> None:
    clients.send("PUT", path + "/point", {"at": f"1.1{number:03}1x"})
    clients.send("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.5})
    clients.send("POST", path + "/ranks", _place(3, f"old-{number}"))
    clients.send("PUT", path + "/detection", {"mode": "act", "threshold": 0.2})


def _shown(server: Server, path: str) -> dict[str, Any]:
    job = server.call("GET", path)[1]
    ranks = server.call("GET", path + "/ranks")[1]["ranks"]
    [node] = [rank["node"] for rank in ranks if rank["rank"] == 3]
    found = server.call("GET", path + "/detection")[1]
    return {
        "point": job["at"],
        "stragglers": len(job["stragglers"]),
        "node": node,
        "threshold": found["threshold"],
    }


def _stop_once(cluster: Cluster, path: str, number: int, chance: random.Random) -> list[str]:
    """Stop the active server; return what is shown that is not what its successor acknowledged."""
    one = cluster.active(TAKE_OVER_SECONDS)
    clients = GivenUp(one)
    # Some are in the server's hands, some in the kernel's.
    if chance.random() < 0.5:
        _old_changes(clients, path, number)
        time.sleep(chance.uniform(0, 0.003))
    os.kill(one.pid, signal.SIGSTOP)
    _old_changes(clients, path, number)
    time.sleep(chance.uniform(0.05, 0.5))
    clients.close()
    [other] = [server for server in cluster.servers if server is not one]
    end = time.monotonic() + TAKE_OVER_SECONDS
    while not other.is_active():
        assert time.monotonic() < end, other.log()
        time.sleep(0.02)
    new = {"point": f"1.2{number:03}1x", "stragglers": 0, "node": f"new-{number}", "threshold": 0.1}
    detection = {"mode": "advisory", "threshold": 0.1}
    for method, target, body in (
        ("PUT", "/point", {"at": new["point"]}),
        ("DELETE", "/stragglers", None),
        ("POST", "/ranks", _place(3, f"new-{number}")),
        ("PUT", "/detection", detection),
    ):
        answer = other.call(method, path + target, body)
        assert answer[0] in (200, 204), answer
    # As long as a stall of a machine, and as short as one that nobody notices.
    time.sleep(chance.choice((0.0, 0.3, 1.0, 3.0)))
    os.kill(one.pid, signal.SIGCONT)
    time.sleep(SETTLE_SECONDS)
    assert not one.is_active(), one.log()
    shown = _shown(other, path)
    return [f"{key}: {shown[key]}" for key in new if shown[key] != new[key]]


def run_stops(binary: Path, stops: int, seed: int, job: dict[str, Any], pooled: bool) -> list[str]:
    """Stop the active one of two servers so often; return what was overwritten.

    Parameters
    ----------
    binary
        The program perseus.
    stops
        How often.
    seed
        Of the moments.
    job
        What creates a job of four ranks with a profile.
    pooled
        Whether PgBouncer is between servers and PostgreSQL.
    """
    chance = random.Random(seed)
    overwritten = []
    with Cluster(binary, 2, pooled=pooled) as cluster:
        first = cluster.active(TAKE_OVER_SECONDS)
        path = f"/api/v1/jobs/{first.call('POST', '/api/v1/jobs', job)[1]['id']}"
        for rank in range(4):
            answer = first.call("POST", path + "/ranks", _place(rank, "first"))
            assert answer[0] == 200, answer
        for number in range(stops):
            wrong = _stop_once(cluster, path, number, chance)
            if wrong:
                overwritten.append(f"stop {number}: " + ", ".join(wrong))
        cluster.stop()
    return overwritten
