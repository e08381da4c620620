# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How fast one server takes a job of many ranks, and tells them of a straggler.

python bench/server_scale.py --perseus build/release/src/cli/perseus --ranks 8192

Every rank is a connection of its own (real sockets, few processes: this one and
the server). They register, get their plan, and wait for the next; then pipeline 0
straggles and is cleared, several times. Times are taken when the first bytes of an
answer arrive here, so they hold this program's own work, too.

--agents 1024: the ranks are on so many nodes, and each node reaches the server through
a relay (docs/explanation/relay.md), over its Unix socket; needs bench/relay_fleet, built with
-DPERSEUS_BUILD_BENCHMARKS=ON. --agents 0 1024 measures both, one after the other.

--store postgresql --servers 2: that many servers on one PostgreSQL, which this program
starts; each rank is at the next of them, the stragglers are told to the first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from postgres import Postgres
from relay_nodes import Nodes

STAGES = 4
PROFILE = Path(__file__).parent.parent / "examples" / "gpt3-1.3b-a100-sxm.csv"


class Rank(asyncio.Protocol):
    """One connection; asks one thing at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[tuple[int, bytes, float]] | None = None
        self._data = bytearray()
        self._arrived = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Finish the answer when all of its body is there."""
        if not self._data:
            self._arrived = time.perf_counter()
        self._data += data
        head, separator, body = self._data.partition(b"\r\n\r\n")
        if not separator:
            return
        lines = head.decode().split("\r\n")
        headers = {line.split(":")[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:]}
        if len(body) < int(headers.get("content-length", "0")):
            return
        self._data = bytearray()
        assert self.answer is not None
        self.answer.set_result((int(lines[0].split()[1]), bytes(body), self._arrived))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail whoever waits."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError(str(exc)))

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, Any, float]:
        """Ask; return status, JSON and when the answer began to arrive."""
        status, answer, arrived = await self.ask(method, path, body)
        return status, json.loads(answer) if answer else None, arrived

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes, float]:
        """Likewise, but leave the answer to be parsed when nobody waits for this program."""
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
        self.answer = asyncio.get_running_loop().create_future()
        assert self.transport is not None
        self.transport.write(head.encode() + text)
        return await self.answer


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def resident_mib(pid: int, name: str) -> float:
    """Return VmRSS or VmHWM of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


Address = tuple[str, int]


async def connect(servers: list[Address], ranks: int, nodes: Nodes | None) -> list[Rank]:
    """Return one connection a rank: to the next server, or to its node's relay."""
    loop = asyncio.get_running_loop()
    connections: list[Rank] = []
    for first in range(0, ranks, 256):
        some = range(first, min(ranks, first + 256))
        if nodes is None:
            made = [loop.create_connection(Rank, *servers[rank % len(servers)]) for rank in some]
            connections += [protocol for _, protocol in await asyncio.gather(*made)]
        else:
            paths = [str(nodes.sockets[rank * len(nodes.sockets) // ranks]) for rank in some]
            local = [loop.create_unix_connection(Rank, path) for path in paths]
            connections += [protocol for _, protocol in await asyncio.gather(*local)]
    return connections


async def measure(
    servers: list[Address], ranks: int, rounds: int, pids: list[int], nodes: Nodes | None = None
) -> None:
    """Run it all and print."""
    operator = (await connect(servers, 1, None))[0]
    clients = await connect(servers, ranks, nodes)

    job = {
        "schedule": "1f1b",
        "microbatches": 16,
        "data_parallel": ranks // STAGES,
        "blocking_power": 83.64,
    }
    body = {"job": job, "profile_csv": PROFILE.read_text()}
    start = time.perf_counter()
    status, created, _ = await operator.call("POST", "/api/v1/jobs", body)
    assert status == 201, created
    path = f"/api/v1/jobs/{created['id']}"

    async def join(rank: int, client: Rank) -> tuple[float, float]:
        place = {"rank": rank, "dp_rank": rank // STAGES, "pp_rank": rank % STAGES}
        more = {"gpu": {"uuid": f"GPU-{rank}", "name": "A100"}, "node": f"n{rank // 8}"}
        status, answer, registered = await client.call("POST", path + "/ranks", place | more)
        assert status == 200, answer
        status, answer, planned = await client.call("GET", f"{path}/plan?rank={rank}&wait=60")
        assert status == 200, answer
        return registered, planned

    joined = await asyncio.gather(*(join(rank, client) for rank, client in enumerate(clients)))
    way = f"on {len(nodes.sockets)} nodes with a relay" if nodes else "each its own connection"
    print(f"{ranks} ranks, {way}, {STAGES} stages x 16 microbatches")
    print(f"last rank registered after   {max(t for t, _ in joined) - start:.2f} s")
    print(f"last rank held its plan after {max(t for _, t in joined) - start:.2f} s")
    while not (await operator.call("GET", path))[1]["refined"]:
        await asyncio.sleep(0.2)
    _, shown, _ = await operator.call("GET", path)
    version = shown["plan"]["version"]

    work: list[float] = []
    firsts: list[float] = []
    answered: list[float] = []
    for round_ in range(rounds):
        waits = [
            asyncio.create_task(
                client.ask("GET", f"{path}/plan?rank={rank}&after={version}&wait=60")
            )
            for rank, client in enumerate(clients)
        ]
        await asyncio.sleep(2.5)
        before = [cpu_seconds(pid) for pid in pids]
        start = time.perf_counter()
        if round_ % 2 == 0:
            slow = {"pipeline": 0, "factor": 1.2}
            status, _, done = await operator.call("POST", path + "/stragglers", slow)
        else:
            status, _, done = await operator.call("DELETE", path + "/stragglers")
        assert status in (201, 204)
        answered.append(done - start)
        plans = await asyncio.gather(*waits)
        work += [cpu_seconds(pid) - old for pid, old in zip(pids, before, strict=True)]
        versions = {json.loads(plan)["version"] for _, plan, _ in plans}
        assert len(versions) == 1
        version = versions.pop()
        firsts += [arrived - start for _, _, arrived in plans]
    print(
        f"straggler, {rounds} times: acknowledged in {1000 * max(answered):.1f} ms at most; ranks"
    )
    print(
        f"heard after p50 {percentile(firsts, 0.5):.3f} s, p99 {percentile(firsts, 0.99):.3f} s, "
        f"last {max(firsts):.3f} s"
    )
    print(f"a server worked {max(work):.2f} s of processor time for one of them at most")
    for pid in pids:
        print(
            f"resident: {resident_mib(pid, 'VmRSS'):.0f} MiB now, "
            f"{resident_mib(pid, 'VmHWM'):.0f} MiB at most; "
            f"{cpu_seconds(pid):.1f} s of processor time in all"
        )
    if nodes is not None:
        show_nodes(nodes)


def show_nodes(nodes: Nodes) -> None:
    """Print what the relays cost."""
    real, *fleets = nodes.pids
    print(
        f"the relay of one node, `perseus agent relay`: {resident_mib(real, 'VmRSS'):.1f} MiB "
        f"resident, {cpu_seconds(real):.2f} s of processor time"
    )
    memory = sum(resident_mib(pid, "VmRSS") for pid in fleets)
    work = sum(cpu_seconds(pid) for pid in fleets)
    count = len(nodes.sockets) - 1
    print(f"{count} others in {len(fleets)} processes: {memory:.0f} MiB, {work:.1f} s")


def main() -> int:
    """Start a server and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--agents", type=int, nargs="*", default=[0], metavar="N")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--servers", type=int, default=1, help="on one PostgreSQL")
    arguments = parser.parse_args()
    if arguments.servers > 1 and (arguments.store == "sqlite" or arguments.agents != [0]):
        parser.error("several servers need --store postgresql, and no --agents")
    for agents in arguments.agents:
        measure_one(arguments, agents)
    return 0


def measure_one(arguments: argparse.Namespace, agents: int) -> None:
    """Start a server, and relays where there are agents, and measure."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = f"sqlite:{folder}/jobs.db"
        if arguments.store == "postgresql":
            store = stack.enter_context(Postgres(durable=True)).uri()
        command = [arguments.perseus, "serve", "--listen", "127.0.0.1:0"]
        command += ["--store", store, "--log-level", "warning"]
        urls = []
        pids = []
        for _ in range(arguments.servers):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            assert process.stdout is not None
            urls.append(process.stdout.readline().split("ready at ")[1].strip())
            pids.append(process.pid)
        nodes = None
        if agents > 0:
            fleet = arguments.perseus.parents[2] / "bench" / "relay_fleet"
            nodes = Nodes(arguments.perseus, fleet, urls[0], Path(folder), agents)
            stack.callback(nodes.stop)
        addresses = [(url.split("//")[1].split(":")[0], int(url.split(":")[-1])) for url in urls]
        asyncio.run(measure(addresses, arguments.ranks, arguments.rounds, pids, nodes))


if __name__ == "__main__":
    sys.exit(main())
