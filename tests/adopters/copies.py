# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A trainer of somebody else: plain data parallel on two ranks, with gradients clipped."""

from __future__ import annotations

from typing import Any

import perseus
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from underneath import Cluster, parse

RANKS, ROWS, WIDTH = 2, 2, 8
EVALUATE = 5


class Net(nn.Module):  # type: ignore[misc]
    """A model whose forward and backward also run on a simulated GPU."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
        self.cluster = cluster

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        y = self.cluster.gpu.forward(0, 0, lambda: self.layers(x))
        return Kernel.apply(y, self.cluster)


class Kernel(torch.autograd.Function):  # type: ignore[misc]
    """Begins the backward with the kernel of all of it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, cluster: Cluster) -> torch.Tensor:
        """Compute nothing."""
        ctx.cluster = cluster
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        """Run the kernel."""
        return ctx.cluster.gpu.backward(0, 0, lambda: gradient), None


def main() -> None:
    """Train on one rank."""
    options = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    cluster = Cluster(options, stages=1, microbatches=1, dp=RANKS)
    torch.manual_seed(0)
    model = DistributedDataParallel(Net(cluster))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)

    attached = None
    if options.perseus:
        # Nothing is to be had at full speed: all ranks compute the same all the time.
        slower = {"at": "1.05x"}
        attached = perseus.attach_ddp(model, optimizer, settings=slower, **cluster.for_perseus())

    for step in range(options.steps):
        generator = torch.Generator().manual_seed(step * RANKS + cluster.rank)
        x = torch.randn(ROWS, WIDTH, generator=generator)
        cluster.begin(step)
        loss = nn.functional.mse_loss(model(x), x.flip(1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        cluster.end(step, [loss], dict(attached.report()) if attached else {})
        if (step + 1) % EVALUATE == 0:
            model.eval()
            with torch.no_grad():
                model(torch.ones(ROWS, WIDTH))
            model.train()

    if attached:
        attached.detach()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
