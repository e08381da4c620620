# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A job that measures its conditions: a real server, clients, and GPUs whose noise is known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate  # noqa: E402

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.environ.get("PERSEUS_BINARY", "")
PATIENCE = 400.0  # Seconds that only a hang misses: a busy machine plans for long.
pytestmark = pytest.mark.skipif(
    not (LIBRARY and BINARY), reason="PERSEUS_CLIENT_LIBRARY and PERSEUS_BINARY are needed"
)

NOISE = 0.03
RANK_NOISE = 0.02
CLOCKS = [960, 1110, 1260, 1410]
CALL_SECONDS = 0.006  # With what a clock takes to settle.


# A rank with the whole model. It tells the device's times, so that a busy machine is no noise. It
# trains until plans were made for what was measured, and long enough after that to see others.
TRAINER = """
import json, random, sys, time, urllib.request
import perseus
from perseus import simulate

server, folder, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
noise, rank_noise, seconds = json.loads(sys.argv[4])
body = json.loads(sys.argv[5])
draws = random.Random(rank)
clocks = (1410, 1260, 1110, 960)
gpus = simulate.Gpus(f"{folder}/gpus")

def table(length, factor):
    slow = lambda mhz: 0.3 + 0.7 * 1410 / mhz
    watts = lambda mhz: 85 + 295 * (mhz / 1410) ** 2.2
    return simulate.Table(
        [(mhz, factor * length * slow(mhz), factor * length * slow(mhz) * watts(mhz))
         for mhz in clocks]
    )

def shown(job):
    url = f"{server}/api/v1/jobs/{job.client.job_id}"
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)

def knows_all(conditions):
    waited_for = ("noise", "rank_noise", "switch_latency")
    figures = [each for each in conditions["figures"] if each["name"] in waited_for]
    return not conditions["changing"] and not any(each["assumed"] for each in figures)

with perseus.Job(
    server, job=body, rank=rank, dp_rank=rank, device=f"simulated:{folder}/gpus", gpu_index=rank,
    report_interval_seconds=0.1, max_overhead=1,
) as job:
    end, left = time.monotonic() + seconds, None
    iteration = 0
    while left != 0 and time.monotonic() < end:
        client = job.client
        of_rank = 1 + rank_noise * draws.gauss(0, 1)
        runs = []
        with client.step(iteration):
            begin = gpus.now()
            for microbatch in range(8):
                for kind, length in (("forward", 0.006), ("backward", 0.012)):
                    factor = of_rank * (1 + noise * draws.gauss(0, 1))
                    with client.instruction(kind, 0, microbatch):
                        runs.append(gpus.run(rank, table(length, factor)))
        client.step_times(
            iteration,
            [run.begin_seconds - begin for run in runs],
            [run.end_seconds - begin for run in runs],
        )
        iteration += 1
        if left is not None:
            left -= 1
        elif iteration % 20 == 0 and client.job_id:
            seen = shown(job)
            if knows_all(seen["conditions"]):
                left = 60
                with open(f"{folder}/known-{rank}", "w") as file:
                    json.dump(seen, file)
"""


def profile() -> str:
    """Return what the computations cost without noise."""
    rows = ["stage,instruction,frequency,time,energy"]
    for kind, length in (("forward", 0.006), ("backward", 0.012)):
        for mhz in (1410, 1260, 1110, 960):
            seconds = length * (0.3 + 0.7 * 1410 / mhz)
            rows.append(f"0,{kind},{mhz},{seconds},{seconds * (85 + 295 * (mhz / 1410) ** 2.2)}")
    return "\n".join(rows) + "\n"


def measured_for(job: dict[str, Any]) -> set[str]:
    """Return which measured figures the plans are made for."""
    return {each["name"] for each in job["conditions"]["figures"] if not each["assumed"]}


