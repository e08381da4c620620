# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Pipelines of PyTorch's own schedules."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ranks
import torch
import torch.distributed as dist
from ranks import ROWS, WIDTH
from recording import actions, recorded, said_by
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules
from torch.utils.checkpoint import checkpoint

import perseus  # isort: skip
from perseus.hooks import torch_pipelining as hooks  # isort: skip

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


# One rank: its class, microbatches, virtual stages; with recomputation.
ALONE = ("1", "Schedule1F1B", "4", "1", "recompute")
MICROBATCHES_ALONE = 4
REFUSES_NO_GRAD = True


class Trainer:
    """One rank of a schedule: ranks, class, microbatches, virtual stages."""

    def __init__(
        self, _world: str, name: str, count: str, virtual: str, recompute: str = ""
    ) -> None:
        self.count = int(count)
        self.made = make(name, self.count, int(virtual), recompute=bool(recompute))
        self.stages = getattr(self.made, "_stages", None) or [self.made._stage]
        self.methods = {name: getattr(self.stages[0], name) for name in ("forward_one_chunk",)}
        self.loss = self.made._loss_fn

    def attach(self, **options: Any) -> Any:
        """Attach Perseus."""
        return perseus.attach(self.made, **options)

    def step(self, seed: int = 0) -> list[float]:
        """Run an iteration; returns its losses."""
        return step(self.made, self.count, seed)

    def weights(self) -> list[float]:
        """Return a sum that all gradients change."""
        return [float(p.grad.abs().sum()) for s in self.stages for p in s.submod.parameters()]

    def seen(self) -> dict[str, object]:
        """Return what the schedule says of itself; up to PyTorch 2.8 one of one stage told none."""
        told = getattr(self.made, "pipeline_order", {}).get(dist.get_rank(), [])
        return {
            "order": [str(action) for action in told if hooks._is_computation(action)],
            "csv": hooks._Shape(self.made).csv() if told else "",
        }

    def life(self, _attached: Any, _log: Any) -> dict[str, object]:
        """Return how often the layers ran."""
        return {"recomputed": self.stages[0].submod.calls}

    def evaluate(self) -> None:
        """Evaluate twice."""
        evaluate(self.made, self.count)
        evaluate(self.made, self.count)

    def fails(self, on: bool) -> None:
        """Have the third loss fail, or all be well again."""
        self.made._loss_fn = _fails_at(3) if on else self.loss
        if not on:
            self.made._internal_losses.clear()
            self.stages[0].clear_runtime_states()

    def use_microbatches(self, count: int) -> None:
        """Train with so many from now on."""
        self.count = self.made._n_microbatches = count
        self.made._stage_forward_initialized = self.made._stage_backward_initialized = False

    def runs_what_was_kept(self) -> None:
        """Nothing of ours can be kept."""

    def left(self) -> list[str]:
        """Return which of our methods are still there."""
        left = [n for n in vars(self.made) if n in ("step", "eval", "_maybe_compute_loss")]
        left += [n for s in self.stages for n in vars(s) if n.endswith("_one_chunk")]
        same = all(getattr(self.stages[0], n) == method for n, method in self.methods.items())
        return left if same else [*left, "another method"]


def plain(case: str) -> object:
    """The losses of a schedule without hooks; a case as for `orders`."""
    world, *words = case.split()
    return ranks.run_ranks(int(world), lambda: Trainer(world, *words).step())


def classes() -> object:
    """The schedule classes of this PyTorch that can be made."""
    return sorted(
        name
        for name, value in vars(schedules).items()
        if inspect.isclass(value)
        and issubclass(value, schedules._PipelineSchedule)
        and name.startswith("Schedule")
    )


def from_csv(text: str) -> object:
    """An order of the user's own, on the runtime that reads it from a file."""

    def on_rank() -> dict[str, object]:
        made, lowered = (make("_PipelineScheduleRuntime", 4, 2) for _ in range(2))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "order.csv"
            path.write_text(text)
            made._load_csv(path, format="compute_only")
            made._dump_csv(path, format="compute_comms")
            lowered._load_csv(path, format="compute_comms")
            path.write_text("another\n")
            given = hooks._Shape(made, path).order()
        job, log = recorded()
        attached = perseus.attach(made, job=job, strict=True)
        step(made, 4)
        return {
            "begins": actions(log),
            "order": hooks._Shape(made).order(),
            "lowered": hooks._Shape(lowered).order(),
            "given": given,
            "on": bool(attached),
        }

    return ranks.run_ranks(2, on_rank)


