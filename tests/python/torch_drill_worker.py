# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Two ranks that train on simulated GPUs until a file says stop: for the failure drills.

torch_drill_worker.py FOLDER JSON: options of `attach` and "schedule"; each rank appends a line of
JSON per iteration to FOLDER/rank-N, whose first has its process id.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch_ranks as ranks

sys.path.insert(0, str(ranks.ROOT / "examples" / "torch_pipeline"))

import simulated_device as device

import perseus  # isort: skip
from perseus import simulate

MICROBATCHES = 4
MOST_ITERATIONS = 3000


def train(folder: str, options: dict[str, Any]) -> None:
    """Train on one rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    made = ranks.make(options.pop("schedule", "Schedule1F1B"), MICROBATCHES)
    gpus = simulate.Gpus(f"{folder}/gpus")
    tables = device.read_tables(Path(folder) / "profile.csv", 1.0)
    simulated = device.SimulatedDevice(
        gpus, rank, tables, Path(folder) / "ends", 0, 1, world, MICROBATCHES
    )
    simulated.put_under(made._stage)
    attached = perseus.attach(
        made,
        device=f"simulated:{folder}/gpus",
        report_interval_seconds=0.2,
        min_interval_seconds=0.002,
        timeline=device.DeviceTimeline(simulated),
        **options,
    )
    with open(f"{folder}/rank-{rank}", "a", buffering=1) as log:
        for iteration in range(MOST_ITERATIONS):
            losses = ranks.step(made, MICROBATCHES, seed=iteration)
            simulated.end_iteration()
            report = attached.report()
            stats = report.pop("stats")
            mismatches = getattr(stats, "order_mismatches", 0)
            refused = getattr(stats, "refused", 0)
            line = {"pid": os.getpid(), "iteration": iteration, "losses": losses, **report}
            line |= {"order_mismatches": mismatches, "refused": refused}
            log.write(json.dumps(line) + "\n")
            stop = [os.path.exists(f"{folder}/stop")]
            dist.broadcast_object_list(stop, 0)
            if stop[0]:
                break
    attached.detach()


def main() -> None:
    """Run both ranks."""
    folder, options = sys.argv[1], json.loads(sys.argv[2])
    ranks.run_ranks(2, train, folder, options)


if __name__ == "__main__":
    main()
