# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The last iteration as its ranks timed it, over HTTP."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, await_running, check, create, register_all, report_timed
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]


def running(server: Server, **more: Any) -> str:
    """Create a job that has its last plan; return its path."""
    path = create(server, **more)
    register_all(server, path)
    await_running(server, path)
    return path


def shown(server: Server, path: str) -> dict[str, Any]:
    """Return the timeline, which must be there and be what the job says."""
    status, timeline = server.call("GET", path + "/timeline")
    assert status == 200, timeline
    check(server, "Timeline", timeline)
    job = server.call("GET", path)[1]
    check(server, "Job", job)
    names = ("iteration", "plan_version", "at")
    assert job["timeline"] == {name: timeline[name] for name in names}
    return dict(timeline)


def refused(server: Server, path: str) -> str:
    """Return why there is no timeline."""
    status, answer = server.call("GET", path + "/timeline")
    assert status == 404, answer
    assert server.call("GET", path)[1]["timeline"] is None
    return str(answer["error"]["message"])


def test_ranks_are_put_on_one_clock(server: Server) -> None:
    """Each computation is where the plan has it, with the plan's clocks."""
    path = running(server)
    assert "perseus job show" in refused(server, path)
    plan = report_timed(server, path, 10, ranks=(0,))
    assert "all" in refused(server, path), "one rank is missing"
    report_timed(server, path, 10, ranks=(1,))
    timeline = shown(server, path)
    assert (timeline["pipeline"], timeline["iteration"]) == (0, 10)
    assert abs(timeline["at"] - time.time()) < 60
    assert timeline["iteration_time_s"] == pytest.approx(plan["iteration_time_s"])
    assert timeline["error_s"] == pytest.approx(0, abs=1e-6)
    assert [rank["offset_s"] for rank in timeline["ranks"]] == [0, pytest.approx(-3)]
    for rank, planned in zip(timeline["ranks"], plan["ranks"], strict=True):
        for run, wanted in zip(rank["computations"], planned["computations"], strict=True):
            for name in ("type", "stage", "microbatch", "knob"):
                assert run[name] == wanted[name]
            assert run["start_s"] == pytest.approx(wanted["start_s"], abs=1e-6)
            assert run["duration_s"] == pytest.approx(wanted["duration_s"], abs=1e-6)
    # The next one takes its place, also one with a lower number: training began again.
    report_timed(server, path, 20)
    assert shown(server, path)["iteration"] == 20
    report_timed(server, path, 10)
    assert shown(server, path)["iteration"] == 10


@pytest.mark.parametrize("clocks", ["maximum", "coarse", None])
def test_iterations_at_other_clocks_are_not_shown_with_the_plans(
    server: Server, clocks: str | None
) -> None:
    """Their colours would be a lie."""
    path = running(server)
    report_timed(server, path, 10, clocks=clocks)
    refused(server, path)


def test_an_older_plans_clocks_are_not_known(server: Server) -> None:
    """What ranks report of it is left out, and what is shown stays."""
    path = running(server)
    version = server.call("GET", path)[1]["plan"]["version"]
    report_timed(server, path, 10)
    assert server.call("PUT", path + "/point", {"at": "tstar"})[0] == 200
    end = time.monotonic() + 60
    while server.call("GET", path)[1]["plan"]["version"] == version:
        assert time.monotonic() < end
        time.sleep(0.05)
    report_timed(server, path, 20, version=version)
    assert (shown(server, path)["iteration"], shown(server, path)["plan_version"]) == (10, version)
    # The plan of the new point is refined meanwhile: what is reported of the first one is left out.
    for iteration in range(30, 1000, 10):
        report_timed(server, path, iteration)
        if shown(server, path)["plan_version"] > version:
            break
        assert time.monotonic() < end


def test_rows_that_do_not_fit_change_nothing(server: Server) -> None:
    """Ranks of another schedule, or of another pipeline."""
    path = running(server)
    row = {"begin_ns": [0, 5e6], "end_ns": [4e6, 9e6]}
    report_timed(server, path, 10, timeline=row)
    refused(server, path)
    report_timed(server, path, 20)
    report_timed(server, path, 30, rank=2)
    assert shown(server, path)["iteration"] == 20


def test_a_restarted_server_has_none(tmp_path: Path) -> None:
    """It is not durable, and the answer says what to do."""
    server = Server(BINARY, tmp_path / "jobs.db")
    path = running(server)
    report_timed(server, path, 10)
    shown(server, path)
    assert server.stop() == 0
    server = Server(BINARY, tmp_path / "jobs.db")
    assert "10th iteration" in refused(server, path)
    report_timed(server, path, 20)
    shown(server, path)
    assert server.stop() == 0


def test_a_large_iteration_is_shown_rank_by_rank(server: Server) -> None:
    """An answer is bounded."""
    settings = SETTINGS | {"microbatches": 1300, "stages": 4, "data_parallel": 1, "effort": 0.001}
    rows = [line.split(",") for line in PROFILE.splitlines()[1:]]
    profile = "stage,instruction,frequency,time,energy\n" + "".join(
        f"{int(stage) + more},{name},{clock},{float(seconds) / 1e3},{float(joules) / 1e3}\n"
        for more in (0, 2)
        for stage, name, clock, seconds, joules in rows
    )
    status, job = server.call("POST", "/api/v1/jobs", {"job": settings, "profile_csv": profile})
    assert status == 201, job
    path = f"/api/v1/jobs/{job['id']}"
    for rank in range(RANKS):
        body = {"rank": rank, "dp_rank": 0, "pp_rank": rank}
        assert server.call("POST", path + "/ranks", body)[0] == 200
    await_running(server, path)
    plan = report_timed(server, path, 10, ranks=range(4))
    status, answer = server.call("GET", path + "/timeline")
    assert (status, answer["error"]["field"]) == (422, "rank"), answer
    assert "10,400" in answer["error"]["message"] or "10400" in answer["error"]["message"]
    status, answer = server.call("GET", path + "/timeline?rank=2")
    assert status == 200
    check(server, "Timeline", answer)
    (rank,) = answer["ranks"]
    assert (rank["rank"], len(rank["computations"])) == (2, 2600)
    assert answer["iteration_time_s"] == pytest.approx(plan["iteration_time_s"], rel=1e-6)
    assert server.call("GET", path + "/timeline?rank=4")[0] == 404
    assert server.call("GET", path + "/timeline?rank=-1")[0] == 422
