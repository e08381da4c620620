# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How long readers wait while a commit takes seconds.

python bench/slow_commit.py --perseus build/release/src/cli/perseus --seconds 3

Starts the real server with one job that runs and one other; a second connection then
holds SQLite's file for writing (with --store postgresql: locks the table of the jobs),
so that a change of the job takes so long. Meanwhile one client asks for the plan of that
job, one for that of the other, one for /metrics, again and again, each on a connection of
its own. Prints the median, 99th percentile and maximum of what each waited.
--changes 4: so many changes wait at once, as many as the server has workers.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "server"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from drill import PROFILE, RANKS, SETTINGS
from postgres import PORT, Postgres
from serving import Server

PATIENCE_SECONDS = 60.0


class Reader(threading.Thread):
    """A client that asks for one thing until it is told to stop; remembers what it waited."""

    def __init__(self, server: Server, name: str, target: str) -> None:
        super().__init__(name=name)
        self.seconds: list[float] = []
        self.stopping = threading.Event()
        self._target = target
        self._connection = connect(server)

    def run(self) -> None:
        """Ask every 2 ms, as an answer or a pause allows."""
        while not self.stopping.wait(0.002):
            begin = time.perf_counter()
            self._connection.request("GET", self._target)
            answer = self._connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            self.seconds.append(time.perf_counter() - begin)


def connect(server: Server) -> http.client.HTTPConnection:
    """Open a connection."""
    port = int(server.url.rpartition(":")[2])
    return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)


def run_job(server: Server, name: str) -> str:
    """Create a job and wait until all of its plans are there; return its path."""
    body = {"job": SETTINGS, "profile_csv": PROFILE, "name": name}
    path = f"/api/v1/jobs/{server.call('POST', '/api/v1/jobs', body)[1]['id']}"
    for rank in range(RANKS):
        place = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
        assert server.call("POST", path + "/ranks", place)[0] == 200
    while not server.call("GET", path)[1]["refined"]:
        time.sleep(0.05)
    return path


@contextlib.contextmanager
def slow_file(store: Path, seconds: float) -> Iterator[None]:
    """Hold a SQLite file for writing."""
    database = sqlite3.connect(store, isolation_level=None, check_same_thread=False)
    database.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(seconds, lambda: database.execute("ROLLBACK"))
    timer.start()
    yield
    timer.join()
    database.close()


@contextlib.contextmanager
def slow_table(database: Postgres, seconds: float) -> Iterator[None]:
    """Hold the marks of the jobs, which each change writes; they can be read."""
    sql = f"BEGIN; LOCK TABLE marks IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT"
    place = ["-h", str(database.folder), "-p", str(PORT), "-U", "postgres", "-d", "perseus"]
    holder = subprocess.Popen(["psql", "-X", "-q", *place, "-c", sql], stdout=subprocess.DEVNULL)
    while database.run("SELECT COUNT(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock'") == "0":
        time.sleep(0.01)
    yield
    holder.wait()


def measure(server: Server, slow: contextlib.AbstractContextManager[None], changes: int) -> None:
    """Print what readers wait."""
    job, other = run_job(server, "job"), run_job(server, "other")
    readers = [
        Reader(server, "GET plan, the job that changes", job + "/plan?rank=0&after=-1"),
        Reader(server, "GET plan, another job", other + "/plan?rank=0&after=-1"),
        Reader(server, "GET /metrics", "/metrics"),
    ]
    took: list[tuple[int, float]] = []

    def change(number: int) -> None:
        connection = connect(server)
        begin = time.perf_counter()
        connection.request("PUT", job + "/point", json.dumps({"at": f"1.{number + 1}x"}))
        took.append((connection.getresponse().status, time.perf_counter() - begin))

    changers = [threading.Thread(target=change, args=(i,)) for i in range(changes)]
    with slow:
        for thread in changers:
            thread.start()
        time.sleep(0.1)
        for reader in readers:
            reader.start()
        for thread in changers:
            thread.join()
    for reader in readers:
        reader.stopping.set()
        reader.join()
    said = ", ".join(f"{status} after {seconds:.2f} s" for status, seconds in took)
    print(f"changes: {said}; load {os.getloadavg()[0]:.1f}")
    print(f"{'':32}{'requests':>9}{'median':>11}{'p99':>11}{'maximum':>11}")
    for reader in readers:
        waits = sorted(reader.seconds)
        shown = (waits[len(waits) // 2], waits[int(0.99 * len(waits))], waits[-1])
        print(f"{reader.name:32}{len(waits):9}" + "".join(f"{1000 * s:8.1f} ms" for s in shown))


def main() -> None:
    """Start a server and measure it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--changes", type=int, default=1)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    if options.store == "postgresql":
        with Postgres() as database:
            server = Server(options.perseus, database.uri())
            measure(server, slow_table(database, options.seconds), options.changes)
            server.kill()
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "jobs.db"
        server = Server(options.perseus, store)
        measure(server, slow_file(store, options.seconds), options.changes)
        server.kill()


if __name__ == "__main__":
    main()
