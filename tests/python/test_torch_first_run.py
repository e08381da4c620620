# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The first run in somebody's trainer: it works, or everybody is told why."""

from __future__ import annotations

import re
from typing import Any

from drilling import NEEDED, Drill, following

pytestmark = NEEDED


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
    assert re.search(r"saving +[0-9.]+ %", drill.show())  # What it was.
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
