# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainers of PyTorch on simulated GPUs, with a real server and agent: for the failure drills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainers_testing import BINARY, HERE, ROOT, TORCH, environment, needs_programs, needs_torch

sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate

NEEDED = [needs_torch, needs_programs]

PATIENCE = 120.0  # Seconds that only a hang misses.
STAGES = {0: (0.010, 0.020), 1: (0.014, 0.028)}  # Forward and backward at the highest clock.
CLOCKS = (1410, 1260, 1110, 960)
JOB = {"stages": 2, "microbatches": 4, "dp": 1, "tp": 1, "blocking_power": 85}

ATTACHED = "perseus: attached: "  # How the line of success begins.

Line = dict[str, Any]


def profile() -> str:
    """Return what the computations cost."""
    rows = ["stage,instruction,frequency,time,energy"]
    for stage, times in STAGES.items():
        for kind, seconds in zip(("forward", "backward"), times, strict=True):
            for mhz in CLOCKS:
                slow = 0.3 + 0.7 * CLOCKS[0] / mhz
                watts = 85 + 295 * (mhz / CLOCKS[0]) ** 2.2
                rows.append(f"{stage},{kind},{mhz},{seconds * slow},{seconds * slow * watts}")
    return "\n".join(rows) + "\n"


def start_server(folder: Path, port: int = 0) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server with its store in a folder; return it and its address."""
    log = folder / "server.log"
    command = [BINARY, "serve", "--listen", f"127.0.0.1:{port}"]
    command += ["--store", f"sqlite:{folder}/jobs.db"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    deadline = time.monotonic() + PATIENCE
    while "ready at" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    return process, log.read_text().split("ready at ")[1].split()[0]


class Drill:
    """A folder, a server that can be killed, and trainers."""

    python = TORCH  # Runs the trainers.

    def __init__(self, folder: Path, gpus: int = 2) -> None:
        self.folder = folder
        self.port = 0
        self.server: subprocess.Popen[bytes] | None = None
        self.agent: subprocess.Popen[bytes] | None = None
        self.trainer: subprocess.Popen[bytes] | None = None
        (folder / "profile.csv").write_text(profile())
        clocks = ", ".join(str(mhz) for mhz in reversed(CLOCKS))
        simulate.create(
            folder / "gpus",
            f"[[gpus]]\ncount = {gpus}\nclocks_mhz = [{clocks}]\ncall_ms = 3\nsettle_ms = 0\n",
        )
        self.gpus = simulate.Gpus(folder / "gpus")

    @property
    def url(self) -> str:
        """The server's."""
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        """Start the server; the second time at the address of the first."""
        self.server, url = start_server(self.folder, self.port)
        self.port = int(url.rsplit(":", 1)[1])

    @property
    def socket(self) -> Path:
        """The agent's."""
        return self.folder / "agent.sock"

    def start_agent(self) -> None:
        """Start the agent."""
        command = [BINARY, "agent", "run", "--driver", f"simulated:{self.folder}/gpus"]
        command += ["--socket", str(self.socket), "--journal", str(self.folder / "journal")]
        with (self.folder / "agent.log").open("wb") as file:
            self.agent = subprocess.Popen(command, stdout=file, stderr=file)
        self.until(self.socket.exists, "the agent is not ready")

    def show(self) -> str:
        """Return what `perseus job show` says of the one job."""
        return self.perseus_job("show")

    def perseus_job(self, action: str, *options: str) -> str:
        """Return what `perseus job ACTION` says of the one job."""
        done = subprocess.run(
            [BINARY, "job", action, str(self.job()["id"]), "--server", self.url, *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def said(self) -> list[str]:
        """Return Perseus' complaints in the trainer's output, as the logger prints them."""
        return [line for line in self.lines_of_log() if not line.startswith(ATTACHED)]

    def lines_of_log(self) -> list[str]:
        """Return all of Perseus' lines there."""
        text = (self.folder / "trainer.log").read_text()
        return [line for line in text.splitlines() if line.startswith("perseus: ")]

    def train(self, kind: str = "pipeline", **options: Any) -> None:
        """Start all ranks of a kind of drill_worker.py."""
        options = {"server": self.url, "settings": {"blocking_power": 85}, **options}
        command = [self.python, "-B", str(HERE / "drill_worker.py"), kind]
        with (self.folder / "trainer.log").open("ab") as file:
            self.trainer = subprocess.Popen(
                [*command, str(self.folder), json.dumps(options)],
                env=environment(PERSEUS_RUN="drill"),
                stdout=file,
                stderr=file,
            )

    def lines(self, rank: int = 0) -> list[Line]:
        """Return what a rank has said so far."""
        path = self.folder / f"rank-{rank}"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until `holds`."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                log = self.folder / "trainer.log"
                said = log.read_text()[-3000:] if log.exists() else ""
                pytest.fail(f"{what}: {self.lines(0)[-1:]} {self.lines(1)[-1:]} {said}")
            time.sleep(0.05)

    def until_both(self, holds: Callable[[Line], bool], what: str) -> None:
        """Wait until the newest line of each rank `holds`."""
        self.until(lambda: all(self.lines(r) and holds(self.lines(r)[-1]) for r in (0, 1)), what)

    def goes_on(self, iterations: int = 10) -> None:
        """See that training does."""
        done = len(self.lines())
        self.until(lambda: len(self.lines()) >= done + iterations, "training does not go on")

    def make_job(self, job: dict[str, Any]) -> str:
        """Make a job with the profile; returns its id."""
        body = {"name": "drill", "job": job, "profile_csv": profile()}
        request = urllib.request.Request(
            f"{self.url}/api/v1/jobs",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(json.loads(answer.read())["id"])

    def job(self) -> dict[str, Any]:
        """Return the one job, as the server shows it."""
        with urllib.request.urlopen(f"{self.url}/api/v1/jobs", timeout=10) as answer:
            listed = json.loads(answer.read())["jobs"]
        assert len(listed) == 1
        with urllib.request.urlopen(
            f"{self.url}/api/v1/jobs/{listed[0]['id']}", timeout=10
        ) as answer:
            return dict(json.loads(answer.read()))

    def end(self) -> None:
        """Stop training well, and check the losses."""
        (self.folder / "stop").touch()
        assert self.trainer is not None
        assert self.trainer.wait(PATIENCE) == 0, (self.folder / "trainer.log").read_text()[-3000:]
        by_iteration: dict[int, list[list[float]]] = {}
        for line in self.lines(1):
            by_iteration.setdefault(line["iteration"], []).append(line["losses"])
        # No optimizer, so that each iteration has its losses, whatever went before.
        assert all(len(losses) == 4 for seen in by_iteration.values() for losses in seen)
        assert all(all(losses == seen[0] for losses in seen) for seen in by_iteration.values())

    def close(self) -> None:
        """Leave nothing running."""
        for process in (self.trainer, self.agent, self.server):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        for rank in range(len(self.gpus)):
            for pid in {line["pid"] for line in self.lines(rank)}:
                command = Path(f"/proc/{pid}/cmdline")
                if command.exists() and b"_worker.py" in command.read_bytes():
                    os.kill(pid, signal.SIGKILL)


def following(line: Line) -> bool:
    """Return whether a rank follows a plan."""
    return bool(line["state"] == "following" and line["plan_version"] > 0)


def said_of(job: dict[str, Any]) -> dict[str, str]:
    """Return what ranks say is wrong, by rank."""
    return {str(one["rank"]): str(one) for one in job["clients"]["troubled"]}
