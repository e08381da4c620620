# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Models under DDP, FSDP and no wrapper: trainers without a pipeline."""

from __future__ import annotations

import contextlib
import copy
import io
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ranks
import torch
import torch.distributed as dist
from ranks import ROWS, WIDTH, weights
from recording import actions, recorded, steps_of
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import perseus  # isort: skip


class Net(nn.Module):  # type: ignore[misc]
    """Two layers and, where asked, one whose gradient comes last but is not always used."""

    def __init__(self, recompute: bool = False, first: bool = False) -> None:
        super().__init__()
        self.before = nn.Linear(WIDTH, WIDTH) if first else None
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.recompute = recompute
        self.uses_first = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        if self.before is not None and self.uses_first:
            x = self.before(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x).tanh()
        return x


@dataclass
class Answer:
    """What models of some libraries return."""

    logits: torch.Tensor
    text: str = ""


class Wrapped(nn.Module):  # type: ignore[misc]
    """A model whose output holds its tensors deep inside."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, x: torch.Tensor) -> Any:
        """Compute."""
        return {"answers": [Answer(self.net(x))]}


def made(kind: str, **options: Any) -> nn.Module:
    """Return a model, wrapped as `kind` says."""
    torch.manual_seed(1)
    model = Net(**options)
    if kind == "ddp":
        return DistributedDataParallel(model, find_unused_parameters=options.get("first", False))
    if kind == "fsdp":
        mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp_shard",))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    return model


def loss_of(model: nn.Module, seed: int, micro: int = 0) -> torch.Tensor:
    """Return the loss of a microbatch; each rank has its own data."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    generator = torch.Generator().manual_seed(100 * seed + 10 * micro + rank)
    return model(torch.randn(ROWS, WIDTH, generator=generator)).square().mean()


def train(
    model: nn.Module, optimizer: Any, steps: int, accumulate: int = 1, first: int = 0
) -> list[float]:
    """Train as a trainer of one's own does; returns the losses."""
    losses = []
    for step in range(first, first + steps):
        for micro in range(accumulate):
            last = micro == accumulate - 1
            quiet = getattr(model, "no_sync", None)
            if synchronises := getattr(model, "set_requires_gradient_sync", None):
                synchronises(last)
            with contextlib.nullcontext() if last or quiet is None else quiet():
                loss = loss_of(model, step, micro)
                loss.backward()
            losses.append(float(loss.detach()))
        optimizer.step()
        optimizer.zero_grad()
    return losses


def sgd(model: nn.Module) -> Any:
    """Return an optimizer."""
    return torch.optim.SGD(model.parameters(), lr=0.1)


class Trainer:
    """One rank: ranks, kind of model, microbatches of a step, whether the optimizer is told."""

    def __init__(self, _world: str, kind: str, accumulate: str, with_optimizer: str) -> None:
        self.model = made(kind)
        self.optimizer = sgd(self.model)
        self.accumulate, self.with_optimizer = int(accumulate), with_optimizer == "optimizer"

    def attach(self, **options: Any) -> Any:
        """Attach Perseus."""
        optimizer = self.optimizer if self.with_optimizer else None
        return perseus.attach_ddp(self.model, optimizer, accumulate=self.accumulate, **options)

    def step(self, seed: int = 0) -> list[float]:
        """Run an iteration; returns its losses."""
        return train(self.model, self.optimizer, 1, self.accumulate, seed)

    def weights(self) -> list[float]:
        """Return all that was trained."""
        return weights(self.model)

    def seen(self) -> dict[str, object]:
        """Return nothing: models do not tell an order."""
        return {}

    def left(self) -> int:
        """Return how many hooks the model has."""
        return len(self.model._forward_hooks) + len(self.model._forward_pre_hooks)


