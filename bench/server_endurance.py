# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Many jobs at once on one server, then a day of their polling in minutes.

python bench/server_endurance.py --perseus build/release/src/cli/perseus --jobs 100

Every rank of every job is a connection of its own: it registers, fetches its plan and
waits for the next; a pipeline of every job straggles in the same moment. Then the day:
each node of eight ranks polls every 60 s and reports its ranks' iterations every ten
minutes, and each job has a straggler that comes and goes once an hour. Here nodes poll
again as soon as they are answered (a quarter of a second, the server's least wait);
memory and the store's file are read along the way. The day takes six minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server_scale import PROFILE, STAGES, Rank, percentile, resident_mib

RANKS_OF_NODE = 8
POLLS_OF_HOUR = 60
POLLS_OF_DAY = 24 * POLLS_OF_HOUR
POLLS_OF_REPORT = 10


@dataclass
class Job:
    """One job and its clients.

    Parameters
    ----------
    path
        In the API.
    clients
        A connection for each rank.
    version
        Of the plan that they have.
    """

    path: str
    clients: list[Rank]
    version: int = 0


async def connect(port: int, count: int) -> list[Rank]:
    """Open connections."""
    loop = asyncio.get_running_loop()
    made: list[Rank] = []
    while len(made) < count:
        some = min(256, count - len(made))
        calls = [loop.create_connection(Rank, "127.0.0.1", port) for _ in range(some)]
        made += [protocol for _, protocol in await asyncio.gather(*calls)]
    return made


async def start_job(number: int, clients: list[Rank]) -> Job:
    """Create a job, register its ranks and wait until all have a plan."""
    settings: dict[str, object] = {"schedule": "1f1b", "microbatches": 4}
    settings |= {"data_parallel": len(clients) // STAGES, "blocking_power": 83.64}
    settings["effort"] = 0.02  # How good the plans are is not measured here.
    body = {"job": settings, "name": f"job-{number}", "profile_csv": PROFILE.read_text()}
    status, created, _ = await clients[0].call("POST", "/api/v1/jobs", body)
    assert status == 201, created
    job = Job(f"/api/v1/jobs/{created['id']}", clients)

    async def join(rank: int) -> None:
        place: dict[str, object] = {"rank": rank, "node": f"n{rank // RANKS_OF_NODE}"}
        place |= {"dp_rank": rank // STAGES, "pp_rank": rank % STAGES}
        status, answer, _ = await clients[rank].call("POST", job.path + "/ranks", place)
        assert status == 200, answer
        status, plan, _ = await clients[rank].call("GET", f"{job.path}/plan?rank={rank}&wait=60")
        assert status == 200, plan
        job.version = max(job.version, plan["version"])

    await asyncio.gather(*(join(rank) for rank in range(len(clients))))
    return job


async def refined(jobs: list[Job], operator: Rank) -> None:
    """Wait until every job has its best plan."""
    for job in jobs:
        while True:
            _, shown, _ = await operator.call("GET", job.path)
            if shown["refined"]:
                job.version = shown["plan"]["version"]
                break
            await asyncio.sleep(0.5)


async def straggle_everywhere(jobs: list[Job], operator: Rank) -> list[float]:
    """A straggler in each job; return when each rank heard, in seconds."""
    waits = [
        asyncio.create_task(
            client.call("GET", f"{job.path}/plan?rank={rank}&after={job.version}&wait=60")
        )
        for job in jobs
        for rank, client in enumerate(job.clients)
    ]
    await asyncio.sleep(5)
    start = time.perf_counter()
    for job in jobs:
        status, answer, _ = await operator.call(
            "POST", job.path + "/stragglers", {"pipeline": 0, "factor": 1.2}
        )
        assert status == 201, answer
    heard = await asyncio.gather(*waits)
    assert all(status == 200 for status, _, _ in heard)
    for job in jobs:
        assert (await operator.call("DELETE", job.path + "/stragglers"))[0] == 204
    return [arrived - start for _, _, arrived in heard]


@dataclass
class Day:
    """How far the day is.

    Parameters
    ----------
    requests
        Answered so far.
    plans
        New plans that nodes were given by them.
    """

    requests: int = 0
    plans: int = 0


async def day_of_node(job: Job, client: Rank, node: int, day: Day) -> None:
    """Send what a node sends in a day; node 0 of a job has a straggler every hour."""
    first = node * RANKS_OF_NODE
    ranks = range(first, min(first + RANKS_OF_NODE, len(job.clients)))
    version = job.version

    async def call(method: str, path: str, body: object, *expected: int) -> Any:
        status, answer, _ = await client.call(method, job.path + path, body)
        assert status in expected, (method, path, status, answer)
        day.requests += 1
        return answer

    for poll in range(POLLS_OF_DAY):
        asked = f"/plans?ranks={ranks[0]}-{ranks[-1]}&after={version}&wait=0"
        plans = await call("GET", asked, None, 200, 204)
        if plans:
            version = plans["version"]
            day.plans += 1
        if poll % POLLS_OF_REPORT == 0:
            said = {"iteration": poll, "plan_version": version, "time_s": 5.5}
            reports = [{"rank": rank, **said} for rank in ranks]
            await call("POST", "/iterations", {"reports": reports}, 202)
        if node == 0 and poll % POLLS_OF_HOUR == 20:
            await call("POST", "/stragglers", {"pipeline": 1, "factor": 1.1}, 201)
        if node == 0 and poll % POLLS_OF_HOUR == 40:
            await call("DELETE", "/stragglers", None, 204)


async def measure(port: int, pid: int, count: int, ranks: int, store: Path) -> None:
    """Run it all and print."""

    def memory() -> str:
        size = sum(file.stat().st_size for file in store.parent.glob(store.name + "*"))
        return (
            f"{resident_mib(pid, 'VmRSS'):.0f} MiB resident ({resident_mib(pid, 'VmHWM'):.0f} "
            f"at most), store {size / (1 << 20):.1f} MiB"
        )

    print(f"{count} jobs of {ranks} ranks, each rank its own connection")
    print(f"before: {memory()}")
    clients = await connect(port, count * ranks)
    start = time.perf_counter()
    jobs = await asyncio.gather(
        *(start_job(n, clients[n * ranks : (n + 1) * ranks]) for n in range(count))
    )
    print(f"all ranks have a plan after {time.perf_counter() - start:.1f} s: {memory()}")
    # The server closes connections that say nothing for 75 s.
    close(clients)
    [operator] = await connect(port, 1)
    await refined(list(jobs), operator)
    clients = await connect(port, count * ranks)
    for n, job in enumerate(jobs):
        job.clients = clients[n * ranks : (n + 1) * ranks]
    print(f"all jobs have their best after {time.perf_counter() - start:.1f} s: {memory()}")
    heard = await straggle_everywhere(list(jobs), operator)
    print(
        f"a straggler in each job: ranks heard after p50 {percentile(heard, 0.5):.2f} s, "
        f"p99 {percentile(heard, 0.99):.2f} s, last {max(heard):.2f} s: {memory()}"
    )
    close([operator, *clients])
    nodes_of_job = -(-ranks // RANKS_OF_NODE)
    nodes = await connect(port, count * nodes_of_job)
    start, day = time.perf_counter(), Day()
    running = asyncio.gather(
        *(
            day_of_node(jobs[n // nodes_of_job], node, n % nodes_of_job, day)
            for n, node in enumerate(nodes)
        )
    )
    while not running.done():
        await asyncio.wait([running], timeout=60)
        seconds = time.perf_counter() - start
        print(
            f"{day.requests} requests of a day's {len(nodes) * POLLS_OF_DAY} polls and more, "
            f"{day.plans} new plans, after {seconds:.0f} s: {memory()}",
            flush=True,
        )
    await running
    close(nodes)


def close(connections: list[Rank]) -> None:
    """Close them."""
    for connection in connections:
        if connection.transport is not None:
            connection.transport.abort()


def main() -> int:
    """Start a server and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=40, help="of each job")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "jobs.db"
        command = [str(arguments.perseus), "serve", "--listen", "127.0.0.1:0"]
        command += ["--store", f"sqlite:{store}", "--log-level", "warning"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            asyncio.run(measure(port, process.pid, arguments.jobs, arguments.ranks, store))
        finally:
            process.terminate()
            process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
