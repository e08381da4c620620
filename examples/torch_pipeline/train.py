#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Train the small GPT in two pipelines of two ranks each, with or without Perseus.

The lines that Perseus needs are marked below. run.py starts this; by hand:

    python train.py --gpus FILE --table profile.csv --out DIR [--server URL]
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import multiprocessing
import os
import tempfile
from pathlib import Path
from typing import Any

import perseus
import torch
import torch.distributed as dist
from batches import Batch, batches_of
from course import Course, CourseOfLengths
from lengths import work_of
from model import Stage, loss_of
from perseus import simulate
from simulated_device import IDLE_WATTS, DeviceTimeline, SimulatedDevice, read_tables
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, schedules

PIPELINES = 2
RANKS_IN_PIPELINE = 2
MICROBATCHES = 8
CLASSES = {
    "1f1b": "Schedule1F1B",
    "interleaved-1f1b": "ScheduleInterleaved1F1B",
    "zbv-zero-bubble": "ScheduleZBVZeroBubble",
}


def stages_of(schedule: str, rank: int) -> list[int]:
    """Return the stages of a rank of a pipeline."""
    if schedule == "1f1b":
        return [rank]
    if schedule == "zbv-zero-bubble":
        return [rank, 2 * RANKS_IN_PIPELINE - 1 - rank]
    return [rank, rank + RANKS_IN_PIPELINE]


def average_gradients(parameters: list[torch.nn.Parameter], group: Any) -> None:
    """Average over the pipelines."""
    flat = torch.cat([p.grad.flatten() for p in parameters])
    dist.all_reduce(flat, group=group)
    flat /= PIPELINES
    for parameter, grad in zip(
        parameters, flat.split([p.numel() for p in parameters]), strict=True
    ):
        parameter.grad.copy_(grad.view_as(parameter))


