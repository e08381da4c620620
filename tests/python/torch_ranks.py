# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Small pipelines of PyTorch on processes of one machine, for the tests of the hooks."""

from __future__ import annotations

import inspect
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules
from torch.utils.checkpoint import checkpoint

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

WIDTH = 8
ROWS = 2  # Of a microbatch.
PATIENCE = 120.0  # Seconds that only a hang misses.

# Up to PyTorch 2.5 a stage had to be told what comes in.
_NEEDS_INPUT = inspect.signature(PipelineStage).parameters["input_args"].default is not None
_INPUT_ARGS = (torch.zeros(ROWS, WIDTH),) if _NEEDS_INPUT else ()

SINGLE = ("ScheduleGPipe", "Schedule1F1B")
V_SHAPED = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")


class Block(nn.Module):  # type: ignore[misc]
    """One stage; with `recompute` its forward runs again in the backward."""

    def __init__(self, recompute: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
        self.recompute = recompute
        self.calls = 0
        self.layers.register_forward_pre_hook(self._count)

    def _count(self, *_: object) -> None:
        self.calls += 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        if self.recompute:
            return checkpoint(self.layers, x, use_reentrant=False)
        return self.layers(x)


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the loss of a microbatch."""
    return nn.functional.mse_loss(output, target)


def stages_of(name: str, rank: int, world: int, virtual: int) -> list[int]:
    """Return the stages of a rank."""
    if name in V_SHAPED:
        return [rank, 2 * world - 1 - rank]
    return [rank + world * i for i in range(virtual)]


def make(
    name: str,
    microbatches: int,
    virtual: int = 1,
    recompute: bool = False,
    stages: list[Any] | None = None,
    **options: Any,
) -> Any:
    """Return a schedule of this rank, by the name of its class; `stages`: those of another."""
    rank, world = dist.get_rank(), dist.get_world_size()
    indices = [rank] if name in SINGLE else stages_of(name, rank, world, virtual)
    total = world * len(indices)
    if stages is None:
        stages = []
        for index in indices:
            torch.manual_seed(index)
            stages.append(
                PipelineStage(Block(recompute), index, total, torch.device("cpu"), *_INPUT_ARGS)
            )
    made = getattr(schedules, name)
    return made(stages[0] if name in SINGLE else stages, microbatches, loss_fn=loss_of, **options)


def step(schedule: Any, microbatches: int, seed: int = 0) -> list[float]:
    """Run one iteration; returns the losses on the rank that has the last stage."""
    torch.manual_seed(seed)
    x = torch.randn(microbatches * ROWS, WIDTH)
    target = torch.randn(microbatches * ROWS, WIDTH)
    return _run(schedule.step, schedule, x, target)


def evaluate(schedule: Any, microbatches: int) -> list[float]:
    """Run one evaluation."""
    x = torch.ones(microbatches * ROWS, WIDTH)
    return _run(schedule.eval, schedule, x, torch.zeros(microbatches * ROWS, WIDTH))


def _run(function: Any, schedule: Any, x: torch.Tensor, target: torch.Tensor) -> list[float]:
    stages = getattr(schedule, "_stages", None) or [schedule._stage]
    losses: list[torch.Tensor] = []
    arguments = (x,) if any(stage.is_first for stage in stages) else ()
    if any(stage.is_last for stage in stages):
        function(*arguments, target=target, losses=losses)
    else:
        function(*arguments)
    return [float(loss.detach()) for loss in losses]


def parameters(schedule: Any) -> list[nn.Parameter]:
    """Return what the optimizer of this rank steps."""
    stages = getattr(schedule, "_stages", None) or [schedule._stage]
    return [p for stage in stages for p in stage.submod.parameters()]


def run_ranks(world: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run `function(*arguments)` on `world` processes in a group of gloo; returns what each did.

    Processes are forked: PyTorch is imported once. A rank that fails ends the run.
    """
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        pipes, pids = [], []
        for rank in range(world):
            ours, theirs = os.pipe()
            pid = os.fork()
            if pid == 0:
                _rank(rank, world, f"{folder}/store", theirs, function, arguments)
            os.close(theirs)
            pipes.append(ours)
            pids.append(pid)
        try:
            return _collect(pipes)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _rank(
    rank: int, world: int, store: str, pipe: int, function: Any, arguments: tuple[Any, ...]
) -> None:
    status = 1
    try:
        os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
        file = dist.FileStore(store, world)
        dist.init_process_group("gloo", store=file, rank=rank, world_size=world)
        result = ("ok", function(*arguments))
        dist.barrier()
        status = 0
    except BaseException:
        result = ("error", f"rank {rank}:\n{traceback.format_exc()}")
    with os.fdopen(pipe, "wb") as file:
        pickle.dump(result, file)
    sys.stderr.flush()
    sys.stdout.flush()
    if status == 0:
        # Killed when all have answered: nobody's sockets close before.
        time.sleep(PATIENCE)
    os._exit(status)


def _collect(pipes: list[int]) -> list[Any]:
    parts: dict[int, bytes] = {pipe: b"" for pipe in pipes}
    left = set(pipes)
    deadline = time.monotonic() + PATIENCE
    while left:
        ready, _, _ = select.select(list(left), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError("a rank did not end")
        for pipe in ready:
            data = os.read(pipe, 1 << 16)
            parts[pipe] += data
            if not data:
                left.discard(pipe)
                os.close(pipe)
                kind, value = pickle.loads(parts[pipe])
                if kind == "error":
                    raise RuntimeError(value)
    return [pickle.loads(parts[pipe])[1] for pipe in pipes]
