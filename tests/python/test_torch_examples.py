# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of PyTorch, Megatron, DeepSpeed and the migration from Zeus, on simulated GPUs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainers_testing import (
    BINARY,
    FRAMEWORKS,
    HERE,
    ROOT,
    TORCH,
    environment,
    needs_frameworks,
    needs_programs,
    needs_torch,
)

sys.path[:0] = [
    str(ROOT / folder) for folder in ("python", "tests/server", "examples/zeus_migration")
]

import perseus  # noqa: E402
from perseus import simulate  # noqa: E402
from pipeline_frequency import PipelineFrequencyOptimizer  # noqa: E402
from serving import Server  # noqa: E402

pytestmark = needs_programs

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


def torch_pipeline(*options: str) -> str:
    """Run examples/torch_pipeline; its losses must be those that it has without Perseus.

    What is saved is held against the emulator by the example itself, and depends on a machine that
    wakes its processes in time.
    """
    done = subprocess.run(
        [TORCH, "-B", "examples/torch_pipeline/run.py", *options],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "losses are the same, bit for bit" in done.stdout, done.stdout + done.stderr
    return done.stdout


@needs_torch
@pytest.mark.parametrize("schedule", ["1f1b", "interleaved-1f1b", "zbv-zero-bubble"])
def test_pytorchs_pipeline_runs(schedule: str) -> None:
    """Profile, plan, straggler, report."""
    said = torch_pipeline("--schedule", schedule)
    assert re.search(r"^planned +[0-9.]+ +[0-9.]+ +[-0-9.]+ %", said, re.MULTILINE), said
    assert "the emulator says of this plan" in said, said


COUNTS = re.compile(
    r"^4 ranks, (\d+) iterations: (\d+) began with a plan of their own, (\d+) plans came too late, "
    r"(\d+) were overtaken, (\d+) failed$",
    re.MULTILINE,
)


@needs_torch
def test_pytorchs_pipeline_trains_on_variable_lengths() -> None:
    """Iterations follow plans of their own, which predict a saving; none is lost."""
    said = torch_pipeline("--variable-lengths", "7")
    predicted = re.search(r"^ +as these plans predict +[0-9.]+ +[0-9.]+ +([-0-9.]+) %", said, re.M)
    assert predicted is not None, said
    assert float(predicted[1]) > 5
    counts = COUNTS.search(said)
    assert counts is not None, said
    iterations, used, late, overtaken, failed = map(int, counts.groups())
    assert failed == 0
    # All ranks followed plans of their steps before anything was measured.
    assert used >= 4 * 4
    # One for each iteration and rank, and one for the batch that was read ahead and not trained
    # on. That one may still be waiting for its iteration, or for its plan.
    assert 4 * iterations - 4 <= used + late + overtaken <= 4 * (iterations + 1)


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
    """Two ranks make a job and register; started again, they follow its plan."""
    (tmp_path / "profile.csv").write_text(PROFILE)
    # On a machine without CUDA.
    (tmp_path / "run.py").write_text(
        f"import runpy, sys\nsys.path.insert(0, {str(HERE)!r})\nimport on_{framework}\n"
        "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    folder = ROOT / "examples" / framework
    arguments = [*words.split(), "--profile", str(tmp_path / "profile.csv")]
    arguments += ["--blocking-power", "50", "--device", gpus]
    own = {"PERSEUS_SERVER": server.url, "PERSEUS_RUN": "test", "PYTHON": FRAMEWORKS}
    own |= {"RANKS": "2", "RUN": str(tmp_path / "run.py")}

    def launch(iterations: int) -> str:
        words = [*arguments, "--iterations", str(iterations)]
        done = subprocess.run(
            [str(folder / "launch.sh"), str(folder / f"train_{framework}.py"), *words],
            env=environment(**own),
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
