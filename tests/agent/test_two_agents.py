# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Agents that meet on the same GPUs, and one whose journal is gone: seen from outside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
from agent_messages import HELLO, PATIENCE, Agent, line, read_lines

BINARY = Path(os.environ.get("PERSEUS_BINARY", "build/release/src/cli/perseus"))
MAKE_GPUS = Path(
    os.environ.get("PERSEUS_MAKE_GPUS", "build/release/tests/device/make_gpus")
).absolute()


def start(gpus: Path, folder: Path) -> subprocess.Popen[str]:
    """Start an agent on GPUs that are there, with a socket and a journal of its own."""
    folder.mkdir(exist_ok=True)
    command = [str(BINARY), "agent", "run", "--driver", f"simulated:{gpus}"]
    command += ["--socket", str(folder / "agent.sock"), "--journal", str(folder / "journal")]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def lock_a_clock(agent: Agent) -> socket.socket:
    """Lease a GPU and set a clock; both are held as long as the connection is open."""
    uuid = agent.status()["gpus"][0]["uuid"]
    connection = agent.connect()
    connection.sendall(
        HELLO + line(id=2, op="lease", gpu=uuid) + line(id=3, op="set", mhz=900, gpu=uuid)
    )
    assert [answer["ok"] for answer in read_lines(connection, 3)] == [True] * 3
    return connection


def test_25_a_second_agent_is_refused_the_gpus(tmp_path: Path) -> None:
    """Each would undo the other's clocks: the second one ends, and says who has the GPUs."""
    (tmp_path / "one").mkdir()
    first = Agent(BINARY, MAKE_GPUS, tmp_path / "one")
    connection = lock_a_clock(first)
    second = start(tmp_path / "one" / "gpus", tmp_path / "two")
    try:
        _, log = second.communicate(timeout=PATIENCE / 3)
        assert second.returncode == 2
        assert "GPU" in log
        assert first.status()["gpus"][0]["locked_mhz"] == 900
    finally:
        second.kill()
        second.wait()
        connection.close()
        assert first.stop() == 0


@pytest.mark.parametrize("dangling", [False, True])
def test_24_a_journal_that_is_gone_restores_all(tmp_path: Path, dangling: bool) -> None:
    """The agent was killed with a clock locked, and its journal deleted or made a dangling link."""
    agent = Agent(BINARY, MAKE_GPUS, tmp_path)
    connection = lock_a_clock(agent)
    os.kill(agent.pid, signal.SIGKILL)
    agent.stop()
    connection.close()
    journal = tmp_path / "journal"
    journal.unlink()
    if dangling:
        journal.symlink_to(tmp_path / "nowhere" / "journal")
    (tmp_path / "agent.sock").unlink()
    again = Agent(BINARY, MAKE_GPUS, tmp_path, make=False)
    try:
        assert sum(gpu["restores"] for gpu in again.status()["gpus"]) > 0
    finally:
        again.stop()
    assert "journal_corrupt" in again.log()
