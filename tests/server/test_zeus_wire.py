# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Zeus' wire: clients of a given plan, of none, and of a job of ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import create
from serving import Server

pytest_plugins = ["server_fixture"]


def zeus_job(server: Server, **more: Any) -> tuple[int, Any]:
    """Register as Zeus' client does."""
    body = {"job_id": "", "pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2}
    return server.call("POST", "/register_job", {**body, "job_metadata": None, **more})


def zeus_rank(server: Server, job: str, rank: int) -> tuple[int, Any]:
    """Register a rank as Zeus' client does."""
    body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
    body_with_clocks = {**body, "available_frequencies": [1410, 1200, 1000]}
    return server.call("POST", f"/register_rank/{job}", body_with_clocks)


def test_zeus_clients_get_the_given_plan(server: Server) -> None:
    """And what hangs Zeus' own server (notes on its job_manager.py) gets an answer."""
    status, job = zeus_job(server)
    assert status == 200
    assert isinstance(job, str)
    assert zeus_rank(server, job, 1) == (200, None)
    # A rank asks while the other never comes; asks twice; registers twice.
    expected = {"rank": 1, "frequencies": [["forward", 1000], ["backward", 1410]]}
    assert server.call("GET", f"/schedule/{job}?rank=1") == (200, expected)
    assert server.call("GET", f"/schedule/{job}?rank=1") == (200, expected)
    assert zeus_rank(server, job, 1) == (200, None)
    assert zeus_rank(server, job, 0) == (200, None)
    assert server.call("GET", f"/schedule/{job}?rank=0")[0] == 200
    result = {"rank": 0, "iter_time": [1.5, 1.6], "iter_energy": [9, 9]}
    assert server.call("POST", f"/result/{job}", result) == (200, None)
    # What cannot be.
    assert server.call("GET", f"/schedule/{job}?rank=-1")[0] == 422
    assert server.call("GET", f"/schedule/{job}?rank=7")[0] == 422
    assert server.call("GET", "/schedule/unknown?rank=0")[0] == 404
    assert zeus_job(server, world_size=3)[0] == 422
    assert zeus_job(server, pp_degree=0)[0] == 422


def test_zeus_jobs_without_a_plan(server: Server) -> None:
    """Another shape: maximum clocks where the order is known, else a sentence."""
    status, job = zeus_job(server, pp_degree=3, world_size=3)
    assert zeus_rank(server, job, 2) == (200, None)
    status, answer = server.call("GET", f"/schedule/{job}?rank=2")
    assert status == 409
    assert "--zeus-plan" in answer["error"]["message"]
    _, job = zeus_job(server, pp_degree=3, world_size=3, job_metadata="x,microbatches=2")
    zeus_rank(server, job, 2)
    status, answer = server.call("GET", f"/schedule/{job}?rank=2")
    steps = [["forward", 1410], ["backward", 1410]] * 2
    assert (status, answer) == (200, {"rank": 2, "frequencies": steps})


def test_zeus_clients_of_a_job_without_plan_run_at_maximum_clocks(server: Server) -> None:
    """Refused, their training would end."""
    settings = {"schedule": "1f1b", "stages": 2, "microbatches": 2}
    body = {"job": settings, "client_key": "measuring"}
    job = server.call("POST", "/api/v1/jobs", body)[1]["id"]
    assert zeus_rank(server, job, 1) == (200, None)
    assert server.call("POST", f"/api/v1/jobs/{job}/finish")[0] == 200
    steps = [["forward", 1410], ["backward", 1410]] * 2
    expected = {"rank": 1, "frequencies": steps}
    assert server.call("GET", f"/schedule/{job}?rank=1") == (200, expected)


def test_zeus_clients_follow_a_job_of_ours(server: Server) -> None:
    """A job that was created with its profile, named by its client key."""
    path = create(server, client_key="llama")
    shape = {"pp_degree": 2, "dp_degree": 2, "world_size": 4}
    status, job = zeus_job(server, **shape, job_metadata="perseus:llama")
    assert status == 200
    assert path.endswith(job)
    assert zeus_rank(server, job, 1) == (200, None)
    status, schedule = server.call("GET", f"/schedule/{job}?rank=1")
    assert status == 200
    assert [step[0] for step in schedule["frequencies"]] == ["forward", "backward"] * 2
    assert zeus_job(server, job_metadata="perseus:llama")[0] == 409
    assert zeus_job(server, job_metadata="perseus:nobody")[0] == 404
