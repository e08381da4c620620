# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Failure drills: PyTorch trains on simulated GPUs, with a real server, and things go wrong.

Each time training goes on with the losses that it has without Perseus, and the reason is where it
can be read.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import statistics
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from drilling import CLOCKS, JOB, NEEDED, PATIENCE, Drill, following, profile, said_of
from trainers_testing import FRAMEWORKS, needs

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


# The first run in somebody's trainer: it works, or everybody is told why.


def clients(drill: Drill) -> dict[str, Any]:
    """Return what ranks report of themselves."""
    return dict(drill.job()["clients"])


def test_without_an_agent_everybody_is_told_until_there_is_one(drill: Drill) -> None:
    """One warning for both ranks, `job show`, the report; then the agent comes, and all is well."""
    drill.train(device=f"agent:{drill.socket}", profile=str(drill.folder / "profile.csv"))
    drill.until(
        lambda: bool(drill.lines(0)) and clients(drill).get("complaining") == 2,
        "the server is not told",
    )
    shown = drill.show()
    (trouble,) = [line for line in shown.splitlines() if "cannot set clocks" in line]
    assert re.search(r"2 of 2 ranks: .*" + re.escape(str(drill.socket)) + ".*docs/", trouble)
    assert "shadow=True" in trouble
    # Until somebody follows the plan nothing is saved.
    drill.until(lambda: "no rank follows" in drill.show(), "a saving is shown")
    for rank in (0, 1):
        assert "cannot set clocks" in drill.lines(rank)[-1]["last_error"]
    drill.until(lambda: len(drill.said()) > 0, "nothing is said")
    (said,) = drill.said()
    assert "cannot set clocks" in said
    assert "all 2 ranks" in said

    drill.start_agent()
    drill.until_both(following, "nobody follows")
    drill.until_both(lambda line: line["last_error"] == "", "the error does not end")
    drill.until(lambda: clients(drill)["complaining"] == 0, "the server still shows it")
    assert re.search(r"saving +[0-9.]+ %", drill.show())
    drill.end()
    assert len(drill.said()) == 1


def test_what_cannot_be_attached_is_said_once(drill: Drill) -> None:
    """For both ranks, which train on."""
    drill.train(profile="/nowhere/profile.csv")
    drill.until(lambda: len(drill.said()) > 0, "nothing is said")
    drill.goes_on()
    (said,) = drill.said()
    assert "not attached to Schedule1F1B" in said
    assert "/nowhere/profile.csv" in said
    assert "all 2 ranks" in said
    assert "/nowhere/profile.csv" in drill.lines(1)[-1]["last_error"]
    drill.end()


def test_a_device_that_cannot_be_is_not_attached(drill: Drill) -> None:
    """Both ranks train on, and are told once."""
    drill.train(device="nvidia", profile=str(drill.folder / "profile.csv"))
    drill.until(lambda: len(drill.said()) > 0, "nothing is said")
    drill.goes_on()
    (said,) = drill.said()
    assert "nvidia" in said
    assert "all 2 ranks" in said
    for rank in (0, 1):
        assert drill.lines(rank)[-1]["state"] == "detached"
        assert "nvidia" in drill.lines(rank)[-1]["last_error"]
    drill.end()


def test_the_end_is_shown(drill: Drill) -> None:
    """Of training that had a plan; and one line says that it was attached."""
    drill.train(profile=str(drill.folder / "profile.csv"))
    drill.until_both(following, "nobody follows")
    assert "ended" not in drill.job()
    drill.end()
    assert drill.job()["ended"] is True
    assert re.search(r"^state +running, ended", drill.show(), re.MULTILINE)
    assert re.search(r"saving +[0-9.]+ %", drill.show())  # The last one.
    (line,) = drill.lines_of_log()
    assert drill.job()["id"] in line
    assert drill.url in line


