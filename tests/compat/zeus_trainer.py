# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of a small training job under Zeus' own client, as it comes from PyPI.

A pipeline of two linear layers in 1F1B, real torch.distributed processes (gloo) and
the fake NVML. This machine has no CUDA, so torch's three CUDA calls that Zeus makes
are replaced; nothing of Zeus is. Prints what happened as one line of JSON.
Run by test_zeus_client.py with the Python of scripts/zeus-venv.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import timedelta
from typing import Any

import pynvml
import torch
import torch.distributed as dist

WIDTH = 8
# Only a hang misses it.
PATIENCE = timedelta(seconds=180)


def replace_cuda(synchronized: list[int]) -> None:
    """Stand in for a CUDA device, before Zeus looks for one."""
    torch.cuda.is_available = lambda: True
    torch.cuda.set_device = lambda device: None
    torch.cuda.synchronize = lambda device=None: synchronized.append(device)


def order_1f1b(stage: int, stages: int, microbatches: int) -> list[str]:
    """Return the names of a stage's computations."""
    warm_up = min(microbatches, stages - 1 - stage)
    steady = ["forward", "backward"] * (microbatches - warm_up)
    return ["forward"] * warm_up + steady + ["backward"] * warm_up


def clock_of(gpu: int) -> int:
    """Return the SM clock in effect."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(gpu)
    clock: int = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    return clock


def clock_when(gpu: int, expected: int) -> int:
    """Return the SM clock when it is the expected one; 20 s are enough."""
    deadline = time.monotonic() + 20
    while (clock := clock_of(gpu)) != expected:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the clock of GPU {gpu} is {clock} MHz, not {expected}")
        time.sleep(0.001)
    return clock


class Stage:
    """The layer of this rank, and what passes between it and its neighbours.

    Parameters
    ----------
    rank, stage, stages
        Who this is; the neighbours of the pipeline are rank - 1 and rank + 1.
    """

    def __init__(self, rank: int, stage: int, stages: int) -> None:
        self._previous = rank - 1 if stage > 0 else None
        self._next = rank + 1 if stage < stages - 1 else None
        self.layer = torch.nn.Linear(WIDTH, WIDTH)
        self._kept: list[tuple[Any, Any]] = []
        self._sent: list[Any] = []

    def forward(self) -> None:
        """Receive activations, compute, send."""
        inputs = torch.ones(1, WIDTH)
        if self._previous is not None:
            dist.recv(inputs, self._previous)
        inputs.requires_grad_()
        outputs = self.layer(inputs)
        self._kept.append((inputs, outputs))
        if self._next is not None:
            self._send(outputs.detach(), self._next)

    def backward(self) -> None:
        """Receive gradients, compute, send."""
        inputs, outputs = self._kept.pop(0)
        gradient = torch.ones(1, WIDTH)
        if self._next is not None:
            dist.recv(gradient, self._next)
        outputs.backward(gradient)
        if self._previous is not None:
            self._send(inputs.grad, self._previous)

    def finish(self) -> None:
        """Wait until the neighbours have everything."""
        for work, _ in self._sent:
            work.wait()
        self._sent.clear()

    def _send(self, tensor: Any, to: int) -> None:
        # gloo waits for the receiver, and in 1F1B neighbours send at the same time.
        self._sent.append((dist.isend(tensor, to), tensor))


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    """Register, fetch the plan, run whole iterations under it."""
    synchronized: list[int] = []
    replace_cuda(synchronized)
    from zeus.optimizer.pipeline_frequency.optimizer import PipelineFrequencyOptimizer

    rank, stages, pipelines = arguments.rank, arguments.stages, arguments.pipelines
    world_size = stages * pipelines
    stage, pipeline = rank % stages, rank // stages
    dist.init_process_group(
        "gloo",
        init_method=f"file://{arguments.rendezvous}",
        rank=rank,
        world_size=world_size,
        timeout=PATIENCE,
    )
    groups = [dist.new_group([s + stages * p for p in range(pipelines)]) for s in range(stages)]
    if arguments.missing:
        # A rank that took part in the rendezvous and then is never heard of again.
        dist.broadcast_object_list([None], src=0)
        return {"rank": rank, "missing": True}
    optimizer = PipelineFrequencyOptimizer(
        rank=rank,
        dp_rank=pipeline,
        pp_rank=stage,
        tp_rank=0,
        device_id=rank,
        dp_degree=pipelines,
        pp_degree=stages,
        tp_degree=1,
        world_size=world_size,
        server_url=arguments.server,
        job_metadata=arguments.metadata,
    )
    said: dict[str, Any] = {"rank": rank, "job": optimizer.job_id}
    said["schedule"] = [list(step) for step in optimizer.freq_schedule]
    if arguments.ask_again:
        again = optimizer._get_frequency_schedule()
        said["again"] = [list(step) for step in again]
    if arguments.iterations:
        pynvml.nvmlInit()
    model = Stage(rank, stage, stages)
    clocks: list[list[Any]] = []
    for _ in range(arguments.iterations):
        optimizer.on_step_begin()
        for name, (_, planned) in zip(
            order_1f1b(stage, stages, arguments.microbatches), optimizer.freq_schedule, strict=True
        ):
            optimizer.on_instruction_begin(name)
            clocks.append([name, clock_when(rank, planned)])
            model.forward() if name == "forward" else model.backward()
            optimizer.on_instruction_end(name)
        optimizer.on_step_end()
        model.finish()
        for parameter in model.layer.parameters():
            dist.all_reduce(parameter.grad, group=groups[stage])
        model.layer.zero_grad()
    said.update(clocks=clocks, synchronized=len(synchronized))
    if arguments.iterations:
        dist.barrier()
    return said


def main() -> None:
    """Train, or show what clock a GPU has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock-of", type=int)
    parser.add_argument("--expect", type=int, default=0)
    parser.add_argument("--server")
    parser.add_argument("--metadata")
    parser.add_argument("--rendezvous")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--pipelines", type=int, default=2)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--ask-again", action="store_true")
    arguments = parser.parse_args()
    if arguments.clock_of is not None:
        pynvml.nvmlInit()
        print(clock_when(arguments.clock_of, arguments.expect))
        return
    print(json.dumps(train(arguments)), flush=True)
    # Left to the end of the interpreter, gloo's threads now and then abort the process.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
