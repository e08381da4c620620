# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How soon a server with many finished jobs listens, and how soon it obeys SIGTERM.

python bench/server_start.py --perseus build/release/src/cli/perseus --jobs 10000

Makes a store with so many finished jobs: the server makes one, which is copied, row by
row, under other ids. Then starts the server anew --starts times and prints when it
listened, when it answered /healthz and when it was ready, and its processor time until
then. After that it is told to end (SIGTERM) at random moments within --moment seconds of
its start, --stops times, each second time with a standard error that nobody reads and that is full;
prints how long it took to end.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "server"))
from drill import PROFILE, RANKS, SETTINGS
from first_plans import cpu_seconds
from serving import Server

LIMIT_SECONDS = 120.0
# Whose rows are copied; the others hang on no finished job.
TABLES = ("marks", "ranks", "measurements", "curves", "plans", "versions", "iterations")


def make_store(perseus: Path, store: Path, jobs: int) -> None:
    """Fill a store with finished jobs, each with ranks and plans."""
    server = Server(perseus, store)
    body = {"job": SETTINGS, "profile_csv": PROFILE}
    job = server.call("POST", "/api/v1/jobs", body)[1]["id"]
    for rank in range(RANKS):
        place = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
        assert server.call("POST", f"/api/v1/jobs/{job}/ranks", place)[0] == 200
    while not server.call("GET", f"/api/v1/jobs/{job}")[1]["refined"]:
        time.sleep(0.05)
    assert server.call("POST", f"/api/v1/jobs/{job}/finish")[0] == 200
    assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(store)) as database:
        ids = [(f"j-{number:016x}",) for number in range(1, jobs)]
        for table in ("jobs", *TABLES):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            new = {"id": "?1", "client_key": "?1"} if table == "jobs" else {"job": "?1"}
            key = "id" if table == "jobs" else "job"
            values = ", ".join(new.get(column, column) for column in columns)
            copy = f"INSERT INTO {table} SELECT {values} FROM {table} WHERE {key} = '{job}'"
            database.executemany(copy, ids)
        database.commit()


def free_port() -> int:
    """Find a port that nobody has now."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        return int(finder.getsockname()[1])


def ask(port: int, target: str) -> int:
    """Ask; return the status of the answer, 0: nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        json.loads(answer.read())
        return answer.status
    except ConnectionRefusedError:
        return 0
    finally:
        connection.close()


def spawn(perseus: Path, store: Path, port: int, error: int) -> subprocess.Popen[bytes]:
    """Start a server without waiting for it."""
    return subprocess.Popen(
        [
            *(str(perseus), "serve", "--listen", f"127.0.0.1:{port}"),
            *("--store", f"sqlite:{store}", "--max-jobs", "100000"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=error,
    )


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


def time_start(perseus: Path, store: Path) -> None:
    """Start it once; print when it listened and was ready."""
    port = free_port()
    begin = time.perf_counter()
    server = spawn(perseus, store, port, subprocess.DEVNULL)
    reached: list[float] = []
    for target in ("/healthz", "/readyz"):
        while ask(port, target) != 200:
            if time.perf_counter() - begin > LIMIT_SECONDS:
                server.kill()
                print(f"no answer to {target} within {LIMIT_SECONDS:.0f} s")
                return
            time.sleep(0.002)
        reached.append(time.perf_counter() - begin)
    print(
        f"listening after {reached[0]:.2f} s, ready after {reached[1]:.2f} s, with "
        f"{cpu_seconds(server.pid):.2f} s of CPU; load {os.getloadavg()[0]:.1f}"
    )
    server.terminate()
    server.wait()


def time_stop(perseus: Path, store: Path, after: float, error: int) -> float:
    """Start it, tell it to end a while later; return how long that takes."""
    server = spawn(perseus, store, free_port(), error)
    time.sleep(after)
    begin = time.perf_counter()
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(LIMIT_SECONDS / 4)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
        return float("inf")
    return time.perf_counter() - begin


def main() -> None:
    """Make the store, start and stop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--stops", type=int, default=40)
    parser.add_argument("--moment", type=float, default=3.0)
    options = parser.parse_args()
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "jobs.db"
        make_store(options.perseus, store, options.jobs)
        print(f"{options.jobs} finished jobs, {store.stat().st_size / 2**20:.0f} MiB")
        for _ in range(options.starts):
            time_start(options.perseus, store)
        took: dict[str, list[float]] = {"read": [], "blocked": []}
        for number in range(options.stops):
            after = chance.uniform(0, options.moment)
            if number % 2 == 0:
                took["read"].append(time_stop(options.perseus, store, after, subprocess.DEVNULL))
                continue
            with full_pipe() as error:
                took["blocked"].append(time_stop(options.perseus, store, after, error))
        for kind, times in took.items():
            late = sum(seconds > 1 for seconds in times)
            print(
                f"standard error {kind}: ended within {max(times):.2f} s of SIGTERM, median "
                f"{sorted(times)[len(times) // 2]:.2f} s; {late} of {len(times)} took over 1 s"
            )


if __name__ == "__main__":
    main()
