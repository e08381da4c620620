# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_torch_hooks.py runs in a Python that has PyTorch.

torch_worker.py SCENARIO [ARGUMENT...] prints one line of JSON.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch_ranks as ranks
from recording import actions, recorded, said_by
from torch.distributed.pipelining import schedules

import perseus  # isort: skip
from perseus.hooks import torch_pipelining as hooks  # isort: skip


def orders(*cases: str) -> object:
    """What the hooks see of schedule classes, what these say of themselves, and their losses.

    A case is "CLASS WORLD MICROBATCHES VIRTUAL".
    """

    def on_rank(name: str, count: int, virtual: int) -> dict[str, object]:
        made = ranks.make(name, count, virtual)
        plain = ranks.make(name, count, virtual)
        job, log = recorded()
        perseus.attach(made, job=job, strict=True)
        losses = [ranks.step(made, count, seed) for seed in range(2)]
        # Up to PyTorch 2.8 a schedule of one stage told none.
        told = getattr(made, "pipeline_order", {}).get(dist.get_rank(), [])
        half = len(actions(log)) // 2
        return {
            "order": [str(action) for action in told if hooks._is_computation(action)],
            "csv": hooks._Shape(made).csv() if told else "",
            "begins": actions(log)[:half],
            "again": actions(log)[half:],
            "ends": actions(log, "instruction_end")[:half],
            "steps": [e[0] for e in log if e[0].startswith("step")],
            "losses": losses,
            "plain": [ranks.step(plain, count, seed) for seed in range(2)],
        }

    seen = {}
    for case in cases:
        name, world, count, virtual = case.split()
        seen[case] = ranks.run_ranks(int(world), on_rank, name, int(count), int(virtual))
    return seen


def plain(case: str) -> object:
    """The losses of a schedule without hooks; a case as for `orders`."""

    def on_rank(name: str, count: int, virtual: int) -> list[float]:
        return ranks.step(ranks.make(name, count, virtual), count)

    name, world, count, virtual = case.split()
    return ranks.run_ranks(int(world), on_rank, name, int(count), int(virtual))


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
        made, lowered = (ranks.make("_PipelineScheduleRuntime", 4, 2) for _ in range(2))
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
        ranks.step(made, 4)
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
        def make() -> Any:
            made = ranks.make("_PipelineScheduleRuntime", 2, 1)
            actions = [schedules._Action.from_str(one) for one in ("0F0", "0F1", "0B0", "0B1")]
            made.pipeline_order[0] = actions
            made._prepare_schedule_with_comms(made.pipeline_order)
            return made

        def register(made: Any, kind: str) -> None:
            made.register_custom_function(getattr(schedules, kind), lambda action, ctx: None)

        done: dict[str, object] = {"plain": ranks.step(make(), 2)}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            before = make()
            register(before, "BACKWARD_WEIGHT")
            job, log = recorded()
            refused = perseus.attach(before, job=job)
            done["refused"] = [bool(refused), refused.reason, ranks.step(before, 2), log]
            made = make()
            job, log = recorded()
            attached = perseus.attach(made, job=job, strict=True)
            register(made, "UNSHARD")
            ranks.step(made, 2)
            done["harmless"] = actions(log)
            register(made, "BACKWARD_WEIGHT")
            done["losses"] = [ranks.step(made, 2) for _ in range(2)]
            done["told"] = [entry[0] for entry in log].count("step_end")
            done["closed"] = [entry[0] for entry in log].count("close")
            done["last_error"] = attached.report()["last_error"]
            said_by(job)
        done["said"] = [str(one.message) for one in seen if "perseus" in str(one.message)]
        return done

    return ranks.run_ranks(1, on_rank)[0]


