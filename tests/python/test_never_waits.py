# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that trains waits for nobody: the server and the agent are stopped while it trains.

The kernel counts how often a thread gave its processor up because it had to wait. Loops that only
compute never do, whatever the load of the machine.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

from drilling import PATIENCE, Drill
from trainers_testing import environment, needs_programs

pytestmark = needs_programs

STEPS = 200
SECONDS = {"forward": 0.001, "backward": 0.002}

TRAINER = f"""
import sys, threading, time
import perseus

seconds = {SECONDS}
job = perseus.Job(sys.argv[1], job_id=sys.argv[2], device="agent:" + sys.argv[3], timeline="host",
                  min_interval_seconds=0.001)

def compute(kind):
    until = time.perf_counter() + seconds[kind]
    while time.perf_counter() < until:
        pass

def step():
    with job.step():
        for microbatch in range(2):
            with job.forward(microbatch, stage=0):
                compute("forward")
        for microbatch in range(2):
            with job.backward(microbatch, stage=0):
                compute("backward")
    job.metrics()

def waits():
    for line in open(f"/proc/self/task/{{threading.get_native_id()}}/status"):
        if line.startswith("voluntary_ctxt_switches"):
            return int(line.split()[1])

while job.state != "following" or job.client.stats().calls < 10:
    step()
print("following", flush=True)
sys.stdin.readline()
before = waits()
for _ in range({STEPS}):
    step()
print(waits() - before, job.report()["ignored_steps"], job.report()["abandoned_steps"], flush=True)
sys.stdin.readline()
job.close()
"""


def profile() -> str:
    """Return what the computations cost."""
    rows = ["stage,instruction,frequency,time,energy"]
    for kind, seconds in SECONDS.items():
        for mhz in (1410, 1260, 1110, 960):
            slow = 1410 / mhz
            rows.append(f"0,{kind},{mhz},{seconds * slow},{seconds * 300 / slow}")
    return "\n".join(rows) + "\n"


def test_training_goes_on_while_server_and_agent_stand_still(drill: Drill) -> None:
    """Clock calls and reports are under way, and nobody answers them."""
    drill.start_agent()
    job = {"schedule": "gpipe", "stages": 1, "microbatches": 2}
    job |= {"blocking_power": 85, "at": "1.2x"}
    body = {"client_key": "k", "job": job, "profile_csv": profile()}
    request = urllib.request.Request(f"{drill.url}/api/v1/jobs", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        identity = json.loads(answer.read())["id"]
    trainer = subprocess.Popen(
        [sys.executable, "-B", "-c", TRAINER, drill.url, identity, str(drill.socket)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    drill.trainer = trainer  # type: ignore[assignment]
    assert trainer.stdin is not None
    assert trainer.stdout is not None
    assert drill.server is not None
    assert drill.agent is not None
    assert trainer.stdout.readline() == "following\n"
    stopped = (drill.server, drill.agent)
    for process in stopped:
        process.send_signal(signal.SIGSTOP)
    try:
        trainer.stdin.write("\n")
        trainer.stdin.flush()
        line = trainer.stdout.readline()
        assert line, trainer.wait(PATIENCE)
        waits, ignored, abandoned = map(int, line.split())
    finally:
        for process in stopped:
            process.send_signal(signal.SIGCONT)
    # A few for the memory that a process is given.
    assert waits < STEPS / 10
    assert (ignored, abandoned) == (0, 0)
    trainer.communicate("\n", timeout=PATIENCE)
    assert trainer.returncode == 0
