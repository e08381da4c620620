# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A small model of Megatron-Core on processes of one machine, for the tests of its hook.

Megatron is the package from PyPI as it is. It computes on CUDA devices only: here PyTorch takes
"cuda" for the CPU, and its calls that need a driver do nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

warnings.simplefilter("ignore")


def _on_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(make)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if "cuda" in str(options.get("device", "")):
            options["device"] = "cpu"
        return make(*arguments, **options)

    return wrapped


for _name in ("zeros", "ones", "empty", "tensor", "full"):
    setattr(torch, _name, _on_cpu(getattr(torch, _name)))
torch.cuda.current_device = lambda: "cpu"
torch.cuda.synchronize = lambda *_: None
torch.cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()
torch.cuda.random.get_rng_state = torch.cuda.get_rng_state
torch.cuda.manual_seed = torch.manual_seed

from megatron.core import parallel_state, timers  # noqa: E402
from megatron.core.enums import ModelType  # noqa: E402
from megatron.core.num_microbatches_calculator import (  # noqa: E402
    init_num_microbatches_calculator,
)
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

WIDTH, LENGTH = 8, 4


class Chunk(nn.Module):  # type: ignore[misc]
    """A part of the model, as Megatron's schedules use it."""

    model_type = ModelType.encoder_or_decoder
    share_embeddings_and_output_weights = False

    def __init__(self, config: TransformerConfig, stage: int, is_first: bool) -> None:
        super().__init__()
        torch.manual_seed(stage)
        self.config = config
        self.is_first = is_first
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.given: torch.Tensor | None = None

    def set_input_tensor(self, given: list[torch.Tensor | None]) -> None:
        """Take what the stage before computed."""
        self.given = given[0]

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return torch.tanh(self.layer(data if self.is_first else self.given))


class Training:
    """One rank of a training."""

    def __init__(
        self,
        pp: int,
        chunks: int,
        microbatches: int,
        log_level: int = 0,
        pg_collection: Any = None,
        **settings: Any,
    ) -> None:
        virtual = chunks if chunks > 1 else None
        if pg_collection is None and not parallel_state.model_parallel_is_initialized():
            layout = {
                key: settings.pop(key)
                for key in ("tensor_model_parallel_size", "context_parallel_size")
                if key in settings
            }
            parallel_state.initialize_model_parallel(
                pipeline_model_parallel_size=pp,
                virtual_pipeline_model_parallel_size=virtual,
                **layout,
            )
        self.config = TransformerConfig(
            num_layers=pp * chunks,
            hidden_size=WIDTH,
            num_attention_heads=1,
            pipeline_model_parallel_size=pp,
            virtual_pipeline_model_parallel_size=virtual,
            pipeline_dtype=torch.float32,
            deallocate_pipeline_outputs=False,
            **settings,
        )
        self.config.timers = timers.Timers(log_level, "max")
        self.groups: dict[str, Any] = {}  # As the schedule gets them.
        if pg_collection is None:
            rank = parallel_state.get_pipeline_model_parallel_rank()
        else:
            rank = pg_collection.pp.rank()
            communicator = P2PCommunicator(pg_collection.pp, self.config)
            self.groups = {"pg_collection": pg_collection, "p2p_communicator": communicator}
        self.model = [
            Chunk(self.config, chunk * pp + rank, chunk == 0 and rank == 0)
            for chunk in range(chunks)
        ]
        self.microbatches = microbatches
        self.schedule = get_forward_backward_func(pp, virtual)
        self.fails_at = -1
        self.forwards: list[str] = []

    def step(self, microbatches: int | None = None, forward_only: bool = False) -> list[float]:
        """Run an iteration; returns its losses, on the last rank."""

        def forward_step(data: Any, model: Chunk) -> Any:
            if len(self.forwards) == self.fails_at:
                raise ZeroDivisionError
            self.forwards.append("F")

            def loss(output: torch.Tensor) -> Any:
                value = output.pow(2).mean()
                return value, {"loss": float(value.detach())}

            return model(next(data)), loss

        self.forwards.clear()
        for chunk in self.model:
            chunk.zero_grad()
        torch.manual_seed(0)
        data = [torch.randn(LENGTH, 1, WIDTH) for _ in range(64)]
        done = self.schedule(
            forward_step_func=forward_step,
            data_iterator=[iter(data) for _ in self.model] if len(self.model) > 1 else iter(data),
            model=self.model if len(self.model) > 1 else self.model[0],
            num_microbatches=microbatches or self.microbatches,
            seq_length=LENGTH,
            micro_batch_size=1,
            forward_only=forward_only,
            **self.groups,
        )
        return [each["loss"] for each in done]

    def gradients(self) -> float:
        """A sum that all gradients change."""
        return float(sum(p.grad.abs().sum() for chunk in self.model for p in chunk.parameters()))


def count_microbatches(microbatches: int, replicas: int = 1) -> None:
    """Have Megatron's calculator say so."""
    init_num_microbatches_calculator(dist.get_rank(), None, microbatches * replicas, 1, replicas)
