# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus trace`: what stragglers cost a recorded job, and what plans would have saved.

The method is that of Lin et al. 2025 (arXiv 2505.05713); docs/explanation/traces.md explains it.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from perseus.analysis import recording as rec
from perseus.note import Note
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perseus.analysis.recording import Floats, Ints, Recording
    from perseus.analysis.trace_energy import Costs

_TRANSFERS = range(rec.FORWARD_SEND, rec.BACKWARD_RECEIVE + 1)
_SENDS = (rec.FORWARD_SEND, rec.BACKWARD_SEND)
# Both sides of a transfer are one, where slowdowns are stated.
_NAMES = tuple(
    f"{kind.split('-')[0]}-pp-comm" if code in _TRANSFERS else kind
    for code, kind in enumerate(rec.KINDS)
)
# They do not wait for others: what is usual is their mean. Of others it is the median, as one that
# came late has waited less.
_BY_MEAN = (rec.FORWARD, rec.BACKWARD, rec.COLLECT_GARBAGE, rec.OPTIMIZER)
# Operations after the last computation of a rank, in this order.
_TAIL = (rec.COLLECT_GARBAGE, rec.LAYER_NORM, rec.EMBEDDING, rec.SCATTER, rec.CLIP, rec.OPTIMIZER)
_CLOCK_SKEW_SECONDS = 0.01
_ROUNDING_SECONDS = 1e-4  # Times of host and device, of one rank.
_MOST_REPLAYED_OPERATIONS = 4e8
_MOST_ROWS = 10


@dataclass
class Links:
    """What operations wait for, by their rows.

    An operation begins when all that it waits for have ended. The operations of a group (both sides
    of a transfer, all pipelines of a collective) proceed when all of them have begun.

    Attributes
    ----------
    before, after
        Pairs: the second waits for the first.
    computation
        Of a transfer: the computation whose input or output it moves; -1: none.
    members, group_first, level_first
        Rows group by group; where each group begins in `members`, and one more; where each level
        begins in `group_first`. Groups of a level wait only for earlier levels.
    """

    before: Ints
    after: Ints
    computation: Ints
    members: Ints
    group_first: Ints
    level_first: Ints


def link(recording: Recording) -> Links:
    """Find out which operation waited for which, each pipeline and step by its own rows.

    Raises
    ------
    PlannerError
        Transfers without their other side, or orders that wait for each other in a circle.
    """
    waits = _Waits(recording)
    before, after = waits.edges()
    group, count = _groups(recording, waits.computation)
    order, level_first = _run_order(recording, group[before], group[after], group, count)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    members = np.argsort(place[group], kind="stable")
    group_first = np.searchsorted(place[group[members]], np.arange(count + 1))
    return Links(before, after, waits.computation, members, group_first, level_first)


