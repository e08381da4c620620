# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of Megatron, DeepSpeed and the migration from Zeus, on simulated GPUs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frameworks_testing import BINARY, HERE, PYTHON, ROOT, needs_frameworks

sys.path[:0] = [
    str(ROOT / folder) for folder in ("python", "tests/server", "examples/zeus_migration")
]

import perseus  # noqa: E402
from perseus import simulate  # noqa: E402
from pipeline_frequency import PipelineFrequencyOptimizer  # noqa: E402
from serving import Server  # noqa: E402

pytestmark = pytest.mark.skipif(
    not BINARY or not os.environ.get("PERSEUS_CLIENT_LIBRARY"),
    reason="PERSEUS_BINARY and PERSEUS_CLIENT_LIBRARY name nothing",
)

CLOCKS = (1000, 1200, 1400)
PROFILE = "stage,instruction,frequency,time,energy\n" + "".join(
    f"{stage},{kind},{clock},{base * 1400 / clock},{200 * base * (clock / 1400) ** 2}\n"
    for stage, scale in ((0, 0.6), (1, 1.0))
    for kind, base in (("forward", 0.001 * scale), ("backward", 0.002 * scale))
    for clock in CLOCKS
)
PATIENCE = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server; it must end as asked."""
    started = Server(Path(BINARY), tmp_path / "jobs.db")
    yield started
    assert started.stop() == 0, started.log()


@pytest.fixture
def gpus(tmp_path: Path) -> str:
    """Make two simulated GPUs; return the device."""
    config = f"[[gpus]]\ncount = 2\nclocks_mhz = {list(CLOCKS)}\ncall_ms = 0.1\nsettle_ms = 0\n"
    simulate.create(tmp_path / "gpus", config)
    return f"simulated:{tmp_path / 'gpus'}"


def the_job(server: Server) -> dict[str, Any]:
    """Return the one job of the server."""
    [job] = server.call("GET", "/api/v1/jobs")[1]["jobs"]
    assert isinstance(job, dict)
    return job


@needs_frameworks
@pytest.mark.parametrize(
    ("framework", "words", "settings"),
    [
        (
            "megatron",
            "--layers 4 --hidden 16 --sequence 8 --vocabulary 32",
            {"schedule": "1f1b", "stages": 2, "microbatches": 8, "dp": 1, "tp": 1},
        ),
        (
            "deepspeed",
            "--layers 4 --width 8",
            {"schedule": "1f1b", "stages": 2, "microbatches": 8, "dp": 1, "tp": 1},
        ),
    ],
)
def test_launch_scripts_train_under_a_plan(
    server: Server,
    gpus: str,
    tmp_path: Path,
    framework: str,
    words: str,
    settings: dict[str, object],
) -> None:
    """Two ranks of the real framework make a job, register, and follow its plan when started again."""
    (tmp_path / "profile.csv").write_text(PROFILE)
    # On a machine without CUDA.
    (tmp_path / "run.py").write_text(
        f"import runpy, sys\nsys.path.insert(0, {str(HERE)!r})\nimport {framework}_ranks\n"
        "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    folder = ROOT / "examples" / framework
    arguments = [*words.split(), "--profile", str(tmp_path / "profile.csv")]
    arguments += ["--blocking-power", "50", "--device", gpus]
    environment = {
        **os.environ,
        "PERSEUS_SERVER": server.url,
        "PERSEUS_RUN": "test",
        "PYTHON": PYTHON,
        "PYTHONPATH": str(ROOT / "python"),
        "RANKS": "2",
        "RUN": str(tmp_path / "run.py"),
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
    }

    def launch(iterations: int) -> str:
        words = [*arguments, "--iterations", str(iterations)]
        done = subprocess.run(
            [str(folder / "launch.sh"), str(folder / f"train_{framework}.py"), *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    launch(20)
    job = the_job(server)
    assert job["name"] == f"{framework} example"
    assert job["ranks_registered"] == job["world_size"] == 2
    shown = server.call("GET", f"/api/v1/jobs/{job['id']}")[1]["settings"]
    assert settings.items() <= shown.items()
    server.call("GET", f"/api/v1/jobs/{job['id']}/plan?rank=0&wait=60")
    # Started again, it is the same job, whose plan is there.
    said = launch(400)
    assert the_job(server)["id"] == job["id"]
    assert sorted(re.findall(r"rank (\d): following, plan [1-9]", said)) == ["0", "1"], said


def test_a_trainer_of_zeus_changes_an_import(server: Server, gpus: str) -> None:
    """With the class of the same name; the job is one that was made with its profile before."""
    body = {
        "client_key": "llama-7",
        "job": {"schedule": "1f1b", "stages": 2, "microbatches": 2, "blocking_power": 50},
        "profile_csv": PROFILE,
    }
    assert server.call("POST", "/api/v1/jobs", body)[0] == 201
    optimizers = [
        PipelineFrequencyOptimizer(
            rank=rank,
            dp_rank=0,
            pp_rank=rank,
            tp_rank=0,
            device_id=rank,
            dp_degree=1,
            pp_degree=2,
            tp_degree=1,
            world_size=2,
            server_url=server.url,
            job_metadata="perseus:llama-7",
            microbatches=2,
            device=gpus,
            profile=False,
        )
        for rank in range(2)
    ]
    deadline = time.monotonic() + PATIENCE
    followed = 0
    while followed < 3 and time.monotonic() < deadline:
        for optimizer, order in zip(optimizers, ("FFBB", "FBFB"), strict=True):
            optimizer.on_step_begin()
            for letter in order:
                name = {"F": "forward", "B": "backward"}[letter]
                optimizer.on_instruction_begin(name)
                optimizer.on_instruction_end(name)
            optimizer.on_step_end()
        following = [o.job.client.state == perseus.State.FOLLOWING for o in optimizers]
        followed = followed + 1 if all(following) else 0
        time.sleep(0.02)
    reports = [optimizer.job.report() for optimizer in optimizers]
    for optimizer in optimizers:
        optimizer.close()
    assert followed == 3, reports
    assert the_job(server)["ranks_registered"] == 2
    with pytest.raises(ValueError, match="world_size"):
        PipelineFrequencyOptimizer(0, 0, 0, 0, 0, 2, 2, 1, 2, server.url, microbatches=2)
