# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus trace` against an independent replay, and against the published answers."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from perseus import PlannerError
from perseus.analysis import recording, trace, trace_energy

from . import binary, random_traces, traces

if TYPE_CHECKING:
    from collections.abc import Callable

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
def test_random_traces(tmp_path: Path, seed: int) -> None:
    """Every number is that of the independent replay."""
    rng = random.Random(seed)
    ops = random_traces.make_trace(rng)
    gpus = rng.choice([1, 2, 8])
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(random_traces.format_trace(ops, rng, gpus).encode()))
    answer = trace.analyse(str(path), accept_implausible=True)
    sizes = answer["sizes"]
    assert sizes["dp"] == 1 + max(op.pipeline for op in ops)
    assert sizes["pp"] == 1 + max(op.stage for op in ops)
    assert sizes["operations"] == len(ops)
    if sizes["dp"] * sizes["pp"] > 1:
        assert sizes["tp"] == gpus
    _check(answer, traces.read(path), 1e-9)


@pytest.mark.parametrize("name", ["ST", "SE"])
def test_published_answers(name: str) -> None:
    """The artifact of Lin et al. 2025 comes to the same, step by step."""
    folder = binary.shared_data() / "traces25"
    if not folder.is_dir():
        pytest.skip(f"no recorded traces at {folder} (set PERSEUS_SHARED_DATA)")
    answer = trace.analyse(str(folder / f"trace-{name}.csv.gz"))
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


