# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The dashboard for Grafana: its file, Grafana's schema, and each query on a real scrape."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from monitoring import FOLDER, NODE_EXPORTER, ROOT, needs_prometheus, until
from stage import LIBRARY, Stage, profile

FILE = FOLDER / "perseus-dashboard.json"
Json = dict[str, Any]


def dashboard() -> Json:
    """Return the file."""
    return dict(json.loads(FILE.read_text()))


def panels() -> list[Json]:
    """Return the panels that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    """Return all queries, of all jobs."""
    told = [target["expr"] for panel in panels() for target in panel["targets"]]
    told += [one["expr"] for one in dashboard()["annotations"]["list"]]
    return [with_label(query.replace("$job", ".*")) for query in told]


def with_label(query: str) -> str:
    """Choose a label that the job has; where jobs without it are asked for, another one."""
    return query.replace("$label", "project" if " unless " in query else "team")


def metrics() -> set[str]:
    """Return the names of all metrics in queries."""
    return set(re.findall(r"\b(?:perseus|process)_\w+", " ".join(queries())))


def test_the_file_is_what_the_script_writes() -> None:
    """Nobody edits it."""
    written = subprocess.run(
        [sys.executable, "-B", ROOT / "scripts" / "dashboard"], capture_output=True, check=True
    )
    assert FILE.read_bytes() == written.stdout


def test_each_metric_is_in_the_reference() -> None:
    """A histogram's series end in _bucket."""
    reference = (ROOT / "docs/reference/metrics.md").read_text()
    assert len(metrics()) >= 25
    for name in metrics():
        assert f"`{name.removesuffix('_bucket')}" in reference, name


def test_panels_lie_side_by_side() -> None:
    """Each has a number of its own, and none covers another or leaves the grid."""
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(numbers) == len(set(numbers))


def faults(value: object, hint: Any, place: str) -> Iterator[str]:
    """Return what in a value of Grafana's own classes is not of the type that they state."""
    if hint is object and type(value).__module__.startswith("grafana"):
        hint = type(value)  # Of the kind of panel.
    origin, words = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if all(next(faults(value, word, place), "") for word in words):
            yield f"{place}: {value!r} is not {hint}"
    elif origin is typing.Literal:
        if value not in words:
            yield f"{place}: {value!r} is not one of {words}"
    elif origin is list and isinstance(value, list):
        for i, each in enumerate(value):
            yield from faults(each, words[0], f"{place}[{i}]")
    elif origin is dict and isinstance(value, dict):
        for key, each in value.items():
            yield from faults(each, words[1], f"{place}.{key}")
    elif origin is not None:
        yield f"{place}: {value!r} is not {hint}"
    elif hint is float:
        if not isinstance(value, (int, float)):
            yield f"{place}: {value!r} is no number"
    elif isinstance(hint, type) and issubclass(hint, Enum):
        if value not in [one.value for one in hint]:
            yield f"{place}: {value!r} is not one of {list(hint)}"
    elif isinstance(hint, type) and hint is not object:
        if not isinstance(value, hint):
            yield f"{place}: {value!r} is not {hint}"
        elif hint.__module__.startswith("grafana"):
            for name, inner in typing.get_type_hints(hint).items():
                yield from faults(getattr(value, name, None), inner, f"{place}.{name}")


