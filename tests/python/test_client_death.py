# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A trainer that dies at a low clock, with the real agent: the clock comes back.

`PERSEUS_CLIENT_LIBRARY` names the library, `PERSEUS_BINARY` the command line, `PERSEUS_MAKE_GPUS`
the program that makes simulated GPUs. docs/explanation/agent.md has the time that it takes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("PERSEUS_BINARY", "")
MAKE_GPUS = os.environ.get("PERSEUS_MAKE_GPUS", "")
pytestmark = pytest.mark.skipif(
    not (BINARY and MAKE_GPUS and os.environ.get("PERSEUS_CLIENT_LIBRARY")),
    reason="PERSEUS_BINARY, PERSEUS_MAKE_GPUS and PERSEUS_CLIENT_LIBRARY are needed",
)
PATIENCE = 20.0

TRAINER = """
import http.server, json, sys, threading, time
import perseus

class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def answer(self, status, body=None):
        data = json.dumps(body).encode() if body else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200, {"id": "j"})
    def do_GET(self):
        if "after=-1" in self.path:
            self.answer(200, {"version": 1, "iteration_time_s": 0.01,
                              "computations": [["F", 0, 0, 900, 0.0, 0.01]]})
        else:
            time.sleep(0.5)
            self.answer(204)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
client = perseus.Client(f"http://127.0.0.1:{server.server_address[1]}", job_id="j",
                        device="agent:" + sys.argv[1])
for i in range(1000):
    with client.step(i), client.instruction("forward", 0, 0):
        time.sleep(0.01)
    stats = client.stats()
    if stats is not None and stats.clock_mhz == 900 and i > 5:
        print("locked", flush=True)
        if sys.argv[2] == "raise":
            raise RuntimeError("as trainers do")
        if sys.argv[2] == "exit":
            sys.exit(0)
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[str]:
    """Run an agent on one simulated GPU; its socket."""
    gpus = tmp_path / "gpus"
    subprocess.run([MAKE_GPUS, str(gpus), "[[gpus]]\ncall_ms = 2\nsettle_ms = 0\n"], check=True)
    socket = str(tmp_path / "agent.sock")
    journal = ["--journal", str(tmp_path / "journal")]
    process = subprocess.Popen(
        [BINARY, "agent", "run", "--driver", f"simulated:{gpus}", "--socket", socket, *journal],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(socket) and time.monotonic() < deadline:
        time.sleep(0.02)
    yield socket
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)


def locked_mhz(socket: str) -> object:
    """Return what the agent says of the one GPU."""
    done = subprocess.run(
        [BINARY, "agent", "status", "--socket", socket, "--json"],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return json.loads(done.stdout)["gpus"][0]["locked_mhz"]


@pytest.mark.parametrize("end", ["kill", "raise", "exit"])
def test_the_clock_comes_back(agent: str, end: str) -> None:
    """However the trainer ends."""
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, agent, end],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert trainer.stdout is not None
    assert trainer.stdout.readline().strip() == "locked"
    if end == "kill":
        assert locked_mhz(agent) == 900
        trainer.kill()
    trainer.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while locked_mhz(agent) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert locked_mhz(agent) is None
