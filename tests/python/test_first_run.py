# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The first run of a trainer without PyTorch, on simulated GPUs: from nothing to a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import urllib.request
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
        for mhz in (2010, 1410, 1260, 1110, 960)  # The first can be no more than boosted to.
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


def train_whole_model(server: str, tmp_path: Path, more: str = "") -> dict[str, Any]:
    """Run two ranks until they follow their plan; returns the job."""
    simulate.create(
        tmp_path / "gpus",
        "[[gpus]]\ncount = 2\nclocks_mhz = [960, 1110, 1260, 1410]\ncall_ms = 3\nsettle_ms = 0\n"
        + more,
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
    return job


def test_a_job_of_one_stage_profiles_itself(server: str, tmp_path: Path) -> None:
    """Though its GPUs never wait: it ends in a plan, and says what it does not know."""
    job = train_whole_model(server, tmp_path)
    assert (job["state"], job["name"]) == ("running", "whole")
    # Nothing else is odd: of a profile that cannot be believed no saving is shown.
    assert len(job["notes"]) == 1, job["notes"]
    (note,) = job["notes"]
    assert "never waits" in note["text"]
    assert note["severity"] == "odd"


def test_a_card_that_boosts_above_its_clocks_is_warned_of(server: str, tmp_path: Path) -> None:
    """The fastest plan makes such a job slower than it is without Perseus."""
    job = train_whole_model(server, tmp_path, "boost_mhz = 2010\n")
    (warning,) = (note["text"] for note in job["notes"] if "default clocks" in note["text"])
    # By 26 %, as its table says. A busy machine makes times seem longer.
    said = float(warning.split(" % slower")[0].rsplit(" ", 1)[1])
    assert 5 < said < 60
    default_clocks = job["plan"]["default_clocks"]
    assert default_clocks["slowdown_percent"] > 5
    baseline = job["frontier"]["baseline_s"]
    assert 100 * (baseline / default_clocks["iteration_time_s"] - 1) == pytest.approx(
        said, abs=0.01
    )
    shown = subprocess.run(
        [BINARY, "job", "show", job["id"], "--server", server],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "at default clocks" in shown
    assert "longer" in shown
    exported = subprocess.run(
        [BINARY, "profile", "list", "--json", "--server", server],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (profile,) = json.loads(exported)["profiles"]
    csv = subprocess.run(
        [BINARY, "profile", "export", profile["id"], "--server", server],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert csv.count(",default,") == 2


# A loop of one's own that is told what to do wrong. It trains until it complains, and a little
# longer, so that others may.
OWN_LOOP = """
import json, sys, time
import perseus
from perseus import simulate

server, folder, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
microbatches, stage = options.pop("runs", 4), options.pop("stage", None)
most_seconds, until = options.pop("most_seconds", 60), options.pop("until", "")
gpus = simulate.Gpus(f"{folder}/gpus")
table = simulate.Table([(mhz, 0.002 * 1410 / mhz, 0.2) for mhz in (1410, 1260, 1110, 960)])
gpu = options.get("gpu_index", 0)
with perseus.Job.for_pipeline(
    "1f1b", options.pop("stages"), 4, server=server, device=f"simulated:{folder}/gpus",
    report_interval_seconds=0.1, profile_iterations=5, **options,
) as job:
    end, complaint = time.monotonic() + most_seconds, ""
    while time.monotonic() < end or not job.client.job_id:
        with job.step():
            for microbatch in range(microbatches):
                for kind in ("forward", "backward"):
                    job.begin(kind, microbatch, stage)
                    gpus.run(gpu, table)
                    job.end(kind, microbatch, stage)
            if microbatches == 0:
                time.sleep(0.01)
        if job.client.plan_version > 0:
            end = min(end, time.monotonic() + 0.5)
        if not complaint and until in job.last_error:
            complaint = job.last_error
            if complaint:
                end = min(end, time.monotonic() + 0.5)
print(json.dumps(complaint))
"""


def train_own_loop(server: str, folder: Path, ranks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Run ranks until each complains; returns of what, and what each wrote."""
    simulate.create(
        folder / "gpus",
        "[[gpus]]\ncount = 2\nclocks_mhz = [960, 1110, 1260, 1410]\ncall_ms = 1\nsettle_ms = 0\n",
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-B", "-c", OWN_LOOP, server, str(folder), json.dumps(rank)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    ]
    try:
        said = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [(str(json.loads(out)), err) for out, err in said]


def pipeline_of(rank: int, **more: Any) -> dict[str, Any]:
    """Return the options of a rank of two stages."""
    return {"stages": 2, "rank": rank, "pp_rank": rank, "gpu_index": rank, "run": "r", **more}


def test_another_run_on_each_rank_is_said(server: str, tmp_path: Path) -> None:
    """By both, in the same words: with the names, and what to do."""
    ranks = [pipeline_of(rank, run=f"run-{rank}") for rank in (0, 1)]
    ranks = [dict(rank, until="run=") for rank in ranks]
    (first, wrote), (second, _) = train_own_loop(server, tmp_path, ranks)
    assert first == second
    for words in ("'run-0') has rank 0", "'run-1') has rank 1", "in 2 jobs", "give the same run="):
        assert words in first
    said = [line for line in wrote.splitlines() if line.startswith("perseus: the ranks of one")]
    assert len(said) == 1


def test_a_rank_that_never_comes_is_named(server: str, tmp_path: Path) -> None:
    """Another job of the same shape that has the same rank is another training."""
    ranks = [
        pipeline_of(0, run="alone", until="lacks"),
        pipeline_of(0, run="other", until="lacks", gpu_index=1),
    ]
    for error, _ in train_own_loop(server, tmp_path, ranks):
        assert "still lacks rank 1, though rank 0 trains" in error


def test_two_processes_with_one_rank_are_said(server: str, tmp_path: Path) -> None:
    """They have no process group in common: the server hears both."""
    ranks = [pipeline_of(0, until="is process"), pipeline_of(0, until="is process", gpu_index=1)]
    for error, _ in train_own_loop(server, tmp_path, ranks):
        assert "rank 0 is process" in error
        assert "give each its own rank" in error


def test_fewer_microbatches_than_were_said(server: str, tmp_path: Path) -> None:
    """Before there is a plan that would say so."""
    ranks = [pipeline_of(0, stage=0, most_seconds=1), pipeline_of(1, stage=1, runs=3)]
    said = train_own_loop(server, tmp_path, ranks)
    assert "rank 1 runs 3 computations of type forward of stage 1" in said[1][0]
    assert "has 4" in said[1][0]


def test_computations_that_are_never_told(server: str, tmp_path: Path) -> None:
    """Only steps are."""
    one = {"stages": 1, "run": "r", "runs": 0}
    ((error, _),) = train_own_loop(server, tmp_path, [one])
    assert "rank 0 tells Perseus of no computation" in error


def test_a_stage_that_is_not_the_ranks(server: str, tmp_path: Path) -> None:
    """And pp_rank may be what is wrong."""
    ranks = [pipeline_of(0, stage=0, most_seconds=1), pipeline_of(1, stage=0)]
    said = train_own_loop(server, tmp_path, ranks)
    assert "rank 1 runs computations of stage 0, and" in said[1][0]
    assert "gives pp_rank 1 stage 1" in said[1][0]


def test_the_only_stage_of_a_rank_need_not_be_told(server: str, tmp_path: Path) -> None:
    """What is measured is that stage's, and makes a plan."""
    said = train_own_loop(server, tmp_path, [pipeline_of(rank, until="row 0") for rank in (0, 1)])
    assert [error for error, _ in said] == ["", ""]
    assert jobs(server)[0]["plan"]["version"] > 0


def test_success_and_the_end_are_said(server: str, tmp_path: Path) -> None:
    """One line on the first rank; the list of jobs says that the trainers have ended."""
    ranks = [pipeline_of(rank, stage=rank, most_seconds=1) for rank in (0, 1)]
    (_, first), (_, second) = train_own_loop(server, tmp_path, ranks)
    (line,) = [line for line in first.splitlines() if line.startswith("perseus: attached: ")]
    (job,) = jobs(server)
    for words in (job["id"], "(r)", server):
        assert words in line
    assert "attached" not in second
    assert job["ended"] is True
    command = [BINARY, "job", "list", "--server", server]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"{job['state']}, ended" in listed


def test_a_rank_that_is_refused_does_not_say_that_it_is_attached(
    server: str, tmp_path: Path
) -> None:
    """A job's name in place of its id is refused, and nothing else is said."""
    code = """
import sys, time
import perseus

with perseus.Job(sys.argv[1], job_id="first", rank=0, device="") as job:
    until = time.monotonic() + 60
    while job.state != "released" and time.monotonic() < until:
        with job.step():
            pass
        time.sleep(0.01)
    with job.step():
        pass
    time.sleep(0.2)
    print(job.state)
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, server],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.strip() == "released"
    assert "there is no job with the id first" in done.stderr
    assert "attached" not in done.stderr


# Its process wakes up late, each time, and says when the kernel could have begun.
LATE = """
import json, sys, time
import perseus
from perseus import simulate

server, folder = sys.argv[1:]
gpus = simulate.Gpus(f"{folder}/gpus")
table = simulate.Table([(mhz, 0.01 * 1410 / mhz, 3.0) for mhz in (1410, 1260, 1110, 960)])
with perseus.Job.for_pipeline(
    "1f1b", 1, 4, run="late", server=server, device=f"simulated:{folder}/gpus",
    report_interval_seconds=0.1, profile_iterations=5, timeline="host",
) as job:
    ready = gpus.now()
    while job.state != "following" and not job.last_error:
        with job.step():
            for microbatch in range(4):
                for kind in ("forward", "backward"):
                    time.sleep(0.004)
                    job.begin(kind, microbatch, 0)
                    ready = gpus.run(0, table, ready).end_seconds
                    job.end(kind, microbatch, 0)
    print(json.dumps([job.state, job.last_error]))
"""


def test_kernels_in_the_past_do_not_corrupt_a_sweep(server: str, tmp_path: Path) -> None:
    """A kernel that began before the call that is measured would seem shorter than it is."""
    simulate.create(
        tmp_path / "gpus",
        "[[gpus]]\nclocks_mhz = [960, 1110, 1260, 1410]\ncall_ms = 1\nsettle_ms = 0\n",
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", LATE, server, tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        check=True,
    )
    assert json.loads(done.stdout) == ["following", ""]
    with urllib.request.urlopen(f"{server}/api/v1/profiles", timeout=10) as answer:
        listed = json.loads(answer.read())["profiles"][0]  # The newest.
    with urllib.request.urlopen(f"{server}/api/v1/profiles/{listed['id']}", timeout=10) as answer:
        profile = json.loads(answer.read())["profile_csv"]
    rows = [line.split(",") for line in profile.splitlines() if line[0].isdigit()]
    rows = [row for row in rows if row[2].isdigit()]  # Not those at default clocks.
    times = {(row[1], int(row[2])): float(row[3]) for row in rows}
    for kind in ("forward", "backward"):
        assert times[kind, 1410] == pytest.approx(0.01, rel=0.1)  # Of 10 ms 4 would be missing.


def jobs(server: str) -> list[dict[str, Any]]:
    """Return the server's jobs."""
    with urllib.request.urlopen(f"{server}/api/v1/jobs", timeout=10) as answer:
        ids = [job["id"] for job in json.loads(answer.read())["jobs"]]
    found = []
    for one in ids:
        with urllib.request.urlopen(f"{server}/api/v1/jobs/{one}", timeout=10) as answer:
            found.append(dict(json.loads(answer.read())))
    return found
