# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Days of a site: figures of before, what hands can compute, and what is said of wrong tables."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("scipy", reason="scipy is not installed (tests/requirements.txt)")

import numpy as np
from perseus import analysis
from perseus.analysis import fleet
from perseus.analysis import fleet_days as days
from perseus.planner_error import PlannerError

from .binary import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

# examples/site-days.toml, 2 days, seeds 0 and 1, by the C++ of bdb0db44: means of work lost (%),
# kWh, cost, seconds over the limit, steepest rise (W/s), fairness, changes of plan.
BEFORE: dict[str, tuple[float, ...]] = {
    "max-clocks": (0, 768.2655984, 57.29565267, 21600, 26.72570817, 1, 0),
    "shedding": (
        6.457919069,
        753.2526873,
        55.22279514,
        0.3166334975,
        50.46661232,
        0.9215378191,
        17.5,
    ),
    "uniform-cap": (1.200092972, 748.0937745, 54.96659336, 0, 47.96779621, 0.9997298184, 94),
    "proportional-cap": (1.224239267, 747.1947464, 54.86304299, 0, 49.21185155, 0.9997218611, 96.5),
    "frontier-alike": (0.6535376602, 678.2270076, 50.16652249, 0, 35.69606175, 0.9998724692, 44),
    "perseus": (0.6359428385, 678.6409061, 50.19926235, 0, 35.66900413, 0.9994853629, 41),
    "perseus-priced": (5.413892514, 609.9188422, 44.19336768, 0, 31.1826325, 0.9994973491, 296),
    "bound": (0.6283298668, 678.2909803, 50.17727407, 0, 41.51108357, 0.9994814217, 0),
}
FIGURES = (
    *("work_lost_percent", "energy_kwh", "cost", "over_limit_s", "steepest_rise_w_per_s"),
    *("fairness", "plan_changes"),
)