HEADER = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
# Two pipelines of one stage; the second one's second step is long.
TWO_PIPELINES = HEADER + "".join(
    f"{pipeline},0,{2 * pipeline},{step},{rest}\n"
    for pipeline, step, backward, clip in (
        (0, 1, 2, 0.5),
        (1, 1, 2, 0.5),
        (0, 2, 2, 3.5),
        (1, 2, 5, 0.5),
    )
    for rest in (
        "forward-compute,0,1,0,0,0,0",
        f"backward-compute,1,{backward},0,0,0,0",
        f"optimizer-clip-main-grad,{1 + backward},{clip},0,-1,-1,-1",
    )
)
PROFILE = "stage,instruction,frequency,time,energy\n" + "".join(
    f"{stage},{kind},{clock},{factor * time},{factor * joules}\n"
    for stage in (0, 1)
    for kind, factor in (("forward", 1), ("backward", 2))
    for clock, time, joules in ((1400, 1.0, 300), (1200, 1.1, 275), (1000, 1.25, 260))
)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    """Return what writes a file and returns its path."""

    def written(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return written


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `perseus trace` as users do."""
    return subprocess.run(
        [sys.executable, "-B", "-m", "perseus", "trace", *arguments],
        env=binary.package_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command(write: Callable[[str, str], str], tmp_path: Path) -> None:
    """Names that others rely on; files; refusals with exit code 2 and one sentence."""
    path = write("t.csv", TWO_PIPELINES)
    done = run(path, "--json", "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["trace"] == "t.csv"
    assert [answer["sizes"][key] for key in ("tp", "dp", "pp")] == [2, 2, 1]
    step = answer["steps"][1]
    # Backwards take 2.75 s in the mean, the clip half a second in the median.
    assert (step["step"], step["recorded_s"], step["replayed_s"]) == (2, 6.5, 6.5)
    assert step["without_stragglers_s"] == pytest.approx(4.25)
    assert answer["blocking_slowdown"] == pytest.approx(5 / 4.25)
    assert answer["blocking_by_operation"]["forward-compute"] == pytest.approx(1)
    assert json.loads((tmp_path / "out/trace.json").read_text(encoding="utf-8")) == answer
    assert "<svg" in (tmp_path / "out/trace.svg").read_text(encoding="utf-8")
    for arguments, sentence in (
        ([str(tmp_path / "none.csv")], "none.csv"),
        ([path, "--profile", path], "--blocking-power WATTS"),
        ([path, "--effort", "1"], "give --profile FILE, too"),
        ([path, "--detector-steps", "0"], "0 is not from 1"),
        ([write("trace.json", TWO_PIPELINES), "-o", str(tmp_path)], "overwritten"),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
    assert (tmp_path / "trace.json").read_text(encoding="utf-8") == TWO_PIPELINES


def test_the_example_of_the_docs(write: Callable[[str, str], str]) -> None:
    """The whole file that docs/explanation/traces.md shows."""
    page = (binary.REPOSITORY / "docs/explanation/traces.md").read_text(encoding="utf-8")
    rows = re.search(r"(?:^    \S+,.*\n)+", page, re.MULTILINE)
    assert rows
    said = trace.text(trace.analyse(write("t.csv", rows[0].replace("    ", ""))))
    assert "0.9315 to 1.0685" in said
    assert re.search(r"\n +8 +0.78 +0.78 +0.73 +1.0685", said)


def test_formats_say_the_same(write: Callable[[str, str], str], tmp_path: Path) -> None:
    """CSV, Parquet, Chrome JSON, and Kineto: a folder with one file a rank."""
    expected = trace.analyse(write("t.csv", TWO_PIPELINES))
    table = pd.read_csv(io.StringIO(TWO_PIPELINES))
    table.to_parquet(tmp_path / "t.parquet")
    events: dict[int, list[dict[str, Any]]] = {0: [], 2: []}
    for row in table.sample(frac=1, random_state=1).to_dict("records"):
        args = {key: row[key] for key in ("dp_rank", "stage", "step") if key != "step"}
        if row["mb_id"] >= 0:
            args["mb_id"] = row["mb_id"]
        times = {"ts": 1e6 * (row["start_ts"] + 100 * row["step"]), "dur": 1e6 * row["duration"]}
        events[row["rank"]].append({"ph": "X", "name": row["optype"], "args": args, **times})
    for rank, own in events.items():
        for step in (1, 2):
            own.append({"ph": "X", "name": f"ProfilerStep#{step}", "ts": 100e6 * step, "dur": 9e6})
        document = {"distributedInfo": {"rank": rank}, "traceEvents": own}
        (tmp_path / "kineto").mkdir(exist_ok=True)
        (tmp_path / f"kineto/rank{rank}.json").write_text(json.dumps(document), encoding="utf-8")
    flat = [
        {**each, "args": {**each["args"], "rank": rank, "step": int(each["ts"] // 100e6)}}
        for rank, own in events.items()
        for each in own
        if "args" in each
    ]
    write("chrome.json", json.dumps(flat))
    for name in ("t.parquet", "chrome.json", "kineto"):
        answer = trace.analyse(str(tmp_path / name))
        assert answer.pop("trace") == name
        assert json.dumps(answer, default=float) == json.dumps(
            {**{k: v for k, v in expected.items() if k != "trace"}}
        ), name


def test_wrong_units_are_noticed(write: Callable[[str, str], str]) -> None:
    """By durations beside starts, by their size, and beside a profile."""
    rows = "0,0,0,1,forward-compute,{},{},{},0,{},0\n0,0,0,1,backward-compute,{},{},{},0,{},0\n"
    mixed = HEADER + rows.format(0, 1000, 0, 0, 1, 2000, 0, 0)
    mixed += rows.format(3, 1000, 1, 1, 4, 2000, 1, 1)
    path = write("mixed.csv", mixed)
    with pytest.raises(PlannerError, match=r"they last 3\.0 times"):
        trace.analyse(path)
    (note,) = trace.analyse(path, accept_implausible=True)["notes"]
    assert (note["severity"], note["source"]) == ("odd", "mixed.csv")
    slow = write("slow.csv", HEADER + rows.format(0, 30, 0, 0, 30, 60, 0, 0))
    with pytest.raises(PlannerError, match="the shortest computation lasts 30"):
        trace.analyse(slow)
    profile = write("profile.csv", PROFILE)
    for factor, refused in ((1.0, False), (1e3, True), (1e6, True), (1e-3, True), (2.0, False)):
        times = [0, 0.75 * factor, 0, 0, 0.75 * factor, 1.5 * factor, 0, 0]
        path = write("t.csv", HEADER + rows.format(*times))
        if refused:
            with pytest.raises(PlannerError, match="--accept-implausible"):
                trace.analyse(path, profile, blocking_power=20)
        else:
            energy = trace.analyse(path, profile, blocking_power=20)["energy"]
            assert len(energy["plans"]) == 7
    # One stage and one microbatch leave nothing to save.
    path = write("t.csv", HEADER + rows.format(0, 0.75, 0, 0, 0.75, 1.5, 0, 0))
    assert "The 6 other plans" in trace.text(trace.analyse(path, profile, blocking_power=20))


def test_what_is_no_trace_is_refused_with_its_place(write: Callable[[str, str], str]) -> None:
    """Cells, columns, counts and circles; then anything at all."""
    for old, new, sentence in (
        ("seq_id", "sequence", "1: unknown column 'sequence'"),
        (",gmc\n", "\n", "fields in line 2"),
        ("0,0,0,1,forward", "x,0,0,1,forward", "2: dp_rank 'x' is not valid"),
        ("0,0,0,1,forward", "0,0,0,1,sideward", "2: optype 'sideward-compute' is not valid"),
        ("compute,0,1,", "compute,0,nan,", "2: duration 'nan' is not valid"),
        ("0,0,0,1,back", "0,0,1,1,back", "rank 1 of dp_rank 0, stage 0, which is rank 0"),
        ("1,2,0,0,0,0", "1,2,1,0,0,0", "follows none of 0"),
        ("1,2,0,0,0,0", "1,2,0,0,-1,0", "needs its microbatch"),
        ("1,2,0,0,0,0", "1,2,0,1,0,0", "gmc 0 is not mc x stages"),
        ("0,0,0,1,backward", "0,0,0,1,forward", "is there twice"),
        ("0,0,0,2,", "0,0,0,3,", "step 3 has no row of dp_rank 1"),
    ):
        with pytest.raises(PlannerError, match=sentence):
            recording.read(write("t.csv", TWO_PIPELINES.replace(old, new, 1)))
    rng = random.Random(41)
    text = TWO_PIPELINES.encode()
    whole = gzip.compress(text)
    for k in range(300):
        data = bytearray(rng.choice([text, whole, b'[{"ph": "X", "ts": 1}]', b"PAR1" + text]))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice(
                [0, 10, 44, 45, 57, 255, rng.randrange(256)]
            )
        path = Path(write(f"{k}", ""))
        path.write_bytes(data[: rng.randint(1, len(data))])
        with contextlib.suppress(PlannerError):
            trace.link(recording.read(str(path)))


class TestEnergy:
    """Plans of a made-up job of two stages."""

    def answer(
        self, write: Callable[[str, str], str], seconds: Callable[..., float], **sizes: int
    ) -> dict[str, Any]:
        """Return what is said of a job whose forwards take so long, and backwards twice that."""
        steps, pipelines, microbatches = (
            sizes.get(key, default) for key, default in (("steps", 2), ("pipelines", 2), ("m", 6))
        )
        rows = []
        for step in range(steps):
            for pipeline in range(pipelines):
                ends = np.zeros(2)
                sent = np.zeros((2, microbatches))  # When forward (backward) has come over.
                order = [random_traces.order(stage, 2, 1, microbatches) for stage in range(2)]
                counts: dict[tuple[int, str], int] = {}
                at = [0, 0]
                while any(at[stage] < len(order[stage]) for stage in range(2)):
                    for stage in range(2):
                        if at[stage] == len(order[stage]):
                            continue
                        kind, _, m = order[stage][at[stage]]
                        forward = kind == traces.FORWARD
                        arrives = (stage == 1) == forward
                        ready = sent[0 if forward else 1, m] if arrives else 0.0
                        if arrives and not ready:
                            continue
                        start = max(ends[stage], ready)
                        time = seconds(step, pipeline, stage, m) * (1 if forward else 2)
                        ends[stage] = start + time
                        at[stage] += 1
                        moved = [("recv", max(ready - 0.01, 0), 0.01)] if arrives else []
                        if not arrives:
                            sent[0 if forward else 1, m] = ends[stage] + 0.01
                            moved = [("send", ends[stage], 0.01)]
                        place = f"{pipeline},{stage},{2 * pipeline + stage},{step}"
                        for name, begin, lasts, cells in (
                            (kind, start, time, f"0,{m},{stage}"),
                            *(
                                (f"{kind.split('-')[0]}-{way}", b, t, "-1,-1,-1")
                                for way, b, t in moved
                            ),
                        ):
                            number = counts[stage, name] = counts.get((stage, name), -1) + 1
                            rows.append(f"{place},{name},{begin!r},{lasts!r},{number},{cells}\n")
        text = HEADER + "".join(rows).replace("np.float64(", "").replace(")", "")
        path, profile = write("made.csv", text), write("profile.csv", PROFILE)
        answer = trace.analyse(
            path,
            profile,
            blocking_power=20,
            accept_implausible=True,
            detector_steps=sizes.get("detector_steps", 12),
        )
        energy: dict[str, Any] = answer["energy"]
        return energy

    def test_at_maximum_clocks(self, write: Callable[[str, str], str]) -> None:
        """It is the power times the time."""
        energy = self.answer(write, lambda *_: 1.0)
        waiting = 20 * (2 * energy["step_s"] - 2 * 6 * 3)
        assert energy["energy_j"] == pytest.approx(2 * (2 * 6 * 900 + waiting))
        assert energy["blocking_j"] == pytest.approx(2 * waiting)
        parts = ("useful_j", "intrinsic_bloat_j", "extrinsic_bloat_j", "blocking_j")
        assert sum(energy[part] for part in parts) == pytest.approx(energy["energy_j"])
        assert energy["intrinsic_bloat_j"] > 0
        assert energy["extrinsic_bloat_j"] == pytest.approx(0, abs=1e-6)
        static = energy["plans"][1]
        assert static["slowdown_percent"] == pytest.approx(0, abs=1e-9)
        assert static["saving_percent"] > 1

    def test_plans_keep_the_time_and_save_the_bloat(self, write: Callable[[str, str], str]) -> None:
        """Of variable lengths, which predict the times."""

        def seconds(step: int, pipeline: int, stage: int, m: int) -> float:
            return (1 + 0.5 * ((step * 5 + pipeline * 11 + m * 3) % 4)) * (1 + 0.2 * stage)

        energy = self.answer(write, seconds)
        plans = {plan["plan"]: plan for plan in energy["plans"]}
        assert list(plans) == list(trace_energy.POLICIES)
        assert plans["per-iteration-alone"]["slowdown_percent"] == pytest.approx(0, abs=1e-6)
        assert plans["per-iteration"]["slowdown_percent"] <= 1e-6
        bloat = energy["intrinsic_bloat_j"] + energy["extrinsic_bloat_j"]
        percent = 100 * bloat / energy["energy_j"]
        saved = plans["per-iteration"]["saving_percent"]
        assert max(0.8 * percent, plans["per-iteration-alone"]["saving_percent"]) < saved
        assert saved <= percent + 1e-6
        assert energy["length_error"] < 1e-6
        assert plans["per-iteration-lengths"]["saving_percent"] == pytest.approx(saved, abs=0.2)

    def test_a_straggler_is_answered_once_it_is_known(
        self, write: Callable[[str, str], str]
    ) -> None:
        """After as many steps as the detector looks at; also one that is slower than any factor."""
        for slow, least in ((1.25, 0), (1e7, 1)):
            energy = self.answer(
                write,
                lambda step, pipeline, stage, m, by=slow: by if pipeline == 2 else 1.0,
                pipelines=3,
                steps=5,
                detector_steps=2,
            )
            assert energy["steps_with_known_stragglers"] == 3
            base, answered = (
                [step[key]["energy_j"] for step in energy["steps"]]
                for key in ("static", "static-stragglers")
            )
            assert answered[1] == pytest.approx(base[1])
            assert answered[2] < base[2] - least
