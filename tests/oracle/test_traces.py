# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus trace` against an independent replay, and against the published answers."""

from __future__ import annotations

import gzip
import json
import random
import statistics
from typing import TYPE_CHECKING, Any

import pytest

from . import binary, random_traces, traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .traces import Operation


def _mean(steps: dict[int, float]) -> float:
    return statistics.fmean(steps.values())


def _check(answer: dict[str, Any], ops: list[Operation], tolerance: float) -> None:
    traces.link(ops)
    groups = traces.order(ops)
    own = {id(op): op.own for op in ops}
    usual = traces.ideal(ops)
    replayed = traces.replay(groups, own)
    without = traces.replay(groups, usual)
    assert [step["step"] for step in answer["steps"]] == sorted(replayed)
    for step in answer["steps"]:
        rows = [op for op in ops if op.step == step["step"]]
        recorded = max(op.end for op in rows) - min(op.start for op in rows)
        assert step["recorded_s"] == pytest.approx(recorded, rel=tolerance)
        assert step["replayed_s"] == pytest.approx(replayed[step["step"]], rel=tolerance)
        assert step["without_stragglers_s"] == pytest.approx(without[step["step"]], rel=tolerance)
    ideal = _mean(without)
    assert answer["blocking_slowdown"] == pytest.approx(_mean(replayed) / ideal, rel=tolerance)

    def kept(of: Callable[[Operation], object], value: object) -> float:
        times = {id(op): op.own if of(op) == value else usual[id(op)] for op in ops}
        return _mean(traces.replay(groups, times)) / ideal

    names: dict[str, Callable[[Operation], str]] = {
        "stage": lambda op: str(op.stage),
        "pipeline": lambda op: str(op.pipeline),
        "operation": lambda op: traces.operation_name(op.kind),
    }
    for name, of in names.items():
        expected = {of(op) for op in ops}
        found = answer[f"blocking_by_{name}"]
        assert set(found) == expected
        for key, value in found.items():
            assert value == pytest.approx(kept(of, key), rel=tolerance)
    for each in answer["blocking_by_rank"]:
        value = kept(lambda op: (op.pipeline, op.stage), (each["pipeline"], each["stage"]))
        assert each["slowdown"] == pytest.approx(value, rel=tolerance)
    gaps = sum(each["seconds_per_step"] for each in answer["launch_delays"])
    difference = answer["recorded_s"] - answer["replayed_s"]
    assert gaps + answer["other_chain_s"] == pytest.approx(difference, abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_random_traces(perseus_program: Path, tmp_path: Path, seed: int) -> None:
    """Every number of --json is that of the independent replay."""
    rng = random.Random(seed)
    ops = random_traces.make_trace(rng)
    gpus = rng.choice([1, 2, 8])
    text = random_traces.format_trace(ops, rng, gpus)
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    answer = json.loads(binary.perseus(["trace", path, "--json"]))
    sizes = answer["sizes"]
    assert sizes["dp"] == 1 + max(op.pipeline for op in ops)
    assert sizes["pp"] == 1 + max(op.stage for op in ops)
    assert sizes["operations"] == len(ops)
    if sizes["dp"] * sizes["pp"] > 1:
        assert sizes["tp"] == gpus
    _check(answer, traces.read(path), 1e-9)


@pytest.mark.parametrize("name", ["ST", "SE"])
def test_published_answers(perseus_program: Path, name: str) -> None:
    """The artifact of Lin et al. 2025 comes to the same, step by step."""
    folder = binary.shared_data() / "traces25"
    if not folder.is_dir():
        pytest.skip(f"no recorded traces at {folder} (set PERSEUS_SHARED_DATA)")
    answer = json.loads(binary.perseus(["trace", folder / f"trace-{name}.csv.gz", "--json"]))
    published = json.loads((folder / f"result-{name}.json").read_text(encoding="utf-8"))
    for ours, theirs in (
        ("recorded_s", "step_t_base"),
        ("replayed_s", "step_t_nodelay"),
        ("without_stragglers_s", "step_t_noblk"),
    ):
        steps = {str(step["step"]): step[ours] for step in answer["steps"]}
        # The artifact keeps times in 32 bits.
        assert steps == pytest.approx(published[theirs], rel=1e-5)
    assert answer["blocking_slowdown"] == pytest.approx(published["blocking_slowdown"], abs=1e-5)
    for ours, theirs in (("stage", "stage"), ("pipeline", "dp_rank"), ("operation", "optype")):
        decomposed = published[f"blocking_decompose_by_{theirs}"]
        assert answer[f"blocking_by_{ours}"] == pytest.approx(decomposed, abs=1e-5)
