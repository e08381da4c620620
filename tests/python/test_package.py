# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the package is beside planner and client: names, errors, files, pictures, the program."""

from __future__ import annotations

import importlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import perseus
from planner_jobs import ROOT, command_line, needs_library, profile

JOB: dict[str, Any] = {
    "schedule": "1f1b",
    "microbatches": 6,
    "blocking_power": 75,
    "effort": 0.02,
}


def test_the_package_names_what_it_has() -> None:
    """Before anything of it is loaded, too."""
    assert perseus.__version__ in (ROOT / "include/perseus/version.h").read_text()
    code = "import perseus; print(*dir(perseus))"
    names = run_python(code).stdout.split()
    assert set(perseus.__all__) <= set(names)
    for name in perseus.__all__:
        assert getattr(perseus, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = perseus.nothing_like_this


def run_python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that finds the package."""
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_module_is_the_program() -> None:
    """Its output, its status; and a sentence where there is none."""
    binary = command_line().binary
    module = [sys.executable, "-B", "-m", "perseus"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PERSEUS_BINARY": binary}

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*module, *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("--version").stdout == command_line().run("--version").stdout
    assert run("nonsense").returncode == 2
    lost = run("--version", PERSEUS_BINARY="/nowhere/perseus")
    assert lost.returncode == 1
    assert "/nowhere/perseus" in lost.stderr
    assert "Traceback" not in lost.stderr


def test_each_code_has_a_class() -> None:
    """Which a copy keeps."""
    codes = {
        "invalid": perseus.InvalidInputError,
        "infeasible": perseus.InfeasibleError,
        "io": perseus.InputFileError,
        "overflow": perseus.TooLargeError,
        "cancelled": perseus.CancelledError,
        "no memory": perseus.OutOfMemoryError,
        "internal": perseus.InternalError,
    }
    for code, kind in codes.items():
        error = pickle.loads(pickle.dumps(perseus.PlannerError("a sentence", code)))
        assert type(error) is kind
        assert (str(error), error.code) == ("a sentence", code)
        assert isinstance(error, ValueError)
    assert issubclass(perseus.AttachError, RuntimeError)


@needs_library
def test_errors_are_raised_by_class(tmp_path: Path) -> None:
    """From the library, from Python, and from the program."""
    planner = perseus.Planner(profile(2), **JOB)
    with pytest.raises(perseus.InfeasibleError):
        planner.plan("0.5x")
    with pytest.raises(perseus.InfeasibleError):
        planner.frontier.energy_at(0)
    with pytest.raises(perseus.InputFileError):
        perseus.plan(tmp_path / "none.csv", **JOB)
    with pytest.raises(perseus.InvalidInputError):
        perseus.plan(profile(2), "1f1b", 0, 75)
    with pytest.raises(perseus.CancelledError):
        perseus.plan(profile(2), progress=lambda share: False, **JOB)


def keys_of_the_reference(heading: str) -> set[str]:
    """Return the keys of a list that is made from the one list of a job's fields."""
    text = (ROOT / "docs/reference/files.md").read_text()
    table = text.partition(f"<!-- {heading}: made from the code -->")[2].partition("<!-- end")[0]
    return set(re.findall(r"^(?:- |\| )`(\w+)`", table, re.MULTILINE))


def test_typed_keywords_are_those_of_a_job() -> None:
    """None is missing, and none is there that a job does not have."""
    # `schedule` takes the text of one, too.
    arguments = {"profile", "schedule", "schedule_csv", "microbatches", "blocking_power"}
    without_effect = {"output"}
    settings = set(perseus.JobSettings.__annotations__) | set(perseus.PlanSettings.__annotations__)
    assert settings - {"conditions"} == (
        keys_of_the_reference("job fields") - arguments - without_effect
    )
    assert set(perseus.Conditions.__annotations__) == keys_of_the_reference("conditions")


def test_a_type_checker_sees_wrong_keywords(tmp_path: Path) -> None:
    """And passes right ones."""
    pytest.importorskip("mypy")
    script = tmp_path / "trainer.py"
    script.write_text(
        "import perseus\n"
        "plan = perseus.plan('p.csv', '1f1b', 8, 75, dp=2, comm_delay='2ms', effort=0.1,\n"
        "                    conditions={'noise': '1%'})\n"
        "plan.at('1.05x', granularity='stage').planner.plan(effort=3)\n"
        "perseus.plan('p.csv', '1f1b', micro_batches=3)\n"
        "perseus.plan('p.csv', dp='two')\n"
        "perseus.plan('p.csv', conditions={'noice': '1%'})\n"
        "plan.at('1.05x', tp=2)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}/cache", str(script)],
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [int(line) for line in re.findall(r"trainer\.py:(\d+): error", done.stdout)]
    assert lines == [5, 6, 7, 8], done.stdout


@needs_library
def test_a_plan_is_saved_and_loaded(tmp_path: Path) -> None:
    """With all that it says, and without what makes other plans."""
    plan = perseus.plan(profile(3), at="1.02x", conditions={"noise": "1%"}, **JOB)
    plan.save(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_text() == plan.json()
    for copy in (perseus.Plan.load(tmp_path / "plan.json"), pickle.loads(pickle.dumps(plan))):
        assert copy.json() == plan.json()
        assert copy.computations == plan.computations
        assert copy.expected == plan.expected is not None
        assert copy.zeus() == plan.zeus()
        assert repr(copy) == repr(plan)
        with pytest.raises(perseus.PlannerError, match="planner"):
            _ = copy.frontier
        with pytest.raises(perseus.PlannerError, match="planner"):
            copy.at("1.1x")
        with pytest.raises(perseus.PlannerError, match="report"):
            copy.report(tmp_path / "report.html")
    (tmp_path / "plan.json").write_text(plan.json()[:-20])
    with pytest.raises(perseus.InvalidInputError, match="plan"):
        perseus.Plan.load(tmp_path / "plan.json")
    with pytest.raises(perseus.InputFileError, match="none"):
        perseus.Plan.load(tmp_path / "none.json")


@needs_library
def test_a_planner_is_pickled_with_what_it_was_made_of() -> None:
    """Its copy makes the same plans."""
    planner = perseus.Planner(profile(2), dp=2, **JOB)
    copy = pickle.loads(pickle.dumps(planner))
    assert copy.plan("1.05x").json() == planner.plan("1.05x").json()
    assert copy.profile.options == planner.profile.options
    assert pickle.loads(pickle.dumps(planner.frontier)).points == planner.frontier.points


@needs_library
def test_the_profile_is_that_which_was_read() -> None:
    """A planner of its CSV plans the same."""
    columns = profile(2)
    planner = perseus.Planner(columns, **JOB)
    read = planner.profile
    assert (len(read), read.stages) == (len(columns["time"]), 2)
    assert sorted(option.time for option in read.options) == sorted(columns["time"])  # type: ignore[type-var]
    assert perseus.Planner(read.csv(), **JOB).plan().json() == planner.plan().json()


@needs_library
def test_notebooks_show_tables() -> None:
    """With what a person gave escaped, and cut where they are long."""
    planner = perseus.Planner(profile(2), name="<b>&", **JOB)
    plan = planner.plan()
    for shown in (planner, planner.profile, planner.frontier, plan):
        html = shown._repr_html_()
        assert html.count("<table>") == html.count("</table>") == 1
        assert "<b>" not in html
        assert repr(shown).startswith("<perseus.")
    assert "more</td>" in planner.profile._repr_html_()
    assert f"{plan.saving_percent:.6g}" in plan._repr_html_()


@needs_library
def test_pictures_show_what_is_there() -> None:
    """Bars for computations, a line for a frontier, one for each table of a profile."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    planner = perseus.Planner(profile(2), **JOB)
    plan = planner.plan()
    assert len(plan.plot().patches) == len(plan.computations)
    line = planner.frontier.plot().lines[0]
    assert list(line.get_ydata()) == list(planner.frontier.energy_joules)
    assert len(planner.profile.plot().lines) == 2 * 2
    axes = pyplot.subplots()[1]
    assert plan.plot(axes) is axes
    pyplot.close("all")


@needs_library
def test_without_matplotlib_pictures_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else needs it."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        perseus.Planner(profile(2), **JOB).frontier.plot()


@needs_library
def test_a_report_is_of_its_plan(tmp_path: Path) -> None:
    """One file, with the plan's own saving; of plans of every kind."""
    planner = perseus.Planner(profile(2), name="<i>", **JOB)
    plans = [
        planner.plan("1.05x"),
        planner.plan("1.02x", granularity="stage"),
        planner.plan(conditions={"noise": "1%"}),
        planner.plan(work=[1, 1, 1, 1, 1, 1.5]),
        planner.baseline,
    ]
    for plan in plans:
        plan.report(tmp_path / "report.html")
        report = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert report.startswith("<!DOCTYPE html>")
        assert f"{plan.saving_percent:.2f}" in report
        assert "<i>" not in report


@needs_library
def test_plans_are_explained_and_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the program, with the planner's own settings."""
    monkeypatch.setenv("PERSEUS_BINARY", command_line().binary)
    columns = profile(2)
    planner = perseus.Planner(columns, dp=2, data_loading="1ms", **JOB)
    plan = planner.plan("1.02x")
    explained = plan.explain()
    assert [stage["stage"] for stage in explained["by_stage"]] == [0, 1]
    emulated = plan.emulate(iterations=3)
    assert emulated["pipelines"] == 2
    assert emulated["time_s"] == pytest.approx(3 * plan.iteration_time_seconds)
    settings: dict[str, Any] = {"dp": 2, "data_loading": "1ms", "iterations": 3, **JOB}
    assert perseus.emulate(columns, plan=plan, **settings) == emulated
    # By the names of a job file, also where a flag is called otherwise; lists and files, too.
    fitted = perseus.Planner(columns, coarse_watts=0, exponential_fit=True, **JOB)
    assert fitted.emulate(iterations=3, noise="0%")["time_s"] > 0
    uneven = perseus.emulate(columns, work=[1] * 5 + [1.5], iterations=3, **JOB)
    assert uneven["time_s"] > 1.01 * emulated["time_s"]
    with pytest.raises(perseus.InvalidInputError, match=r"^coarse_watts"):
        perseus.emulate(columns, coarse_watts=-2, **JOB)
    with pytest.raises(perseus.InvalidInputError, match="iterations"):
        plan.emulate(iterations=0)
    with pytest.raises(perseus.InvalidInputError, match="iteratoins"):
        plan.emulate(iteratoins=3)
    monkeypatch.setenv("PERSEUS_BINARY", "/nowhere/perseus")
    with pytest.raises(perseus.ProgramError, match="/nowhere/perseus"):
        plan.explain()


@needs_library
def test_a_site_is_divided_and_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the program: from its file, and from a mapping that says the same."""
    monkeypatch.setenv("PERSEUS_BINARY", command_line().binary)
    examples = Path(__file__).parents[2] / "examples"
    of_file = perseus.fleet_plan(examples / "site.toml")
    monkeypatch.chdir(examples)
    job = {"name": "small", "job": "gpt3-1.3b-a100-sxm.toml", "max_slowdown": "50%"}
    site: dict[str, Any] = {"power": "2kW", "job": [{**job, "dp": 2}]}
    divided = perseus.fleet_plan(site)
    assert of_file.keys() == divided.keys()
    assert 0 < divided["objective"] <= divided["objective_bound"]
    assert divided["jobs"][0]["power_w"] <= 2000
    assert divided["feasible"] is True
    starved = perseus.fleet_plan({**site, "power": "1W"})
    assert starved["feasible"] is False
    assert "site.json" not in starved["sentence"]
    with pytest.raises(perseus.PlannerError, match=r"^(?!.*site\.json).*kWh"):
        perseus.fleet_plan({**site, "power": "1kWh"})
    with pytest.raises(perseus.PlannerError, match=r"^(?!.*site\.json).*max_slowdwn"):
        perseus.fleet_plan({**site, "job": [{**job, "max_slowdwn": "1%"}]})
    week = perseus.fleet_emulate({**site, "power": "2.5kW"}, days=0.01)
    assert {"rules"} <= week.keys()
