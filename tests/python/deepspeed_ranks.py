# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A small model in DeepSpeed's pipeline engine on processes of one machine, on the CPU.

DeepSpeed is the package from PyPI as it is, without the extension that it compiles for the CPU.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from typing import Any

import torch
from torch import nn

warnings.simplefilter("ignore")
os.environ.setdefault("DS_ACCELERATOR", "cpu")

with contextlib.redirect_stdout(sys.stderr):
    import deepspeed
    from deepspeed.pipe import PipelineModule
    from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology

# It would be compiled, and its all-reduce is not what is tested.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
logging.disable(logging.WARNING)

WIDTH, ROWS = 8, 2


class Layer(nn.Module):  # type: ignore[misc]
    """A layer that may be made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.calls = 0
        self.fails_at = -1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        self.calls += 1
        if self.calls == self.fails_at:
            raise ZeroDivisionError
        return torch.tanh(self.layer(x))


def make(stages: int, microbatches: int, replicas: int = 1, recompute: int = 0) -> Any:
    """Return the engine of this rank."""
    torch.manual_seed(0)
    deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False)
    with open(os.devnull, "w", encoding="ascii") as nowhere, contextlib.redirect_stdout(nowhere):
        model = PipelineModule(
            [Layer() for _ in range(2 * stages)],
            topology=PipeModelDataParallelTopology(num_pp=stages, num_mp=1, num_dp=replicas),
            loss_fn=nn.functional.mse_loss,
            activation_checkpoint_interval=recompute,
        )
        engine, _, _, _ = deepspeed.initialize(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            config={
                "train_micro_batch_size_per_gpu": ROWS,
                "gradient_accumulation_steps": microbatches,
                "train_batch_size": ROWS * microbatches * replicas,
                "steps_per_print": 1_000_000,
            },
        )
    return engine


def data(seed: int = 0) -> Any:
    """Yield microbatches."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(ROWS, WIDTH, generator=generator)
        yield x, torch.zeros(ROWS, WIDTH)


def weights(engine: Any) -> float:
    """A sum that all weights of this rank change."""
    return float(sum(p.detach().abs().sum() for p in engine.module.parameters()))
