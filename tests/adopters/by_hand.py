# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A trainer of somebody else: 1F1B written by hand, in two replicas of two ranks.

Perseus is told by callbacks, which cannot hold a ``with`` open.
"""

from __future__ import annotations

import perseus
import torch
import torch.distributed as dist
from torch import nn
from underneath import Cluster, parse

REPLICAS, STAGES, MICROBATCHES = 2, 2, 4
ROWS, WIDTH = 2, 8
EVALUATE = 7


class Callbacks:
    """What this trainer calls while it runs; the default does nothing."""

    def step_begins(self) -> None:
        """A step of the optimizer begins."""

    def step_ends(self) -> None:
        """It ended."""

    def begins(self, kind: str, microbatch: int) -> None:
        """A computation begins."""

    def ends(self, kind: str, microbatch: int) -> None:
        """It ended."""

    def evaluates(self, on: bool) -> None:
        """An evaluation begins or ends."""


class ToPerseus(Callbacks):
    """Tells Perseus."""

    def __init__(self, job: perseus.Job, stage: int) -> None:
        self.job = job
        self.stage = stage

    def step_begins(self) -> None:
        """A step of the optimizer begins."""
        self.job.step_begin()

    def step_ends(self) -> None:
        """It ended."""
        self.job.step_end(tokens=MICROBATCHES * ROWS)

    def begins(self, kind: str, microbatch: int) -> None:
        """A computation begins."""
        self.job.begin(kind, microbatch, self.stage)

    def ends(self, kind: str, microbatch: int) -> None:
        """It ended."""
        self.job.end(kind, microbatch, self.stage)

    def evaluates(self, on: bool) -> None:
        """An evaluation begins or ends."""
        if on:
            self.job.skip_begin()
        else:
            self.job.skip_end()


class Pipeline:
    """One stage of a replica, and what goes through it."""

    def __init__(self, rank: int, cluster: Cluster, callbacks: Callbacks) -> None:
        self.replica, self.stage = divmod(rank, STAGES)
        self.before, self.after = rank - 1, rank + 1  # Ranks of the neighbours.
        self.cluster, self.callbacks = cluster, callbacks
        torch.manual_seed(self.stage)
        self.layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
        self.kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # Input and output.
        self.sent: list[dist.Work] = []
        self.losses: list[torch.Tensor] = []

    def forward(self, step: int, microbatch: int) -> None:
        """Compute a microbatch and pass it on; the last stage computes its loss."""
        x = self.sample(step, microbatch)
        target = x.flip(1)
        if self.stage > 0:
            x = torch.empty(ROWS, WIDTH)
            dist.recv(x, self.before)
            x.requires_grad_()

        def compute() -> torch.Tensor:
            y: torch.Tensor = self.layers(x)
            if self.stage < STAGES - 1:
                return y
            return nn.functional.mse_loss(y, target) / (MICROBATCHES * REPLICAS)

        self.callbacks.begins("forward", microbatch)
        y = self.cluster.gpu.forward(self.stage, microbatch, compute)
        self.callbacks.ends("forward", microbatch)
        if self.stage < STAGES - 1:
            self.sent.append(dist.isend(y.detach(), self.after))
        else:
            self.losses.append(y)
        self.kept[microbatch] = x, y

    def backward(self, microbatch: int) -> None:
        """Compute gradients and pass them back."""
        x, y = self.kept.pop(microbatch)
        gradient = None
        if self.stage < STAGES - 1:
            gradient = torch.empty(ROWS, WIDTH)
            dist.recv(gradient, self.after)
        self.callbacks.begins("backward", microbatch)
        self.cluster.gpu.backward(self.stage, microbatch, lambda: y.backward(gradient))
        self.callbacks.ends("backward", microbatch)
        if self.stage > 0:
            assert x.grad is not None
            self.sent.append(dist.isend(x.grad, self.before))

    def sample(self, step: int, microbatch: int) -> torch.Tensor:
        """Return a microbatch of this replica."""
        seed = (step * MICROBATCHES + microbatch) * REPLICAS + self.replica
        return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(seed))

    def train(self, step: int) -> list[torch.Tensor]:
        """Run all microbatches of a step: one forward, one backward; returns the losses."""
        self.losses = []
        ahead = min(STAGES - 1 - self.stage, MICROBATCHES)
        for microbatch in range(ahead):
            self.forward(step, microbatch)
        for microbatch in range(MICROBATCHES):
            if microbatch + ahead < MICROBATCHES:
                self.forward(step, microbatch + ahead)
            self.backward(microbatch)
        self.wait()
        return self.losses

    def evaluate(self) -> None:
        """Compute losses that nobody trains on."""
        self.callbacks.evaluates(True)
        with torch.no_grad():
            for microbatch in range(MICROBATCHES):
                self.forward(0, microbatch)
        self.kept.clear()
        self.wait()
        self.callbacks.evaluates(False)

    def wait(self) -> None:
        """Wait for what was sent."""
        for work in self.sent:
            work.wait()
        self.sent.clear()


def main() -> None:
    """Train on one rank."""
    options = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pairs = [dist.new_group([stage, stage + STAGES]) for stage in range(STAGES)]
    cluster = Cluster(options, STAGES, MICROBATCHES, REPLICAS)
    replica, stage = divmod(rank, STAGES)

    job, callbacks = None, Callbacks()
    if options.perseus:
        where = {"rank": rank, "pp_rank": stage, "dp_rank": replica}
        job = perseus.Job.for_pipeline(
            "1f1b", STAGES, MICROBATCHES, dp=REPLICAS, **where, **cluster.for_perseus()
        )
        callbacks = ToPerseus(job, stage)

    pipeline = Pipeline(rank, cluster, callbacks)
    optimizer = torch.optim.SGD(pipeline.layers.parameters(), lr=0.05, momentum=0.9)
    for step in range(options.steps):
        cluster.begin(step)
        callbacks.step_begins()
        losses = pipeline.train(step)
        callbacks.step_ends()
        for parameter in pipeline.layers.parameters():
            dist.all_reduce(parameter.grad, group=pairs[stage])
        optimizer.step()
        optimizer.zero_grad()
        cluster.end(step, losses, dict(job.report()) if job else {})
        if (step + 1) % EVALUATE == 0:
            pipeline.evaluate()

    if job:
        job.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
