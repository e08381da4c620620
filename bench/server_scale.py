# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How fast one server takes a job of many ranks, and tells them of a straggler.

python bench/server_scale.py --perseus build/release/src/cli/perseus --ranks 8192

Every rank is a connection of its own (real sockets, few processes: this one and
the server). They register, get their plan, and wait for the next; then pipeline 0
straggles and is cleared, several times. Times are taken when the first bytes of an
answer arrive here, so they hold this program's own work, too.

--agents 1024: the ranks are on so many nodes, and each node reaches the server through
a relay (docs/explanation/agent.md), over its Unix socket; needs bench/relay_fleet, built with
-DPERSEUS_BUILD_BENCHMARKS=ON. --agents 0 1024 measures both, one after the other.

--store postgresql --servers 2: that many servers on one PostgreSQL, which this program
starts; each rank is at the next of them, the stragglers are told to the first.

--perseus OLD NEW: both programs run at once, each with ranks of its own, and their rounds
take turns. The last lines are the figures of each over those of the first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
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

    def is_closed(self) -> bool:
        """Return whether the server has closed it."""
        return self.transport is None or self.transport.is_closing()

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
        if self.is_closed():
            raise ConnectionError("the server has closed this connection")
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


@dataclasses.dataclass
class Measured:
    """A job with one program: its servers, its ranks, and what they waited."""

    name: str
    servers: list[Address]
    pids: list[int]
    nodes: Nodes | None
    clients: list[Rank] = dataclasses.field(default_factory=list)
    work: list[float] = dataclasses.field(default_factory=list)
    firsts: list[float] = dataclasses.field(default_factory=list)
    answered: list[float] = dataclasses.field(default_factory=list)

    async def join(self, ranks: int) -> None:
        """Create the job, let all ranks join, and wait for its best plans."""
        operator = await self._operator()
        self.clients = await connect(self.servers, ranks, self.nodes)
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
        self._path = f"/api/v1/jobs/{created['id']}"
        joined = await asyncio.gather(*(self._join(r, c) for r, c in enumerate(self.clients)))
        nodes = self.nodes
        way = f"on {len(nodes.sockets)} nodes with a relay" if nodes else "each its own connection"
        print(f"{self.name}: {ranks} ranks, {way}, {STAGES} stages x 16 microbatches")
        print(f"last rank registered after   {max(t for t, _ in joined) - start:.2f} s")
        print(f"last rank held its plan after {max(t for _, t in joined) - start:.2f} s")
        while not (await operator.call("GET", self._path))[1]["refined"]:
            await asyncio.sleep(0.2)
        _, shown, _ = await operator.call("GET", self._path)
        self._version = shown["plan"]["version"]

    async def _operator(self) -> Rank:
        """Connect whoever tells of stragglers; a server closes who says nothing for 10 s."""
        return (await connect(self.servers, 1, None))[0]

    async def _join(self, rank: int, client: Rank) -> tuple[float, float]:
        place = {"rank": rank, "dp_rank": rank // STAGES, "pp_rank": rank % STAGES}
        more = {"gpu": {"uuid": f"GPU-{rank}", "name": "A100"}, "node": f"n{rank // 8}"}
        status, answer, registered = await client.call("POST", self._path + "/ranks", place | more)
        assert status == 200, answer
        status, answer, planned = await client.call("GET", f"{self._path}/plan?rank={rank}&wait=60")
        assert status == 200, answer
        return registered, planned

    async def park(self) -> None:
        """Let all ranks wait for the next plan."""
        if any(client.is_closed() for client in self.clients):  # While plans were improved.
            self.clients = await connect(self.servers, len(self.clients), self.nodes)
        query = f"after={self._version}&wait=60"
        self._waits = [
            asyncio.create_task(client.ask("GET", f"{self._path}/plan?rank={rank}&{query}"))
            for rank, client in enumerate(self.clients)
        ]

    async def straggle(self, slow: bool) -> None:
        """Report a straggler, or that it is gone, and wait until all ranks heard."""
        operator = await self._operator()
        before = [cpu_seconds(pid) for pid in self.pids]
        start = time.perf_counter()
        path = self._path + "/stragglers"
        if slow:
            body = {"pipeline": 0, "factor": 1.2}
            status, _, done = await operator.call("POST", path, body)
        else:
            status, _, done = await operator.call("DELETE", path)
        assert status in (201, 204)
        self.answered.append(done - start)
        plans = await asyncio.gather(*self._waits)
        self.work += [cpu_seconds(pid) - old for pid, old in zip(self.pids, before, strict=True)]
        versions = {json.loads(plan)["version"] for _, plan, _ in plans}
        assert len(versions) == 1
        self._version = versions.pop()
        self.firsts += [arrived - start for _, _, arrived in plans]

    def figures(self) -> dict[str, float]:
        """Return what is compared with other programs."""
        return {
            "p50": percentile(self.firsts, 0.5),
            "p99": percentile(self.firsts, 0.99),
            "last": max(self.firsts),
            "processor time of a round": sum(self.work) / len(self.work),
            "processor time in all": sum(cpu_seconds(pid) for pid in self.pids),
        }

    def show(self) -> None:
        """Print what its ranks waited and what its servers cost."""
        print(
            f"{self.name}: straggler, {len(self.answered)} times, acknowledged in "
            f"{1000 * max(self.answered):.1f} ms at most; ranks"
        )
        heard = self.figures()
        print(
            f"heard after p50 {heard['p50']:.3f} s, p99 {heard['p99']:.3f} s, "
            f"last {heard['last']:.3f} s"
        )
        print(
            f"a server worked {heard['processor time of a round']:.2f} s of processor time for one "
            f"of them, {max(self.work):.2f} s at most"
        )
        for pid in self.pids:
            print(
                f"resident: {resident_mib(pid, 'VmRSS'):.0f} MiB now, "
                f"{resident_mib(pid, 'VmHWM'):.0f} MiB at most; "
                f"{cpu_seconds(pid):.1f} s of processor time in all"
            )
        if self.nodes is not None:
            show_nodes(self.nodes)


async def measure(programs: list[Measured], ranks: int, rounds: int) -> None:
    """Run it all and print; the rounds of several programs take turns."""
    for program in programs:
        await program.join(ranks)
    for round_ in range(rounds):
        for program in programs:
            await program.park()
        await asyncio.sleep(2.5 * len(programs))
        # The second one would always find the ranks of the first awake.
        for program in programs if round_ // 2 % 2 == 0 else reversed(programs):
            await program.straggle(slow=round_ % 2 == 0)
    for program in programs:
        program.show()
    first = programs[0].figures()
    for program in programs[1:]:
        figures = program.figures().items()
        ratios = [f"{name} {value / first[name]:.2f}" for name, value in figures if first[name]]
        print(f"{program.name} against {programs[0].name}: {', '.join(ratios)}")
    print(f"load {os.getloadavg()[0]:.1f}")


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
    parser.add_argument("--perseus", type=Path, nargs="+", required=True)
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
    """Start the servers, and relays where there are agents, and measure."""
    with contextlib.ExitStack() as stack:
        programs = [start(arguments, perseus, agents, stack) for perseus in arguments.perseus]
        asyncio.run(measure(programs, arguments.ranks, arguments.rounds))


def start(
    arguments: argparse.Namespace, perseus: Path, agents: int, stack: contextlib.ExitStack
) -> Measured:
    """Start the servers of one program, and its relays."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    store = f"sqlite:{folder}/jobs.db"
    if arguments.store == "postgresql":
        store = stack.enter_context(Postgres(durable=True)).uri()
    command = [str(perseus), "serve", "--listen", "127.0.0.1:0"]
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
        fleet = perseus.parents[2] / "bench" / "relay_fleet"
        nodes = Nodes(perseus, fleet, urls[0], Path(folder), agents)
        stack.callback(nodes.stop)
    addresses = [(url.split("//")[1].split(":")[0], int(url.split(":")[-1])) for url in urls]
    return Measured(str(perseus), addresses, pids, nodes)


if __name__ == "__main__":
    sys.exit(main())