def test_shadow_mode_measures_without_the_right_to_set_clocks(drill: Drill) -> None:
    """What is offered to whoever has no agent."""
    for gpu in (0, 1):
        drill.gpus.set_refuse(gpu, True)
    drill.train(shadow=True, profile=str(drill.folder / "profile.csv"))

    def estimated() -> dict[str, Any]:
        return dict(drill.job()["savings"]) if drill.lines(0) else {}

    drill.until(lambda: bool(estimated().get("measured_at_maximum_s")), "no iteration is measured")
    savings = estimated()
    assert savings["kind"] == "estimated"
    assert savings["predicted"]["saving_percent"] > 5
    assert [drill.lines(rank)[-1]["last_error"] for rank in (0, 1)] == ["", ""]
    drill.end()
    assert drill.said() == []


def test_several_steps_of_a_schedule_in_one_of_the_optimizer(drill: Drill) -> None:
    """Each of them is an iteration, and follows the plan."""
    drill.train(accumulate=3, profile=str(drill.folder / "profile.csv"))
    drill.until_both(following, "nobody follows")
    before = [line["steps"] for line in (drill.lines(0)[-1], drill.lines(1)[-1])]
    drill.goes_on()
    last = drill.lines(0)[-1], drill.lines(1)[-1]
    assert all(line["steps"] - seen >= 30 for line, seen in zip(last, before, strict=True))
    assert [line["order_mismatches"] for line in last] == [0, 0]
    assert [line["abandoned_steps"] for line in last] == [1, 1]
    assert all(following(line) for line in last)
    drill.end()


def test_another_schedule_takes_over_the_gpu(drill: Drill) -> None:
    """First somebody says that the old one is not run any more; then the new one follows."""
    drill.start_agent()
    drill.train(
        device=f"agent:{drill.socket}",
        profile=str(drill.folder / "profile.csv"),
        replace_at=60,
        attach_at=90,
    )
    drill.until(lambda: len(drill.lines(0)) > 85, "training does not go on")
    unattached = [line for line in drill.lines(0) if 70 <= line["iteration"] < 90][-1]
    assert unattached["outside"] > 0
    assert "attach the schedule that runs now" in unattached["last_error"]

    drill.until(lambda: len(drill.lines(0)) > 95, "training does not go on")
    drill.until_both(lambda line: line["iteration"] > 92 and following(line), "it is not followed")
    drill.until_both(lambda line: line["last_error"] == "", "something is wrong")
    drill.goes_on()
    assert [drill.lines(rank)[-1]["refused"] for rank in (0, 1)] == [0, 0]
    assert len(drill.said()) == 1
    drill.end()


# A forward late and backwards out of order: no schedule of PyTorch or Perseus.
ORDER = "0F0,0F1,0F2,0B0,0F3,0B2,0B1,0B3\n1F0,1B0,1F1,1F2,1B2,1B1,1F3,1B3\n"


def test_an_order_of_ones_own_is_planned_and_followed(drill: Drill) -> None:
    """As the schedule itself tells it."""
    labels = {"team": "vision"}
    drill.train(csv=ORDER, profile=str(drill.folder / "profile.csv"), labels=labels)
    drill.until_both(following, "nobody follows")
    drill.goes_on(20)
    assert drill.job()["settings"]["schedule_csv"] == ORDER
    assert drill.job()["labels"] == labels
    last = drill.lines(0)[-1], drill.lines(1)[-1]
    assert [line["order_mismatches"] for line in last] == [0, 0]
    assert all(following(line) for line in last)
    drill.end()


# Stragglers of data parallel trainers.

# So slow that forward and backward get one clock: a change of clock takes 3 ms, and may be late.
SLOW = 1.4
WAITING_WATTS = 83.64
STEPS = 40  # Whose joules are compared.


def table(slow: float = 1.0) -> dict[int, tuple[float, float]]:
    """Return seconds and joules of an iteration's computations at each clock."""
    rows = {}
    for mhz in CLOCKS:
        seconds = 0.045 * (0.3 + 0.7 * CLOCKS[0] / mhz) * slow
        rows[mhz] = seconds, seconds * (85 + 295 * (mhz / CLOCKS[0]) ** 2.2)
    return rows


