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
from collections.abc import Callable
from typing import Any

import perseus
import torch
from perseus.hooks import deepspeed as hooks
from recording import actions, recorded
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


ALONE = ("1", "4", "0")
MICROBATCHES_ALONE = 4
REFUSES_NO_GRAD = True


class Trainer:
    """One rank: stages, microbatches, recomputation."""

    def __init__(self, stages: str, count: str, recompute: str) -> None:
        self.engine = make(int(stages), int(count), recompute=int(recompute))
        self.batches = data()
        self.kept = self.engine.train_batch

    def attach(self, **options: Any) -> Any:
        """Attach Perseus."""
        attached = perseus.attach_deepspeed(self.engine, **options)
        self.kept = self.engine.train_batch
        return attached

    def step(self, _seed: int = 0) -> float:
        """Run an iteration; returns its loss."""
        return float(self.engine.train_batch(self.batches))

    def weights(self) -> float:
        """Return a sum that all weights of this rank change."""
        return float(sum(p.detach().abs().sum() for p in self.engine.module.parameters()))

    def seen(self) -> dict[str, object]:
        """Return nothing: an engine does not tell its order."""
        return {}

    def life(self, _attached: Any, log: list[list[Any]]) -> dict[str, object]:
        """Return what is told of an engine that is not attached."""
        mark = len(log)
        make(1, MICROBATCHES_ALONE).train_batch(data())
        return {"other": log[mark:]}

    def evaluate(self) -> None:
        """Evaluate."""
        self.engine.eval_batch(self.batches)

    def fails(self, on: bool) -> None:
        """Have the third forward fail, or all be well again."""
        layer = self.engine.module.forward_funcs[0]
        layer.calls, layer.fails_at = 0, 3 if on else -1
        if not on:
            self.engine.timers("train_batch").reset()  # DeepSpeed's own timer still ran.

    def use_microbatches(self, count: int) -> None:
        """Train with so many from now on."""
        self.engine.set_train_batch_size(count * ROWS)

    def runs_what_was_kept(self) -> None:
        """Train by a method of ours that somebody kept."""
        self.kept(self.batches)

    def left(self) -> list[str]:
        """Return which of our attributes are still there."""
        return [n for n in vars(self.engine) if n in ("train_batch", "_INSTRUCTION_MAP")]


def place(stages: int, replicas: int) -> Any:
    """Return where this rank stands."""
    return hooks.layout_of_deepspeed(make(stages, 2, replicas))


def failures(attempt: Callable[..., None]) -> dict[str, object]:
    """What cannot be attached."""
    job, log = recorded()
    attempt("no engine", lambda: perseus.attach_deepspeed(torch.nn.Linear(1, 1), job=job))
    engine = make(1, 2)
    attempt("profile", lambda: perseus.attach_deepspeed(engine, profile="/nowhere.csv"))

    class WeightPass:
        """As DeepSpeed's pull request 8576 has it."""

    engine._INSTRUCTION_MAP = {**engine._INSTRUCTION_MAP, WeightPass: None}
    attempt("unknown", lambda: perseus.attach_deepspeed(engine, job=job))
    del engine._INSTRUCTION_MAP
    left = [n for n in vars(engine) if n in ("train_batch", "_INSTRUCTION_MAP")]
    engine.train_batch(data())
    perseus.attach_deepspeed(engine, job=job)
    attempt("twice", lambda: perseus.attach_deepspeed(engine, job=job))
    engine.train_batch(data())
    return {"left": left, "once": len(actions(log))}


SCENARIOS: dict[str, Callable[..., object]] = {}
