# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A trainer of somebody else: two ranks with two stages each, interleaved.

Two batches make up a step of the optimizer; the loader's workers are forked anew in each epoch;
every few steps it evaluates and saves, and it resumes from what was saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perseus
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B
from torch.utils.data import DataLoader, Dataset
from underneath import Cluster, parse

WIDTH, VIRTUAL, MICROBATCHES, ROWS = 8, 2, 4, 2
ACCUMULATE = 2  # Batches for a step of the optimizer.
EPOCH = 20  # Steps until the loader is made anew.
EVALUATE, SAVE = 5, 10  # Every so many steps.


class Samples(Dataset):  # type: ignore[misc]
    """Batch i is always the same."""

    def __init__(self, batches: range) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(self.batches[index])
        x = torch.randn(MICROBATCHES * ROWS, WIDTH, generator=generator)
        return x, x.flip(1)


def batches(first: int, last: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Go through the batches of these steps, with a worker that is forked from this process."""
    samples = Samples(range(first * ACCUMULATE, last * ACCUMULATE))
    # A generator of its own: a loader draws from the trainer's random numbers else.
    yield from DataLoader(
        samples,
        batch_size=None,
        num_workers=1,
        multiprocessing_context="fork",
        generator=torch.Generator().manual_seed(first),
    )


class Trainer:
    """All that is saved, and how."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rank, world = dist.get_rank(), dist.get_world_size()
        count = world * VIRTUAL
        self.stages = []
        for index in range(self.rank, count, world):
            torch.manual_seed(index)
            layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Dropout(0.1))
            self.stages.append(PipelineStage(layers, index, count, torch.device("cpu")))
        self.schedule = ScheduleInterleaved1F1B(
            self.stages, MICROBATCHES, loss_fn=nn.functional.mse_loss
        )
        self.module = nn.ModuleList([stage.submod for stage in self.stages])
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=3e-3)

    def run(self, x: torch.Tensor, target: torch.Tensor, train: bool = True) -> list[torch.Tensor]:
        """Run one batch; returns the losses on the rank of the last stage."""
        run = self.schedule.step if train else self.schedule.eval
        arguments = (x,) if self.stages[0].is_first else ()
        if not self.stages[-1].is_last:
            run(*arguments)
            return []
        losses: list[torch.Tensor] = []
        run(*arguments, target=target, losses=losses)
        return losses

    def evaluate(self) -> None:
        """Compute a loss that nobody trains on."""
        self.module.eval()
        x = torch.ones(MICROBATCHES * ROWS, WIDTH)
        with torch.no_grad():
            self.run(x, x, train=False)
        self.module.train()

    def save(self, step: int) -> None:
        """Save what it takes to go on before `step`."""
        state = {
            "model": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        torch.save(state, self.folder / f"{step}-{self.rank}.pt")
        dist.barrier()
        if self.rank == 0:
            (self.folder / "latest.tmp").write_text(str(step))
            os.replace(self.folder / "latest.tmp", self.folder / "latest")

    def resume(self) -> int:
        """Return the step to go on with."""
        latest = self.folder / "latest"
        if not latest.exists():
            torch.manual_seed(self.rank)
            return 0
        step = int(latest.read_text())
        state: dict[str, Any] = torch.load(self.folder / f"{step}-{self.rank}.pt")
        self.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        return step


def main() -> None:
    """Train on one rank."""
    options = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    trainer = Trainer(options.folder)
    cluster = Cluster(options, len(trainer.stages) * dist.get_world_size(), MICROBATCHES, dp=1)
    for stage in trainer.stages:
        cluster.gpu.put_under(stage)
    step = trainer.resume()
    dist.barrier()  # No rank saves before all have read.

    attached = None
    if options.perseus:
        attached = perseus.attach(trainer.schedule, **cluster.for_perseus())

    while step < options.steps:
        last = min(options.steps, step - step % EPOCH + EPOCH)
        read = batches(step, last)
        for step in range(step, last):  # noqa: B020
            several = [next(read) for _ in range(ACCUMULATE)]
            cluster.begin(step)
            losses = [loss for batch in several for loss in trainer.run(*batch)]
            trainer.optimizer.step()
            trainer.optimizer.zero_grad()
            cluster.end(step, losses, dict(attached.report()) if attached else {})
            if (step + 1) % EVALUATE == 0:
                trainer.evaluate()
            if (step + 1) % SAVE == 0:
                trainer.save(step + 1)
        step = last

    if attached:
        attached.detach()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
