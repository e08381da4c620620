# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Replay recorded traces by docs/explanation/traces.md, without code of Perseus."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

FORWARD, BACKWARD = "forward-compute", "backward-compute"
TRANSFERS = ("forward-send", "forward-recv", "backward-send", "backward-recv")
LAYER_NORM, EMBEDDING = "layernorm-grads-all-reduce", "embedding-grads-all-reduce"
GATHER, SCATTER = "params-all-gather", "grads-reduce-scatter"
SEPARATE, CLIP = "separate-grads-all-reduce", "optimizer-clip-main-grad"
OPTIMIZER, COLLECT = "optimizer", "gc"
# Those of all pipelines begin together, and those that are taken by their median.
ACROSS = {GATHER, SCATTER, SEPARATE, CLIP}
BY_MEDIAN = {*TRANSFERS, *ACROSS, EMBEDDING, LAYER_NORM}
SKEW_SECONDS = 0.01


@dataclass
class Operation:
    """One row of a trace, and what it waits for."""

    pipeline: int
    stage: int
    step: int
    kind: str
    start: float
    duration: float
    sequence: int
    chunk: int  # mc
    block: int  # gmc
    microbatch: int
    waits: list[Operation] = field(default_factory=list)
    group: list[Operation] = field(default_factory=list)
    own: float = 0.0  # Its duration, less waiting for its group.
    replayed_start: float = 0.0
    replayed_end: float = 0.0

    @property
    def end(self) -> float:
        """Return when the operation ended."""
        return self.start + self.duration


