# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The planner in Python: the command line's bytes and sentences, and what Python adds."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import perseus
from planner_jobs import (
    ROOT,
    CommandLine,
    command_line,
    csv_of,
    needs_library,
    profile,
)

pytestmark = needs_library

# Little effort: the same code, a tenth of the time.
SMALL: dict[str, Any] = {
    "schedule": "1f1b",
    "microbatches": 6,
    "blocking_power": 75,
    "effort": 0.02,
}


@pytest.fixture(scope="module")
def cli() -> CommandLine:
    """Return the binary."""
    return command_line()


def write(directory: Path, columns: dict[str, list[object]], name: str = "profile.csv") -> Path:
    """Write a profile."""
    path = directory / name
    path.write_text(csv_of(columns))
    return path


def test_plans_one_iteration_for_its_lengths() -> None:
    """As the command line plans the same lengths, quickly; the same whatever came before."""
    table = profile(3)
    planner = perseus.Planner(csv_of(table), **SMALL)
    lengths = [1.0, 2.0, 0.5, 1.0, 1.25, 3.0]
    first = planner.plan(work=lengths)
    planner.plan(work=list(reversed(lengths)))
    assert planner.plan(work=lengths).json() == first.json()
    same = perseus.Planner(csv_of(table), work=lengths, **SMALL).plan()
    assert first.json() == same.json()
    works = {
        (c["microbatch"], c.get("work", 1.0))
        for r in json.loads(first.json())["ranks"]
        for c in r["computations"]
    }
    assert works == set(enumerate(lengths))
    assert first.at("1.1x").iteration_time_seconds > first.iteration_time_seconds
    with pytest.raises(perseus.PlannerError, match="the work of 2 microbatches is given"):
        planner.plan(work=[1.0, 2.0])
    with pytest.raises(perseus.PlannerError, match="expected 1e-06 to 1e"):
        planner.plan(work=[0.0] * 6)


def test_a_pipeline_that_others_wait_for_does_not_hurry() -> None:
    """All that know the lengths of all take the time of the slowest, which is as it was."""
    planner = perseus.Planner(csv_of(profile(3)), **SMALL)
    lengths = [[1.0, 2.0, 0.5, 1.0, 1.25, 3.0], [1.0] * 6, [0.5] * 6]
    alone = [planner.plan(work=each) for each in lengths]
    slowest = max(plan.requested_time_seconds for plan in alone)
    for k, each in enumerate(lengths):
        others = lengths[:k] + lengths[k + 1 :]
        among = planner.plan(work=each, others=others)
        assert among.requested_time_seconds == slowest
        assert among.iteration_time_seconds <= slowest
        assert among.energy_joules <= alone[k].energy_joules
        assert planner.plan(work=each, others=others[::-1]).json() == among.json()
    assert planner.plan(work=lengths[0], others=lengths[1:]).json() == alone[0].json()
    slow = planner.plan(work=lengths[0], at="fastest")
    fast = planner.plan(work=lengths[1], others=[lengths[0]], at="fastest")
    assert fast.requested_time_seconds == slow.requested_time_seconds
    with pytest.raises(perseus.PlannerError, match=r"others\[1\] has length 1, but work"):
        planner.plan(work=lengths[0], others=[lengths[1], [1.0]])
    flat: Any = lengths[0]
    with pytest.raises(perseus.PlannerError, match="must be a list with one number for each"):
        planner.plan(work=lengths[0], others=flat)
    with pytest.raises(perseus.PlannerError, match="but not this one's"):
        planner.plan(others=[lengths[0]])


JOBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no slowdown": ({"stages": 4}, {}),
    "5 % slower": ({"stages": 3}, {"at": "1.05x"}),
    "min-energy": ({"stages": 3}, {"at": "min-energy"}),
    "beyond T*": ({"stages": 2}, {"at": "4x"}),
    "seconds": ({"stages": 2}, {"at": "0.5s"}),
    "interleaved": (
        {"stages": 4},
        {"schedule": "interleaved-1f1b", "virtual_stages": 2, "microbatches": 4},
    ),
    "zero bubble": (
        {"stages": 4, "split": True},
        {"schedule": "interleaved-zero-bubble", "virtual_stages": 2, "microbatches": 4},
    ),
    "fused": (
        {"stages": 4},
        {"schedule": "dualpipev", "virtual_stages": 2, "microbatches": 4, "split_ratio": 0.4},
    ),
    "early recomputation": (
        {"stages": 3, "recompute": True},
        {"schedule": "early-recomputation-1f1b", "microbatches": 5},
    ),
    "one clock a stage": ({"stages": 3}, {"granularity": "stage", "at": "1.1x"}),
    "margin": ({"stages": 3, "spread": True}, {"time_margin": "2sigma,1%", "at": "1.1x"}),
    "fixed times": (
        {"stages": 3},
        {"comm_delay": [0.001, 0.002], "data_loading": "3ms", "iteration_overhead": 0.02},
    ),
    "replicas": ({"stages": 2}, {"dp": 8, "tp": 4}),
    "labels": ({"stages": 2, "labels": True}, {"baseline": "cap-1410"}),
    "conditions": (
        {"stages": 3},
        {
            "at": "1.02x",
            "dp": 2,
            "conditions": {
                "switch_latency": "2ms",
                "call_ahead": "predicted",
                "noise": "1%",
                "max_changes": 20,
            },
        },
    ),
    "coarse": ({"stages": 3}, {"coarse_watts": 5, "exponential_fit": True}),
    "usual effort": ({"stages": 2}, {"effort": 1, "at": "1.02x"}),
}


@pytest.mark.parametrize("job", JOBS)
def test_bytes_are_the_command_lines(job: str, cli: CommandLine, tmp_path: Path) -> None:
    """plan.json, frontier.csv and zeus_plan.py of many jobs, from one job file and keywords."""
    of_profile, settings = JOBS[job]
    columns = profile(**of_profile)
    path = write(tmp_path, columns)
    settings = {**SMALL, **settings}
    job_file = tmp_path / "job.json"
    job_file.write_text(json.dumps({"profile": "profile.csv", **settings}))

    files = cli.plan(tmp_path / "out", job_file)
    plan = perseus.plan(path, **settings)
    # Keywords have no place in a file.
    place = r', "source": "job.json", "line": \d+, "column": \d+'
    without_places = re.sub(place, "", files["plan.json"])
    assert plan.json() == without_places
    assert plan.frontier.csv() == files["frontier.csv"]
    if "zeus_plan.py" in files:
        assert plan.zeus() == files["zeus_plan.py"]
    else:
        with pytest.raises(perseus.PlannerError):
            plan.zeus()
    assert perseus.plan(job_file).json() == files["plan.json"]
    # The same table under the same name, from memory.
    assert perseus.plan(columns, name="profile.csv", **settings).json() == without_places


def test_what_is_expected_under_conditions() -> None:
    """Figures of the emulation, apart from those that know no conditions."""
    planner = perseus.Planner(profile(stages=2), **SMALL)
    assert planner.plan().expected is None
    held = planner.plan(conditions={"noise": 0.01, "max_slowdown": "0.2%"})
    assert held.expected is not None
    assert held.expected.iteration_time_seconds > held.iteration_time_seconds
    assert held.expected.saving_percent > 0
    assert held.expected.slowdown_percent < 0.3
    with pytest.raises(perseus.PlannerError, match="made without conditions"):
        planner.plan(work=[1.0] * 6, conditions={"noise": 0.01})
    with pytest.raises(perseus.PlannerError) as stopped:
        planner.plan(conditions={"noise": 0.01}, progress=lambda share: False)
    assert stopped.value.code == "cancelled"


def test_the_sample_job(cli: CommandLine, tmp_path: Path) -> None:
    """What the README begins with."""
    job = ROOT / "examples" / "gpt3-1.3b-a100-sxm.toml"
    quick = ("--effort", 0.02)
    files = cli.plan(tmp_path / "out", job, *quick)
    plan = perseus.plan(str(job), effort=0.02)
    assert plan.json() == files["plan.json"]
    assert plan.frontier.csv() == files["frontier.csv"]
    later = cli.plan(tmp_path / "later", job, "--at", "1.05x", *quick)
    assert plan.at("1.05x").json() == later["plan.json"]
    assert perseus.plan(job, at="1.05x", effort=0.02).json() == later["plan.json"]