def custom() -> object:
    """Functions of the trainer's own, registered before and while Perseus is attached."""

    def on_rank() -> dict[str, object]:
        def runtime() -> Any:
            made = make("_PipelineScheduleRuntime", 2, 1)
            actions = [schedules._Action.from_str(one) for one in ("0F0", "0F1", "0B0", "0B1")]
            made.pipeline_order[0] = actions
            made._prepare_schedule_with_comms(made.pipeline_order)
            return made

        def register(made: Any, kind: str) -> None:
            made.register_custom_function(getattr(schedules, kind), lambda action, ctx: None)

        done: dict[str, object] = {"plain": step(runtime(), 2)}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            before = runtime()
            register(before, "BACKWARD_WEIGHT")
            job, log = recorded()
            refused = perseus.attach(before, job=job)
            done["refused"] = [bool(refused), refused.reason, step(before, 2), log]
            made = runtime()
            job, log = recorded()
            attached = perseus.attach(made, job=job, strict=True)
            register(made, "UNSHARD")
            step(made, 2)
            done["harmless"] = actions(log)
            register(made, "BACKWARD_WEIGHT")
            done["losses"] = [step(made, 2) for _ in range(2)]
            done["told"] = [entry[0] for entry in log].count("step_end")
            done["closed"] = [entry[0] for entry in log].count("close")
            done["last_error"] = attached.report()["last_error"]
            said_by(job)
        done["said"] = [str(one.message) for one in seen if "perseus" in str(one.message)]
        return done

    return ranks.run_ranks(1, on_rank)[0]


def _fails_at(call: int) -> Callable[..., torch.Tensor]:
    calls = 0

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == call:
            raise ZeroDivisionError
        return loss_of(output, target)

    return loss


def over() -> object:
    """Wrappers of others above ours, when ours are taken off."""

    def on_rank() -> dict[str, object]:
        made = make("ScheduleGPipe", 2)
        job, log = recorded()
        with perseus.attach(made, job=job, strict=True):
            ours = made._stage.forward_one_chunk
            calls = []

            def theirs(*args: Any, **kwargs: Any) -> Any:
                calls.append(args[0])
                return ours(*args, **kwargs)

            made._stage.forward_one_chunk = theirs
            step(made, 2)
        mark = len(log)
        step(made, 2)
        return {
            "calls": calls,
            "after": log[mark:],
            "kept": made._stage.forward_one_chunk is theirs,
        }

    return ranks.run_ranks(1, on_rank)[0]


def waiting() -> object:
    """Nobody asks, then somebody does, then nobody again."""

    def on_rank() -> dict[str, object]:
        made = make("ScheduleGPipe", 2)
        job, log = recorded()
        client: Any = job.client
        counts, wrapped = [], []
        with perseus.attach(made, job=job, strict=True):
            for listens in (False, False, True, True, False):
                client.listens = listens
                mark = len(log)
                step(made, 2)
                counts.append(len(actions(log[mark:])))
                wrapped.append("forward_one_chunk" in vars(made._stage))
        return {"counts": counts, "wrapped": wrapped, "left": "step" in vars(made)}

    return ranks.run_ranks(1, on_rank)[0]


def lengths() -> object:
    """A planner and batches whose lengths are told ahead: what the client of each rank is given."""

    class Computation(NamedTuple):
        rank: int
        work: list[float]

    class Plan:
        def __init__(self, work: list[float]) -> None:
            self.computations = [Computation(rank, work) for rank in range(2)]

    class Planner:
        def plan(self, work: Any, others: Any) -> Plan:
            assert len(others) == 0
            return Plan(list(work))

    def on_rank() -> list[Any]:
        made = make("ScheduleGPipe", 2)
        job, log = recorded()
        planner: Any = Planner()
        with perseus.attach(made, job=job, planner=planner, strict=True) as attached:
            for seed in attached.ahead(range(3), lambda seed: [1.0 + seed, 2.0 + seed]):
                assert job._step_planner is not None
                job._step_planner.wait(ranks.PATIENCE)
                step(made, 2, seed)
        told = [
            [iteration, [[own.rank, own.work] for own in rows]]
            for _, iteration, rows in (entry for entry in log if entry[0] == "step_plan")
        ]
        return told[-2:]  # The first may be overtaken.

    return ranks.run_ranks(2, on_rank)


def failures(attempt: Callable[..., None]) -> dict[str, object]:
    """What cannot be attached."""

    class Mesh:
        mesh_dim_names = ("spam",)

        def get_coordinate(self) -> list[int]:
            return [0]

        def size(self, dimension: int) -> int:
            return 1

    plain = step(make("ScheduleGPipe", 2), 2)
    same = []

    def of(label: str, **options: Any) -> None:
        schedule = make("ScheduleGPipe", 2)
        attempt(label, lambda: perseus.attach(schedule, **options))
        assert not [n for n in vars(schedule) if n in ("step", "eval")]
        same.append(step(schedule, 2) == plain)

    attempt("no schedule", lambda: perseus.attach(object.__new__(type("Thing", (), {}))))
    of("mesh", mesh=Mesh())
    of("profile", profile="/nowhere/profile.csv")
    of("option", spam=1)
    strange = make("ScheduleGPipe", 2)
    strange._stage.backward_one_chunk, kept = None, strange._stage.backward_one_chunk
    attempt("strange", lambda: perseus.attach(strange))
    strange._stage.backward_one_chunk = kept
    forward_only = make("ScheduleGPipe", 2)
    forward_only._has_backward = False
    attempt("no loss", lambda: perseus.attach(forward_only))
    twice = make("ScheduleGPipe", 2)
    job, log = recorded()
    first = perseus.attach(twice, job=job)
    attempt("twice", lambda: perseus.attach(twice, job=job))
    step(twice, 2)
    first.detach()
    again = bool(perseus.attach(twice, job=job))
    return {"same": all(same), "once": len(actions(log)), "again": again}


SCENARIOS = {f.__name__: f for f in (plain, classes, from_csv, custom, over, waiting, lengths)}