def read(path: Path) -> list[Operation]:
    """Return the rows of a trace, CSV or CSV.gz."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [
        Operation(
            int(row["dp_rank"]),
            int(row["stage"]),
            int(row["step"]),
            row["optype"],
            float(row["start_ts"]),
            float(row["duration"]),
            int(row["seq_id"]),
            int(row["mc"]),
            int(row["gmc"]),
            int(row["mb_id"]),
        )
        for row in csv.DictReader(io.StringIO(text))
    ]


def _chain(operations: list[Operation]) -> None:
    for before, after in itertools.pairwise(operations):
        after.waits.append(before)


def _link_rank(ops: list[Operation], stages: int, blocks: int) -> None:
    by_kind: dict[str, list[Operation]] = defaultdict(list)
    for op in sorted(ops, key=lambda o: o.sequence):
        by_kind[op.kind].append(op)
    computations = sorted(
        by_kind[FORWARD] + by_kind[BACKWARD], key=lambda o: (o.start, o.sequence, o.kind)
    )
    _chain(computations)
    for kind in TRANSFERS:
        _chain(by_kind[kind])
        computes = by_kind[FORWARD if kind.startswith("forward") else BACKWARD]
        end = blocks - 1 if kind in ("forward-send", "backward-recv") else 0
        needed = [op for op in computes if stages > 1 and op.block != end]
        served = needed if len(needed) == len(by_kind[kind]) else computes
        for op, compute in zip(by_kind[kind], served, strict=True):
            if stages > 1 and compute.block != end:
                op.microbatch, op.block = compute.microbatch, compute.block
            if kind.endswith("send"):
                op.waits.append(compute)
            else:
                compute.waits.append(op)
                if compute.sequence:
                    op.waits.append(computes[compute.sequence - 1])
    first_backward = next(i for i, o in enumerate(computations) if o.kind == BACKWARD)
    if first_backward >= 2:
        for kind in ("backward-recv", "backward-send"):
            if by_kind[kind]:
                by_kind[kind][0].waits.append(computations[first_backward - 2])
    _chain(by_kind[GATHER] + by_kind[SCATTER])
    for gather in {op.chunk: op for op in by_kind[GATHER]}.values():
        first = next(o for o in computations if o.kind == FORWARD and o.chunk == gather.chunk)
        first.waits.append(gather)
    last = max(computations, key=lambda o: o.end)
    overlapped = bool(by_kind[SEPARATE])
    tail = [last]
    for kind in (COLLECT, LAYER_NORM, EMBEDDING, SEPARATE if overlapped else SCATTER):
        tail += by_kind[kind]
    _chain(tail + by_kind[CLIP] + by_kind[OPTIMIZER])
    if overlapped and by_kind[SCATTER]:
        by_kind[LAYER_NORM][0].waits.append(by_kind[SCATTER][-1])
        seen = set()
        for scatter in by_kind[SCATTER]:
            if scatter.chunk not in seen:
                seen.add(scatter.chunk)
                scatter.waits.append(
                    [o for o in computations if o.kind == BACKWARD and o.chunk == scatter.chunk][-1]
                )


def _link_groups(ops: list[Operation]) -> None:
    groups: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for op in ops:
        key: tuple[object, ...]
        if op.kind in TRANSFERS and op.block >= 0:
            way = op.kind.split("-")[0]
            sender = op.block
            if op.kind.endswith("recv"):
                sender -= 1 if way == "forward" else -1
            key = (way, op.step, op.pipeline, sender, op.microbatch)
        elif op.kind == EMBEDDING:
            key = (op.kind, op.step, op.pipeline)
        elif op.kind == CLIP:
            key = (op.kind, op.step)
        elif op.kind in ACROSS:
            key = (op.kind, op.step, op.stage, op.sequence)
        else:
            key = ("alone", id(op))
        groups[key].append(op)
        op.group = groups[key]
    for op in ops:
        op.own = op.end - max(o.start for o in op.group) if len(op.group) > 1 else op.duration
        if op.own <= -SKEW_SECONDS:
            op.own = 0.0


def link(ops: list[Operation]) -> None:
    """Fill in what every operation waits for."""
    stages = 1 + max(op.stage for op in ops)
    blocks = 1 + max(op.block for op in ops)
    ranks: dict[tuple[int, int, int], list[Operation]] = defaultdict(list)
    for op in ops:
        ranks[op.step, op.pipeline, op.stage].append(op)
    for rank in ranks.values():
        _link_rank(rank, stages, blocks)
    _link_groups(ops)


def order(ops: list[Operation]) -> list[list[Operation]]:
    """Return groups in an order in which they can run."""
    groups = {id(op.group): op.group for op in ops}
    missing = {key: 0 for key in groups}
    after: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        for before in op.waits:
            missing[id(op.group)] += 1
            after[id(before.group)].append(id(op.group))
    ready = [key for key, count in missing.items() if count == 0]
    result = []
    while ready:
        key = ready.pop()
        result.append(groups[key])
        for each in after[key]:
            missing[each] -= 1
            if missing[each] == 0:
                ready.append(each)
    if len(result) != len(groups):
        message = "the operations wait for each other in a circle"
        raise ValueError(message)
    return result


def replay(groups: list[list[Operation]], own: dict[int, float]) -> dict[int, float]:
    """Return each step's time with the own times of `own`, by id."""
    steps: dict[int, float] = {}
    for group in groups:
        start = 0.0
        for op in group:
            op.replayed_start = max((w.replayed_end for w in op.waits), default=0.0)
            start = max(start, op.replayed_start)
        for op in group:
            op.replayed_end = start + own[id(op)]
            steps[op.step] = max(steps.get(op.step, 0.0), op.replayed_end)
    return steps


def ideal(ops: list[Operation]) -> dict[int, float]:
    """Return every operation's own time without stragglers."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for op in ops:
        by_kind[op.kind].append(op.own)
    value = {
        kind: statistics.median(times) if kind in BY_MEDIAN else statistics.fmean(times)
        for kind, times in by_kind.items()
    }
    return {id(op): value[op.kind] for op in ops}


def operation_name(kind: str) -> str:
    """Return the name under which a kind's slowdown is stated."""
    return f"{kind.split('-')[0]}-pp-comm" if kind in TRANSFERS else kind