def test_a_schedule_from_pytorch(cli: CommandLine, tmp_path: Path) -> None:
    """By path, as text, and as an object with a pipeline_order."""
    path = write(tmp_path, profile(2))
    text = "0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n"
    schedule = tmp_path / "torch.csv"
    schedule.write_text(text)
    expected = cli.plan(
        tmp_path / "out", path, "--schedule-file", schedule, "--blocking-power", 75
    )["plan.json"]
    assert perseus.plan(path, schedule, blocking_power=75).json() == expected
    assert perseus.plan(path, str(schedule), blocking_power=75).json() == expected

    def without_name(plan_json: str) -> Any:
        document = json.loads(plan_json)
        document.pop("schedule")
        return document

    order = {
        rank: [cell or None for cell in line.split(",")]
        for rank, line in enumerate(text.splitlines())
    }
    for given in (text, SimpleNamespace(pipeline_order=order), order):
        plan = perseus.plan(path, given, blocking_power=75)
        assert without_name(plan.json()) == without_name(expected)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", []),
        ("stage,instruction\n", []),
        ("stage,instruction,frequency,time,energy\n0,forward,1410,-1,2\n", []),
        ("stage,instruction,frequency,time,energy\n0,sideways,1410,1,2\n", []),
        (csv_of(profile(2)), ["--at", "0.5x"]),
        (csv_of(profile(2)), ["--at", "soon"]),
        (csv_of(profile(2)), ["--schedule", "interleaved-1f1b", "--virtual-stages", "3"]),
    ],
)
def test_sentences_are_the_command_lines(
    text: str, flags: list[str], cli: CommandLine, tmp_path: Path
) -> None:
    """Of what is wrong with a file, or with the whole."""
    path = tmp_path / "profile.csv"
    path.write_text(text)
    defaults = ["--schedule", "1f1b"] if "--schedule" not in flags else []
    settings: dict[str, Any] = {
        key.removeprefix("--").replace("-", "_"): value
        for key, value in zip(flags[::2], flags[1::2], strict=True)
    }
    if "virtual_stages" in settings:
        settings["virtual_stages"] = int(settings["virtual_stages"])
    said = cli.sentence(
        "plan", path, "--microbatches", 6, "--blocking-power", 75, *defaults, *flags
    )
    with pytest.raises(perseus.PlannerError) as caught:
        perseus.plan(path, **{**SMALL, **settings})
    sentence = str(caught.value)
    # A flag stands where a key does.
    assert sentence == said or said.endswith(sentence.split(": ", 1)[-1])
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"microbatches": 0}, "microbatches: expected a whole number from 1 to 1000000, found 0"),
        ({"microbatchs": 5}, "unknown key 'microbatchs'; did you mean 'microbatches'?"),
        ({"blocking_power": None}, "'blocking_power' is missing"),
        ({"at": 1.05}, 'at=1.05 may mean two things: write "1.05x" for a factor'),
        ({"dp": math.nan}, "'dp' is nan; give a number"),
        ({"conditions": {"noise": math.nan}}, "'conditions.noise' is nan; give a number"),
        (
            {"conditions": {"noise": 1}},
            'conditions.noise: expected a share (0.01) or a percentage ("1%") of at most 25%, '
            'found 1; for 1 % write "1%" or 0.01',
        ),
        (
            {"conditions": {"switch_latency": 0.01, "switch_latency_spread": 0.02}},
            "'switch_latency_spread' is 0.02 s, more than the 'switch_latency' of 0.01 s; ",
        ),
        ({"tp": object()}, "'tp': a setting cannot be read: "),
        ({"schedule": 3}, "the schedule must be a name, a path, "),
        ({"schedule": "nowhere.csv"}, "nowhere.csv: "),
    ],
)
def test_wrong_settings(given: dict[str, Any], sentence: str) -> None:
    """A sentence each, which names the key."""
    with pytest.raises(perseus.PlannerError) as caught:
        perseus.plan(profile(2), **{**SMALL, **given})
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "'profile' is missing"),
        (3, "the profile must be a path, the text of a CSV, "),
        ({}, "the profile must be a path, the text of a CSV, "),
        ({"stage": [0], "time": [1, 2]}, "the columns of the profile differ in length: "),
        ({"stage": 3}, "column 'stage' of the profile is no list of values"),
        ({"stage": [None]}, "profile:"),
        ("a\n\0b", "a text with a zero byte"),
        ("nowhere.csv", "nowhere.csv: "),
    ],
)
def test_wrong_profiles(given: object, sentence: str) -> None:
    """A sentence each."""
    with pytest.raises(perseus.PlannerError) as caught:
        perseus.plan(given, **SMALL)
    assert str(caught.value).startswith(sentence), str(caught.value)


