# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Servers on one PostgreSQL, of which one is active, behind a balancer, for drills."""

from __future__ import annotations

import contextlib
import http.client
import random
import selectors
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from postgres import PgBouncer, Postgres
from serving import GoneError, Server


class Balancer:
    """Hands each connection to the server that is ready."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ports: list[int] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def set_ports(self, ports: list[int]) -> None:
        """Say where the servers are."""
        with self._lock:
            self._ports = list(ports)

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _connect(self) -> socket.socket | None:
        with self._lock:
            ports = list(self._ports)
        for port in ports:
            with contextlib.suppress(OSError, http.client.HTTPException):
                probe = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
                probe.request("GET", "/readyz")
                if probe.getresponse().status == 200:
                    return socket.create_connection(("127.0.0.1", port), timeout=5)
        return None

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            server = self._connect()
            if server is None:
                return
            with server, selectors.DefaultSelector() as selector:
                server.settimeout(None)
                selector.register(client, selectors.EVENT_READ, server)
                selector.register(server, selectors.EVENT_READ, client)
                while True:
                    for key, _ in selector.select():
                        source = key.fileobj
                        assert isinstance(source, socket.socket)
                        data = source.recv(65536)
                        if not data:
                            return
                        key.data.sendall(data)


class Cluster:
    """One PostgreSQL and some servers on it; called through a balancer.

    Parameters
    ----------
    binary
        The program perseus.
    servers
        How many.
    pooled
        Whether PgBouncer (in transaction mode) is between them and PostgreSQL.
    """

    def __init__(self, binary: Path, servers: int, *, pooled: bool = False) -> None:
        self._binary = binary
        self.postgres = Postgres()
        self._pooler = PgBouncer(self.postgres) if pooled else None
        self._store = self.postgres.uri() if self._pooler is None else self._pooler.uri()
        self._balancer = Balancer()
        self.servers: list[Server] = []
        for _ in range(servers):
            self.servers.append(Server(binary, self._store, is_standby=bool(self.servers)))
        self._tell()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._balancer.close()
        for server in self.servers:
            server.kill()
        if self._pooler is not None:
            self._pooler.close()
        self.postgres.close()

    def _tell(self) -> None:
        self._balancer.set_ports([int(server.url.rpartition(":")[2]) for server in self.servers])

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Ask the active server."""
        return self.servers[0].call(method, path, body, url=self._balancer.url)

    def active(self, seconds: float) -> Server:
        """Wait for a server that is active."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for server in self.servers:
                if server.is_active():
                    return server
            time.sleep(0.02)
        raise AssertionError("no server is active")

    def ask(self, method: str, path: str, seconds: float) -> tuple[int, Any]:
        """Ask until there is an answer, as clients do."""
        end = time.monotonic() + seconds
        while True:
            try:
                status, answer = self.call(method, path)
                if status != 503:
                    return status, answer
            except GoneError:
                if time.monotonic() > end:
                    raise
            assert time.monotonic() < end, (method, path)
            time.sleep(0.02)

    def strike(self, chance: random.Random) -> str:
        """Kill a server or PostgreSQL, with SIGKILL; return which."""
        victim = chance.randrange(len(self.servers) + 1)
        if victim == len(self.servers):
            self.postgres.kill()
            return "postgresql"
        self.servers[victim].kill()
        return str(victim)

    def mend(self, victim: str) -> None:
        """Start again what was killed."""
        if victim == "postgresql":
            self.postgres.start()
        else:
            others = len(self.servers) > 1
            self.servers[int(victim)] = Server(self._binary, self._store, is_standby=others)
            self._tell()

    def stop(self) -> None:
        """End the servers as systemd does; they must end as asked."""
        for server in self.servers:
            assert server.stop() == 0, server.log()