class _Waits:
    """What the operations of a rank wait for, of all ranks and steps at once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._cells = len(recording.steps) * recording.places
        self._cell = recording.column("cell")
        self._kind = recording.column("kind")
        self._sequence = recording.column("seq_id")
        self._chunk = recording.column("mc")
        self._block = recording.column("gmc")
        self._of = [np.flatnonzero(self._kind == code) for code in range(len(rec.KINDS))]
        both = np.flatnonzero(self._kind <= rec.BACKWARD)
        start = recording.column("start_ts")
        keys = (self._kind, self._sequence, start, self._cell)
        self._computes = both[np.lexsort([key[both] for key in keys])]
        self.computation: Ints = np.full(len(self._kind), -1, np.int64)
        self._edges: list[tuple[Ints, Ints]] = []
        self._chain(self._computes)
        for code in _TRANSFERS:
            self._chain(self._of[code])
            self._link_transfers(code)
        self._link_first_backward_transfers()
        self._link_gathers()
        self._link_tail()

    def edges(self) -> tuple[Ints, Ints]:
        """Return all (before, after), rank by rank."""
        before = np.concatenate([each[0] for each in self._edges])
        after = np.concatenate([each[1] for each in self._edges])
        order = np.argsort(self._cell[after], kind="stable")
        return before[order], after[order]

    def _chain(self, rows: Ints) -> None:
        """Let rows, cell by cell, wait for the one before."""
        same = self._cell[rows[1:]] == self._cell[rows[:-1]]
        self._edges.append((rows[:-1][same], rows[1:][same]))

    def _count(self, rows: Ints) -> Ints:
        return np.bincount(self._cell[rows], minlength=self._cells)

    def _has_peer(self, computes: Ints, transfer: int) -> Any:
        """Whether the other end of the transfers of computations is another stage."""
        last = self._recording.virtual_stages * self._recording.stages - 1
        upwards = transfer in (rec.FORWARD_SEND, rec.BACKWARD_RECEIVE)
        return (self._block[computes] != (last if upwards else 0)) & (self._recording.stages > 1)

    def _link_transfers(self, code: int) -> None:
        """One for each computation that needs one; or one for each, of which some moved nothing."""
        forward = code in (rec.FORWARD_SEND, rec.FORWARD_RECEIVE)
        transfers = self._of[code]
        computes = self._of[rec.FORWARD if forward else rec.BACKWARD]
        needs = self._has_peer(computes, code)
        given, needed = self._count(transfers), self._count(computes[needs])
        wrong = np.flatnonzero((given != needed) & (given != self._count(computes)))
        if len(wrong):
            rows = transfers if given[wrong[0]] else computes
            row = int(rows[np.searchsorted(self._cell[rows], wrong[0])])
            raise PlannerError(
                f"{self._recording.where(row)}: {_place(self._recording, row)} has "
                f"{given[wrong[0]]} {rec.KINDS[code]} for {needed[wrong[0]]} computations that "
                "need one"
            )
        served = computes[needs | (given != needed)[self._cell[computes]]]
        peer = self._has_peer(served, code)
        self.computation[transfers[peer]] = served[peer]
        if code in _SENDS:
            self._edges.append((served, transfers))
            return
        # The row before a computation is the one of its kind before it.
        before = np.stack([transfers, served - 1], axis=1).ravel()
        after = np.stack([served, transfers], axis=1).ravel()
        exists = np.stack([served >= 0, self._sequence[served] > 0], axis=1).ravel()
        self._edges.append((before[exists], after[exists]))

    def _link_first_backward_transfers(self) -> None:
        """They begin with those of the forward before the last one of the warm-up, in one call."""
        computes = self._computes
        first = np.searchsorted(self._cell[computes], np.arange(self._cells))
        backwards = np.flatnonzero(self._kind[computes] == rec.BACKWARD)
        _, index = np.unique(self._cell[computes[backwards]], return_index=True)
        backward = backwards[index]  # [cell]
        for code in (rec.BACKWARD_RECEIVE, rec.BACKWARD_SEND):
            rows = self._of[code][self._sequence[self._of[code]] == 0]
            cell = self._cell[rows]
            warm = backward[cell] - first[cell] >= 2
            self._edges.append((computes[backward[cell[warm]] - 2], rows[warm]))

    def _first_of_chunk(self, rows: Ints, chunks_of: Ints) -> tuple[Ints, Ints]:
        """Return which of `chunks_of` have a row of their chunk (-1: any), and the first one."""
        width = 2 + max(self._chunk.max(), 0)
        keys = np.concatenate(
            [self._cell[rows] * width, self._cell[rows] * width + 1 + self._chunk[rows]]
        )
        known, index = np.unique(keys, return_index=True)
        wanted = self._cell[chunks_of] * width + 1 + self._chunk[chunks_of]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found = known[place] == wanted
        return np.flatnonzero(found), rows[index[place[found]] % len(rows)]

    def _ends_of_chunks(self, rows: Ints, first: bool) -> Ints:
        """Return the first or last row of each chunk of a cell."""
        frame = pd.DataFrame({"cell": self._cell[rows], "chunk": self._chunk[rows], "row": rows})
        kept = frame.drop_duplicates(["cell", "chunk"], keep="first" if first else "last")
        ends: Ints = kept.sort_values(["cell", "chunk"])["row"].to_numpy()
        return ends

    def _link_gathers(self) -> None:
        """Parameters are gathered chunk by chunk, before the chunk's first forward."""
        stream = np.concatenate([self._of[rec.GATHER], self._of[rec.SCATTER]])
        self._chain(stream[np.argsort(self._cell[stream], kind="stable")])
        gathers = self._ends_of_chunks(self._of[rec.GATHER], first=False)
        forwards = self._computes[self._kind[self._computes] == rec.FORWARD]
        found, first = self._first_of_chunk(forwards, gathers)
        self._edges.append((gathers[found], first))

    def _link_tail(self) -> None:
        """Link what follows the last computation.

        Where gradients are reduced chunk by chunk behind the computations, which "separate" ones
        tell, only the rest follows.
        """
        overlapped = self._count(self._of[rec.SEPARATE]) > 0
        computes = self._computes
        end = self._recording.column("end")
        latest = np.lexsort((-end[computes], self._cell[computes]))
        _, index = np.unique(self._cell[computes[latest]], return_index=True)
        place_of = np.zeros(len(rec.KINDS), np.int64)
        place_of[list(_TAIL)] = np.arange(1, len(_TAIL) + 1)
        place_of[rec.SEPARATE] = place_of[rec.SCATTER]
        follows = place_of[self._kind] > 0
        follows &= (self._kind != rec.SCATTER) | ~overlapped[self._cell]
        rows = np.concatenate([computes[latest[index]], np.flatnonzero(follows)])
        place = np.where(self._kind[rows] <= rec.BACKWARD, 0, place_of[self._kind[rows]])
        self._chain(rows[np.lexsort((self._sequence[rows], place, self._cell[rows]))])

        scatters = self._of[rec.SCATTER]
        scatters = scatters[overlapped[self._cell[scatters]]]
        if not len(scatters):
            return
        norms = self._of[rec.LAYER_NORM][self._sequence[self._of[rec.LAYER_NORM]] == 0]
        last_scatter = np.full(self._cells, -1)
        last_scatter[self._cell[scatters]] = scatters
        norms = norms[last_scatter[self._cell[norms]] >= 0]
        self._edges.append((last_scatter[self._cell[norms]], norms))
        scatters = self._ends_of_chunks(scatters, first=True)
        backwards = computes[::-1][self._kind[computes[::-1]] == rec.BACKWARD]
        found, last = self._first_of_chunk(backwards, scatters)
        self._edges.append((last, scatters[found]))


