# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that train on simulated GPUs until a file says stop: for the failure drills.

drill_worker.py KIND FOLDER JSON. KIND is a function at the end of this file; JSON has options of
`attach`, and of KIND. Each rank appends a line of JSON per iteration to FOLDER/rank-N.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import on_ddp
import on_torch
import ranks
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

sys.path.insert(0, str(ranks.ROOT / "examples" / "torch_pipeline"))

import simulated_device as device

import perseus  # isort: skip
from perseus import simulate

MICROBATCHES = 4
MOST_ITERATIONS = 3000


class Machine:
    """The simulated GPU of a rank, and the file where the rank writes what it did."""

    def __init__(self, folder: str, rank: int, *shape: int, kind: type = device.SimulatedDevice):
        tables = device.read_tables(Path(folder) / "profile.csv", 1.0)
        gpus = simulate.Gpus(f"{folder}/gpus")
        self.simulated = kind(gpus, rank, tables, Path(folder) / "ends", *shape)
        self.options = {
            "device": f"simulated:{folder}/gpus",
            "report_interval_seconds": 0.2,
            "min_interval_seconds": 0.002,
            "timeline": device.DeviceTimeline(self.simulated),
        }
        self._stop = Path(folder) / "stop"
        self._lines = Path(folder, f"rank-{rank}")

    def write(self, attached: Any, iteration: int, losses: list[float], **more: Any) -> None:
        """Write a line about an iteration that ended."""
        report = dict(attached.report())
        stats = report.pop("stats", None)
        counts = {name: getattr(stats, name, 0) for name in ("order_mismatches", "refused")}
        line = {"pid": os.getpid(), "iteration": iteration, "losses": losses}
        with self._lines.open("a") as file:
            file.write(json.dumps({**report, **counts, **line, **more}) + "\n")

    def told_to_stop(self) -> bool:
        """Whether this rank sees the file that says stop."""
        return self._stop.exists()


def any_of_ranks(told: bool) -> bool:
    """Return what rank 0 says to all."""
    stop = [told]
    dist.broadcast_object_list(stop, 0)
    return stop[0]


class OnGpu(torch.nn.Module):  # type: ignore[misc]
    """A model whose forward and backward run on a simulated GPU as well."""

    def __init__(self, simulated: device.SimulatedDevice) -> None:
        super().__init__()
        self.net = on_ddp.Net()
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


def of_order(csv: str) -> Any:
    """Return a schedule that runs this order."""
    made = on_torch.make("_PipelineScheduleRuntime", MICROBATCHES)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(csv)
        file.flush()
        made._load_csv(file.name)
    return made


def pipeline(
    folder: str,
    schedule: str = "Schedule1F1B",
    csv: str = "",
    accumulate: int = 1,
    replace_at: int = -1,
    attach_at: int = -1,
    **options: Any,
) -> None:
    """Train two stages.

    "csv" is an order of one's own in place of a schedule; "accumulate": so many `schedule.step` in
    one `job.step`; from iteration "replace_at" another schedule object runs, which is attached from
    "attach_at" on.
    """

    def on_rank() -> None:
        machine = Machine(folder, dist.get_rank(), 0, 1, dist.get_world_size(), MICROBATCHES)
        made = of_order(csv) if csv else on_torch.make(schedule, MICROBATCHES)
        (stage,) = getattr(made, "_stages", None) or [made._stage]
        machine.simulated.put_under(stage)
        attached = perseus.attach(made, **{**machine.options, **options})
        for iteration in range(MOST_ITERATIONS):
            if iteration == replace_at:
                made = on_torch.make(schedule, MICROBATCHES, stages=[made._stage])
            if iteration == attach_at:
                attached = perseus.attach(made, **{**machine.options, **options})
            job = attached.job
            whole = job.step() if job and accumulate > 1 else contextlib.nullcontext()
            with whole:
                for _ in range(accumulate):
                    losses = on_torch.step(made, MICROBATCHES, seed=iteration)
                    machine.simulated.end_iteration()
            machine.write(attached, iteration, losses)
            if any_of_ranks(machine.told_to_stop()):
                break
        attached.detach()

    ranks.run_ranks(2, on_rank)


def data_parallel(folder: str, groups: int = 1, slow: float = 1.0, **options: Any) -> None:
    """Train under DDP; "slow": how many times as long rank 1 takes.

    With "groups" there are so many of two ranks each, which are started each for itself and have no
    process group in common.
    """

    def on_rank(group: int) -> None:
        rank, world = 2 * group + dist.get_rank(), 2 * groups
        machine = Machine(folder, rank, rank, world, 1, 1, kind=InGroups)
        simulated: Any = machine.simulated
        simulated.exchange = dist.TCPStore("127.0.0.1", exchange.port, is_master=False)
        simulated.everybody = range(world)
        simulated.work = [slow if rank == 1 else 1.0]
        torch.manual_seed(1)
        model = DistributedDataParallel(OnGpu(simulated))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        if groups > 1:
            options.update(rank=rank, dp_rank=rank, dp=world)
        attached = perseus.attach_ddp(
            model, optimizer, gpu_index=rank, **{**machine.options, **options}
        )
        stop = False
        while not stop:
            losses = on_ddp.train(model, optimizer, 1)
            stop = machine.told_to_stop()
            if groups > 1:
                stop = simulated.wait_for_all(stop)
            end, joules = simulated.end_iteration()
            machine.write(attached, 0, losses, end=end, joules=joules)
            stop = any_of_ranks(stop)
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
    assert not any(os.waitpid(pid, 0)[1] for pid in others)


def lightning(folder: str, **options: Any) -> None:
    """Train with Lightning; to be told to stop raises in training, and a last line comes after."""
    pl = importlib.import_module("lightning.pytorch")
    on_callbacks = importlib.import_module("on_callbacks")

    class Module(pl.LightningModule):  # type: ignore[misc, name-defined]
        """A module on a simulated GPU."""

        def __init__(self, machine: Machine, write: Any) -> None:
            super().__init__()
            self.net = OnGpu(machine.simulated)
            self.machine, self.write = machine, write
            self.stop = False

        def training_step(self, batch: Any, _index: int) -> Any:
            """Train."""
            if self.stop:
                raise ZeroDivisionError
            return self.net(batch["x"]).square().mean()

        def on_train_batch_end(self, output: Any, *_: Any) -> None:
            """End an iteration."""
            self.machine.simulated.end_iteration()
            self.write([float(output["loss"])])
            self.stop = any_of_ranks(self.machine.told_to_stop())

        def configure_optimizers(self) -> Any:
            """Return an optimizer that changes nothing."""
            return torch.optim.SGD(self.parameters(), lr=0.0)

    def on_rank() -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        machine = Machine(folder, rank, rank, world, 1, 1)
        callback = perseus.lightning_callback(**machine.options, **options)

        def write(losses: list[float]) -> None:
            simulated = machine.simulated
            locked = simulated.gpus.read(simulated.gpu).locked_mhz
            machine.write(callback.attached, 0, losses, locked=locked)

        trainer = on_callbacks.trainer_of([callback], max_epochs=-1)
        with contextlib.suppress(ZeroDivisionError):
            loader = DataLoader(on_callbacks.dataset(), ranks.ROWS)
            trainer.fit(Module(machine, write), loader)
        write([])

    ranks.run_ranks(2, on_rank)


if __name__ == "__main__":
    kinds = {each.__name__: each for each in (pipeline, data_parallel, lightning)}
    kinds[sys.argv[1]](sys.argv[2], **json.loads(sys.argv[3]))
