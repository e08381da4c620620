# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The first run of a trainer without PyTorch, on simulated GPUs: from nothing to a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate  # noqa: E402

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.environ.get("PERSEUS_BINARY", "")
PATIENCE = 120.0  # Seconds that only a hang misses.
pytestmark = pytest.mark.skipif(
    not (LIBRARY and BINARY), reason="PERSEUS_CLIENT_LIBRARY and PERSEUS_BINARY are needed"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server."""
    log = tmp_path / "server.log"
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{tmp_path}/jobs.db"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    deadline = time.monotonic() + PATIENCE
    while "ready at" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    yield log.read_text().split("ready at ")[1].split()[0]
    process.kill()
    process.wait()


# A rank of plain data parallel training: it has the whole model, and waits for nobody.
WHOLE_MODEL = """
import json, sys
import perseus
from perseus import simulate

server, folder, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
rows = {
    kind: [
        (mhz, seconds * (0.3 + 0.7 * 1410 / mhz),
         seconds * (0.3 + 0.7 * 1410 / mhz) * (85 + 295 * (mhz / 1410) ** 2.2))
        for mhz in (1410, 1260, 1110, 960)
    ]
    for kind, seconds in (("forward", 0.010), ("backward", 0.020))
}
tables = {kind: simulate.Table(costs) for kind, costs in rows.items()}
gpus = simulate.Gpus(f"{folder}/gpus")
body = {"client_key": "whole", "name": "whole",
        "job": {"schedule": "1f1b", "stages": 1, "microbatches": 4, "dp": 2, "tp": 1}}
with perseus.Job(
    server, job=body, rank=rank, dp_rank=rank, device=f"simulated:{folder}/gpus", gpu_index=rank,
    profile=True, profile_iterations=8, report_interval_seconds=0.2,
) as job:
    for iteration in range(20_000):
        with job.step():
            for microbatch in range(4):
                for kind in ("forward", "backward"):
                    job.begin(kind, microbatch, 0)
                    gpus.run(rank, tables[kind])
                    job.end(kind, microbatch, 0)
        if job.state == "following":
            break
    print(json.dumps([job.state, iteration]))
"""


def test_a_job_of_one_stage_profiles_itself(server: str, tmp_path: Path) -> None:
    """Though its GPUs never wait: it ends in a plan, and says what it does not know."""
    simulate.create(
        tmp_path / "gpus",
        "[[gpus]]\ncount = 2\nclocks_mhz = [960, 1110, 1260, 1410]\ncall_ms = 3\nsettle_ms = 0\n",
    )
    ranks = [
        subprocess.Popen(
            [sys.executable, "-B", "-c", textwrap.dedent(WHOLE_MODEL), server, tmp_path, str(rank)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            stdout=subprocess.PIPE,
        )
        for rank in (0, 1)
    ]
    try:
        for rank in ranks:
            out, _ = rank.communicate(timeout=PATIENCE)
            assert json.loads(out)[0] == "following"
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    (job,) = jobs(server)
    assert (job["state"], job["name"]) == ("running", "whole")
    # Nothing else is odd: of a profile that cannot be believed no saving is shown.
    (note,) = job["notes"]
    assert "never waits" in note["text"]
    assert note["severity"] == "odd"


def jobs(server: str) -> list[dict[str, Any]]:
    """Return the server's jobs."""
    with urllib.request.urlopen(f"{server}/api/v1/jobs", timeout=10) as answer:
        ids = [job["id"] for job in json.loads(answer.read())["jobs"]]
    found = []
    for one in ids:
        with urllib.request.urlopen(f"{server}/api/v1/jobs/{one}", timeout=10) as answer:
            found.append(dict(json.loads(answer.read())))
    return found