def _groups(recording: Recording, computation: Ints) -> tuple[Ints, int]:
    """Return the group of each operation: those of equal words work together."""
    kind, sequence = recording.column("kind"), recording.column("seq_id")
    pipeline, stage = recording.column("dp_rank"), recording.column("stage")
    block, microbatch = recording.column("gmc"), recording.column("mb_id")
    size = len(kind)
    words = np.zeros((5, size), np.int64)
    words[0] = recording.column("step_index")
    words[1], words[2] = len(rec.KINDS), np.arange(size)  # Alone.
    moves = computation >= 0
    forward = (kind == rec.FORWARD_SEND) | (kind == rec.FORWARD_RECEIVE)
    # The boundary is named by the block that receives.
    receiver = block[computation] + np.isin(kind, _SENDS) * np.where(forward, 1, -1)
    words[1:, moves] = np.stack(
        [np.where(forward, 0, 1), pipeline, receiver, microbatch[computation]]
    )[:, moves]
    collectives = {
        rec.EMBEDDING: pipeline,
        rec.CLIP: np.zeros(size, np.int64),
        rec.GATHER: stage,
        rec.SCATTER: stage,
        rec.SEPARATE: stage,
    }
    for code, among in collectives.items():
        own = kind == code
        words[1:, own] = np.stack([kind, among, np.zeros(size, np.int64), sequence])[:, own]
    order = np.lexsort(words[::-1])
    new = np.any(words[:, order[1:]] != words[:, order[:-1]], axis=0)
    group = np.empty(size, np.int64)
    group[order] = np.concatenate([[0], np.cumsum(new)])
    count = int(group.max()) + 1
    members = np.bincount(group, minlength=count)
    sends = np.bincount(group, weights=np.isin(kind, _SENDS), minlength=count)
    wrong = np.flatnonzero(moves & ((members[group] != 2) | (sends[group] != 1)))
    if len(wrong):
        row = int(wrong[0])
        raise PlannerError(
            f"{recording.where(row)}: {rec.KINDS[kind[row]]} {sequence[row]} of "
            f"{_place(recording, row)} has {members[group[row]] - 1} on the other side; "
            "expected one"
        )
    return group, count


def _run_order(
    recording: Recording, before: Ints, after: Ints, group: Ints, count: int
) -> tuple[Ints, Ints]:
    """Return an order in which groups can run, and where its levels begin."""
    missing = np.bincount(after, minlength=count)
    by_source = np.argsort(before, kind="stable")
    first = np.searchsorted(before[by_source], np.arange(count + 1))
    ready = np.flatnonzero(missing == 0)
    levels: list[Ints] = []
    last = np.empty(count, np.int64)
    while len(ready):
        levels.append(ready)
        widths = first[ready + 1] - first[ready]
        starts = np.repeat(first[ready] - np.concatenate([[0], np.cumsum(widths)[:-1]]), widths)
        targets = after[by_source[starts + np.arange(len(starts))]]
        np.subtract.at(missing, targets, 1)
        last[targets] = np.arange(len(targets))
        ready = np.unique(targets)
        ready = ready[missing[ready] == 0]
        ready = ready[np.argsort(last[ready])]
    order = np.concatenate(levels) if levels else np.zeros(0, np.int64)
    if len(order) < count:
        runs = np.zeros(count, bool)
        runs[order] = True
        row = int(np.argmin(runs[group]))
        kind, sequence = recording.rows.at[row, "kind"], recording.rows.at[row, "seq_id"]
        raise PlannerError(
            f"{recording.where(row)}: the operations of {_place(recording, row)} wait for each "
            f"other in a circle, {rec.KINDS[kind]} {sequence} among them; are start times or "
            "microbatches (mb_id) mixed up?"
        )
    return order, np.cumsum([0, *(len(level) for level in levels)])


