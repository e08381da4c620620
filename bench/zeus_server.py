# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Zeus' own server beside ours, on Zeus' wire, in one run.

scripts/zeus-venv
python bench/zeus_server.py --perseus build/release/src/cli/perseus

Both hand out the same plan file. Jobs of 8, 64, 512, ... ranks, each rank a connection
of its own, register and fetch their plan as Zeus' client does, until a server leaves
a rank without an answer for a minute. Then what goes wrong in real jobs is tried on
each. Times hold this program's own work, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server_scale import PROFILE, STAGES, Rank, resident_mib

ROOT = Path(__file__).parent.parent
MICROBATCHES = 16
# So long nobody waits for a plan; a client of Zeus waits for ever.
PATIENCE_SECONDS = 60.0
# For one request that goes wrong.
HANG_SECONDS = 5.0


@dataclass
class Running:
    """A server that runs.

    Parameters
    ----------
    name
        For the tables.
    process
        Its process.
    port
        On 127.0.0.1.
    """

    name: str
    process: subprocess.Popen[str]
    port: int

    def stop(self) -> None:
        """End it; by force where it does not."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_ours(perseus: Path, plan: Path, folder: Path) -> Running:
    """Start `perseus serve`."""
    command = [str(perseus), "serve", "--listen", "127.0.0.1:0"]
    command += ["--store", f"sqlite:{folder}/jobs.db"]
    command += ["--zeus-plan", str(plan), "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return Running("Perseus", process, int(process.stdout.readline().rsplit(":", 1)[1]))


def start_zeus(python: Path, plan: Path, folder: Path) -> Running:
    """Start Zeus' server, without its log of every body."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "ZEUS_PFO_SCHEDULER": "PointSolution3D",
        "ZEUS_PFO_SCHEDULER_ARGS": json.dumps({"solution_path": str(plan)}),
        "ZEUS_PFO_LOG_LEVEL": "ERROR",
        "ZEUS_PFO_DUMP_DIR": str(folder / "dump"),
    }
    command = [str(python), "-m", "uvicorn", "zeus.optimizer.pipeline_frequency.server.router:app"]
    command += ["--port", str(port), "--log-level", "critical", "--no-access-log"]
    process = subprocess.Popen(
        command, env={**os.environ, **settings}, text=True, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return Running("Zeus", process, port)
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                process.kill()
                raise
            time.sleep(0.1)


async def connect(port: int, count: int) -> list[Rank]:
    """Open connections."""
    loop = asyncio.get_running_loop()
    made: list[Rank] = []
    while len(made) < count:
        some = min(128, count - len(made))
        calls = [loop.create_connection(Rank, "127.0.0.1", port) for _ in range(some)]
        made += [protocol for _, protocol in await asyncio.gather(*calls)]
    return made


def close(connections: list[Rank]) -> None:
    """Close them."""
    for connection in connections:
        if connection.transport is not None:
            connection.transport.abort()


async def register_job(client: Rank, ranks: int, **more: object) -> tuple[int, Any]:
    """Register as rank 0 does."""
    body = {"job_id": "", "pp_degree": STAGES, "dp_degree": ranks // STAGES, "tp_degree": 1}
    body |= {"world_size": ranks, "job_metadata": None, **more}
    status, answer, _ = await client.call("POST", "/register_job", body)
    return status, answer


async def register_rank(client: Rank, job: str, rank: int) -> int:
    """Register as each rank does."""
    body = {"rank": rank, "dp_rank": rank // STAGES, "pp_rank": rank % STAGES, "tp_rank": 0}
    body["available_frequencies"] = list(range(1410, 200, -15))  # type: ignore[assignment]
    return (await client.call("POST", f"/register_rank/{job}", body))[0]


async def measure(server: Running, ranks: int) -> str | None:
    """Return a row of the table; nothing where a rank had no answer in time."""
    clients = await connect(server.port, ranks)
    start = time.perf_counter()

    async def join() -> tuple[float, float]:
        _, job = await register_job(clients[0], ranks)
        statuses = await asyncio.gather(
            *(register_rank(client, job, rank) for rank, client in enumerate(clients))
        )
        assert set(statuses) == {200}, set(statuses)
        registered = time.perf_counter() - start
        plans = await asyncio.gather(
            *(
                client.call("GET", f"/schedule/{job}?rank={rank}")
                for rank, client in enumerate(clients)
            )
        )
        assert all(status == 200 for status, _, _ in plans)
        assert all(len(plan["frequencies"]) == 2 * MICROBATCHES for _, plan, _ in plans)
        return registered, time.perf_counter() - start

    try:
        registered, planned = await asyncio.wait_for(join(), PATIENCE_SECONDS)
    except (TimeoutError, ConnectionError):
        return None
    finally:
        close(clients)
    most = resident_mib(server.process.pid, "VmHWM")
    return f"{registered:8.2f} s  {planned:8.2f} s  {most:6.0f} MiB"


async def outcome(call: Awaitable[tuple[int, Any, float]]) -> str:
    """Return the status, or that there was no answer."""
    try:
        status, _, _ = await asyncio.wait_for(call, HANG_SECONDS)
    except TimeoutError:
        return "HANGS"
    except ConnectionError:
        return "closed"
    except json.JSONDecodeError:
        return "500"  # Of Zeus' server: an exception that nobody caught, told as a text.
    return str(status)


async def what_goes_wrong(server: Running) -> dict[str, str]:
    """Return what each case gets."""
    found: dict[str, str] = {}
    ranks = STAGES

    async def new_job(come: int = ranks) -> tuple[str, list[Rank]]:
        clients = await connect(server.port, ranks + 1)
        _, job = await register_job(clients[0], ranks)
        for rank in range(come):
            assert await register_rank(clients[rank], job, rank) == 200
        return job, clients

    def ask(job: str, client: Rank, rank: int) -> Awaitable[tuple[int, Any, float]]:
        return client.call("GET", f"/schedule/{job}?rank={rank}")

    async def case(name: str, run: Callable[[], Awaitable[str]]) -> None:
        found[name] = await run()

    async def all_fetched() -> tuple[str, list[Rank]]:
        job, clients = await new_job()
        fetched = await asyncio.gather(
            *(outcome(ask(job, clients[rank], rank)) for rank in range(ranks))
        )
        assert fetched == ["200"] * ranks, fetched
        return job, clients

    async def asks_twice() -> str:
        job, clients = await all_fetched()
        return await outcome(ask(job, clients[0], 0))

    async def registers_twice() -> str:
        job, clients = await new_job(ranks - 1)
        await register_rank(clients[ranks], job, ranks - 2)
        await register_rank(clients[ranks - 1], job, ranks - 1)
        asked = (outcome(ask(job, clients[rank], rank)) for rank in range(ranks))
        return ", ".join(sorted(set(await asyncio.gather(*asked))))

    async def never_comes() -> str:
        job, clients = await new_job(ranks - 1)
        return await outcome(ask(job, clients[0], 0))

    async def restarts() -> str:
        job, clients = await all_fetched()
        await register_rank(clients[ranks], job, 1)
        return await outcome(ask(job, clients[ranks], 1))

    async def unknown_job() -> str:
        [client] = await connect(server.port, 1)
        return await outcome(ask("none", client, 0))

    async def wrong_world_size() -> str:
        [client] = await connect(server.port, 1)
        return str((await register_job(client, ranks, world_size=ranks + 1))[0])

    async def rank_of(number: int) -> str:
        job, clients = await new_job()
        return await outcome(ask(job, clients[0], number))

    await case("a rank asks again", asks_twice)
    await case("a rank restarts: registers and asks again", restarts)
    await case("a rank registers twice, then all ask", registers_twice)
    await case("a rank never registers, another asks", never_comes)
    await case("unknown job", unknown_job)
    await case("world size that is not pp x dp x tp", wrong_world_size)
    await case("rank -1", lambda: rank_of(-1))
    await case("rank 99", lambda: rank_of(99))
    return found


def main() -> int:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--zeus-python", type=Path, default=ROOT / "build/zeus-venv/bin/python")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512, 2048, 8192])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        plan = [
            arguments.perseus,
            "plan",
            PROFILE,
            "--schedule",
            "1f1b",
            "--blocking-power",
            "83.64",
        ]
        plan += ["--microbatches", str(MICROBATCHES), "-o", folder / "plan"]
        subprocess.run(plan, check=True, stdout=subprocess.DEVNULL)
        file = folder / "plan/zeus_plan.py"
        wrong: dict[str, dict[str, str]] = {}
        print(f"{STAGES} stages x {MICROBATCHES} microbatches, each rank its own connection\n")
        print("server    ranks  all registered  all have plans  memory")
        starts = ((start_ours, arguments.perseus), (start_zeus, arguments.zeus_python))
        for start, program in starts:
            server = start(program, file, folder)
            try:
                for ranks in arguments.ranks:
                    row = asyncio.run(measure(server, ranks))
                    shown = row or f"no plan for some rank in {PATIENCE_SECONDS:.0f} s"
                    print(f"{server.name:8} {ranks:6}  {shown}", flush=True)
                    if row is None:
                        break
                server.stop()
                server = start(program, file, folder)
                wrong[server.name] = asyncio.run(what_goes_wrong(server))
            finally:
                server.stop()
        print(f"\n{'what goes wrong (HTTP status)':44}  " + "  ".join(f"{n:8}" for n in wrong))
        for name in next(iter(wrong.values())):
            print(f"{name:44}  " + "  ".join(f"{found[name]:8}" for found in wrong.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
