# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of a trainer on a simulated GPU, as a site's users would start it: by srun."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import perseus
from perseus import simulate

FOLDER = Path(os.environ["FOLDER"])
ITERATIONS = int(sys.argv[1])
rank = int(os.environ["SLURM_PROCID"])
gpus = simulate.Gpus(FOLDER / "gpus")
rows = [line.split(",") for line in (FOLDER / "profile.csv").read_text().splitlines()[1:]]
tables = {
    kind: simulate.Table(
        [
            (float(mhz), float(seconds), float(joules))
            for stage, of, mhz, seconds, joules in rows
            if stage == str(rank) and of == kind
        ]
    )
    for kind in ("forward", "backward")
}
warmup = 1 - rank
order = [("forward", m) for m in range(warmup)]
for m in range(4):
    order += [("forward", warmup + m)] if warmup + m < 4 else []
    order += [("backward", m)]

followed = False
with perseus.Job.for_pipeline(
    "1f1b",
    2,
    4,
    rank=rank,
    pp_rank=rank,
    gpu_index=rank,
    gpu_uuid=gpus.uuid(rank),
    profile=FOLDER / "profile.csv",
    settings={"blocking_power": 85},
    max_overhead=1,  # Calls that a busy machine delays are no news.
) as job:
    for iteration in range(ITERATIONS):
        with job.step():
            for kind, microbatch in order:
                around = job.forward if kind == "forward" else job.backward
                with around(microbatch=microbatch, stage=rank):
                    gpus.run(rank, tables[kind])
        if not followed and job.state == "following" and job.client.job_id:
            followed = True
            print(f"rank {rank} follows {job.client.job_id} at {iteration}", flush=True)
    print(f"rank {rank} ends: {job.state} {job.last_error}", flush=True)
