#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Train a small model with DeepSpeed's pipeline engine, with Perseus.

launch.sh starts it on each rank. What Perseus needs is marked below; all else is DeepSpeed's. The
data is random: this shows how the parts meet, not how to train a model.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import deepspeed
import perseus
import torch
from deepspeed.pipe import LayerSpec, PipelineModule


class Block(torch.nn.Module):  # type: ignore[misc]
    """A layer of the model."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--rows", type=int, default=4, help="of a microbatch")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--profile", help="a measured profile (CSV), instead of measuring now")
    parser.add_argument("--blocking-power", type=float, help="watts of a GPU that waits")
    parser.add_argument("--device", help="agent:SOCKET, nvml, simulated:FILE, ...")
    parser.add_argument("--local_rank", type=int, default=0, help="DeepSpeed's launcher gives it")
    return parser.parse_args()


def batches(given: argparse.Namespace) -> Any:
    """Yield microbatches."""
    generator = torch.Generator().manual_seed(0)
    while True:
        x = torch.randn(given.rows, given.width, generator=generator)
        yield x, x.roll(1, 1)


def main() -> None:
    """Train."""
    given = options()
    deepspeed.init_distributed()
    torch.manual_seed(1)
    world = torch.distributed.get_world_size()
    model = PipelineModule(
        [LayerSpec(Block, given.width) for _ in range(given.layers)],
        num_stages=given.stages,
        loss_fn=torch.nn.functional.mse_loss,
    )
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4),
        config={
            "train_micro_batch_size_per_gpu": given.rows,
            "gradient_accumulation_steps": given.microbatches,
            "train_batch_size": given.rows * given.microbatches * world // given.stages,
            "steps_per_print": 10,
        },
    )

    # Perseus: these lines. The server is $PERSEUS_SERVER, the device the node's agent.
    attached = perseus.attach_deepspeed(
        engine,
        profile=given.profile or True,
        settings={"blocking_power": given.blocking_power} if given.blocking_power else None,
        name="deepspeed example",
        tokens=given.microbatches * given.rows,
        **({"device": given.device} if given.device else {}),
    )

    data = batches(given)
    for _ in range(given.iterations):
        engine.train_batch(data)
    report = attached.report()
    rank = os.environ.get("RANK", "0")
    print(f"rank {rank}: {report['state']}, plan {report.get('plan_version', -1)}", end="; ")
    print(report["last_error"] or "all is well", flush=True)
    attached.detach()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
