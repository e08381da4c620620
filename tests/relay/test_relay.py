# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The real binary: server, agent and relay, ranks as processes of their own.

`PERSEUS_BINARY`, `PERSEUS_CLIENT_LIBRARY` and `PERSEUS_MAKE_GPUS` name what was built.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "server"))
from drill import PROFILE, RANKS, SETTINGS  # noqa: E402
from serving import Server  # noqa: E402

BINARY = Path(os.environ.get("PERSEUS_BINARY", "build/release/src/cli/perseus"))
LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
MAKE_GPUS = os.environ.get("PERSEUS_MAKE_GPUS", "")
PATIENCE = 60.0  # Seconds that only a hang misses.
LOW, HIGH = 1000, 1400


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        """Connect to the file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, method: str, target: str, body: object = None) -> tuple[int, bytes]:
    """Ask a relay; return status and bytes."""
    connection = UnixConnection(path)
    try:
        connection.request(method, target, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def eventually(holds: Callable[[], bool]) -> bool:
    """Return whether it holds at some time soon."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


class Node:
    """An agent on simulated GPUs, and a relay beside it."""

    def __init__(self, folder: Path, server: str, more: str = "") -> None:
        self.gpus = folder / "gpus"
        if not self.gpus.exists():
            gpu = f"[[gpus]]\nclocks_mhz = [{LOW}, 1200, {HIGH}]\ncall_ms = 0.2\nsettle_ms = 0\n"
            gpu += more
            subprocess.run([MAKE_GPUS, str(self.gpus), gpu * RANKS], check=True)
        self.agent = folder / "agent.sock"
        self.server = folder / "server.sock"
        self.log = folder / "agent.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(BINARY), "agent", "run", "--driver", f"simulated:{self.gpus}"),
                    *("--socket", str(self.agent), "--journal", str(folder / "journal")),
                    *("--metrics-file", str(folder / "agent.prom")),
                ],
                stderr=log,
                umask=0o077,  # As packaging/perseus-agent.service has it.
            )
            command = [str(BINARY), "agent", "relay", "--server", server]
            command += ["--metrics-file", str(folder / "relay.prom")]
            self.relay = subprocess.Popen([*command, "--socket", str(self.server)], stderr=log)
        self.figures = [folder / "agent.prom", folder / "relay.prom"]

    def status(self) -> Any:
        """Return what `perseus agent status --json` says."""
        done = subprocess.run(
            [str(BINARY), "agent", "status", "--json", "--socket", str(self.agent)],
            capture_output=True,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def figure(self, name: str) -> float:
        """Return the sum of a metric over its labels, of agent or relay; -1 where it is not."""
        text = "".join(file.read_text() for file in self.figures if file.exists())
        found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found)) if found else -1