def _place(recording: Recording, row: int) -> str:
    step, pipeline, stage = recording.rows.loc[row, ["step", "dp_rank", "stage"]]
    return f"step {step}, dp_rank {pipeline}, stage {stage}"


class Replay:
    """Replays a recording with any times of its operations.

    An operation begins when all that it waits for have ended. It ends its own time after the last
    operation of its group has begun.
    """

    def __init__(self, recording: Recording, links: Links) -> None:
        members, group_first = links.members, links.group_first
        self._members = members
        place = np.empty(len(members), np.int64)  # [row] -> in members
        place[members] = np.arange(len(members))
        step_index = recording.column("step_index")
        self._step_first = np.searchsorted(step_index, np.arange(len(recording.steps)))
        order = np.argsort(place[links.after], kind="stable")
        after, before = place[links.after[order]], place[links.before[order]]
        waiting, first = np.unique(after, return_index=True)
        first = np.append(first, len(after))
        self._levels = []
        for level, end in zip(links.level_first[:-1], links.level_first[1:]):
            begin, stop = group_first[level], group_first[end]
            low, high = np.searchsorted(waiting, [begin, stop])
            groups = group_first[level : end + 1] - begin
            self._levels.append(
                (
                    slice(begin, stop),
                    waiting[low:high] - begin,
                    before[first[low] : first[high]],
                    first[low:high] - first[low],
                    groups[:-1],
                    np.repeat(np.arange(end - level), np.diff(groups)),
                )
            )

    def __call__(self, own: Floats) -> tuple[Floats, Floats]:
        """Return [step] and [row] the ends of [row] times, or of [row, scenario] times."""
        own = own[self._members]
        end = np.empty_like(own)
        for rows, waiting, before, first, groups, group_of in self._levels:
            start = np.zeros_like(own[rows])
            if len(waiting):
                start[waiting] = np.maximum(np.maximum.reduceat(end[before], first), 0)
            all_begun = np.maximum.reduceat(start, groups)
            end[rows] = all_begun[group_of] + own[rows]
        ends = np.empty_like(end)
        ends[self._members] = end
        return np.maximum(np.maximum.reduceat(ends, self._step_first), 0), ends


def own_seconds(recording: Recording, links: Links) -> Floats:
    """Return how long each operation itself took: in a group, from the last begin to its end.

    Clocks of ranks differ, so values below -10 ms are replaced by 0.
    """
    first = links.group_first
    start, end = recording.column("start_ts"), recording.column("end")
    begun = np.maximum.reduceat(start[links.members], first[:-1])
    sizes = np.diff(first)
    own = np.empty(len(start))
    own[links.members] = np.where(
        np.repeat(sizes == 1, sizes),
        recording.column("duration")[links.members],
        end[links.members] - np.repeat(begun, sizes),
    )
    own[own <= -_CLOCK_SKEW_SECONDS] = 0
    return own


def usual_seconds(recording: Recording, own: Floats) -> Floats:
    """Return the same without stragglers: of each kind the mean, or the median."""
    kind = recording.column("kind")
    usual = np.zeros(len(own))
    for code in np.unique(kind):
        rows = kind == code
        usual[rows] = np.mean(own[rows]) if code in _BY_MEAN else np.median(own[rows])
    return usual


