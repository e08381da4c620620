# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Two ranks that train on simulated GPUs until a file says stop: for the failure drills.

torch_drill_worker.py FOLDER JSON: options of `attach`, and "schedule", "csv" (the text of an order
of one's own, instead), "accumulate" (so many
`schedule.step` in one `job.step`), "replace_at" (the iteration from which another schedule object
runs), "attach_at" (that from which it is attached). Each rank appends a line of JSON per iteration
to FOLDER/rank-N, whose first has its process id.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
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


def train_one(
    attached: perseus.Attached,
    made: Any,
    simulated: device.SimulatedDevice,
    iteration: int,
    accumulate: int,
) -> list[float]:
    """Run one step of the optimizer; returns the losses of its last part."""

    def part() -> list[float]:
        losses = ranks.step(made, MICROBATCHES, seed=iteration)
        simulated.end_iteration()
        return losses

    if accumulate == 1 or attached.job is None:
        return part()
    with attached.job.step():
        for _ in range(accumulate - 1):
            part()
        return part()


def of_order(csv: str) -> Any:
    """Return a schedule that runs this order."""
    made = ranks.make("_PipelineScheduleRuntime", MICROBATCHES)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(csv)
        file.flush()
        made._load_csv(file.name)
    return made


def train(folder: str, options: dict[str, Any]) -> None:
    """Train on one rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    name = options.pop("schedule", "Schedule1F1B")
    csv = options.pop("csv", "")
    accumulate = options.pop("accumulate", 1)
    replace_at = options.pop("replace_at", -1)
    attach_at = options.pop("attach_at", -1)
    made = of_order(csv) if csv else ranks.make(name, MICROBATCHES)
    gpus = simulate.Gpus(f"{folder}/gpus")
    tables = device.read_tables(Path(folder) / "profile.csv", 1.0)
    simulated = device.SimulatedDevice(
        gpus, rank, tables, Path(folder) / "ends", 0, 1, world, MICROBATCHES
    )
    (stage,) = getattr(made, "_stages", None) or [made._stage]
    simulated.put_under(stage)
    options = {
        "device": f"simulated:{folder}/gpus",
        "report_interval_seconds": 0.2,
        "min_interval_seconds": 0.002,
        "timeline": device.DeviceTimeline(simulated),
        **options,
    }
    attached = perseus.attach(made, **options)
    with open(f"{folder}/rank-{rank}", "a", buffering=1) as log:
        for iteration in range(MOST_ITERATIONS):
            if iteration == replace_at:
                made = ranks.make(name, MICROBATCHES, stages=[made._stage])
            if iteration == attach_at:
                attached = perseus.attach(made, **options)
            losses = train_one(attached, made, simulated, iteration, accumulate)
            report = attached.report()
            stats = report.pop("stats", None)
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
