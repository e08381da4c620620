# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Failure drills: PyTorch trains on simulated GPUs, with a real server, and things go wrong.

Each time training goes on with the losses that it has without Perseus, and the reason is where it
can be read.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request

from drilling import JOB, NEEDED, PATIENCE, Drill, following, said_of

pytestmark = NEEDED


def test_the_server_is_killed_during_the_sweep(drill: Drill) -> None:
    """Training does not notice; when there is a server again, the sweep ends in a plan."""
    drill.train(profile=True, profile_iterations=15)
    drill.until_both(lambda line: bool(line["state"] == "profiling"), "nobody profiles")
    assert drill.server is not None
    drill.server.kill()
    drill.server.wait()
    drill.goes_on(5)
    drill.until(lambda: bool(drill.lines()[-1]["last_error"]), "nothing is said of the server")
    drill.serve()
    drill.until_both(following, "there is no plan after all")
    drill.goes_on()
    drill.end()


def test_a_rank_is_killed_and_training_restarts(drill: Drill) -> None:
    """It is the same job, and its plan is there from the start."""
    drill.train(profile=str(drill.folder / "profile.csv"))
    drill.until_both(following, "nobody follows")
    os.kill(drill.lines(1)[-1]["pid"], signal.SIGKILL)
    assert drill.trainer is not None
    # The other rank gets gloo's exception, as it would without Perseus.
    assert drill.trainer.wait(PATIENCE) != 0
    before = len(drill.lines(0)), len(drill.lines(1))
    drill.train(profile=str(drill.folder / "profile.csv"))
    drill.until(
        lambda: all(len(drill.lines(r)) > before[r] for r in (0, 1)), "training does not restart"
    )
    drill.until_both(following, "nobody follows again")
    drill.goes_on()
    assert drill.job()["state"] == "running"
    drill.end()


def test_clock_calls_are_refused_on_one_rank(drill: Drill) -> None:
    """That rank says so; the other follows its plan."""
    drill.gpus.set_refuse(1, True)
    drill.train(profile=str(drill.folder / "profile.csv"))
    drill.until(lambda: bool(drill.lines(1) and drill.lines(1)[-1]["refused"]), "nothing refused")
    drill.until(lambda: following(drill.lines(0)[-1]), "the other does not follow")
    drill.goes_on()
    last = drill.lines(1)[-1]
    assert last["state"] == "released"
    assert "may not set" in last["last_error"] or "right" in last["last_error"], last
    drill.until(lambda: "1" in said_of(drill.job()), "the server does not know")
    drill.end()


def test_another_order_than_the_plans(drill: Drill) -> None:
    """A plan for GPipe, a trainer that runs 1F1B."""
    body = {
        "client_key": "gpipe",
        "job": {"schedule": "gpipe", **JOB},
        "profile_csv": (drill.folder / "profile.csv").read_text(),
    }
    request = urllib.request.Request(f"{drill.url}/api/v1/jobs", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        made = json.loads(answer.read())["id"]
    drill.train(job_id=made)
    drill.until(
        lambda: bool(drill.lines(0) and drill.lines(0)[-1]["order_mismatches"] >= 3),
        "nobody notices",
    )
    drill.goes_on()
    last = drill.lines(0)[-1]
    assert last["state"] == "released"
    assert "order" in last["last_error"], last
    assert drill.gpus.read(0).locked_mhz == 0
    drill.until(lambda: "0" in said_of(drill.job()), "the server does not know")
    drill.end()


def test_a_rank_without_clocks_is_planned_and_measured_again(drill: Drill) -> None:
    """It is measured at its driver's clocks and named; once it may set them, all measure again."""
    drill.gpus.set_refuse(1, True)
    drill.train(profile=True)
    drill.until(lambda: following(drill.lines(0)[-1]) if drill.lines(0) else False, "no plan")
    job = drill.job()
    assert job["state"] == "running"
    (note,) = [n for n in job["profiling"]["notes"] if "cannot be set" in n["note"]]
    assert note["first_ranks"] == [1]
    assert drill.lines(1)[-1]["last_error"]
    assert set(job["plan"]["saving_interval"]) == {"least_percent", "most_percent"}
    drill.gpus.set_refuse(1, False)
    drill.until(lambda: drill.job()["state"] == "profiling", "nobody measures again")
    drill.until_both(following, "nobody follows the new plan")
    drill.until(lambda: drill.job()["state"] == "running", "the new sweep does not end")
    assert not [n for n in drill.job()["profiling"]["notes"] if "cannot be set" in n["note"]]
    drill.end()