def what_if(
    recording: Recording, links: Links, most_replayed: float = _MOST_REPLAYED_OPERATIONS
) -> dict[str, Any]:
    """Return what stragglers cost, with the keys of trace.json.

    A slowdown is the mean time of a step over the mean time without stragglers. Of
    `blocking_by_...`, only the named operations keep their recorded times; null: too many to replay
    each.
    """
    replay = Replay(recording, links)
    own = own_seconds(recording, links)
    usual = usual_seconds(recording, own)
    replayed, _ = replay(own)
    without, _ = replay(usual)
    frame = recording.rows.groupby("step_index")
    recorded = (frame["end"].max() - frame["start_ts"].min()).to_numpy()
    ideal = float(np.mean(without))

    def slowdowns(of: Ints, values: Sequence[int]) -> list[float] | None:
        if len(values) * float(len(own)) > most_replayed:
            return None
        found: list[float] = []
        width = max(1, 4_000_000 // len(own))
        for begin in range(0, len(values), width):
            keeps = of[:, None] == np.asarray(values[begin : begin + width])[None, :]
            steps, _ = replay(np.where(keeps, own[:, None], usual[:, None]))
            means = np.mean(steps, axis=0)
            found += [float(mean / ideal) if ideal > 0 else 1.0 for mean in means]
        return found

    def numbered(of: Ints, count: int) -> dict[str, float] | None:
        found = slowdowns(of, range(count))
        return None if found is None else {str(i): each for i, each in enumerate(found)}

    place = recording.column("dp_rank") * recording.stages + recording.column("stage")
    by_place = slowdowns(place, range(recording.places))
    names = sorted(set(_NAMES))
    name_of = np.array([names.index(name) for name in _NAMES])[recording.column("kind")]
    present = [int(code) for code in np.unique(name_of)]
    by_name = slowdowns(name_of, present) or []
    by_operation = sorted(zip((names[i] for i in present), by_name), key=lambda each: -each[1])
    delays, chain = _launch_delays(recording, links)
    replayed_mean = float(np.mean(replayed))

    def ratio(a: float, b: float) -> float:
        return a / b if b > 0 else 1.0

    return {
        "steps": [
            {
                "step": step,
                "recorded_s": float(recorded[i]),
                "replayed_s": float(replayed[i]),
                "without_stragglers_s": float(without[i]),
            }
            for i, step in enumerate(recording.steps)
        ],
        "recorded_s": float(np.mean(recorded)),
        "replayed_s": replayed_mean,
        "without_stragglers_s": ideal,
        "launch_slowdown": ratio(float(np.mean(recorded)), replayed_mean),
        "blocking_slowdown": ratio(replayed_mean, ideal),
        "blocking_by_stage": numbered(recording.column("stage"), recording.stages),
        "blocking_by_operation": dict(by_operation),
        "blocking_by_pipeline": numbered(recording.column("dp_rank"), recording.pipelines),
        "blocking_by_rank": by_place
        and [
            {
                "rank": recording.ranks[i],
                "pipeline": i // recording.stages,
                "stage": i % recording.stages,
                "slowdown": slowdown,
            }
            for i, slowdown in enumerate(by_place)
        ],
        "launch_delays": delays,
        "other_chain_s": chain - replayed_mean,
    }


def _launch_delays(recording: Recording, links: Links) -> tuple[list[dict[str, Any]], float]:
    """Return gaps of the longest chains of the recorded steps, and the time of their operations.

    From the end of a step back: from each operation to the last of what its group waited for, or of
    what the rank that came last to the group did before.
    """
    start: list[float] = recording.column("start_ts").tolist()
    end: list[float] = recording.column("end").tolist()
    cell: list[int] = recording.column("cell").tolist()
    cell_first = np.searchsorted(
        recording.column("cell"), np.arange(len(recording.steps) * recording.places + 1)
    )
    group_of = np.empty(len(start), np.int64)
    group_of[links.members] = np.repeat(
        np.arange(len(links.group_first) - 1), np.diff(links.group_first)
    )
    by_after = np.argsort(links.after, kind="stable")
    wait_first = np.searchsorted(links.after[by_after], np.arange(len(start) + 1)).tolist()
    waits = links.before[by_after].tolist()
    orders: dict[int, tuple[list[int], list[float]]] = {}

    def previous_on_rank(row: int) -> int:
        here = cell[row]
        if here not in orders:
            rows = range(cell_first[here], cell_first[here + 1])
            by_end = sorted(rows, key=lambda each: (end[each], -each))
            orders[here] = (by_end, [end[each] for each in by_end])
        by_end, ends = orders[here]
        for k in range(bisect.bisect_right(ends, start[row] + _ROUNDING_SECONDS) - 1, -1, -1):
            if (start[by_end[k]], by_end[k]) < (start[row], row):
                return by_end[k]
        return -1

    gaps: dict[tuple[int, int], float] = {}
    busy = 0.0
    kind, stage = recording.column("kind"), recording.column("stage")
    for step in range(len(recording.steps)):
        begin = int(cell_first[step * recording.places])
        stop = int(cell_first[(step + 1) * recording.places])
        step_start = min(start[begin:stop])
        current = max(range(begin, stop), key=lambda row: end[row])
        # Clocks of ranks differ: a chain through them might not go back in time.
        for length in range(begin, stop):
            last, before = current, -1
            group = group_of[current]
            for member in links.members[links.group_first[group] : links.group_first[group + 1]]:
                if start[member] > start[last]:
                    last = int(member)
                for wait in waits[wait_first[member] : wait_first[member + 1]]:
                    if before < 0 or end[wait] > end[before]:
                        before = wait
            own = previous_on_rank(last)
            if own >= 0 and (before < 0 or end[own] > end[before]):
                before = own
            ready = step_start if before < 0 else end[before]
            busy += end[current] - start[last]
            where = int(kind[last]), int(stage[last])
            gaps[where] = gaps.get(where, 0.0) + start[last] - ready
            if before < 0:
                break
            if length + 1 == stop:
                gaps[where] += ready - step_start
            current = before
    steps = len(recording.steps)
    named = sorted((rec.KINDS[kind], stage, gap / steps) for (kind, stage), gap in gaps.items())
    delays = [
        {"operation": name, "stage": stage, "seconds_per_step": gap}
        for name, stage, gap in sorted(named, key=lambda each: -each[2])
    ]
    return delays, busy / steps


def check(recording: Recording, costs: Costs | None) -> list[Note]:
    """Return what is odd or implausible: times that are probably not in seconds."""
    computes = recording.rows[recording.rows["kind"] <= rec.BACKWARD]
    by_cell = computes.groupby("cell")
    spans = float((by_cell["end"].max() - by_cell["start_ts"].min()).sum())
    busy = float(computes["duration"].sum())
    shortest = float(computes["duration"].min())
    median = float(statistics.median_high(computes["duration"]))
    source = os.path.basename(recording.source)
    notes = []

    def add(severity: str, text: str) -> None:
        notes.append(Note(severity, text, source, None, None))

    if busy > 1.5 * spans:
        add(
            "implausible",
            f"the computations of a rank overlap: they last {busy / max(spans, 1e-9):.1f} times as "
            "long as from the start of the first to the end of the last; start_ts and duration "
            "must both be in seconds",
        )
    elif shortest > 10:
        add(
            "implausible",
            f"the shortest computation lasts {shortest:g} s; are start_ts and duration in milli- "
            "or microseconds? They must be in seconds",
        )
    elif median < 1e-5:
        add(
            "implausible",
            f"half of the computations last less than {median:g} s, and computations take 10 us or "
            "more; start_ts and duration must be in seconds",
        )
    elif median > 2:
        add(
            "odd",
            f"half of the computations last longer than {median:g} s; if start_ts and duration are "
            "in milliseconds, divide them by 1000",
        )
    if costs is None or median <= 0:
        return notes
    factor = median / costs.median_seconds()
    size = max(factor, 1 / factor)
    if size >= 300:
        add(
            "implausible",
            f"computations of the trace last about {factor:.2g} times as long as those of the "
            f"profile at its highest clock ({median:.3g} s and {costs.median_seconds():.3g} s); is "
            f"{'the trace' if factor > 1 else 'the profile'} in "
            f"{'milli' if size < 300e3 else 'micro'}seconds?",
        )
    return notes


def _note_json(note: Note) -> dict[str, Any]:
    found: dict[str, Any] = {"severity": note.severity, "text": note.text}
    if note.source:
        found["source"] = os.path.basename(note.source)
    if note.line:
        found.update(line=note.line, column=note.column)
    return found


def analyse(
    path: str,
    profile: str | None = None,
    *,
    blocking_power: float = 0.0,
    tp: int | None = None,
    detector_steps: int = 12,
    effort: float | None = None,
    strict: bool = False,
    accept_implausible: bool = False,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Return what `perseus trace --json` prints (docs/explanation/traces.md).

    Raises
    ------
    PlannerError
        The file or the profile is wrong, or implausible and not accepted.
    """
    from perseus.analysis import trace_energy

    recording = rec.read(path)
    costs = None
    if profile is not None:
        gpus = tp or recording.gpus_per_rank
        costs = trace_energy.Costs.read(profile, blocking_power, gpus, strict=strict or None)
    notes = check(recording, costs) + (costs.notes if costs else [])
    if accept_implausible:
        notes = [note._replace(severity="odd") for note in notes]
    notes.sort(key=lambda note: note.severity)  # "implausible" first.
    if strict and notes:
        raise PlannerError(f"{notes[0]} (--strict refuses what is odd)")
    if notes and notes[0].severity != "odd":
        raise PlannerError(f"{notes[0]}; if it is right, give --accept-implausible")
    links = link(recording)
    answer: dict[str, Any] = {
        "schema_version": 1,
        "trace": os.path.basename(path.rstrip("/")),
        "sizes": {
            "tp": recording.gpus_per_rank,
            "dp": recording.pipelines,
            "pp": recording.stages,
            "virtual_stages": recording.virtual_stages,
            "microbatches": recording.microbatches,
            "gpus": recording.gpus_per_rank * recording.places,
            "steps": len(recording.steps),
            "operations": len(recording.rows),
        },
        "notes": [_note_json(note) for note in notes],
        **what_if(recording, links),
    }
    if costs is not None:
        answer["energy"] = trace_energy.energy(
            recording,
            links,
            costs,
            effort=trace_energy.EFFORT if effort is None else effort,
            detector_steps=detector_steps,
            progress=progress,
        )
    return answer


def _table(frame: pd.DataFrame, by: str | None = None) -> str:
    """Return the first rows of a table, the greatest of a column first."""
    if by is not None:
        frame = frame.sort_values(by, ascending=False, kind="stable")
    shown = str(frame.head(_MOST_ROWS).to_string(index=False, justify="right"))
    rest = len(frame) - _MOST_ROWS
    return shown + (f"\nand {rest} more" if rest > 0 else "")


def text(answer: dict[str, Any]) -> str:
    """Return an answer for people."""
    sizes = answer["sizes"]
    notes = "".join(f"Note: {each['source']}: {each['text']}.\n" for each in answer["notes"])
    steps = pd.DataFrame(answer["steps"])
    steps["slowdown"] = steps["replayed_s"] / steps["without_stragglers_s"]
    least, most = steps["slowdown"].min(), steps["slowdown"].max()
    parts = [
        f"{answer['trace']}: {sizes['dp']} pipelines x {sizes['pp']} stages x {sizes['tp']} GPUs "
        f"of a rank (DP x PP x TP), {sizes['microbatches']} microbatches a step, {sizes['steps']} "
        f"recorded steps, {sizes['operations']} operations.\n{notes}",
        f"Stragglers make a step {answer['blocking_slowdown']:.4f} times as long ({least:.4f} to "
        f"{most:.4f} in single steps). A replayed step takes {answer['replayed_s']:.4f} s, without "
        f"stragglers {answer['without_stragglers_s']:.4f} s; the recorded one took "
        f"{answer['recorded_s']:.4f} s. (Means. In a replay, each operation starts as soon as it "
        "can.)\n",
        _table(steps.round(4)),
        "\nThe slowdown if only these operations keep their recorded times and all others run as "
        "without stragglers:",
    ]
    for heading in ("operation", "stage", "pipeline", "rank"):
        found = answer[f"blocking_by_{heading}"]
        if found is None:
            parts.append(f"\nBy {heading}: left out, as there are too many to replay each.")
        else:
            rows = (
                found if heading == "rank" else [{heading: k, "slowdown": found[k]} for k in found]
            )
            parts.append("\n" + _table(pd.DataFrame(rows).round(4), "slowdown"))
    delays = pd.DataFrame(answer["launch_delays"])
    delays["ms a step"] = (1e3 * delays.pop("seconds_per_step")).round(3)
    delays = delays[delays["ms a step"] > 0]
    parts.append(
        "\nNo step has an unexplained gap of 0.001 ms or more."
        if delays.empty
        else "\nLaunch delays: gaps in a recorded step's longest chain of operations for which the "
        f"trace shows no reason. Mean of a step:\n{_table(delays)}"
    )
    return "\n".join(parts + (_energy_text(answer["energy"]) if "energy" in answer else []))


def _energy_text(energy: dict[str, Any]) -> list[str]:
    from perseus.analysis.trace_energy import POLICIES

    parts = [
        f"\n{energy['costs']} Profile: {energy['profile']}, {energy['blocking_power_w']:g} W of a "
        f"GPU that waits, {energy['gpus_per_rank']} GPUs a rank."
    ]
    if "profile_modelled" in energy:
        parts.append(f"The profile: {energy['profile_modelled']}")
    names = ("useful", "intrinsic_bloat", "extrinsic_bloat", "blocking", "energy")
    joules = [energy[f"{name}_j"] for name in names]
    split = pd.DataFrame({"energy of a step": [*names[:-1], "all"], "J": joules}).round(1)
    split["%"] = [round(100 * each / (joules[-1] or 1), 2) for each in joules]
    plans = pd.DataFrame(energy["plans"]).round(4)
    plans["plan"] = plans["plan"].map(POLICIES)
    changes = plans[["slowdown_percent", "saving_percent"]].abs().to_numpy().max() >= 0.005
    parts += ["\n" + _table(split), "\n" + _table(plans if changes else plans[:1])]
    if not changes:
        parts.append(
            f"The {len(plans) - 1} other plans are left out: none saves or costs anything."
        )
    parts.append(
        "A straggler is a pipeline that is 5 % slower than the median one in three quarters of "
        f"{energy['detector_steps']} recorded steps. In {energy['steps_with_known_stragglers']} "
        "steps a straggler was known. One length for each microbatch predicts the times of "
        f"computations within {100 * energy['length_error']:.1f} % (root mean square)."
    )
    return parts


def draw(answer: dict[str, Any], path: str) -> None:
    """Write a figure: the times of the steps, and the slowdown by each rank."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "perseus"
    from matplotlib import pyplot

    figure, (times, ranks) = pyplot.subplots(2, figsize=(9, 8), layout="constrained")
    for key in ("recorded", "replayed", "without_stragglers"):
        values = [step[f"{key}_s"] for step in answer["steps"]]
        times.plot(values, marker=".", label=key.replace("_", " "))
    times.set(title=f"{answer['trace']}: step times", xlabel="recorded step, in order", ylabel="s")
    times.legend()
    if answer["blocking_by_rank"] is not None:
        grid = np.array([rank["slowdown"] for rank in answer["blocking_by_rank"]])
        shown = ranks.imshow(
            grid.reshape(-1, answer["sizes"]["pp"]).T, aspect="auto", interpolation="nearest"
        )
        ranks.set(title="slowdown by each rank alone", xlabel="pipeline", ylabel="stage")
        figure.colorbar(shown, ax=ranks)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _watts(given: str) -> float:
    return _between(given.removesuffix("W"), 0, 1e6)


def _between(given: str, least: float, most: float) -> float:
    value = float(given)
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{given} is not from {least:g} to {most:g}")
    return value


def _count(given: str) -> int:
    return int(_between(str(int(given)), 1, 1_000_000))


def main(arguments: list[str]) -> int:
    """Answer `perseus trace`."""
    parser = argparse.ArgumentParser(
        prog="perseus trace",
        description="Show what stragglers cost a recorded job, and what plans would have saved.",
        epilog="docs/explanation/traces.md has the format and the method.",
    )
    add = parser.add_argument
    add(
        "trace",
        help="the recorded operations: CSV (also gzip), Parquet, or a trace of Kineto or "
        "Chrome; a folder of the latter, one a rank",
    )
    add("--profile", help="with energies; the job is taken to have run at its highest clock")
    add("--strict", action="store_true", help="refuse what is odd, instead of noting it")
    add("--accept-implausible", action="store_true", help="go on where times have a wrong unit")
    add("--blocking-power", type=_watts, metavar="WATTS", help="of one GPU that waits")
    add("--tp", type=_count, help="GPUs of a recorded rank (default: from gaps in rank numbers)")
    add(
        "--detector-steps",
        type=_count,
        default=12,
        metavar="N",
        help="how many steps show a straggler: it was slow in three quarters of them (12)",
    )
    add(
        "--effort",
        type=lambda given: _between(given, 0.001, 1000),
        metavar="FACTOR",
        help="how much work to search for each plan (0.005)",
    )
    add("-o", "--output", metavar="FOLDER", help="write trace.json and trace.svg there")
    add("--json", action="store_true", help="print one JSON document instead of text")
    given = parser.parse_args(arguments)
    if given.profile is not None and given.blocking_power is None:
        raise PlannerError(
            "--profile needs --blocking-power WATTS, the power of a GPU that waits, as in 'perseus "
            "trace trace.csv.gz --profile profile.csv --blocking-power 83.64'"
        )
    if given.profile is None and (given.blocking_power or given.tp or given.effort):
        raise PlannerError(
            "--blocking-power, --tp and --effort are for energies; give --profile FILE, too"
        )
    outputs = [os.path.join(given.output or "", name) for name in ("trace.json", "trace.svg")]
    for output in outputs if given.output else []:
        for source in (given.trace, given.profile):
            if source and os.path.exists(output) and os.path.samefile(source, output):
                raise PlannerError(f"{source} would be overwritten; give another folder")
    answer = analyse(
        given.trace,
        given.profile,
        blocking_power=given.blocking_power or 0.0,
        tp=given.tp,
        detector_steps=given.detector_steps,
        effort=given.effort,
        strict=given.strict,
        accept_implausible=given.accept_implausible,
    )
    document = json.dumps(answer, indent=2)
    if given.output:
        os.makedirs(given.output, exist_ok=True)
        with open(outputs[0], "w", encoding="utf-8") as file:
            file.write(document + "\n")
        draw(answer, outputs[1])
    print(document if given.json else text(answer))
    return 0