def train(rank: int, options: argparse.Namespace, folder: str) -> None:
    """Train on one rank."""
    torch.set_num_threads(1)
    world = PIPELINES * RANKS_IN_PIPELINE
    os.environ["LOCAL_RANK"] = str(rank)
    store = dist.FileStore(f"{folder}/store", world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    names = ("dp", "pp")
    mesh = init_device_mesh("cpu", (PIPELINES, RANKS_IN_PIPELINE), mesh_dim_names=names)
    replica, place = mesh.get_coordinate()

    indices = stages_of(options.schedule, place)
    count = RANKS_IN_PIPELINE * len(indices)
    stages = []
    for index in indices:
        torch.manual_seed(index)
        group = mesh["pp"].get_group()
        stages.append(
            PipelineStage(Stage(index, count), index, count, torch.device("cpu"), group=group)
        )
    schedule = getattr(schedules, CLASSES[options.schedule])(
        stages[0] if len(stages) == 1 else stages, MICROBATCHES, loss_fn=loss_of
    )
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)

    # In place of hardware. On real GPUs there is none of this.
    gpus = simulate.Gpus(options.gpus)
    tables = read_tables(options.table, options.scale)
    ends = Path(folder) / "ends"
    device = SimulatedDevice(gpus, rank, tables, ends, replica, PIPELINES, count, MICROBATCHES)
    for stage in stages:
        device.put_under(stage)

    # The batches of the trainer, and the one that it is at.
    batches = batches_of(replica, PIPELINES, MICROBATCHES, options.variable_lengths)
    batch: Batch

    # Perseus: these lines, with what differs from its defaults on this machine.
    attached = None
    if options.server:
        varying: dict[str, Any] = {}
        if options.variable_lengths is not None:
            varying["profile"] = options.profile  # Measured before, with sequences of one length.
            varying["planner"] = perseus.Planner(
                options.profile,
                options.schedule,
                MICROBATCHES,
                IDLE_WATTS,
                virtual_stages=len(indices),
            )
            varying["settings"] = {"blocking_power": IDLE_WATTS}
            varying["work"] = lambda microbatch: batch.lengths[microbatch]
        attached = perseus.attach(
            schedule,
            options.server,
            mesh=mesh,
            run=options.run,
            name=options.run,
            device=options.device,
            gpu_uuid=gpus.uuid(rank),
            tokens=lambda: batch.tokens,
            timeline=DeviceTimeline(device),
            profile_iterations=options.profile_iterations,
            report_interval_seconds=1,
            min_interval_seconds=0.002,  # All here is faster than real GPUs are.
            **varying,
        )
        batches = attached.ahead(
            batches,
            lambda coming: work_of(coming.lengths),
            lambda coming: [work_of(lengths) for lengths in coming.others],
        )

    is_last = any(stage.is_last for stage in stages)
    kind = Course if options.variable_lengths is None else CourseOfLengths
    course = kind(options, attached)
    losses: list[str] = []
    rows: list[tuple[object, ...]] = []
    before = device.end_iteration()
    phase: str | None = course.phase
    slow = False
    for iteration, batch in enumerate(batches):
        if (phase == "straggler") != slow and replica == PIPELINES - 1:
            slow = phase == "straggler"
            gpus.set_slowdown(rank, options.straggler if slow else 1)
            if attached and attached.job:
                attached.job.client.set_straggler(rank, 0, options.straggler if slow else 1)
        device.on = phase != "plain"
        device.work = work_of(batch.lengths)

        of_microbatches: list[torch.Tensor] = []
        arguments = (batch.x,) if stages[0].is_first else ()
        length = torch.tensor(batch.lengths)  # Each microbatch gets its own.
        if is_last:
            schedule.step(*arguments, target=batch.target, losses=of_microbatches, length=length)
        else:
            schedule.step(*arguments, length=length)
        average_gradients(parameters, mesh["dp"].get_group())
        optimizer.step()
        optimizer.zero_grad()

        losses += [float(loss.detach()).hex() for loss in of_microbatches]
        if device.on:
            after = device.end_iteration()
            joules = torch.tensor(after[1] - before[1], dtype=torch.float64)
            dist.all_reduce(joules)
            version = attached.report()["plan_version"] if attached else -1
            rows.append((iteration, phase, after[0] - before[0], float(joules), version))
            before = after
        phase = course.next(iteration + 1)
        if phase is None:
            break

    out = Path(options.out)
    if is_last:
        (out / f"losses-{replica}.txt").write_text("\n".join(losses) + "\n")
    if rank == 0:
        with (out / "iterations.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("iteration", "phase", "seconds", "joules", "plan_version"))
            writer.writerows(rows)
    if attached:
        report: dict[str, object] = {**attached.report()}
        stats = report["stats"]
        if isinstance(stats, perseus.Stats):
            report["stats"] = dataclasses.asdict(stats)
        (out / f"report-{rank}.json").write_text(json.dumps(report, indent=1) + "\n")
        attached.detach()
    dist.barrier()
    dist.destroy_process_group()


def parse() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedule", choices=sorted(CLASSES), default="1f1b")
    parser.add_argument("--gpus", required=True, help="file of simulated GPUs")
    parser.add_argument("--table", type=Path, required=True, help="what computations cost on them")
    parser.add_argument("--scale", type=float, default=0.4, help="times the table's seconds")
    parser.add_argument("--out", required=True, help="folder for what was seen")
    parser.add_argument("--server", help="of Perseus; without it, Perseus takes no part")
    parser.add_argument("--device", help="where Perseus finds the GPUs")
    parser.add_argument("--run", default="torch-pipeline", help="what Perseus calls the job")
    parser.add_argument("--measured", type=int, default=10, help="iterations of each phase")
    parser.add_argument("--iterations", type=int, default=0, help="without Perseus: so many")
    parser.add_argument("--straggler", type=float, default=1.2, help="how slow, in its phase")
    parser.add_argument("--variable-lengths", type=int, metavar="SEED", help="vary sequences")
    parser.add_argument("--profile", help="of sequences of one length, where they vary")
    parser.add_argument("--profile-iterations", type=int, default=3, help="at each clock")
    return parser.parse_args()


def main() -> None:
    """Start a process for each rank. Forked, so that PyTorch is imported once."""
    options = parse()
    Path(options.out).mkdir(parents=True, exist_ok=True)
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            fork.Process(target=train, args=(rank, options, folder))
            for rank in range(PIPELINES * RANKS_IN_PIPELINE)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    raise SystemExit(max(abs(process.exitcode or 0) for process in ranks))


if __name__ == "__main__":
    main()
