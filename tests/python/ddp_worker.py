# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_torch_ddp.py runs in a Python that has PyTorch.

ddp_worker.py SCENARIO [ARGUMENT...] prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch_ranks as ranks
from recording import actions, recorded
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(ranks.ROOT / "examples" / "torch_pipeline"))

import simulated_device as device

import perseus  # isort: skip
from perseus import simulate

WIDTH, ROWS = ranks.WIDTH, ranks.ROWS


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


def train(model: nn.Module, optimizer: Any, steps: int, accumulate: int = 1) -> list[float]:
    """Train as anybody does; returns the losses."""
    losses = []
    for step in range(steps):
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


def weights(model: nn.Module) -> list[float]:
    """Return all that was trained."""
    whole = [getattr(p, "full_tensor", lambda p=p: p)() for p in model.parameters()]
    return [float(value) for p in whole for value in p.detach().flatten()]


def sgd(model: nn.Module) -> Any:
    """Return an optimizer."""
    return torch.optim.SGD(model.parameters(), lr=0.1)


def kinds() -> object:
    """DDP, FSDP and no wrapper; with and without an optimizer; one and two microbatches."""

    def on_rank(kind: str, accumulate: int, with_optimizer: bool) -> dict[str, object]:
        plain = made(kind)
        expected = train(plain, sgd(plain), 4, accumulate), weights(plain)
        model = made(kind)
        job, log = recorded()
        optimizer = sgd(model)
        attached = perseus.attach_ddp(
            model,
            optimizer if with_optimizer else None,
            accumulate=accumulate,
            job=job,
            strict=True,
            tokens=7,
        )
        losses = train(model, optimizer, 4, accumulate)
        attached.detach()
        mark = len(log)
        train(model, optimizer, 1, accumulate)
        return {
            "begins": actions(log),
            "ends": actions(log, "instruction_end"),
            "events": [e[0] for e in log],
            "tokens": [e[1] for e in log if e[0] == "step_end"],
            "same": (losses, weights(plain)) == expected and losses == expected[0],
            "detached": log[mark:],
            "hooks": len(model._forward_hooks) + len(model._forward_pre_hooks),
        }

    return {
        f"{kind} {accumulate} {with_optimizer}": ranks.run_ranks(
            2, on_rank, kind, accumulate, with_optimizer
        )
        for kind in ("ddp", "fsdp", "plain")
        for accumulate, with_optimizer in ((1, True), (2, True), (2, False))
    }


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

    def steps_of(log: list[list[Any]], mark: int = 0) -> list[str]:
        return [e[0] for e in log[mark:] if e[0].startswith("step")]

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


class OnGpu(nn.Module):  # type: ignore[misc]
    """A model whose forward and backward run on a simulated GPU as well."""

    def __init__(self, simulated: device.SimulatedDevice) -> None:
        super().__init__()
        self.net = Net()
        self.simulated = simulated

    def forward(self, x: torch.Tensor) -> Any:
        """Compute."""
        return _Backward.apply(self.simulated.forward(0, 0, lambda: self.net(x)), self.simulated)


class _Backward(torch.autograd.Function):  # type: ignore[misc]
    """Nothing forward; the whole backward's kernel backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, simulated: device.SimulatedDevice) -> torch.Tensor:
        ctx.simulated = simulated
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        return ctx.simulated.backward(0, 0, lambda: gradient), None


class InGroups(device.SimulatedDevice):
    """A simulated GPU whose rank waits for those of all groups: as with torchft, without a group.

    They tell each other in a store when they ended, and whether they were told to stop.
    """

    exchange: Any = None
    everybody = range(0)
    steps = 0

    def wait_for_all(self, told: bool) -> bool:
        """Wait for all ranks of all groups; returns whether one of them was told to stop."""
        self.steps += 1
        self.exchange.set(f"{self.steps}/{self.gpu}", f"{self._last_end!r} {told:d}")
        said = self.exchange.multi_get([f"{self.steps}/{rank}" for rank in self.everybody])
        self._last_end = max(float(one.split()[0]) for one in said)
        return any(one.endswith(b"1") for one in said)


def straggle(folder: str, words: str) -> object:
    """Train under DDP until a file says stop; "slow": how many times as long rank 1 takes.

    Each rank appends a line of JSON per iteration to FOLDER/rank-N. With "groups" there are so many
    of two ranks each, which are started each for itself and have no process group in common.
    """
    options = json.loads(words)
    groups = options.pop("groups", 1)
    slow = options.pop("slow", 1.0)

    def on_rank(group: int) -> None:
        rank, world = 2 * group + dist.get_rank(), 2 * groups
        gpus = simulate.Gpus(f"{folder}/gpus")
        tables = device.read_tables(Path(folder) / "profile.csv", 1.0)
        simulated = InGroups(gpus, rank, tables, Path(folder) / "ends", rank, world, 1, 1)
        simulated.exchange = dist.TCPStore("127.0.0.1", exchange.port, is_master=False)
        simulated.everybody = range(world)
        simulated.work = [slow if rank == 1 else 1.0]
        torch.manual_seed(1)
        model = DistributedDataParallel(OnGpu(simulated))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        if groups > 1:
            options.update(rank=rank, dp_rank=rank, dp=world)
        attached = perseus.attach_ddp(
            model,
            optimizer,
            device=f"simulated:{folder}/gpus",
            gpu_index=rank,
            report_interval_seconds=0.2,
            min_interval_seconds=0.002,
            timeline=device.DeviceTimeline(simulated),
            **options,
        )
        with open(f"{folder}/rank-{rank}", "a", buffering=1) as log:
            stop = [False]
            while not stop[0]:
                losses = train(model, optimizer, 1)
                stop = [os.path.exists(f"{folder}/stop")]
                if groups > 1:
                    stop = [simulated.wait_for_all(stop[0])]
                end, joules = simulated.end_iteration()
                report = attached.report()
                del report["stats"]
                line = {"pid": os.getpid(), "iteration": 0, "losses": losses, **report}
                log.write(json.dumps({**line, "end": end, "joules": joules}) + "\n")
                dist.broadcast_object_list(stop, 0)
        attached.detach()

    exchange = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    others = []
    for group in range(1, groups):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                ranks.run_ranks(2, on_rank, group)
                os._exit(0)
            os._exit(1)
        others.append(pid)
    ranks.run_ranks(2, on_rank, 0)
    return [os.waitpid(pid, 0)[1] for pid in others]


SCENARIOS: dict[str, Callable[..., object]] = {
    "kinds": kinds,
    "life": life,
    "failing": failing,
    "waits": waits,
    "straggle": straggle,
}


if __name__ == "__main__":
    print(json.dumps(SCENARIOS[sys.argv[1]](*sys.argv[2:])))