class Rank:
    """A process that trains."""

    def __init__(self, node: Node, rank: int) -> None:
        trainer = Path(__file__).parent / "trainer.py"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-B", str(trainer)),
                *(f"unix:{node.server}", str(node.agent), str(rank)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.says: dict[str, Any] = {"version": -1, "iteration": 0, "clocks": [], "job": ""}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.says = json.loads(line)

    def stop(self) -> int:
        """End its training; return the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.write("x\n")
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def check_with_promtool(file: Path) -> None:
    """Fail where promtool finds a fault in the figures; it may not be there."""
    if shutil.which("promtool"):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=file.read_bytes(), capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server."""
    started = Server(BINARY, tmp_path / "jobs.db")
    yield started
    started.kill()


@pytest.fixture
def relay(server: Server, tmp_path: Path) -> Iterator[Path]:
    """Start `perseus agent relay`; it must end as asked."""
    path = tmp_path / "relay" / "server.sock"
    command = [str(BINARY), "agent", "relay", "--server", server.url, "--socket", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == f"perseus agent relay: ready at unix:{path}\n"
    yield path
    process.terminate()
    assert process.wait(PATIENCE) == 0
    assert not path.exists()


def test_answers_are_the_servers(server: Server, relay: Path) -> None:
    """Byte for byte, plans included."""
    body = {"client_key": "k", "job": SETTINGS, "profile_csv": PROFILE}
    status, text = ask(relay, "POST", "/api/v1/jobs", body)
    assert status == 201
    path = f"/api/v1/jobs/{json.loads(text)['id']}"
    assert ask(relay, "POST", "/api/v1/jobs", body)[0] == 200
    assert ask(relay, "GET", f"{path}/plan?rank=1&after=-1&wait=9")[0] == 404
    for rank in range(RANKS):
        place = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2, "node": "n"}
        assert ask(relay, "POST", path + "/ranks", place)[0] == 200
    status, text = ask(relay, "POST", path + "/ranks", {"rank": 99, "dp_rank": 0, "pp_rank": 0})
    assert status >= 400
    assert "message" in json.loads(text)["error"]
    assert eventually(lambda: json.loads(ask(relay, "GET", path)[1])["refined"])

    direct = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=PATIENCE)
    version = server.call("GET", path)[1]["plan"]["version"]

    def same(rank: int) -> bool:
        target = f"{path}/plan?rank={rank}&after=-1&wait=9"
        direct.request("GET", target)
        return ask(relay, "GET", target) == (200, direct.getresponse().read())

    assert eventually(lambda: all(same(rank) for rank in range(RANKS)))

    # A straggler that the operator reports reaches all who wait at the relay.
    heard: dict[int, Any] = {}

    def wait(rank: int) -> None:
        target = f"{path}/plan?rank={rank}&after={version}&wait=60"
        heard[rank] = json.loads(ask(relay, "GET", target)[1])

    threads = [threading.Thread(target=wait, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})[0] == 201
    for thread in threads:
        thread.join(PATIENCE)
    assert {plan["version"] for plan in heard.values()} == {version + 1}
    assert {heard[rank]["reason"] for rank in (0, 1)} == {"straggler"}
    report = {"reports": [{"rank": 0, "plan_version": version + 1, "time_s": 1.5}]}
    assert ask(relay, "POST", path + "/iterations", report) == (202, b'{"reports":1}')
    direct.close()


@pytest.mark.skipif(not LIBRARY or not MAKE_GPUS, reason="no client library was built")
def test_a_node_of_real_clients(server: Server, tmp_path: Path) -> None:
    """Four ranks train through one agent: leases beside the relay, one poll, the server's end."""
    node = Node(tmp_path, server.url)
    ranks: list[Rank] = []
    try:
        assert eventually(node.server.exists), node.log.read_text()
        ranks = [Rank(node, rank) for rank in range(RANKS)]

        def all_follow(version: int) -> bool:
            return all(r.says["version"] >= version and r.says["following"] for r in ranks)

        assert eventually(lambda: all_follow(1)), [r.says for r in ranks]
        path = f"/api/v1/jobs/{ranks[0].says['job']}"
        assert eventually(lambda: bool(server.call("GET", path)[1]["refined"]))
        version = server.call("GET", path)[1]["plan"]["version"]
        assert eventually(lambda: all_follow(version)), [r.says for r in ranks]
        # Clocks are set through the agent: the first stage has two in its plan.
        assert eventually(lambda: all({LOW, HIGH} <= set(ranks[i].says["clocks"]) for i in (0, 2)))
        status = node.status()
        owners = {gpu["owner"]["pid"] for gpu in status["gpus"] if gpu["owner"]}
        assert owners == {rank.says["pid"] for rank in ranks}

        assert eventually(lambda: node.figure("perseus_agent_gpu_leased") == RANKS)
        assert node.figure("perseus_agent_leases_total") >= RANKS
        assert node.figure("perseus_agent_connections") == RANKS
        assert eventually(lambda: node.figure("perseus_agent_gpu_clock_sets_total") > RANKS)
        assert (
            time.time() - node.figure("perseus_agent_gpu_owner_heard_timestamp_seconds") / RANKS
            < 60
        )
        assert eventually(lambda: node.figure("perseus_relay_ranks") == RANKS)
        assert node.figure("perseus_relay_server_up") == 1
        assert node.figure("perseus_relay_forwarded_requests_total") > 0
        for file in node.figures:
            assert file.stat().st_mode & 0o777 == 0o644
            check_with_promtool(file)

        # The node is a connection or two, and this one that asks.
        def connections() -> int:
            text = server.call("GET", "/metrics")[1]
            return int(text.split("\nperseus_http_connections ")[1].split()[0])

        assert eventually(lambda: connections() <= 4), connections()

        assert server.call("POST", path + "/stragglers", {"rank": 0, "factor": 1.3})[0] == 201
        assert eventually(lambda: all_follow(version + 1)), [r.says for r in ranks]
        # What they report arrives.
        assert eventually(lambda: server.call("GET", path)[1]["clients"]["counts"] != {})

        # One rank is killed: its clock comes back, the others go on.
        ranks[3].process.kill()
        ranks[3].process.wait()
        assert eventually(lambda: node.status()["gpus"][3]["owner"] is None)
        assert eventually(lambda: node.figure("perseus_agent_gpu_leased") == RANKS - 1)
        assert eventually(lambda: node.figure("perseus_agent_gpu_clock_restores_total") >= 1)
        assert node.figure("perseus_agent_gpu_restore_pending") == 0
        ranks.pop()

        # The server ends: training does not notice.
        server.kill()
        enough = max(rank.says["iteration"] for rank in ranks) + 20
        assert eventually(lambda: all(r.says["iteration"] > enough for r in ranks))
        assert ask(node.server, "GET", "/healthz")[0] == 200
        assert eventually(lambda: node.figure("perseus_relay_server_up") == 0)

        # So do relay and agent: clocks are back, sockets gone, in time.
        for process in (node.relay, node.process):
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, node.log.read_text()
        assert not node.server.exists()
        assert not node.agent.exists()
        assert not any(file.exists() for file in node.figures)
        for rank in ranks:
            assert rank.stop() == 0
    finally:
        for rank in ranks:
            rank.process.kill()
            rank.process.wait()
        for process in (node.relay, node.process):
            process.kill()
            process.wait()


