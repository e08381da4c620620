# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Conditions that the library keeps: two jobs in a row, and a restart between them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, check, job_command, sweep
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

LABELLED = {k: v for k, v in SETTINGS.items() if k != "blocking_power"} | {
    "model": "gpt",
    "effort": 0.001,
    "conditions": {},
}
NOISE, LATENCY = 0.004, 0.050
PATIENCE = 240.0  # Seconds that only a hang misses.


def run_job(server: Server, key: str) -> str:
    """Create a job with all its ranks; return its path."""
    status, job = server.call("POST", "/api/v1/jobs", {"client_key": key, "job": LABELLED})
    assert status == 201, job
    path = f"/api/v1/jobs/{job['id']}"
    for rank in range(RANKS):
        body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
        gpu = {"gpu": {"name": "A100"}, "clocks_mhz": [1000, 1200, 1400]}
        assert server.call("POST", path + "/ranks", body | gpu)[0] == 200
    return path


def await_plan(server: Server, path: str) -> dict[str, Any]:
    """Return the job once it has its first plan, which takes long on a busy machine."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        _, job = server.call("GET", path)
        if job["state"] == "running":
            return dict(job)
        time.sleep(0.05)
    raise AssertionError(job)


def report(server: Server, path: str) -> None:
    """Tell what the ranks measured of noise and latency."""
    conditions = {
        **{"noise_variance": NOISE**2, "noise_variance_std": 1e-7},
        **{"rank_noise_variance": 0, "rank_noise_variance_std": 1e-7},
        **{"noise_correlation": 0, "noise_correlation_std": 0.03},
        **{"switch_latency_s": LATENCY, "switch_latency_s_std": 0.0003},
        **{"switch_latency_spread_s": 0.001, "switch_latency_spread_s_std": 0.0001},
        **{"iterations": 100, "computations": 3000, "calls": 64},
    }
    clients = [
        {"rank": rank, "state": "following", "conditions": conditions} for rank in range(RANKS)
    ]
    assert server.call("POST", path + "/iterations", {"clients": clients})[0] == 202


def await_kept(server: Server) -> dict[str, Any]:
    """Return the profile once it has conditions."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        (profile,) = server.call("GET", "/api/v1/profiles")[1]["profiles"]
        if profile["conditions"] is not None:
            return dict(profile)
        time.sleep(0.05)
    raise AssertionError(profile)


def plan_command(server: Server, folder: Path, name: str, fails: bool = False) -> Any:
    """Plan without a server, with the conditions of `name`; return the JSON, or the error."""
    (folder / "profile.csv").write_text(PROFILE)
    command = [str(BINARY), "plan", str(folder / "profile.csv"), "--schedule", "1f1b"]
    command += ["--microbatches", "2", "--blocking-power", "20", "--effort", "0.001", "--json"]
    command += ["--conditions-of", name, "--server", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == (2 if fails else 0), done.stderr
    return done.stderr if fails else json.loads(done.stdout)


def test_the_next_job_begins_with_them(tmp_path: Path) -> None:
    """Kept over a restart, shown at every door, and replaced by nobody who measured nothing."""
    store = f"sqlite:{tmp_path}/jobs.db"
    server = Server(BINARY, store)
    first = run_job(server, "first")
    for rank in range(RANKS):
        sweep(server, first, rank)
    first_id = await_plan(server, first)["id"]
    (profile,) = server.call("GET", "/api/v1/profiles")[1]["profiles"]
    assert profile["conditions"] is None
    assert "has measured" in plan_command(server, tmp_path, profile["id"], fails=True)
    report(server, first)
    profile = await_kept(server)
    check(server, "Profile", profile)
    assert profile["conditions"]["job"] == first_id
    assert server.stop() == 0
    server = Server(BINARY, store)

    second = run_job(server, "second")
    shown = await_plan(server, second)
    check(server, "Job", shown)
    conditions = shown["conditions"]
    assert conditions["source"] == "library"
    assert conditions["from"]["job"] == first_id
    assert conditions["from"]["profile"] == profile["id"]
    text = job_command(server, "show", shown["id"])
    assert f"plans are made for those from job {first_id}, measured on 20" in text
    assert "latency: not measured; planned for 50.0 ms (by that job)" in text
    command = [str(BINARY), "profile", "show", profile["id"], "--server", server.url]
    shown_profile = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert f"from job {first_id}, measured on 20" in shown_profile.stdout
    assert "latency: 50.0 ms +- " in shown_profile.stdout
    assert "Time and energy: at the highest clock." in shown_profile.stdout

    by_profile = plan_command(server, tmp_path, profile["id"])
    assert by_profile == plan_command(server, tmp_path, first_id)
    assert by_profile["conditions"]["switch_latency_s"] == LATENCY
    error = plan_command(server, tmp_path, "p-none", fails=True)
    assert "no profile p-none" in error
    assert "profile list" in error
    error = plan_command(server, tmp_path, shown["id"], fails=True)
    assert "measured neither noise nor latency yet" in error
    assert server.stop() == 0