def life() -> object:
    """Evaluation, exceptions, other numbers of microbatches, recomputation, detaching."""

    def on_rank() -> dict[str, object]:
        done: dict[str, object] = {}
        made = ranks.make("ScheduleGPipe", 4, recompute=True)
        stage = made._stage
        before = {name: getattr(stage, name) for name in ("forward_one_chunk",)}
        job, log = recorded()
        attached = perseus.attach(made, job=job, strict=True)
        ranks.step(made, 4)
        done["recomputed"] = stage.submod.calls
        done["begins"] = actions(log)
        mark = len(log)
        ranks.evaluate(made, 4)
        ranks.evaluate(made, 4)
        with torch.no_grad():
            try:
                ranks.step(made, 4)
            except RuntimeError as error:
                done["no_grad"] = str(error)
        done["evaluation"] = log[mark:]
        mark = len(log)
        made._loss_fn, loss = _fails_at(3), made._loss_fn
        try:
            ranks.step(made, 4)
        except ZeroDivisionError:
            done["raised"] = True
        done["broken"] = [e[0] for e in log[mark:]]
        made._loss_fn = loss
        made._internal_losses.clear()
        stage.clear_runtime_states()
        mark = len(log)
        ranks.step(made, 4)
        done["after"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        mark = len(log)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made._n_microbatches = 2
            made._stage_forward_initialized = made._stage_backward_initialized = False
            ranks.step(made, 2)
            ranks.step(made, 2)
            said_by(job)
        done["changed"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        done["said"] = [str(w.message) for w in seen if "perseus" in str(w.message)]
        made._n_microbatches = 4
        made._stage_forward_initialized = made._stage_backward_initialized = False
        mark = len(log)
        for _ in range(2):
            with job.step():
                ranks.step(made, 4)
                ranks.step(made, 4)
        done["accumulated"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        done["accumulated_count"] = len(actions(log[mark:]))
        attached.detach()
        attached.detach()
        mark = len(log)
        ranks.step(made, 4)
        done["detached"] = log[mark:]
        done["left"] = [n for n in vars(made) if n in ("step", "eval", "_maybe_compute_loss")]
        done["left"] += [n for n in vars(stage) if n.endswith("_one_chunk")]  # type: ignore[operator]
        done["same"] = all(getattr(stage, n) == method for n, method in before.items())
        return done

    return ranks.run_ranks(1, on_rank)[0]


def _fails_at(call: int) -> Callable[..., torch.Tensor]:
    calls = 0

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == call:
            raise ZeroDivisionError
        return ranks.loss_of(output, target)

    return loss


def over() -> object:
    """Wrappers of others above ours, when ours are taken off."""

    def on_rank() -> dict[str, object]:
        made = ranks.make("ScheduleGPipe", 2)
        job, log = recorded()
        with perseus.attach(made, job=job, strict=True):
            ours = made._stage.forward_one_chunk
            calls = []

            def theirs(*args: Any, **kwargs: Any) -> Any:
                calls.append(args[0])
                return ours(*args, **kwargs)

            made._stage.forward_one_chunk = theirs
            ranks.step(made, 2)
        mark = len(log)
        ranks.step(made, 2)
        return {
            "calls": calls,
            "after": log[mark:],
            "kept": made._stage.forward_one_chunk is theirs,
        }

    return ranks.run_ranks(1, on_rank)[0]


def waiting() -> object:
    """Nobody asks, then somebody does, then nobody again."""

    def on_rank() -> dict[str, object]:
        made = ranks.make("ScheduleGPipe", 2)
        job, log = recorded()
        client: Any = job.client
        counts, wrapped = [], []
        with perseus.attach(made, job=job, strict=True):
            for listens in (False, False, True, True, False):
                client.listens = listens
                mark = len(log)
                ranks.step(made, 2)
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
        made = ranks.make("ScheduleGPipe", 2)
        job, log = recorded()
        planner: Any = Planner()
        with perseus.attach(made, job=job, planner=planner, strict=True) as attached:
            for seed in attached.ahead(range(3), lambda seed: [1.0 + seed, 2.0 + seed]):
                assert job._step_planner is not None
                job._step_planner.wait(ranks.PATIENCE)
                ranks.step(made, 2, seed)
        told = [
            [iteration, [[own.rank, own.work] for own in rows]]
            for _, iteration, rows in (entry for entry in log if entry[0] == "step_plan")
        ]
        return told[-2:]  # The first may be overtaken.

    return ranks.run_ranks(2, on_rank)


def failures() -> object:
    """What attach cannot do: it says so once, and training is untouched."""

    class Mesh:
        mesh_dim_names = ("spam",)

        def get_coordinate(self) -> list[int]:
            return [0]

        def size(self, dimension: int) -> int:
            return 1

    def on_rank() -> dict[str, object]:
        said: dict[str, object] = {}
        plain = ranks.step(ranks.make("ScheduleGPipe", 2), 2)

        def attempt(label: str, schedule: Any, **options: Any) -> None:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                attached = perseus.attach(schedule, **options)
            wrapped = [n for n in vars(schedule) if n in ("step", "eval")]
            if hasattr(schedule, "_stage") and hasattr(schedule, "_n_microbatches"):
                same = ranks.step(schedule, 2) == plain
            else:
                same = True
            said[label] = {
                "on": bool(attached),
                "reason": attached.reason,
                "warnings": [str(w.message) for w in seen],
                "report": attached.report()["last_error"],
                "wrapped": wrapped,
                "same": same,
            }
            attached.detach()

        attempt("no schedule", object.__new__(type("Thing", (), {})))
        attempt("mesh", ranks.make("ScheduleGPipe", 2), mesh=Mesh())
        attempt("profile", ranks.make("ScheduleGPipe", 2), profile="/nowhere/profile.csv")
        attempt("option", ranks.make("ScheduleGPipe", 2), spam=1)
        strange = ranks.make("ScheduleGPipe", 2)
        strange._stage.backward_one_chunk, kept = None, strange._stage.backward_one_chunk
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            said["strange"] = perseus.attach(strange).reason
        strange._stage.backward_one_chunk = kept
        forward_only = ranks.make("ScheduleGPipe", 2)
        forward_only._has_backward = False
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            said["no loss"] = perseus.attach(forward_only).reason
        twice = ranks.make("ScheduleGPipe", 2)
        job, log = recorded()
        first = perseus.attach(twice, job=job)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            said["twice"] = perseus.attach(twice, job=job).reason
        ranks.step(twice, 2)
        said["once"] = len(actions(log))
        first.detach()
        said["again"] = bool(perseus.attach(twice, job=job))
        return said

    return ranks.run_ranks(1, on_rank)[0]


def main() -> None:
    """Run the scenario that the command line names."""
    known = (
        orders,
        plain,
        classes,
        from_csv,
        custom,
        life,
        over,
        waiting,
        lengths,
        failures,
    )
    scenarios = {function.__name__: function for function in known}
    print(json.dumps(scenarios[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