@pytest.mark.skipif(not LIBRARY or not MAKE_GPUS, reason="no client library was built")
def test_the_server_hears_of_agent_and_relay(server: Server, tmp_path: Path) -> None:
    """From reports of real clients, alone and joined: versions, and what slows a GPU."""
    node = Node(tmp_path, server.url, "throttle_reasons = 4\n")
    ranks: list[Rank] = []
    version = server.call("GET", "/openapi.json")[1]["info"]["version"]

    def gpus() -> list[Any]:
        nodes = server.call("GET", "/api/v1/nodes")[1]["nodes"]
        assert len(nodes) <= 1
        return list(nodes[0]["gpus"]) if nodes else []

    def all_are_told() -> bool:
        told = gpus()
        return len(told) == RANKS and all(gpu["clock_conflicts"] for gpu in told)

    try:
        assert eventually(node.server.exists), node.log.read_text()
        ranks = [Rank(node, rank) for rank in range(RANKS)]
        assert eventually(all_are_told), gpus()
        for gpu in gpus():
            assert gpu["client_version"] == gpu["agent_version"] == gpu["relay_version"] == version
            assert "runs slower" in gpu["clock_conflicts"][0]
            assert gpu["uuid"].startswith("GPU-sim")
            assert abs(gpu["heard_at"] - time.time()) < PATIENCE
        # Without the agent, nobody tells of it.
        node.process.kill()
        node.process.wait()
        assert eventually(lambda: all(gpu["agent_version"] is None for gpu in gpus())), gpus()
        assert not any(gpu["clock_conflicts"] for gpu in gpus())
    finally:
        for rank in ranks:
            rank.process.kill()
            rank.process.wait()
        for process in (node.relay, node.process):
            process.kill()
            process.wait()


def test_the_agent_itself_reaches_no_server() -> None:
    """What may set clocks meets nothing from a network: that is the relay's."""
    for flag in ("--server", "--token-file", "--ca-file"):
        done = subprocess.run(
            [str(BINARY), "agent", "run", flag, "x", "--driver", "simulated:/nonexistent"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 2
        assert f"'{flag}'" in done.stderr


def test_what_a_relay_needs(tmp_path: Path) -> None:
    """A server, and a place of its own."""

    def fault(*options: str) -> str:
        done = subprocess.run(
            [str(BINARY), "agent", "relay", *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 2
        return done.stderr

    assert "--server" in fault("--socket", str(tmp_path / "s"))
    somewhere = ("--server", "http://127.0.0.1:9", "--socket", str(tmp_path / "s"))
    assert "must end in .prom" in fault(*somewhere, "--metrics-file", str(tmp_path / "m.txt"))
    assert "no/where" in fault(*somewhere, "--metrics-file", str(tmp_path / "no/where/m.prom"))
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "taken" in fault("--server", "http://127.0.0.1:9", "--socket", str(taken))
