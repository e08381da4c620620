#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Train a small GPT with Megatron-Core's pipeline schedules, with Perseus.

launch.sh starts it on each rank. What Perseus needs is marked below; all else is Megatron's own
loop. The data is random: this shows how the parts meet, not how to train a model.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any

import perseus
import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipeline", type=int, default=2, help="pipeline parallel ranks")
    parser.add_argument("--chunks", type=int, default=1, help="virtual stages of a rank")
    parser.add_argument("--tensor", type=int, default=1, help="tensor parallel ranks")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--profile", help="a measured profile (CSV), instead of measuring now")
    parser.add_argument("--blocking-power", type=float, help="watts of a GPU that waits")
    parser.add_argument("--device", help="agent:SOCKET, nvml, simulated:FILE, ...")
    return parser.parse_args()


def batches(given: argparse.Namespace) -> Any:
    """Yield microbatches of random tokens, the same on all ranks."""
    generator = torch.Generator().manual_seed(0)
    length = given.sequence
    mask = torch.tril(torch.ones(1, 1, length, length)) < 0.5
    while True:
        tokens = torch.randint(given.vocabulary, (1, length + 1), generator=generator)
        place = torch.arange(length).unsqueeze(0)
        yield [t.to(torch.cuda.current_device()) for t in (tokens, place, mask)]


def loss_of(output: torch.Tensor) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss of a microbatch, and what the schedule hands back."""
    loss = output.float().mean()
    return loss, {"loss": float(loss.detach())}


def forward_step(data: Any, model: Any) -> Any:
    """Run a microbatch, as Megatron's schedules ask for it."""
    tokens, place, mask = next(data)
    output = model(tokens[:, :-1].contiguous(), place, mask, labels=tokens[:, 1:].contiguous())
    return output, partial(loss_of)


def make_model(given: argparse.Namespace) -> list[Any]:
    """Return the chunks of this rank."""
    virtual = given.chunks if given.chunks > 1 else None
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=given.tensor,
        pipeline_model_parallel_size=given.pipeline,
        virtual_pipeline_model_parallel_size=virtual,
    )
    model_parallel_cuda_manual_seed(1)
    torch.manual_seed(1)
    config = TransformerConfig(
        num_layers=given.layers,
        hidden_size=given.hidden,
        num_attention_heads=4,
        use_cpu_initialization=True,
        pipeline_dtype=torch.float32,
        tensor_model_parallel_size=given.tensor,
        pipeline_model_parallel_size=given.pipeline,
        virtual_pipeline_model_parallel_size=virtual,
    )
    return [
        GPTModel(
            config=config,
            transformer_layer_spec=get_gpt_layer_local_spec(),
            vocab_size=given.vocabulary,
            max_sequence_length=given.sequence,
            pre_process=parallel_state.is_pipeline_first_stage(
                ignore_virtual=False, vp_stage=chunk
            ),
            post_process=parallel_state.is_pipeline_last_stage(
                ignore_virtual=False, vp_stage=chunk
            ),
            share_embeddings_and_output_weights=False,
            vp_stage=chunk if virtual else None,
        ).to(torch.cuda.current_device())
        for chunk in range(given.chunks)
    ]


def main() -> None:
    """Train."""
    given = options()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group()
    model = make_model(given)
    replicas = parallel_state.get_data_parallel_world_size()
    rank = torch.distributed.get_rank()
    init_num_microbatches_calculator(rank, None, given.microbatches * replicas, 1, replicas)
    optimizer = torch.optim.AdamW([p for chunk in model for p in chunk.parameters()], lr=1e-4)
    schedule = get_forward_backward_func()
    data = [batches(given) for _ in model]

    # Perseus: these lines. The server is $PERSEUS_SERVER, the device the node's agent.
    attached = perseus.attach_megatron(
        model,
        profile=given.profile or True,
        settings={"blocking_power": given.blocking_power} if given.blocking_power else None,
        name="megatron example",
        tokens=given.microbatches * given.sequence,
        **({"device": given.device} if given.device else {}),
    )

    for iteration in range(given.iterations):
        optimizer.zero_grad()
        losses = schedule(
            forward_step_func=forward_step,
            data_iterator=data if len(model) > 1 else data[0],
            model=model if len(model) > 1 else model[0],
            num_microbatches=given.microbatches,
            seq_length=given.sequence,
            micro_batch_size=1,
        )
        optimizer.step()
        if losses and iteration % 10 == 0:
            print(f"iteration {iteration}: loss {losses[-1]['loss']:.4f}", flush=True)
    report = attached.report()
    print(f"rank {rank}: {report['state']}, plan {report.get('plan_version', -1)}", end="; ")
    print(report["last_error"] or "all is well", flush=True)
    attached.detach()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