def life() -> object:
    """What else happens in a training, on one process without a process group."""
    done: dict[str, object] = {}
    said: list[str] = []

    def fresh(**options: Any) -> tuple[Any, Any, Any, list[list[Any]]]:
        model = options.pop("model", None) or made("plain", **options)
        job, log = recorded()
        optimizer = sgd(model)
        attached = perseus.attach_ddp(model, optimizer, job=job, strict=True)
        return attached, model, optimizer, log

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")

        _, model, optimizer, log = fresh(recompute=True)
        train(model, optimizer, 3)
        done["recomputed"] = actions(log)
        mark = len(log)
        model.eval()
        with torch.no_grad():
            loss_of(model, 0)
        model.eval()
        loss_of(model, 0)
        model.train()
        done["evaluation"] = log[mark:]
        mark = len(log)
        copied = copy.deepcopy(model)
        saved = io.BytesIO()
        torch.save(model, saved)
        done["saved"] = b"perseus" in saved.getvalue()
        loss_of(copied, 0).backward()
        done["copied"] = log[mark:]
        train(model, optimizer, 1)
        done["after"] = steps_of(log, mark)

        attached, model, optimizer, log = fresh()
        train(model, optimizer, 2)
        mark = len(log)
        loss_of(model, 0)  # No backward: a critic, say.
        train(model, optimizer, 1)
        done["two forwards"] = steps_of(log, mark), attached.report()["last_error"]
        mark = len(log)
        train(model, optimizer, 1)
        done["recovered"] = steps_of(log, mark), attached.report()["last_error"]

        attached, model, optimizer, log = fresh(first=True)
        train(model, optimizer, 2)
        mark = len(log)
        model.uses_first = False
        train(model, optimizer, 4)
        done["unused"] = steps_of(log, mark)

        attached, model, optimizer, log = fresh()
        train(model, optimizer, 2)
        mark = len(log)
        loss_of(model, 0).backward()  # A scaler skips this one.
        train(model, optimizer, 2)
        done["skipped"] = steps_of(log, mark), attached.report()["last_error"]
        train(model, optimizer, 3, accumulate=2)
        done["uneven"] = attached.report()["last_error"]

        attached, model, optimizer, log = fresh(model=Wrapped())
        for _ in range(2):
            model(torch.ones(ROWS, WIDTH))["answers"][0].logits.square().mean().backward()
            optimizer.step()
        done["deep"] = actions(log)

        model = made("plain")
        job, log = recorded()
        perseus.attach_ddp(model, job=job, strict=True)
        for _ in range(3):
            loss_of(model, 0).backward()
        mark = len(log)
        model.eval()
        loss_of(model, 0)
        done["evaluation ends"] = steps_of(log, mark)

        for compiled in ("in place", "whole", "attached"):
            model = made("plain")
            optimizer = sgd(model)
            called = model
            if compiled == "in place":
                model.compile(fullgraph=True, backend="eager")
            elif compiled == "attached":
                called = torch.compile(model, fullgraph=True, backend="eager")
            job, log = recorded()
            perseus.attach_ddp(called, optimizer, job=job, strict=True)
            if compiled == "whole":
                called = torch.compile(model, fullgraph=True, backend="eager")
            losses = train(called, optimizer, 4)
            plain = made("plain")
            same = losses == train(plain, sgd(plain), 4)
            done[f"compiled {compiled}"] = same, actions(log), job.last_error

        done["no model"] = perseus.attach_ddp(object()).reason
        done["no optimizer"] = perseus.attach_ddp(made("plain"), object(), job=recorded()[0]).reason
        with perseus.attach_ddp(made("plain"), server="http://127.0.0.1:9") as attached:
            done["alone"] = attached.reason  # And no process group.
        frozen = made("plain").requires_grad_(False)
        done["frozen"] = perseus.attach_ddp(frozen).reason
        said += [str(w.message) for w in seen if "perseus" in str(w.message)]
    done["said"] = said
    return done


class _AfterTheOther(torch.autograd.Function):  # type: ignore[misc]
    """Nothing forward; waits for a file backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, path: Path) -> torch.Tensor:
        ctx.path = path
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        deadline = time.monotonic() + ranks.PATIENCE / 2
        while not ctx.path.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the other rank's backward has no end before ours")
            time.sleep(0.001)
        return gradient, None


def waits() -> object:
    """How many backwards ended on each rank, where rank 1 waits for rank 0 in each."""

    def on_rank(folder: str) -> int:
        rank = dist.get_rank()
        model = made("ddp")
        job, log = recorded()
        end = job.end

        def tell(kind: object, *place: Any) -> None:
            end(kind, *place)
            if kind == "backward" and rank == 0:
                (Path(folder) / str(len(actions(log, "instruction_end")))).touch()

        job.end = tell  # type: ignore[assignment]
        perseus.attach_ddp(model, job=job, strict=True)
        for step in range(1, 4):
            output = model(torch.ones(ROWS, WIDTH))
            if rank == 1:
                output = _AfterTheOther.apply(output, Path(folder) / str(2 * step))
            output.square().mean().backward()
        return actions(log, "instruction_end").count("0B0")

    with tempfile.TemporaryDirectory() as folder:
        return ranks.run_ranks(2, on_rank, folder)


def failing() -> object:
    """Whatever fails in us, training goes on."""
    done = {}
    for name in ("step_begin", "begin", "end", "step_end", "is_changed", "step_abandon"):
        plain, model = made("plain"), made("plain")
        expected = train(plain, sgd(plain), 3)
        job, _ = recorded()
        optimizer = sgd(model)

        def broken(*_: Any, **__: Any) -> bool:
            raise ZeroDivisionError

        setattr(job, name, broken)
        perseus.attach_ddp(model, optimizer, job=job)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done[name] = train(model, optimizer, 3) == expected
    return done


SCENARIOS: dict[str, Callable[..., object]] = {f.__name__: f for f in (life, failing, waits)}
