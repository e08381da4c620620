# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Two pipelines of two stages that train on simulated GPUs until they are killed.

python drill_trainer.py SERVER JOB AGENT GPUS PROFILE

PROFILE is what the GPUs really need: the job may have been told another one.
"""

from __future__ import annotations

import csv
import itertools
import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
from perseus import simulate  # noqa: E402

ORDER = {
    0: [("forward", 0), ("forward", 1), ("backward", 0), ("backward", 1)],
    1: [("forward", 0), ("backward", 0), ("forward", 1), ("backward", 1)],
}
Ends = dict[str, Connection]


def tables_of(path: str, stage: int) -> dict[str, simulate.Table]:
    """Return what a stage's computations need."""
    with Path(path).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["stage"] == str(stage)]
    return {
        kind: simulate.Table(
            (float(row["frequency"]), float(row["time"]), float(row["energy"]))
            for row in rows
            if row["instruction"] == kind
        )
        for kind in ("forward", "backward")
    }


def train(rank: int, words: list[str], receive: Ends, send: Ends) -> None:
    """Train as one rank."""
    server, job, agent, file, profile = words
    stage = rank % 2
    gpus = simulate.Gpus(file)
    tables = tables_of(profile, stage)
    with perseus.Client(
        server,
        job_id=job,
        rank=rank,
        dp_rank=rank // 2,
        pp_rank=stage,
        device=f"agent:{agent}",
        gpu_uuid=gpus.uuid(rank),
        report_interval_seconds=0.5,
    ) as client:
        for iteration in itertools.count():
            busy = {"forward": 0.0, "backward": 0.0}
            with client.step(iteration):
                for kind, microbatch in ORDER[stage]:
                    ready = receive[kind].recv() if kind in receive else 0
                    with client.instruction(kind, stage, microbatch):
                        run = gpus.run(rank, tables[kind], ready)
                    busy[kind] += run.seconds
                    if kind in send:
                        send[kind].send(run.end_seconds)
                # The device's time: on a busy machine, this process wakes late.
                for kind, seconds in busy.items():
                    client.step_busy(kind, seconds)


def main() -> None:
    """Start the ranks, which end with this process."""
    for pipeline in (0, 1):
        receive: tuple[Ends, Ends] = ({}, {})
        send: tuple[Ends, Ends] = ({}, {})
        receive[1]["forward"], send[0]["forward"] = multiprocessing.Pipe(duplex=False)
        receive[0]["backward"], send[1]["backward"] = multiprocessing.Pipe(duplex=False)
        for stage in (0, 1):
            multiprocessing.Process(
                target=train,
                args=(2 * pipeline + stage, sys.argv[1:], receive[stage], send[stage]),
                daemon=True,
            ).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
