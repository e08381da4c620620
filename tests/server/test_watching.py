# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Event streams, and what the server finds in reports of iterations."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import Stream, await_running, check, create, job_command, register_all
from serving import Server

pytest_plugins = ["server_fixture"]


def test_streams_go_on_where_they_were(server: Server) -> None:
    """Numbers of events, Last-Event-ID, and a reset where it is not known."""
    path = create(server)
    stream = Stream(server, path + "/events")
    state = stream.next()
    assert state["event"] == "state"
    assert json.loads(state["data"])["revision"] > 0
    register_all(server, path)
    await_running(server, path)
    seen = [state]
    while seen[-1]["event"] != "plan":
        seen.append(stream.next())
    stream.close()
    # Missed meanwhile:
    ids = []
    for _ in range(2):
        body = {"pipeline": 1, "factor": 1.3}
        ids.append(server.call("POST", path + "/stragglers", body)[1]["straggler_id"])
    epoch, number = seen[-1]["id"].split("-")
    stream = Stream(server, path + "/events", seen[-1]["id"])
    told: list[dict[str, str]] = []
    while len(told) < 2:
        event = stream.next()
        assert event["id"].split("-")[0] == epoch
        assert int(event["id"].split("-")[1]) > int(number)
        number = event["id"].split("-")[1]
        if event["event"] == "straggler":
            told.append(json.loads(event["data"])["straggler_id"])
    assert told == ids
    # One event for all that are cleared at once.
    assert server.call("DELETE", path + "/stragglers")[0] == 204
    event = stream.next()
    while event["event"] != "straggler":
        event = stream.next()
    cleared = json.loads(event["data"])
    check(server, "StragglerEvent", cleared)
    assert (cleared["straggler_id"], cleared["gone"]) == (ids[0], 2)
    for _ in range(2):
        server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})
    stream.close()
    # Of another process.
    stream = Stream(server, "/api/v1/events", "00000000-7")
    assert stream.next()["event"] == "reset"
    state = stream.next()
    assert state["event"] == "state"
    assert json.loads(state["data"])["stragglers"] == 2
    check(server, "JobSummary", json.loads(state["data"]))
    stream.close()
    stream = Stream(server, f"/api/v1/events?after={state['id']}")
    assert server.call("POST", path + "/finish")[0] == 200
    assert stream.next()["event"] in ("state", "plan")
    stream.close()


def test_events_tell_what_happens(server: Server) -> None:
    """A stream begins with the state, and has each new version of the plan."""
    path = create(server)
    seen: list[str] = []
    with urllib.request.urlopen(server.url + path + "/events", timeout=60) as stream:
        register_all(server, path)
        while "event: plan" not in seen or 'running"' not in "".join(seen):
            seen.append(stream.readline().decode().strip())
    assert "event: state" in seen[:2]


def test_detection_and_comparison_over_http(server: Server) -> None:
    """Settings are checked, kept, shown by the command line; plans carry the comparison."""
    path = create(server)
    register_all(server, path)
    while not server.call("GET", path)[1]["refined"]:
        time.sleep(0.05)
    status, settings = server.call("PUT", path + "/detection", {"mode": "act", "threshold": 0.1})
    assert (status, settings) == (200, {"mode": "act", "threshold": 0.1, "window": 16})
    assert server.call("PUT", path + "/detection", {"window": 8})[1]["threshold"] == 0.1
    for body, field in (
        ({"mode": "maybe"}, "mode"),
        ({"threshold": 0}, "threshold"),
        ({"window": 3}, "window"),
        ({"limit": 1}, ""),
    ):
        status, answer = server.call("PUT", path + "/detection", body)
        assert status == 422, answer
        assert answer["error"].get("field", "") == field
    assert server.call("PUT", path + "/comparison", {"every": 10, "iterations": 9})[0] == 422
    status, answer = server.call("PUT", path + "/comparison", {"every": 10, "iterations": 4})
    assert (status, answer) == (200, {"comparison": {"every": 10, "iterations": 4}})
    _, plan = server.call("GET", path + "/plan?rank=3")
    assert plan["comparison"] == {"every": 10, "iterations": 4}
    _, plans = server.call("GET", path + "/plans?ranks=0-3")
    assert all(each["comparison"]["every"] == 10 for each in plans["plans"])

    name = path.rsplit("/", 1)[1]
    assert "act: threshold 10.0 %, window 8" in job_command(server, "detection", name)
    assert "advisory" in job_command(
        server, "detection", name, "--mode", "advisory", "--threshold", "5%"
    )
    every = ("--every", "20", "--iterations", "5")
    assert "of every 20 iterations 5" in job_command(server, "compare", name, *every)
    shown = job_command(server, "show", name)
    assert "advisory: threshold 5.0 %" in shown
    assert "predicted" in shown
    assert "comparison" not in job_command(server, "compare", name, "--off")
    assert "comparison" not in server.call("GET", path + "/plan?rank=3")[1]


def test_a_straggler_that_no_plan_helps(server: Server) -> None:
    """Its pipeline runs at maximum clocks, and every route says so."""
    path = create(server, client_key="slow")
    register_all(server, path)
    while not server.call("GET", path)[1]["refined"]:
        time.sleep(0.05)
    # The lighter stage: what the plan slows there is critical now.
    slow = {"rank": 2, "factor": 2}
    version = server.call("POST", path + "/stragglers", slow)[1]["plan_version"]
    status, plan = server.call("GET", path + "/plan?rank=3&after=-1")
    assert (status, plan["version"], plan["reason"]) == (200, version, "no_plan"), plan
    assert "maximum clocks" in plan["sentence"]
    pipelines = server.call("GET", path)[1]["plan"]["pipelines"]
    assert pipelines["1"]["saving_percent"] == 0
    assert server.call("GET", path + "/plan.json?pipeline=0")[0] == 200
    status, answer = server.call("GET", path + "/plan.json?pipeline=1")
    assert status == 409
    assert "maximum clocks" in answer["error"]["message"]
    job = path.rsplit("/", 1)[1]
    status, schedule = server.call("GET", f"/schedule/{job}?rank=3")
    assert {step[1] for step in schedule["frequencies"]} == {1400}
