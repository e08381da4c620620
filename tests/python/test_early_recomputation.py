# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A loop of one's own that recomputes early, on simulated GPUs: from nothing to a followed plan."""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drilling import PATIENCE, Drill
from trainers_testing import BINARY, ROOT, needs_programs

sys.path.insert(0, str(ROOT / "python"))

import perseus
from perseus import simulate

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

STAGES, MICROBATCHES, FOLLOWED = 3, 4, 20
SCHEDULE = "early-recomputation-1f1b"
CLOCKS = (1410, 1260, 1110, 960)
SECONDS = {"F": 0.003, "R": 0.0027, "B": 0.005}  # Of stage 0, at the highest clock.
KINDS = {"F": "forward", "R": "recompute", "B": "backward"}
GPUS = "[[gpus]]\ncount = 3\nclocks_mhz = [960, 1110, 1260, 1410]\ncall_ms = 1\nsettle_ms = 0\n"

Order = list[tuple[str, int]]  # "F", "R", "B", or "RB" where the two are one step.


def table(rank: int, letter: str) -> simulate.Table:
    """Return what a computation takes: later stages are longer."""
    rows = []
    for mhz in CLOCKS:
        seconds = (1 + rank / 2) * SECONDS[letter] * (0.3 + 0.7 * CLOCKS[0] / mhz)
        rows.append((mhz, seconds, seconds * (85 + 295 * (mhz / CLOCKS[0]) ** 2.2)))
    return simulate.Table(rows)


def train(
    server: str,
    folder: Path,
    rank: int,
    order: Order,
    links: tuple[Connection | None, Connection | None],
    followed: Any,
    said: Any,
) -> None:
    """Train as one rank, until all have followed a plan for some iterations."""
    before, after = links
    gpus = simulate.Gpus(folder / "gpus")
    tables = {letter: table(rank, letter) for letter in KINDS}
    with perseus.Job.for_pipeline(
        SCHEDULE,
        STAGES,
        MICROBATCHES,
        run="early",
        server=server,
        rank=rank,
        pp_rank=rank,
        device=f"simulated:{folder}/gpus",
        gpu_index=rank,
        profile_iterations=8,
        report_interval_seconds=0.2,
        max_overhead=1.0,  # Of a loaded machine: clocks are set however long the calls take.
    ) as job:
        going = True
        while going:
            with job.step():
                for letters, microbatch in order:
                    ready = 0.0  # When all was there that the computation waits for.
                    if letters == "F" and before is not None:
                        ready, going = before.recv()
                    elif letters == "F":
                        going = min(followed) < FOLLOWED
                    if "B" in letters and after is not None:
                        ready = after.recv()
                    for letter in letters:
                        job.begin(KINDS[letter], microbatch, rank)
                        ready = gpus.run(rank, tables[letter], ready).end_seconds
                        job.end(KINDS[letter], microbatch, rank)
                    if letters == "F" and after is not None:
                        after.send((ready, going))
                    elif "B" in letters and before is not None:
                        before.send(ready)
            followed[rank] += job.state == "following"
        stats = job.report()["stats"]
        assert stats is not None
        said.put((rank, job.state, stats.order_mismatches, job.last_error))


@needs_programs
def test_recomputations_are_measured_planned_and_followed(drill: Drill, tmp_path: Path) -> None:
    """On every stage, also where a recompute and its backward are one step."""
    simulate.create(tmp_path / "gpus", GPUS)
    shape = ["--stages", str(STAGES), "--microbatches", str(MICROBATCHES), "--format", "csv"]
    text = subprocess.run(
        [BINARY, "schedule", SCHEDULE, *shape], check=True, capture_output=True, text=True
    ).stdout
    orders: list[Order] = [
        [
            ("".join(letter for letter, _ in found), int(found[0][1]))
            for cell in line.split(",")
            if (found := re.findall(r"\d([FRB])(\d)", cell))
        ]
        for line in text.split()
    ]
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(STAGES - 1)]
    followed = context.Array("i", STAGES)
    said = context.Queue()
    ranks = []
    for rank, order in enumerate(orders):
        before = pipes[rank - 1][1] if rank else None
        after = pipes[rank][0] if rank < STAGES - 1 else None
        rest = (drill.url, tmp_path, rank, order, (before, after), followed, said)
        ranks.append(context.Process(target=train, args=rest, daemon=True))
    try:
        for process in ranks:
            process.start()
        told = sorted(said.get(timeout=PATIENCE) for _ in ranks)
    finally:
        for process in ranks:
            process.kill()
    assert told == [(rank, "following", 0, "") for rank in range(STAGES)]
    job = drill.job()
    assert (job["ranks_measured"], job["profile_source"]) == (STAGES, "measured")
    # No note says that recomputes cost what forwards do, or that default clocks are faster.
    texts = [note["text"] for note in job["notes"]]
    assert not [text for text in texts if "recompute" in text or "default clocks" in text]
    assert job["plan"]["saving_percent"] > 0
