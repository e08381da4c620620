# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Make up traces of pipelines, in the columns of docs/explanation/traces.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import traces
from .traces import Operation

if TYPE_CHECKING:
    import random

COLUMNS = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc"


def order(stage: int, stages: int, chunks: int, microbatches: int) -> list[tuple[str, int, int]]:
    """Return kind, chunk and microbatch of a rank's computations: 1F1B, or chunk by chunk."""
    if chunks > 1:
        forwards = [(traces.FORWARD, c, m) for c in range(chunks) for m in range(microbatches)]
        backwards = [
            (traces.BACKWARD, c, m) for c in reversed(range(chunks)) for m in range(microbatches)
        ]
        return forwards + backwards
    warm_up = min(microbatches, stages - stage)
    made = [(traces.FORWARD, 0, m) for m in range(warm_up)]
    for microbatch in range(microbatches):
        made.append((traces.BACKWARD, 0, microbatch))
        if warm_up + microbatch < microbatches:
            made.append((traces.FORWARD, 0, warm_up + microbatch))
    return made


def make_trace(rng: random.Random) -> list[Operation]:
    """Return the operations of a small job with times that vary."""
    stages, pipelines = rng.randint(1, 4), rng.randint(1, 3)
    chunks = rng.choice([1, 1, 2]) if stages > 1 else 1
    microbatches, overlapped = rng.randint(1, 5), rng.random() < 0.3
    no_ops = rng.random() < 0.3  # Some frameworks record transfers that moved nothing.
    ops: list[Operation] = []
    own: dict[int, float] = {}

    def add(where: tuple[int, int, int], kind: str, number: int, labels: tuple[int, int]) -> None:
        step, pipeline, stage = where
        sequence = sum(
            1 for o in ops if (o.step, o.pipeline, o.stage, o.kind) == (step, pipeline, stage, kind)
        )
        chunk, microbatch = labels
        block = chunk * stages + stage if kind in (traces.FORWARD, traces.BACKWARD) else -1
        op = Operation(
            pipeline, stage, step, kind, float(number), 0.0, sequence, chunk, block, microbatch
        )
        ops.append(op)
        own[id(op)] = rng.choice([0.001, rng.random(), rng.random()])

    for step in sorted(rng.sample(range(1000), rng.randint(1, 3))):
        for pipeline in range(pipelines):
            for stage in range(stages):
                where = (step, pipeline, stage)
                for chunk in range(chunks):
                    add(where, traces.GATHER, 0, (chunk, -1))
                computations = order(stage, stages, chunks, microbatches)
                for number, (kind, chunk, microbatch) in enumerate(computations):
                    add(where, kind, number, (chunk, microbatch))
                    block = chunk * stages + stage
                    way = kind.split("-")[0]
                    last = stages * chunks - 1
                    sends = block != (last if way == "forward" else 0)
                    receives = block != (0 if way == "forward" else last)
                    if stages > 1 and (sends or no_ops):
                        add(where, f"{way}-send", number, (-1, -1))
                    if stages > 1 and (receives or no_ops):
                        add(where, f"{way}-recv", number, (-1, -1))
                for chunk in range(chunks):
                    add(where, traces.SCATTER, 0, (chunk, -1))
                tail = [traces.COLLECT, traces.LAYER_NORM]
                tail += [traces.EMBEDDING] if stage in (0, stages - 1) else []
                tail += [traces.SEPARATE] if overlapped else []
                for kind in [*tail, traces.CLIP, traces.OPTIMIZER]:
                    add(where, kind, 0, (-1, -1))
    linked = [Operation(*_plain(op)) for op in ops]
    traces.link(linked)
    times = {id(new): own[id(old)] for old, new in zip(ops, linked, strict=True)}
    traces.replay(traces.order(linked), times)
    for old, new in zip(ops, linked, strict=True):
        delay = rng.choice([0.0, 0.0, 1e-3 * rng.random()])
        old.start = round(new.replayed_start + delay, 6)
        old.duration = round(max(new.replayed_end - old.start, 0.0), 6)
    return ops


def _plain(op: Operation) -> tuple[int, int, int, str, float, float, int, int, int, int]:
    return (
        op.pipeline,
        op.stage,
        op.step,
        op.kind,
        op.start,
        op.duration,
        op.sequence,
        op.chunk,
        op.block,
        op.microbatch,
    )


def format_trace(ops: list[Operation], rng: random.Random, gpus_per_rank: int) -> str:
    """Return the trace's text, its rows in any order."""
    pipelines = 1 + max(op.pipeline for op in ops)
    rows = []
    for op in ops:
        rank = (op.stage * pipelines + op.pipeline) * gpus_per_rank
        rows.append(
            f"{op.pipeline},{op.stage},{rank},{op.step},{op.kind},{op.start!r},{op.duration!r},"
            f"{op.sequence},{op.chunk},{op.microbatch},{op.block}"
        )
    rng.shuffle(rows)
    return "\n".join([COLUMNS, *rows]) + "\n"