def profile_of_one() -> str:
    """Return what the computations cost: a third of an iteration is the forward."""
    lines = ["stage,instruction,frequency,time,energy"]
    for mhz, (seconds, joules) in table().items():
        for kind, share in (("forward", 1 / 3), ("backward", 2 / 3)):
            lines.append(f"0,{kind},{mhz},{seconds * share},{joules * share}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("groups", "other"), [(1, 0), (2, 2)])
def test_the_others_slow_down_for_a_straggler(tmp_path: Path, groups: int, other: int) -> None:
    """Unaided: found by its times, answered by clocks, at the joules that the tables say.

    The straggler is rank 1; `other` may be of a group of replicas that was started for itself.
    """
    drill = Drill(tmp_path, gpus=2 * groups)
    (tmp_path / "profile.csv").write_text(profile_of_one())
    try:
        drill.serve()
        profile_csv = str(tmp_path / "profile.csv")
        drill.train("data_parallel", slow=SLOW, groups=groups, profile=profile_csv)
        drill.until_both(following, "nobody follows")
        drill.perseus_job("detection", "--mode", "act")
        drill.until(lambda: bool(drill.job()["stragglers"]), "no straggler is found")
        first = drill.job()["plan"]["version"]
        drill.until(lambda: drill.lines(other)[-1]["plan_version"] >= first, "it is not answered")
        begin = len(drill.lines(other)) + 5
        drill.until(lambda: len(drill.lines(other)) > begin + STEPS, "training does not go on")
        (tmp_path / "stop").touch()
        assert drill.trainer is not None
        assert drill.trainer.wait(120) == 0, (tmp_path / "trainer.log").read_text()[-3000:]
        rows = drill.lines(other)[begin : begin + STEPS + 1]
        # The median: on a busy machine a few iterations begin late.
        seconds, joules = (
            statistics.median(b[key] - a[key] for a, b in itertools.pairwise(rows))
            for key in ("end", "joules")
        )
    finally:
        drill.close()
    slowest = table(SLOW)[CLOCKS[0]][0]
    assert seconds == pytest.approx(slowest, rel=0.005)
    # The forward is a third, and may have another clock than the backward.
    choices = [
        (f[0] / 3 + b[0] * 2 / 3, f[1] / 3 + b[1] * 2 / 3)
        for f, b in itertools.product(table().values(), repeat=2)
    ]
    least = min(_with_wait(*row, slowest) for row in choices if row[0] <= slowest)
    unanswered = _with_wait(*table()[CLOCKS[0]], slowest)
    # The server's estimate of how slow the straggler is may be a few percent low.
    assert least * 0.995 < joules < least + 0.2 * (unanswered - least), (least, unanswered)


def _with_wait(seconds: float, joules: float, until: float) -> float:
    return joules + WAITING_WATTS * (until - seconds)


@needs("lightning")
def test_an_exception_in_lightning_gives_the_clock_back(tmp_path: Path) -> None:
    """Of a training that follows a plan with lower clocks, on simulated GPUs."""
    drill = Drill(tmp_path)
    drill.python = FRAMEWORKS
    (tmp_path / "profile.csv").write_text(
        "stage,instruction,frequency,time,energy\n"
        + "".join(line + "\n" for line in profile().splitlines() if line.startswith("0,"))
    )
    try:
        drill.serve()
        settings = {"blocking_power": 85, "at": "1.1x"}
        path = str(tmp_path / "profile.csv")
        drill.train("lightning", profile=path, settings=settings)
        drill.until_both(lambda line: following(line) and line["locked"] in CLOCKS[1:], "no plan")
        (tmp_path / "stop").touch()
        drill.until_both(lambda line: line["losses"] == [], "the exception is lost")
        for rank in (0, 1):
            assert drill.lines(rank)[-2]["locked"] in CLOCKS
            assert drill.lines(rank)[-1]["locked"] == 0
            # The callback is detached, and still tells how it was.
            assert drill.lines(rank)[-1]["state"] == "closed"
            assert drill.lines(rank)[-1]["plan_version"] > 0
            assert drill.lines(rank)[-1]["steps"] > 0
    finally:
        drill.close()
