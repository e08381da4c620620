# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""timeline.pftrace read with Perfetto's own schema, against plan.json."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("perfetto", reason="perfetto is not installed (tests/requirements.txt)")

from .binary import perseus

if TYPE_CHECKING:
    from pathlib import Path

schema: Any = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
CLEARED, NEEDED = 1, 2  # TracePacket.SequenceFlags


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile of two stages."""
    rows = ["stage,instruction,frequency,time,energy"]
    for stage in (0, 1):
        for clock, time, energy in ((1400, 0.1, 30.0), (1000, 0.13, 24.0)):
            rows.append(f"{stage},forward,{clock},{time * (1 + stage)},{energy}")
            rows.append(f"{stage},backward,{clock},{2 * time},{2 * energy}")
    path = tmp_path / "profile.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def value_of(annotation: Any) -> Any:
    """Return the value of a debug annotation."""
    return getattr(annotation, annotation.WhichOneof("value"))


class Trace:
    """The slices, counters and instants of a trace."""

    def __init__(self, content: bytes) -> None:
        trace = schema.Trace()
        trace.ParseFromString(content)
        # Fields that the schema does not know are dropped: nothing may be.
        known = schema.Trace()
        known.CopyFrom(trace)
        known.DiscardUnknownFields()
        assert known.SerializeToString() == trace.SerializeToString()
        assert len(trace.packet) > 0
        self.processes: dict[int, str] = {}
        self.threads: dict[int, tuple[int, str]] = {}
        self.slices: list[tuple[Any, ...]] = []
        self.counters: list[tuple[Any, ...]] = []
        self.instants: list[tuple[Any, ...]] = []
        self._tracks: dict[int, Any] = {}
        self._names: dict[str, dict[int, str]] = {"name": {}, "category": {}, "arg": {}}
        self._open: dict[int, Any] = {}
        for place, packet in enumerate(trace.packet):
            assert packet.trusted_packet_sequence_id == 1
            assert packet.sequence_flags == (NEEDED if place else CLEARED)
            self._learn(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self._describe(packet.track_descriptor)
            else:
                self._event(packet.timestamp, packet.track_event)
        assert not self._open

    def _learn(self, data: Any) -> None:
        for kind, entries in (
            ("name", data.event_names),
            ("category", data.event_categories),
            ("arg", data.debug_annotation_names),
        ):
            for entry in entries:
                assert entry.iid not in self._names[kind]
                self._names[kind][entry.iid] = entry.name

    def _describe(self, track: Any) -> None:
        assert track.uuid not in self._tracks
        self._tracks[track.uuid] = track
        if track.HasField("process"):
            self.processes[track.process.pid] = track.process.process_name
        elif track.HasField("thread"):
            assert self._tracks[track.parent_uuid].process.pid == track.thread.pid
            self.threads[track.thread.tid] = (track.thread.pid, track.thread.thread_name)

    def _args(self, event: Any) -> dict[str, Any]:
        return {self._names["arg"][a.name_iid]: value_of(a) for a in event.debug_annotations}

    def _event(self, ns: int, event: Any) -> None:
        track = self._tracks[event.track_uuid]
        kinds = schema.TrackEvent
        if event.type == kinds.TYPE_SLICE_BEGIN:
            assert track.thread.tid not in self._open
            name = self._names["name"][event.name_iid]
            (category,) = (self._names["category"][iid] for iid in event.category_iids)
            self._open[track.thread.tid] = (ns, name, category, self._args(event))
        elif event.type == kinds.TYPE_SLICE_END:
            start, name, category, args = self._open.pop(track.thread.tid)
            self.slices.append(
                (track.thread.pid, track.thread.tid, start, ns - start, name, category, args)
            )
        elif event.type == kinds.TYPE_COUNTER:
            pid = self._tracks[track.parent_uuid].process.pid
            value = event.double_counter_value
            self.counters.append((pid, track.name, ns, track.counter.unit_name, value))
        else:
            assert event.type == kinds.TYPE_INSTANT
            name = self._names["name"][event.name_iid]
            self.instants.append((track.process.pid, name, ns, self._args(event)))


def check(folder: Path) -> Trace:
    """Read a trace and compare its slices with one another."""
    trace = Trace((folder / "timeline.pftrace").read_bytes())
    assert trace.slices
    for pid, tid, _, duration, _, category, args in trace.slices:
        assert trace.threads[tid][0] == pid
        assert category == args["type"]
        assert args["power_w"] * duration * 1e-9 == pytest.approx(args["energy_j"], rel=1e-5)
    for pid in trace.processes:
        assert energy_of_counter(trace, pid) > energy_of_slices(trace, pid)
    return trace


def energy_of_slices(trace: Trace, pid: int) -> float:
    """Return the joules of all computations of a process."""
    return math.fsum(s[6]["energy_j"] for s in trace.slices if s[0] == pid)


def energy_of_counter(trace: Trace, pid: int) -> float:
    """Return the integral of a process's power."""
    steps = [(c[2], c[4]) for c in trace.counters if c[:2] == (pid, "pipeline power (W)")]
    assert {c[3] for c in trace.counters if c[1] == "pipeline power (W)"} == {"W"}
    pairs = itertools.pairwise(steps)
    return math.fsum(watts * (until - since) * 1e-9 for (since, watts), (until, _) in pairs)


JOB = ["--schedule", "1f1b", "--microbatches", "4", "--blocking-power", "60"]


def test_the_trace_of_a_plan(profile: Path, tmp_path: Path) -> None:
    """Before and after."""
    perseus(["plan", profile, *JOB, "-o", tmp_path / "out"])
    trace = check(tmp_path / "out")
    assert len(trace.slices) == 2 * 2 * 8
    assert trace.instants == []
    plan = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    planned = [
        (round(c["start_s"] * 1e9), c["stage"], c["type"], c["microbatch"], c["knob"])
        for rank in plan["ranks"]
        for c in rank["computations"]
    ]
    keys = ("stage", "type", "microbatch", "clock")
    drawn = [(s[2], *(s[6][key] for key in keys)) for s in trace.slices if s[0] == 2]
    assert Counter(drawn) == Counter(planned)
    assert energy_of_counter(trace, 2) == pytest.approx(plan["energy_j"], rel=1e-6)
    assert energy_of_counter(trace, 1) == pytest.approx(plan["baseline"]["energy_j"], rel=1e-6)


def test_the_trace_of_a_job(profile: Path, tmp_path: Path) -> None:
    """Pipelines as they ran, with the ends of the iteration."""
    scenario = ["--dp", "3", "--iterations", "2", "--noise", "1%", "--straggler", "slow=1.2"]
    perseus(["emulate", profile, *JOB, *scenario, "-o", tmp_path / "out"])
    trace = check(tmp_path / "out")
    assert trace.processes[1] == "pipeline 0 (straggles)"
    assert len(trace.instants) == 6


def test_unknown_fields_are_found(profile: Path, tmp_path: Path) -> None:
    """A field that the schema does not have fails the check."""
    perseus(["plan", profile, *JOB, "-o", tmp_path / "out"])
    content = (tmp_path / "out" / "timeline.pftrace").read_bytes()
    Trace(content)
    with pytest.raises(AssertionError):
        Trace(content + bytes([0xFA, 0xFF, 0x03, 0x01, 0x00]))  # Field 8191, one byte.
