# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_deepspeed_hook.py runs in a Python that has DeepSpeed.

deepspeed_worker.py SCENARIO [ARGUMENT...] prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import deepspeed_ranks as engines
import perseus
import torch
import torch_ranks as ranks
from deepspeed_ranks import data, weights
from perseus.hooks import deepspeed as hooks
from recording import actions, recorded, said_by


def orders(*cases: str) -> object:
    """What the hook sees of training, and what is computed with and without it.

    A case is "STAGES MICROBATCHES RECOMPUTE".
    """

    def on_rank(stages: int, count: int, recompute: int) -> dict[str, object]:
        results = []
        job, log = recorded()
        place: list[int] = []
        for hooked in (False, True):
            engine = engines.make(stages, count, recompute=recompute)
            if hooked:
                perseus.attach_deepspeed(engine, job=job, strict=True)
                seen = hooks.layout_of_deepspeed(engine)
                place = [seen.rank, seen.pp_rank, seen.pp, seen.dp_rank, seen.dp, seen.tp]
            batches = data()
            losses = [float(engine.train_batch(batches)) for _ in range(2)]
            results.append([losses, weights(engine)])
        half = len(actions(log)) // 2
        return {
            "plain": results[0],
            "hooked": results[1],
            "begins": actions(log)[:half],
            "again": actions(log)[half:],
            "ends": actions(log, "instruction_end")[:half],
            "steps": [e[0] for e in log if e[0].startswith("step")],
            "place": place,
        }

    return [
        ranks.run_ranks(int(case.split()[0]), on_rank, *map(int, case.split())) for case in cases
    ]


def layout(stages: str, replicas: str) -> object:
    """Where each rank stands."""

    def on_rank() -> list[int]:
        place = hooks.layout_of_deepspeed(engines.make(int(stages), 2, int(replicas)))
        return [place.rank, place.pp_rank, place.dp_rank, place.tp_rank, place.pp, place.dp]

    return ranks.run_ranks(int(stages) * int(replicas), on_rank)


def life() -> object:
    """Evaluation, exceptions, other numbers of microbatches, two engines, detaching."""

    def on_rank() -> dict[str, object]:
        done: dict[str, object] = {}
        engine, other = engines.make(1, 4), engines.make(1, 4)
        job, log = recorded()
        attached = perseus.attach_deepspeed(engine, job=job, strict=True)
        batches = data()
        other.train_batch(batches)
        done["other"] = list(log)
        engine.train_batch(batches)
        done["begins"] = actions(log)
        mark = len(log)
        engine.eval_batch(batches)
        try:
            with torch.no_grad():
                engine.train_batch(batches)
        except RuntimeError as error:
            done["no_grad"] = str(error)
        done["evaluation"] = log[mark:]
        layer = engine.module.forward_funcs[0]
        layer.calls, layer.fails_at = 0, 3
        try:
            engine.train_batch(batches)
        except ZeroDivisionError:
            done["raised"] = True
        done["broken"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        layer.fails_at = -1
        engine.timers("train_batch").reset()  # DeepSpeed's own timer still ran.
        mark = len(log)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            engine.set_train_batch_size(2 * engines.ROWS)
            engine.train_batch(batches)
            engine.train_batch(batches)
            engine.set_train_batch_size(4 * engines.ROWS)
            said_by(job)
        done["changed"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        done["said"] = [str(w.message) for w in seen if "perseus" in str(w.message)]
        attached.tokens = lambda: 2048
        engine.train_batch(batches)
        done["tokens"] = log[-1]
        mark = len(log)
        with job.step():
            engine.train_batch(batches)
            engine.train_batch(batches)
        done["accumulated"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        held = engine.train_batch
        attached.detach()
        attached.detach()
        mark = len(log)
        engine.train_batch(batches)
        held(batches)  # Of somebody who kept it.
        done["detached"] = log[mark:]
        done["left"] = [n for n in vars(engine) if n in ("train_batch", "_INSTRUCTION_MAP")]
        done["again"] = bool(perseus.attach_deepspeed(engine, job=job))
        return done

    return ranks.run_ranks(1, on_rank)[0]


def failures() -> object:
    """What cannot be attached: it says so, and training is untouched."""

    def on_rank() -> dict[str, object]:
        said: dict[str, object] = {}
        job, log = recorded()

        def attempt(label: str, engine: Any, **options: Any) -> None:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                attached = perseus.attach_deepspeed(engine, **options)
            said[label] = {
                "on": bool(attached),
                "reason": attached.reason,
                "warnings": len([w for w in seen if "perseus" in str(w.message)]),
            }

        attempt("no engine", torch.nn.Linear(1, 1), job=job)
        engine = engines.make(1, 2)
        attempt("profile", engine, profile="/nowhere.csv")

        class WeightPass:
            """As DeepSpeed's pull request 8576 has it."""

        engine._INSTRUCTION_MAP = {**engine._INSTRUCTION_MAP, WeightPass: None}
        attempt("unknown", engine, job=job)
        del engine._INSTRUCTION_MAP
        said["left"] = [n for n in vars(engine) if n in ("train_batch", "_INSTRUCTION_MAP")]
        engine.train_batch(data())
        perseus.attach_deepspeed(engine, job=job)
        attempt("twice", engine, job=job)
        engine.train_batch(data())
        said["once"] = len(actions(log))
        return said

    return ranks.run_ranks(1, on_rank)[0]


def main() -> None:
    """Run the scenario that the command line names."""
    scenarios = {f.__name__: f for f in (orders, layout, life, failures)}
    print(json.dumps(scenarios[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