class Table:
    """What a DataFrame has that the planner uses."""

    def __init__(self, columns: dict[str, list[object]]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        class Column:
            def __init__(self, values: list[object]) -> None:
                self._values = values

            def to_list(self) -> list[object]:
                return self._values

        return Column(self._columns[name])


def test_tables_of_any_kind() -> None:
    """A dict, a duck-typed frame, NumPy's arrays and pandas' frames are one profile."""
    columns = profile(2)
    expected = perseus.plan(columns, **SMALL).json()
    assert perseus.plan(Table(columns), **SMALL).json() == expected
    assert perseus.plan(csv_of(columns), **SMALL).json() == expected
    numpy = pytest.importorskip("numpy")
    arrays = {name: numpy.array(values) for name, values in columns.items()}
    powers = numpy.array([75, 75])
    assert perseus.plan(arrays, **{**SMALL, "blocking_power": powers}).json() == expected


def test_frames_of_pandas() -> None:
    """In and out."""
    pandas = pytest.importorskip("pandas")
    columns = profile(2)
    plan = perseus.plan(pandas.DataFrame(columns), **SMALL)
    assert plan.json() == perseus.plan(columns, **SMALL).json()
    frame = plan.to_frame()
    assert list(frame.index.names) == ["rank", "instruction", "stage", "microbatch"]
    assert frame.loc[(1, "forward", 1, 5), "knob"] == plan.clocks(1, "forward")[5]
    assert len(frame) == 2 * 2 * 6
    assert frame.energy_joules.sum() < plan.energy_joules
    assert list(plan.frontier.to_frame().index) == list(plan.frontier.time_seconds)


def test_without_pandas_frames_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else needs it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        perseus.plan(profile(2), **SMALL).to_frame()


def test_a_plan_says_what_its_file_says() -> None:
    """Figures, computations and clocks."""
    plan = perseus.plan(profile(3), **SMALL, at="1.05x")
    document = json.loads(plan.json())
    assert plan.iteration_time_seconds == document["iteration_time_s"]
    assert plan.energy_joules == document["energy_j"]
    assert plan.saving_percent == document["saving_percent"] > 0
    assert plan.lower_bound_joules == document["lower_bound_j"] <= plan.energy_joules
    assert plan.iteration_time_seconds <= plan.requested_time_seconds
    assert plan.shared_knob_bound_joules is None
    clocks = [
        (computation["stage"], computation["knob"])
        for rank in document["ranks"]
        for computation in rank["computations"]
    ]
    assert [(c.stage, c.knob) for c in plan.computations] == clocks
    assert plan.clocks(1) == tuple(clock for stage, clock in clocks if stage == 1)
    forwards = plan.clocks(1, "forward")
    assert len(forwards) == 6
    with pytest.raises(perseus.PlannerError, match="no stage 3"):
        plan.clocks(3)
    with pytest.raises(perseus.PlannerError, match="no instruction"):
        plan.clocks(0, "sideways")
    assert "saved" in repr(plan)


def test_a_measured_profile_gives_an_interval() -> None:
    """Where the saving is by the errors that the profile states."""
    measured = profile(2)
    measured["error_sources"] = ["0.001|0.004|0.002"] * len(measured["stage"])
    plan = perseus.plan(measured, **SMALL)
    assert plan.saving_interval is not None
    least, most = plan.saving_interval
    assert least < plan.saving_percent < most < least + 5
    assert perseus.plan(profile(2), **SMALL).saving_interval is None


def test_labels_are_knobs_too() -> None:
    """Where they are no clocks."""
    plan = perseus.plan(profile(2, labels=True), **SMALL)
    assert set(plan.clocks(0)) <= {f"cap-{clock}" for clock in range(1410, 800, -105)}


def test_plans_on_one_frontier() -> None:
    """Slower ones save more, until T*; the baseline saves nothing."""
    planner = perseus.Planner(profile(3), **SMALL)
    frontier = planner.frontier
    savings = [planner.plan().at(factor).saving_percent for factor in ("1x", "1.02x", "1.05x")]
    assert savings == sorted(savings)
    assert planner.baseline.saving_percent == 0
    fastest = planner.plan("fastest")
    assert fastest.requested_time_seconds == frontier.fastest_seconds
    assert planner.plan("tstar").requested_time_seconds == frontier.tstar_seconds
    seconds = 1.03 * frontier.baseline_time_seconds
    assert fastest.at(seconds=seconds).requested_time_seconds == seconds
    shared = fastest.at("1.1x", granularity="stage")
    assert shared.knob_changes == 0
    assert shared.shared_knob_bound_joules is not None
    assert shared.frontier is frontier
    with pytest.raises(perseus.PlannerError, match="cannot be set for one plan"):
        fastest.at("1.1x", microbatches=3)  # type: ignore[call-arg]
    for wrong in ((), (math.nan,), (True,), (0.5,), (1.05,), ("1.05",), ("0.5x",)):
        with pytest.raises(perseus.PlannerError):
            fastest.at(*wrong)


def test_the_frontier_is_convex_and_below_every_plan() -> None:
    """Its values between corners, too."""
    planner = perseus.Planner(profile(3), **SMALL)
    frontier = planner.frontier
    assert len(frontier) == len(frontier.points) > 10
    assert list(frontier.time_seconds) == sorted(frontier.time_seconds)
    times, joules = frontier.time_seconds, frontier.energy_joules
    middle = (times[0] + times[1]) / 2
    assert math.isclose(frontier.energy_at(middle), (joules[0] + joules[1]) / 2, rel_tol=1e-12)
    beyond = frontier.energy_at(times[-1] + 1)
    assert math.isclose(beyond, joules[-1] + frontier.total_blocking_power_watts, rel_tol=1e-12)
    with pytest.raises(perseus.PlannerError):
        frontier.energy_at(times[0] * 0.9)
    for factor in (1.0, 1.03, 1.1):
        plan = planner.plan(f"{factor}x")
        bound = frontier.energy_at(plan.iteration_time_seconds)
        assert math.isclose(plan.lower_bound_joules, bound, rel_tol=1e-12)


def test_progress_is_told_and_may_give_up() -> None:
    """Shares grow; False and exceptions end it."""
    shares: list[float] = []
    perseus.plan(profile(3), **SMALL, progress=shares.append)
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1

    with pytest.raises(perseus.PlannerError) as caught:
        perseus.plan(profile(3), **SMALL, progress=lambda share: False)
    assert caught.value.code == "cancelled"

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perseus.plan(profile(3), **SMALL, progress=interrupt)
    planner = perseus.Planner(profile(3), **SMALL)
    with pytest.raises(KeyboardInterrupt):
        planner.plan(progress=interrupt)
    assert planner.plan().saving_percent > 0


def test_notes_are_told() -> None:
    """What is valid and perhaps not meant."""
    columns = profile(2)
    columns["stage"].append(1)
    columns["instruction"].append("backward_weight")
    columns["frequency"].append(1410)
    columns["time"].append(0.01)
    columns["energy"].append(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # An odd input is no warning.
        planner = perseus.Planner(columns, **SMALL)
        assert perseus.Planner(profile(2), **SMALL).notes == []
    (note,) = planner.notes
    assert (note.severity, note.line, note.column) == ("odd", None, None)
    assert "backward_weight" in note.text
    assert [n.text for n in planner.plan().notes] == [note.text]
    assert planner.plan("9x").notes[-1].text.startswith("the time asked for")


def test_a_profile_that_cannot_save_has_a_note() -> None:
    """One clock leaves no choice, and clocks that cost the same save nothing."""
    table: dict[str, list[Any]] = dict(profile(2))
    highest = max(table["frequency"])
    chosen = [k for k, clock in enumerate(table["frequency"]) if clock == highest]
    one_clock = {name: [values[k] for k in chosen] for name, values in table.items()}
    flat: dict[str, list[Any]] = {name: values + values for name, values in one_clock.items()}
    flat["frequency"] = [highest] * len(chosen) + [highest - 100] * len(chosen)
    for columns, says in ((one_clock, "one clock only"), (flat, "no clock of the profile saves")):
        plan = perseus.plan(columns, **SMALL)
        assert [note.severity for note in plan.notes if says in note.text] == ["odd"]
        assert abs(plan.saving_percent) < 1e-9


def _times(columns: dict[str, list[Any]], name: str, factor: float) -> dict[str, list[Any]]:
    return {**columns, name: [value * factor for value in columns[name]]}


@pytest.mark.parametrize(
    ("columns", "settings", "says", "place"),
    [
        (_times(profile(2), "time", 1e3), {}, "in milliseconds", (2, 16)),
        (_times(profile(2), "energy", 1e3), {}, "in millijoules", (2, None)),
        (_times(profile(2), "energy", 16), {}, "of several GPUs", (2, None)),
        (profile(2), {"blocking_power": 0}, "draws 0 W", (None, None)),
        (profile(2), {"comm_delay": 1e6}, "communication delay", (None, None)),
        (profile(2), {"time_margin": "100%"}, "time margin of 100 %", (None, None)),
    ],
)
def test_what_is_implausible_is_warned_of(
    columns: dict[str, list[Any]],
    settings: dict[str, Any],
    says: str,
    place: tuple[int | None, int | None],
) -> None:
    """A warning at the caller's line, notes of the plan, and the same in plan.json."""
    with pytest.warns(perseus.ImplausibleWarning, match=says) as caught:
        plan = perseus.plan(columns, **{**SMALL, **settings})
    assert {warning.filename for warning in caught} == {__file__}
    (note,) = [n for n in plan.notes if says in n.text]
    assert note.severity == "implausible"
    assert note.line == place[0]
    assert place[1] in (None, note.column)
    written = json.loads(plan.json())["notes"]
    assert "%" not in repr(plan)
    assert [(n["severity"], n["text"], n.get("line"), n.get("column")) for n in written] == [
        (n.severity, n.text, n.line, n.column) for n in plan.notes
    ]
    with pytest.raises(perseus.PlannerError, match=says):
        perseus.plan(columns, strict=True, **{**SMALL, **settings})


def test_what_is_accepted_is_odd() -> None:
    """Nobody is warned of what he said is meant, and figures are shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = perseus.plan(
            profile(2), **{**SMALL, "blocking_power": 0, "accept_implausible": True}
        )
    (note,) = [n for n in plan.notes if "draws 0 W" in n.text]
    assert note.severity == "odd"
    assert "%" in repr(plan)


@pytest.mark.parametrize(("factor", "remedy"), [(1e-3, "1.41GHz"), (1e3, "by 1000")])
def test_clocks_that_no_gpu_has_are_refused(factor: float, remedy: str) -> None:
    """Those of a profile in GHz or kHz."""
    with pytest.raises(perseus.PlannerError, match=remedy):
        perseus.plan(_times(profile(2), "frequency", factor), **SMALL)


def test_threads_share_a_planner() -> None:
    """And get the same."""
    planner = perseus.Planner(profile(3), **SMALL)
    texts: list[str] = []

    def work() -> None:
        texts.append(planner.plan("1.03x").json())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(texts) == 4
    assert len(set(texts)) == 1


def test_plans_outlive_their_planner() -> None:
    """Handles are freed with their objects, in any order."""
    plan = perseus.plan(profile(2), **SMALL)
    text = plan.json()
    other = plan.at("1.05x")
    del plan
    assert other.frontier.fastest_seconds > 0
    assert other.at("1x").json() == text


def test_errors_travel_between_processes() -> None:
    """As those of a pool of workers do."""
    error = pickle.loads(pickle.dumps(perseus.PlannerError("a sentence", "infeasible")))
    assert str(error) == "a sentence"


def test_import_is_light() -> None:
    """`import perseus` loads neither the planner nor NumPy, and knows its names all the same."""
    script = (
        "import sys, perseus\n"
        "heavy = {'numpy', 'pandas', 'torch', 'networkx', 'perseus.planner', 'perseus.dag'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "assert perseus.plan.__name__ == 'plan' and perseus.Dag\n"
        "try:\n    perseus.nothing\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing" in done.stdout


def test_without_the_library_it_says_so(tmp_path: Path) -> None:
    """And what to do."""
    script = (
        "import perseus\n"
        "try:\n    perseus.plan({'stage': [0]})\n"
        "except perseus.LibraryError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={
            "PYTHONPATH": str(ROOT / "python"),
            "PERSEUS_PLANNER_LIBRARY": str(tmp_path / "nothing.so"),
        },
    )
    assert "PERSEUS_PLANNER_LIBRARY" in done.stdout, done.stderr