def lost(mine: object, theirs: object, place: str = "") -> Iterator[str]:
    """Return what of ours is not in theirs."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key, value in mine.items():
            yield from lost(value, theirs.get(key), f"{place}.{key}")
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for i, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            yield from lost(one, other, f"{place}[{i}]")
    elif mine != theirs:
        yield f"{place}: {mine!r} became {theirs!r}"


def test_it_fits_the_schema_of_grafana() -> None:
    """Read into the classes that Grafana makes of its schema: all is there, and of its type."""
    name = "grafana_foundation_sdk"
    classes = pytest.importorskip(f"{name}.models.dashboard", reason=f"there is no {name}")
    pytest.importorskip(f"{name}.cog.plugins").register_default_plugins()
    encoder = pytest.importorskip(f"{name}.cog.encoder").JSONEncoder()
    mine = dashboard()
    theirs = classes.Dashboard.from_json(mine)
    assert list(lost(mine, json.loads(encoder.encode(theirs)))) == []
    assert list(faults(theirs, classes.Dashboard, "dashboard")) == []


@needs_prometheus
def test_sums_by_label_are_those_of_the_jobs(tmp_path: Path) -> None:
    """Of four jobs, one without the label, on two servers that share a store: by promtool."""
    jobs = {
        "j-1": {"team": "vision", "project": "x"},
        "j-2": {"team": "vision"},
        "j-3": {"team": "language"},
        "j-4": {"project": "x"},
    }
    series = [
        {
            "series": f'perseus_job_label{{instance="{instance}",job_id="{job}",'
            f'label="{label}",value="{value}"}}',
            "values": "1x120",
        }
        for instance in ("a", "b")  # Both show each job.
        for job, labels in jobs.items()
        for label, value in labels.items()
    ]
    for i, job in enumerate(jobs):
        # Of the first job, both servers hear some iterations.
        for instance in ("a", "b") if i == 0 else ("ab"[i % 2],):
            of = f'{{instance="{instance}",job_id="{job}"}}'
            series += [
                {"series": "perseus_job_power_watts" + of, "values": f"{100 * 10**i}x120"},
                {"series": "perseus_job_energy_joules_total" + of, "values": f"0+{10**i}x120"},
                {
                    "series": "perseus_job_predicted_saved_joules_total" + of,
                    "values": f"0+{10**i}x120",
                },
            ]
    expected = {"vision": 2 + 10, "language": 100, "": 1000}  # Times 100 W, or J a minute.
    tests: list[Json] = []
    for panel in panels():
        for target in panel["targets"]:
            if "$label" not in target["expr"]:
                continue
            scale = 60 if "increase" in target["expr"] else 100
            values = [""] if " unless " in target["expr"] else ["language", "vision"]
            samples = [
                {
                    "labels": f'{{value="{value}"}}' if value else "{}",
                    "value": scale * expected[value],
                }
                for value in values
            ]
            query = target["expr"].replace("$job", ".*").replace("$label", "team")
            tests.append({"expr": query, "eval_time": "90m", "exp_samples": samples})
    assert len(tests) == 6
    file = tmp_path / "labels.json"  # JSON is YAML.
    told = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file.write_text(json.dumps({"tests": [told]}))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
@pytest.mark.skipif(not LIBRARY, reason="no client library was built")
@pytest.mark.skipif(NODE_EXPORTER is None, reason="there is no node_exporter")
def test_each_query_has_an_answer(tmp_path: Path) -> None:
    """On a job that trains; what only a comparison or a refusal shows is asked for without one."""
    stage = Stage(tmp_path)
    try:
        server = stage.serve()
        node = stage.node(server.url)
        training = stage.train(server, node, profile())
        training.set("detection", mode="advisory", window=8)
        training.set("labels", labels={"team": "vision"})
        prometheus = stage.watch(server, node)
        everything = os.environ.get("PERSEUS_DRILLS") == "all"
        if everything:
            training.set("comparison", every=12, iterations=4)
        for query in queries():
            prometheus.check(query)
            if "refused_requests" in query or "ALERTS" in query:
                continue
            if everything or "measured" not in query:
                prometheus.await_series(query)
        if everything:
            return
        there = until(lambda: prometheus.ask('{__name__=~"perseus_.+|process_.+"}'), "nothing")
        names = {one["metric"]["__name__"] for one in there}
        assert {name for name in metrics() if "measured" not in name} <= names
    finally:
        stage.close()


def test_the_variable_of_jobs_reads_their_names() -> None:
    """Grafana finds id and name in a series as Prometheus writes it."""
    [variable] = [one for one in dashboard()["templating"]["list"] if one["name"] == "job"]
    pattern = variable["regex"].strip("/").replace("(?<", "(?P<")
    series = 'perseus_job_info{instance="a",job="perseus",job_id="j-1",job_name="gpt 3"} 1 17'
    found = re.search(pattern, series)
    assert found is not None
    assert (found["value"], found["text"]) == ("j-1", "gpt 3")
