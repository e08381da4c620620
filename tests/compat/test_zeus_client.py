# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Zeus' client from PyPI, unmodified, trains against our server.

The trainers need torch and zeus (1.4 GB): scripts/zeus-venv installs them; without
them the tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from serving import Server

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"
BINARY = Path(os.environ.get("PERSEUS_BINARY", RELEASE / "src/cli/perseus"))
MAKE_GPUS = Path(os.environ.get("PERSEUS_MAKE_GPUS", RELEASE / "tests/device/make_gpus"))
NVML = Path(os.environ.get("PERSEUS_FAKE_NVML_FOLDER", RELEASE / "fake_nvml"))
ZEUS_PYTHON = Path(os.environ.get("PERSEUS_ZEUS_PYTHON", ROOT / "build/zeus-venv/bin/python"))
TRAINER = Path(__file__).parent / "zeus_trainer.py"

pytestmark = pytest.mark.skipif(
    not ZEUS_PYTHON.exists(),
    reason=f"torch and zeus are not at {ZEUS_PYTHON}; scripts/zeus-venv installs them",
)

STAGES, PIPELINES, MICROBATCHES, ITERATIONS = 2, 2, 4, 2
RANKS = STAGES * PIPELINES
CLOCKS = [1000, 1200, 1400]
GPUS = """
[[gpus]]
count = 4
clocks_mhz = [1000, 1200, 1400]
call_ms = 1
settle_ms = 1
default_power_limit_watts = 400
power_limit_watts = 300
"""
# Stage 0 is much shorter than stage 1, so a plan slows it down.
PROFILE = "stage,instruction,frequency,time,energy\n" + "".join(
    f"{stage},{name},{clock},{base * 1400 / clock},{100 * base * (clock / 1400) ** 2}\n"
    for stage, name, base in (
        (0, "forward", 0.5),
        (0, "backward", 1.0),
        (1, "forward", 1.5),
        (1, "backward", 3.0),
    )
    for clock in CLOCKS
)
SETTINGS = {"schedule": "1f1b", "microbatches": MICROBATCHES, "stages": STAGES}
JOB = {**SETTINGS, "data_parallel": PIPELINES, "blocking_power": 20, "effort": 0.05}
NAMES = {"F": "forward", "B": "backward"}


def steps(order: str, *clocks: int) -> list[tuple[str, int]]:
    """Return computations with clocks in turn."""
    return [(NAMES[letter], clocks[i % len(clocks)]) for i, letter in enumerate(order)]


# 1F1B of two stages and four microbatches.
GIVEN_PLAN = [steps("FFBFBFBB", 1000, 1200, 1400), steps("FBFBFBFB", 1400, 1000, 1200)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Make simulated GPUs; return the environment in which NVML shows them."""
    path = tmp_path / "gpus"
    subprocess.run([MAKE_GPUS, path, GPUS], check=True)
    more = {"PERSEUS_FAKE_NVML": str(path), "LD_LIBRARY_PATH": str(NVML), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **more}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server with a plan for Zeus' clients; it must end as asked."""
    (tmp_path / "plan.py").write_text(repr(GIVEN_PLAN))
    started = Server(BINARY, tmp_path / "jobs.db", "--zeus-plan", str(tmp_path / "plan.py"))
    yield started
    assert started.stop() == 0, started.log()


def train(
    server: Server, environment: dict[str, str], tmp_path: Path, options: dict[int, list[str]]
) -> list[dict[str, Any]]:
    """Run a process for each rank; return what each said."""
    processes = [
        subprocess.Popen(
            [
                *(ZEUS_PYTHON, TRAINER, "--server", server.url, "--rank", str(rank)),
                *("--rendezvous", tmp_path / "rendezvous", "--microbatches", str(MICROBATCHES)),
                *options.get(rank, options[-1]),
            ],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    said = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=400)
            assert process.returncode == 0, errors
            said.append(json.loads(output))
    finally:
        for process in processes:
            process.kill()
    return said


@pytest.mark.parametrize("source", ["given plan", "job of ours"])
def test_a_whole_job_follows_its_plan(
    server: Server, environment: dict[str, str], tmp_path: Path, source: str
) -> None:
    """Every rank gets its plan, and each computation runs at the planned clock."""
    options = ["--iterations", str(ITERATIONS)]
    if source == "job of ours":
        body = {"client_key": "llama", "job": JOB, "profile_csv": PROFILE}
        status, job = server.call("POST", "/api/v1/jobs", body)
        assert status == 201
        options += ["--metadata", "perseus:llama"]
    said = train(server, environment, tmp_path, {-1: options})
    for rank, told in enumerate(said):
        if source == "given plan":
            planned: list[list[Any]] = [list(step) for step in GIVEN_PLAN[rank % STAGES]]
        else:
            assert told["job"] == job["id"]
            _, plan = server.call("GET", f"/api/v1/jobs/{job['id']}/plan?rank={rank}")
            planned = [[NAMES[c[0]], c[3]] for c in plan["computations"]]
            if rank % STAGES == 0:
                assert min(clock for _, clock in planned) < max(CLOCKS)
        assert told["schedule"] == planned
        assert told["clocks"] == planned * ITERATIONS
        assert told["synchronized"] == len(planned) * ITERATIONS
    # Zeus' controllers give the clocks back when the trainers exit.
    for gpu in range(RANKS):
        command = [str(ZEUS_PYTHON), str(TRAINER), "--clock-of", str(gpu)]
        command += ["--expect", str(max(CLOCKS))]
        shown = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        assert int(shown.stdout) == max(CLOCKS)


def test_a_rank_that_never_comes_and_one_that_asks_twice(
    server: Server, environment: dict[str, str], tmp_path: Path
) -> None:
    """On Zeus' own server both leave every rank waiting without end."""
    said = train(server, environment, tmp_path, {3: ["--missing"], -1: ["--ask-again"]})
    assert said[3] == {"rank": 3, "missing": True}
    for rank in range(3):
        planned = [list(step) for step in GIVEN_PLAN[rank % STAGES]]
        assert said[rank]["schedule"] == said[rank]["again"] == planned
