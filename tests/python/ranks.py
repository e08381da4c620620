# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs functions on processes of one machine in a group of gloo, for the tests of the hooks."""

from __future__ import annotations

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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

WIDTH = 8
ROWS = 2  # Of a microbatch.
PATIENCE = 120.0  # Seconds that only a hang misses.


def weights(model: torch.nn.Module) -> list[float]:
    """Return all that was trained, of all shards."""
    whole = [getattr(p, "full_tensor", lambda p=p: p)() for p in model.parameters()]
    return [float(value) for p in whole for value in p.detach().flatten()]


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