@pytest.fixture(scope="module")
def document(
    perseus_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """Return the example's answer, and the folder that it was written to."""
    folder = tmp_path_factory.mktemp("days")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERSEUS_BINARY", str(perseus_program))
        site = str(REPOSITORY / "examples/site-days.toml")
        return fleet.emulate(site, length=2, seeds=2, output=str(folder)), folder


def test_figures_are_those_of_before(document: tuple[dict[str, Any], Path]) -> None:
    """To 1e-6; where a linear program has several optima, in cost."""
    rules = {rule["rule"]: rule for rule in document[0]["rules"]}
    assert rules.keys() == BEFORE.keys()
    for name, expected in BEFORE.items():
        figures = [rules[name][figure]["mean"] for figure in FIGURES]
        if name == "perseus-priced":
            assert figures[2] == pytest.approx(expected[2], rel=1e-3)
        else:
            assert figures == pytest.approx(expected, rel=1e-6, abs=1e-6), name


def test_files_and_text(document: tuple[dict[str, Any], Path]) -> None:
    """What is written is what is returned; the text has a row for each rule."""
    answer, folder = document
    assert json.loads((folder / "fleet-days.json").read_text(encoding="utf-8")) == answer
    assert sorted(path.name for path in folder.iterdir()) == [
        *("fleet-days.json", "power.csv", "power.png")
    ]
    lines = (folder / "power.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "time_s,limit_w," + ",".join(f"{name}_w" for name in BEFORE)
    assert len(lines) == 1 + 2 * 24 * 60
    text = fleet.text_of(answer)
    assert all(rule["title"] in text for rule in answer["rules"])
    assert "cost EUR" in text
    assert "+-" in text


def test_the_program_says_where_the_command_is(perseus_program: Path) -> None:
    """The bare program names the package; the package finds the command."""
    done = subprocess.run(
        [str(perseus_program), "fleet", "emulate"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install" in done.stderr
    found = analysis.find(["fleet", "emulate", "site.toml"])
    assert found
    assert found[1] == ["site.toml"]


def make_job(name: str = "a", **changes: Any) -> days.Job:
    """Return a job: 1 s with 100 J at maximum clocks, plans of 1 s (90 J) and 2 s (100 J)."""
    points = np.array([[1.0, 90.0], [2.0, 100.0]])
    capped = np.array([[800.0, 2.0, 120.0], [1000.0, 1.0, 100.0]])
    job = days.Job(
        name=name,
        group=name,
        gpus=1,
        pipelines=1,
        weight=1.0,
        fixed_watts=0.0,
        least_watts=0.0,
        waiting_watts=10.0,
        slowest_seconds=None,
        max_clocks=(1.0, 100.0),
        frontier=points,
        plans=points,
        clocks=capped,
        caps=capped,
        late=[],
        parts=[(0, 1.0)],
        meter=1.0,
    )
    return replace(job, **changes)


def simulate(site: days.Site, seconds: float = 3600.0) -> dict[str, days.Answer]:
    """Return the answers of one seed, by rule."""
    return {answer.rule.name: answer for answer in days.simulate(site, seconds, [0])}


def make_site(limit: float, *jobs: days.Job, **more: Any) -> days.Site:
    """Return a site with one limit."""
    return days.Site([limit], [None], ["site"], 1.0, list(jobs), **more)


def test_without_a_limit_no_work_is_lost() -> None:
    """Then all rules run at full speed; plans draw less."""
    answers = simulate(make_site(1e6, make_job("a"), make_job("b")))
    for name, answer in answers.items():
        assert answer.figures[0].lost_percent == pytest.approx(0, abs=1e-9), name
        watts = 180 if name in ("frontier-alike", "perseus", "bound") else 200
        assert answer.figures[0].joules == pytest.approx(3600 * watts), name


def test_rules_under_a_limit() -> None:
    """Two jobs, one of which counts twice, and 150 W."""
    answers = simulate(make_site(150, make_job("a"), make_job("b", weight=2.0)))
    speeds = {
        name: [day.spans[0].speed for day in answer.first] for name, answer in answers.items()
    }
    assert speeds["max-clocks"] == [1, 1]
    assert speeds["shedding"] == [0, 1]  # 100 W and 10 W of waiting.
    assert speeds["uniform-cap"] == [0.5, 0.5]  # 60 W each.
    assert speeds["proportional-cap"] == [0.5, 0.5]
    assert speeds["perseus"][1] == 1  # 90 W; the other has 60 W.
    assert 0.5 <= speeds["perseus"][0] < 1
    # The watts that are left go to the job between its plans: 50 W at 0.5, 90 W at 1.
    assert speeds["bound"][0] == pytest.approx(0.5 + (60 - 50) / 80)
    assert answers["max-clocks"].figures[0].over_most_watts == pytest.approx(50)
    assert answers["perseus"].figures[0].over_seconds == 0
    paused = answers["shedding"].figures[0]
    assert paused.fairness == pytest.approx(0.5)
    assert paused.too_slow_seconds == pytest.approx(3600)


def test_owners_are_obeyed_and_racks_bind_their_jobs() -> None:
    """A job that accepts nothing stays fast; a rack's limit holds only what is in it."""
    jobs = [make_job("a", slowest_seconds=1.0), make_job("b", parts=[(0, 1.0), (1, 1.0)])]
    site = days.Site([1e6, 60.0], [None, 0], ["site", "rack"], 1.0, jobs)
    answers = simulate(site)
    for name in ("uniform-cap", "proportional-cap", "perseus", "frontier-alike", "bound"):
        first, other = (day.spans[0].speed for day in answers[name].first)
        assert first == 1, name
        assert 0.5 <= other < 1, name
        assert answers[name].figures[0].over_seconds == 0, name


def test_a_limit_with_notice_is_kept_and_ramps_too() -> None:
    """An event of 100 W less; the budget falls by 0.1 W/s from what is drawn."""
    event = days.Event(1800.0, 2400.0, 1700.0, 0, 100.0)
    job = make_job()
    calm = make_site(300, job, make_job("b"), events=[event], ramp_down=0.1, ramp_up=0.1)
    figures = simulate(calm)["perseus"].figures[0]
    assert figures.over_seconds == 0
    assert figures.lost_percent > 0
    sudden = event._replace(start=1800.5, notice=0.0)
    surprised = replace(calm, events=[sudden], ramp_down=np.inf)
    assert 0 < simulate(surprised)["perseus"].figures[0].over_seconds <= 2


def test_work_and_deadlines() -> None:
    """A job leaves with its work done; another misses its deadline where it is slowed."""
    jobs = [make_job("a", iterations=100.0), make_job("b", deadline=(1000.0, 0.9))]
    answers = simulate(make_site(110, *jobs))
    assert answers["max-clocks"].first[0].leaves == pytest.approx(100)
    assert answers["max-clocks"].first[0].iterations == pytest.approx(100)
    assert answers["max-clocks"].figures[0].deadlines_missed == 0
    assert "perseus-priced" in answers
    slowed = simulate(make_site(60, make_job("b", deadline=(1000.0, 0.9))))
    assert slowed["uniform-cap"].figures[0].deadlines_missed == 1


def test_work_moves_to_where_energy_is_cheap() -> None:
    """Half of the work, and a price that falls by half: the cheap hours do more."""
    price = days.Series(np.array([0.0, 1800.0]), np.array([2.0, 1.0]))
    answers = simulate(make_site(1e6, make_job(slowest_seconds=None), price=price, work=0.75))
    spans = answers["perseus-priced"].first[0].spans
    early = sum(s.speed * (s.end - s.begin) for s in spans if s.end <= 1800.5)
    late = sum(s.speed * (s.end - s.begin) for s in spans if s.begin >= 1799.5)
    assert late > early
    assert early + late == pytest.approx(0.75 * 3600, rel=1e-2)


def test_stragglers_come_as_often_as_asked_for() -> None:
    """In the mean over many days."""
    job = make_job(gpus=64, pipelines=16, straggler_rate=0.5, straggler_seconds=60.0)
    count = sum(
        len(days.Calendar.draw(job, 0, 10 * days.DAY, seed).straggling) for seed in range(20)
    )
    assert count == pytest.approx(20 * 10 * 32, rel=0.05)


@pytest.mark.parametrize(
    ("emulate", "said"),
    [
        ({"pric": "a.csv"}, "unknown key 'pric'"),
        ({"work": "120%"}, "work: expected a share"),
        ({"ramp_up": "20kW"}, "ramp_up: expected a power in a time"),
        ({"straggler_slowdown": "0.5x"}, "straggler_slowdown: expected a factor"),
        ({"noise": 0.9}, "noise: expected a share"),
        ({"event": [{"start": "1h"}]}, "'start' and 'duration' are missing"),
        ({"event": [{"start": "1h", "duration": "1h"}]}, "power: expected less power"),
        ({"event": [{"start": 0, "duration": 9, "power": 1, "limit": "x"}]}, "limit: expected"),
        ({"event": [{"start": 0, "duration": 9, "power": 1, "every": 5}]}, "every: expected"),
        ({"event": {"start": 0}}, "event: expected tables"),
        ({"job": [{"name": "b"}]}, "name: expected the name of a job (a)"),
        ({"job": [{"name": "a", "work": "90%"}]}, "work: expected 'deadline', too"),
        ({"job": [{"name": "a", "lasts": "soon"}]}, 'lasts: expected a time such as "18h"'),
        ({"price": "prices.csv"}, "prices.csv:3: this time is not after"),
        ({"carbon": "prices.csv"}, "expected two columns"),
    ],
)
def test_what_is_wrong_is_said(emulate: dict[str, Any], said: str, tmp_path: Path) -> None:
    """In one sentence with the key."""
    (tmp_path / "prices.csv").write_text("time_h,price_per_kwh\n1,2\n1,3\n", encoding="utf-8")
    model = {
        "gpus": 1,
        "waiting_w": 10.0,
        "max_clocks": [1.0, 100.0],
        "frontier": [[1.0, 90.0]],
        "plans": [[1.0, 90.0]],
        "clocks_mhz": [[1000.0, 1.0, 100.0]],
        "caps_w": [[100.0, 1.0, 100.0]],
    }
    job = {"name": "a", "group": "a", "model": 0, "pipelines": 1, "weight": 1.0, "fixed_w": 0.0}
    curves = {
        "site": "site.toml",
        "pue": 1.0,
        "limits": [{"name": "site", "parent": None, "limit_w": 100.0}],
        "models": [model],
        "jobs": [{**job, "least_w": 0.0, "slowest_s": None, "late": [], "at": []}],
        "emulate": emulate,
    }
    with pytest.raises(PlannerError) as raised:
        fleet.make_site(curves, tmp_path, days.DAY)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_times_of_series(tmp_path: Path) -> None:
    """Hours and ISO 8601 are the same; a series that is too short is refused."""
    (tmp_path / "a.csv").write_text("time_h,price_per_mwh\n0,36\n1,72\n", encoding="utf-8")
    rows = "time,price_per_mwh\n2026-11-25T13:00Z,36\n2026-11-25T15:00+01:00,72\n"
    (tmp_path / "b.csv").write_text(rows, encoding="utf-8")
    columns = {"price_per_mwh": 3.6e9}
    one, other = (fleet.read_series(tmp_path / f"{k}.csv", columns, 7200) for k in "ab")
    assert one.seconds.tolist() == other.seconds.tolist() == [0, 3600]
    assert [one.at(t) for t in (-5, 0, 3600, 9999)] == pytest.approx([1e-8, 1e-8, 2e-8, 2e-8])
    with pytest.raises(PlannerError, match="ends after"):
        fleet.read_series(tmp_path / "a.csv", columns, 7201)
