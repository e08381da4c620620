# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a drill plays on: a server, a node with simulated GPUs, and a job that trains."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from api_calls import BINARY, create
from monitoring import PATIENCE, NodeExporter, Program, Prometheus, until
from perseus import simulate
from serving import Server

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
CLOCKS = (1400, 1200, 1000)
RANKS = 4
THRESHOLD = 0.15  # Of stragglers.
# Forward and backward of each stage at the highest clock. Long beside a clock call: where calls
# cost too much, as on a busy machine, ranks follow their plan less finely and are not judged.
SECONDS = {0: (0.04, 0.08), 1: (0.06, 0.12)}
GPUS = (
    f"[[gpus]]\ncount = {RANKS}\nclocks_mhz = {sorted(CLOCKS)}\ncall_ms = 0.2\nsettle_ms = 0\n"
    "idle_watts = 85\n"
)


def profile(joules: Callable[[float], float] = lambda share: share**2) -> str:
    """Return what computations need.

    Parameters
    ----------
    joules
        Of the share of the highest clock: how much of the energy at the highest clock.
    """
    rows = ["stage,instruction,frequency,time,energy"]
    for stage, times in SECONDS.items():
        for kind, seconds in zip(("forward", "backward"), times, strict=True):
            for mhz in CLOCKS:
                share = mhz / CLOCKS[0]
                needed = 300 * seconds * joules(share)
                rows.append(f"{stage},{kind},{mhz},{seconds / share},{needed}")
    return "\n".join(rows) + "\n"


class Node:
    """An agent and a relay on simulated GPUs, and a node_exporter that reads their figures.

    Parameters
    ----------
    folder
        For its files.
    server
        Its address.
    held
        Ends each of the programs, also where the next one does not start.
    gpus
        The configuration of the GPUs.
    """

    def __init__(
        self, folder: Path, server: str, held: contextlib.ExitStack, gpus: str = GPUS
    ) -> None:
        folder.mkdir()
        self.file = folder / "gpus"
        simulate.create(self.file, gpus)
        self.gpus = simulate.Gpus(self.file)
        self.socket = folder / "agent.sock"
        self.relay_socket = folder / "relay.sock"
        self.figures = folder / "perseus"  # PerseusFiguresStale looks in no other folders.
        self.figures.mkdir()
        command = [str(BINARY), "agent", "run", "--driver", f"simulated:{self.file}"]
        command += ["--socket", str(self.socket), "--journal", str(folder / "journal")]
        command += ["--metrics-file", str(self.figures / "agent.prom")]
        self.agent = Program(command, folder / "agent.log")
        held.callback(self.agent.close)
        command = [str(BINARY), "agent", "relay", "--server", server]
        command += ["--socket", str(self.relay_socket)]
        command += ["--metrics-file", str(self.figures / "relay.prom")]
        self.relay = Program(command, folder / "relay.log")
        held.callback(self.relay.close)
        self.exporter = NodeExporter(folder, self.figures)
        held.callback(self.exporter.close)
        for socket in (self.socket, self.relay_socket):
            until(socket.exists, f"there is no {socket}")


class Training:
    """A job whose ranks train through the relay of a node."""

    def __init__(self, server: Server, node: Node, told: str, real: str | None = None) -> None:
        self._server = server
        self.path = create(server, profile_csv=told)
        (node.file.parent / "real.csv").write_text(real or told)
        with (node.file.parent / "trainer.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-B", str(Path(__file__).with_name("drill_trainer.py"))),
                    *(f"unix:{node.relay_socket}", self.id, str(node.socket), str(node.file)),
                    str(node.file.parent / "real.csv"),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def id(self) -> str:
        """Of the job."""
        return self.path.rpartition("/")[2]

    def job(self) -> dict[str, Any]:
        """Return the job as the server shows it."""
        return dict(self._server.call("GET", self.path)[1])

    def await_followers(self) -> None:
        """Wait until all ranks follow a plan."""
        until(
            lambda: self.job()["clients"]["states"].get("following") == RANKS,
            "the ranks do not follow",
        )

    def set(self, what: str, **settings: Any) -> None:
        """Put a setting of the job."""
        status, answer = self._server.call("PUT", f"{self.path}/{what}", settings)
        assert status == 200, answer

    def stop(self) -> None:
        """End the ranks: as asked, or as kill -9 does where that has no end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # With its ranks.
            self._process.wait()
            raise


class Stage:
    """All that the drill of an alarm has started, so that it can be ended."""

    def __init__(self, folder: Path, alarm: str = "") -> None:
        self.folder = folder
        self._alarm = alarm
        self.held = contextlib.ExitStack()

    def serve(self, *options: str) -> Server:
        """Start a server."""
        server = Server(BINARY, self.folder / "jobs.db", *options)
        self.held.callback(server.kill)
        return server

    def node(self, server: str, gpus: str = GPUS) -> Node:
        """Start what a node has."""
        return Node(self.folder / "node", server, self.held, gpus)

    def train(self, server: Server, node: Node, told: str, real: str | None = None) -> Training:
        """Start a job; its ranks follow their plans."""
        training = Training(server, node, told, real)
        self.held.callback(training.stop)
        training.await_followers()
        return training

    def watch(
        self, server: Server, node: Node | None = None, *, is_well: bool = True
    ) -> Prometheus:
        """Start Prometheus; the alarm does not fire yet, unless the fault is there already."""
        where = node.exporter.address if node else ""
        prometheus = Prometheus(self.folder, server.url, where)
        self.held.callback(prometheus.close)
        prometheus.await_series('up{job="perseus"} == 1')
        if node:
            prometheus.await_series("perseus_agent_build_info")
        if not is_well:
            return prometheus
        # Nor does it wait for its `for`. Ranks may complain for a while on a busy machine.
        query = f'ALERTS{{alertname="{self._alarm}"}}'
        until(lambda: not prometheus.ask(query), f"{self._alarm} fires before the fault")
        return prometheus

    def watch_training(self) -> tuple[Node, Training, Prometheus]:
        """Start a job, and wait until its server knows how it usually goes."""
        server = self.serve()
        node = self.node(server.url)
        training = self.train(server, node, profile())
        # On a busy machine iterations differ: a low threshold would take them hundreds of
        # iterations to learn. What drills do to GPUs is far above it.
        training.set("detection", mode="advisory", window=8, threshold=THRESHOLD)
        prometheus = self.watch(server, node)
        prometheus.await_series(f"perseus_job_watched_ranks == {RANKS}")
        # Slowness before that seems usual.
        prometheus.await_series("perseus_job_iteration_excess_ratio")
        return node, training, prometheus

    def close(self) -> None:
        """End all, the last first, whatever goes wrong with one of them."""
        try:
            self.held.close()
        finally:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