def settled(server: str) -> dict[str, Any]:
    """Return the job, once no plan is being made for it."""
    end = time.monotonic() + PATIENCE
    while True:
        with urllib.request.urlopen(f"{server}/api/v1/jobs") as answer:
            (head,) = json.load(answer)["jobs"]
        with urllib.request.urlopen(f"{server}/api/v1/jobs/{head['id']}") as answer:
            job: dict[str, Any] = json.load(answer)
        if not job["conditions"]["changing"]:
            return job
        assert time.monotonic() < end, job
        time.sleep(0.1)


def train(server: str, tmp_path: Path, settle_ms: list[int]) -> dict[str, Any]:
    """Train until the job has planned for what it measured; return the job."""
    simulate.create(
        tmp_path / "gpus",
        f"[[gpus]]\ncount = 2\nclocks_mhz = {CLOCKS}\ncall_ms = 5\nsettle_ms = {settle_ms}\n",
    )
    body = {
        "client_key": "measuring",
        "name": "measuring",
        "job": {
            **{"schedule": "1f1b", "stages": 1, "microbatches": 8, "dp": 2, "tp": 1},
            **{"blocking_power": 85, "effort": 0.05, "at": "1.14x", "conditions": {}},
        },
        "profile_csv": profile(),
    }
    truth = json.dumps([NOISE, RANK_NOISE, 0.75 * PATIENCE])
    command = [sys.executable, "-B", "-c", textwrap.dedent(TRAINER), server, str(tmp_path)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), truth, json.dumps(body)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        )
        for rank in (0, 1)
    ]
    try:
        for rank in ranks:
            assert rank.wait(PATIENCE) == 0
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return settled(server)


def test_a_job_plans_for_what_its_ranks_measure(server: str, tmp_path: Path) -> None:
    """With no value given: its intervals hold the truth, and its plans are made for it."""
    job = train(server, tmp_path, [1, 1, 1, 1])
    conditions = job["conditions"]
    assert conditions["source"] == "measured", conditions
    figures = {figure["name"]: figure for figure in conditions["figures"]}
    for name, value in (("noise", NOISE), ("rank_noise", RANK_NOISE)):
        figure = figures[name]
        assert figure["ranks"] == 2
        assert abs(figure["measured"] - value) < 4 * figure["measured_std"], figure
        assert figure["measured_std"] < 0.006
        assert abs(figure["planned"] - value) < 0.5 * value, figure
        assert not figure["assumed"]
    latency = figures["switch_latency"]
    # The process' own time comes on top of what the GPU takes.
    assert CALL_SECONDS - 0.001 < latency["measured"] < CALL_SECONDS + 0.004, latency
    assert abs(latency["planned"] - latency["measured"]) < 0.003
    # Two for what is assumed, quick and refined, and at most one more for each figure that gets
    # sure: the ranks did not wait for all of them. None comes for what is known.
    seen = [json.loads((tmp_path / f"known-{rank}").read_text()) for rank in (0, 1)]
    known = max(seen, key=lambda of_rank: int(of_rank["plan"]["version"]))
    later = measured_for(job) - measured_for(known)
    assert 2 < known["plan"]["version"] <= 2 + len(measured_for(known))
    assert known["plan"]["version"] <= job["plan"]["version"]
    assert job["plan"]["version"] <= known["plan"]["version"] + len(later), later
    shown = subprocess.run(
        [BINARY, "job", "show", job["id"], "--server", server],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout
    assert "plans are made for what was measured" in shown
    assert "by 2 ranks" in shown


def test_clocks_that_take_longer_are_planned_for(server: str, tmp_path: Path) -> None:
    """The client tells how late each clock is, and the plans are made for those that differ."""
    settle_ms = [1, 9, 1, 9]
    conditions = train(server, tmp_path, settle_ms)["conditions"]
    assert conditions["latency_at"], conditions
    for own in conditions["latency_at"]:
        truth = 5e-3 + 1e-3 * settle_ms[CLOCKS.index(own["clock_mhz"])]
        # The process' own time comes on top.
        assert -0.001 < own["measured_s"] - truth < 0.004, own
        assert abs(own["planned_s"] - own["measured_s"]) < 0.003, own
