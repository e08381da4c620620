# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Sweeps that ranks report, and the profiles that come of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, await_running, register_all, sweep
from drill import RANKS, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]


def test_a_profile_outlives_its_job_and_is_measured_again(server: Server) -> None:
    """Measured, kept, taken over, shown by the command line, replaced."""
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"} | {"model": "gpt"}

    def create_unmeasured(key: str) -> str:
        status, job = server.call("POST", "/api/v1/jobs", {"client_key": key, "job": settings})
        assert status == 201, job
        path = f"/api/v1/jobs/{job['id']}"
        for rank in range(RANKS):
            body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
            gpu = {"gpu": {"name": "A100"}, "clocks_mhz": [1000, 1200, 1400]}
            assert server.call("POST", path + "/ranks", body | gpu)[0] == 200
        return path

    path = create_unmeasured("first")
    for rank in range(RANKS):
        sweep(server, path, rank, time_std=0.01, work=2048, temperature_c=55)
    first = await_running(server, path)
    assert first["profile_source"] == "measured"
    other = create_unmeasured("second")
    second = await_running(server, other)
    assert second["profile_source"].startswith(f"reused from {first['id']} (p-")

    assert server.call("POST", other + "/reprofile")[1]["state"] == "profiling"
    _, plan = server.call("GET", other + "/plan?rank=0&after=-1")
    assert plan["profile_wanted"]
    assert plan["computations"]
    assert server.call("GET", other + "/measurements?rank=0")[1] == {"rows": [], "done": False}
    by_clock = [(1400, 20.0), (1000, 12.5)]
    waiting = [{"frequency": mhz, "power_w": w, "power_std_w": 0.5} for mhz, w in by_clock]
    for rank in range(RANKS):
        kinds = [("forward", 0.011, 3.5), ("backward", 0.021, 7.5)]
        default_clocks = [
            {"stage": rank % 2, "instruction": name, "time": seconds, "energy": joules}
            for name, seconds, joules in kinds
        ]
        body = {"rank": rank, "waiting": waiting, "default_clocks": default_clocks}
        assert server.call("POST", other + "/measurements", body)[0] == 200
        sweep(server, other, rank, slow=1.5)
    again = await_running(server, other)
    assert again["profile_source"] == "measured"
    assert [row["power_w"] for row in again["profiling"]["waiting"]] == [12.5, 20, 12.5, 20]
    _, answer = server.call("GET", other + "/measurements?rank=1")
    assert answer["done"]
    assert {"stage": 1, "instruction": "forward", "frequency": 1400} in answer["rows"]

    def perseus(*words: str) -> str:
        command = [str(BINARY), "profile", *words, "--server", server.url]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    profiles = json.loads(perseus("list", "--json"))["profiles"]
    assert [p["model"] for p in profiles] == ["gpt", "gpt"]
    new, old = (p["id"] for p in profiles)
    shown = perseus("show", old)
    assert "A100" in shown
    assert "20.0 +- 0.0 W, by rank of the pipeline; taken as constant over the clocks" in shown
    assert "20.0 +- 0.4 W at 1400 MHz to 12.5 +- 0.4 W at 1000 MHz; " in perseus("show", new)
    assert "default clocks" not in shown
    _, table = perseus("show", new).split("\nAt default clocks:\n")
    cells = [line.split() for line in table.splitlines()]
    assert ["1", "forward", "11.0000", "0.0000", "3.500", "0.000"] in cells
    assert "\n1,blocking,1000,1,12.5,0," in perseus("export", new)
    assert "stage,instruction,frequency,time,energy,time_std" in perseus("export", old)
    compared = json.loads(perseus("compare", old, new, "--json"))
    assert {round(kind["time_ratio"]["median"], 9) for kind in compared["kinds"]} == {1.5}
    assert perseus("delete", old) == f"{old} is deleted.\n"
    assert server.call("GET", f"/api/v1/profiles/{old}")[0] == 404


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"time_std": -1}, "rows[0].time_std"),
        ({"energy_std": 1e300}, "rows[0].energy_std"),
        ({"temperature_c": 1e4}, "rows[0].temperature_c"),
        ({"throttled": 1}, "rows[0].throttled"),
        ({"work": -2}, "rows[0].work"),
        ({"time_per_work": "x"}, "rows[0].time_per_work"),
        ({"samples": 0}, "rows[0].samples"),
    ],
)
def test_bad_measurements_are_refused(server: Server, row: dict[str, Any], field: str) -> None:
    """Each field gets a sentence that names it."""
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"}
    _, job = server.call("POST", "/api/v1/jobs", {"job": settings})
    path = f"/api/v1/jobs/{job['id']}"
    register_all(server, path)
    good = {"stage": 0, "instruction": "forward", "frequency": 1400, "time": 1, "energy": 1}
    body = {"rank": 0, "rows": [good | row]}
    status, answer = server.call("POST", path + "/measurements", body)
    assert status == 422, answer
    assert answer["error"]["field"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"notes": ["x" * 301]}, "notes[0]"),
        ({"notes": ["x"] * 33}, "notes"),
        ({"sweep": {"iterations": -1}}, "sweep.iterations"),
        ({"blocking_power_std_w": -1}, "blocking_power_std_w"),
        ({"counter_period_s": -1}, "counter_period_s"),
        ({"waiting": [{"power_w": 80}]}, "waiting[0]"),
        ({"waiting": [{"frequency": 0, "power_w": 80}]}, "waiting[0].frequency"),
        ({"waiting": [{"frequency": 1400}]}, "waiting[0]"),
        ({"waiting": [{"frequency": 1400, "power_w": -1}]}, "waiting[0].power_w"),
        ({"waiting": [{"frequency": 1400, "power_w": 80}] * 1001}, "waiting"),
    ],
)
def test_bad_sweeps_are_refused(server: Server, body: dict[str, Any], field: str) -> None:
    """The same of what a rank says of its sweep as a whole."""
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"}
    _, job = server.call("POST", "/api/v1/jobs", {"job": settings})
    path = f"/api/v1/jobs/{job['id']}"
    register_all(server, path)
    status, answer = server.call("POST", path + "/measurements", {"rank": 0} | body)
    assert status == 422, answer
    assert answer["error"]["field"] == field
