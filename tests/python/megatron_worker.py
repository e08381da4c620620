# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_megatron_hook.py runs in a Python that has Megatron-Core.

megatron_worker.py SCENARIO [ARGUMENT...] prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import json
import logging
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import perseus
import torch
import torch.distributed as dist
import torch_ranks as ranks
from perseus.hooks import megatron as hooks
from recording import actions, recorded, said_by

with contextlib.redirect_stdout(io.StringIO()):
    import megatron
    from megatron_ranks import Training, count_microbatches  # isort: skip (before Megatron)
    from megatron.core import parallel_state
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.core.transformer.transformer_config import TransformerConfig

logging.disable(logging.WARNING)


def orders(*cases: str) -> object:
    """What the hook sees of Megatron's schedules, and what they compute with and without it.

    A case is "PIPELINE CHUNKS MICROBATCHES GROUP".
    """

    def on_rank(pp: int, chunks: int, count: int, group: int) -> dict[str, object]:
        settings = {"microbatch_group_size_per_vp_stage": group} if group else {}
        training = Training(pp, chunks, count, **settings)
        plain = [training.step(), training.gradients()]
        count_microbatches(count)
        job, log = recorded()
        attached = perseus.attach_megatron(training.model, job=job, strict=True)
        again = [training.step(), training.gradients()]
        first = len(log)
        training.step()
        shape = hooks._shape_of(training.config, None, None)
        return {
            "plain": plain,
            "hooked": again,
            "begins": actions(log[:first]),
            "again": actions(log[first:]),
            "ends": actions(log[:first], "instruction_end"),
            "steps": [e[0] for e in log if e[0].startswith("step")],
            "schedule": shape.schedule(),
            "on": bool(attached),
        }

    return [
        ranks.run_ranks(int(case.split()[0]), on_rank, *map(int, case.split())) for case in cases
    ]


def layout(tp: str, cp: str, pp: str, dp: str) -> object:
    """Where each rank stands."""

    def on_rank() -> list[int]:
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=int(tp),
            context_parallel_size=int(cp),
            pipeline_model_parallel_size=int(pp),
        )
        place = hooks.layout_of_megatron(parallel_state)
        return [
            place.rank,
            place.pp_rank,
            place.dp_rank,
            place.tp_rank,
            place.pp,
            place.dp,
            place.tp,
        ]

    return ranks.run_ranks(int(tp) * int(cp) * int(pp) * int(dp), on_rank)


def groups_of(pipelines: list[list[int]], replicas: list[list[int]]) -> ProcessGroupCollection:
    """Return the groups of this rank, of these; without tensor and context parallel ranks."""
    alone = [[rank] for rank in range(dist.get_world_size())]
    made = ProcessGroupCollection()
    for name, members in {
        "pp": pipelines,
        "dp": replicas,
        "dp_cp": replicas,
        "cp": alone,
        "tp": alone,
    }.items():
        setattr(made, name, dist.new_subgroups_by_enumeration(members)[0])
    made.embd = made.pos_embd = None
    return made


def groups() -> object:
    """Process groups that are passed explicitly, without a parallel state.

    Two pipelines of two stages that lie as no default of Megatron's does: 0 and 3, 1 and 2.
    """

    def on_rank() -> dict[str, object]:
        collection = groups_of([[0, 3], [1, 2]], [[0, 1], [2, 3]])
        training = Training(2, 1, 4, pg_collection=collection)
        plain = [training.step(), training.gradients()]
        logs, reasons = [], []
        # Given; the model's own, below a wrapper of Megatron's; none.
        wrapped = types.SimpleNamespace(module=training.model[0])
        for own, given in ((None, collection), (collection, None), (None, None)):
            training.model[0].pg_collection = own
            job, log = recorded()
            attached = perseus.attach_megatron(
                [wrapped], microbatches=4, pg_collection=given, job=job
            )
            reasons.append(attached.reason)
            again = [training.step(), training.gradients()]
            attached.detach()
            logs.append(actions(log))
            assert again == plain
        del collection.dp
        job, _ = recorded()
        reasons.append(
            perseus.attach_megatron(
                wrapped, microbatches=4, pg_collection=collection, job=job
            ).reason
        )
        collection.dp = collection.dp_cp
        place = hooks.layout_of_groups(collection)
        return {
            "place": [place.rank, place.pp_rank, place.pp, place.dp_rank, place.dp, place.tp],
            "begins": logs,
            "reasons": reasons,
        }

    return ranks.run_ranks(4, on_rank)


def bridge() -> object:
    """Megatron-Bridge: its own callbacks; a stand-in for the lines of its trainer around them.

    These are in src/megatron/bridge/training/train.py (train) and eval.py (evaluate) of
    megatron-bridge 0.3.1, and at commit 2afd2d34f7d7b2e84095af1a7fd7244902189ebc of its repository.
    To import the trainer itself takes Transformer Engine.
    """
    folders = [Path(folder) / "bridge/training/callbacks.py" for folder in megatron.__path__]
    path = next(path for path in folders if path.exists())
    spec: Any = importlib.util.spec_from_file_location("bridge_callbacks", path)
    callbacks: Any = importlib.util.module_from_spec(spec)
    sys.modules["bridge_callbacks"] = callbacks  # For its dataclasses.
    spec.loader.exec_module(callbacks)

    def train(training: Training, given: list[Any]) -> list[Any]:
        manager = callbacks.normalize_callbacks(given)
        state = types.SimpleNamespace(timers=training.config.timers)

        def fire(event: str) -> None:
            if callbacks.should_fire(manager, event):
                context = callbacks.CallbackContext(state, training.model, manager.user_state)
                manager.fire(event, context)

        done: list[Any] = []
        fire("on_train_start")
        for step in range(3):
            fire("on_train_step_start")
            done += [training.step(), training.gradients()]
            fire("on_train_step_end")
            if step == 0:
                fire("on_eval_start")
                with torch.no_grad():
                    training.config.timers = None
                    fire("on_eval_step_start")
                    training.step(forward_only=True)
                    fire("on_eval_step_end")
                    training.config.timers = state.timers
                fire("on_eval_end")
        fire("on_train_end")
        return done

    def on_rank() -> dict[str, object]:
        collection = groups_of([[0, 1]], [[0], [1]])
        training = Training(2, 1, 4, pg_collection=collection)
        training.model[0].pg_collection = collection
        before = training.config.timers
        plain = train(training, [])
        job, log = recorded()
        callback = perseus.megatron_callback(microbatches=4, job=job)
        waits = callback.attached.reason
        same = train(training, [callbacks.Callback(), callback]) == plain
        unable = perseus.megatron_callback(microbatches=4, profile="/nowhere.csv")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same = same and train(training, [unable]) == plain
        return {
            "begins": actions(log),
            "steps": [e[0] for e in log if e[0].startswith("step")],
            "same": same,
            "restored": training.config.timers is before,
            "reasons": [waits, callback.attached.reason, unable.attached.reason],
        }

    return ranks.run_ranks(2, on_rank)


def life() -> object:
    """Evaluation, exceptions, other numbers of microbatches, accumulation, detaching."""

    def on_rank() -> dict[str, object]:
        done: dict[str, object] = {}
        training = Training(1, 1, 4, log_level=2)
        count_microbatches(4)
        before = training.config.timers
        job, log = recorded()
        attached = perseus.attach_megatron(training.model[0], job=job, strict=True)
        done["again"] = perseus.attach_megatron(training.config) is attached
        training.step()
        done["begins"] = actions(log)
        # The timers that were there run on, and are what a copy of the config has.
        done["timed"] = training.config.timers("forward-compute").elapsed() > 0
        done["levels"] = training.config.timers._log_level
        done["copied"] = type(copy.deepcopy(training.config).timers).__name__
        mark = len(log)
        with torch.no_grad():
            training.step(forward_only=True)
        done["evaluation"] = log[mark:]
        training.step(forward_only=True)  # With gradients: it is known at its end.
        done["forward_only"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        mark = len(log)
        training.fails_at = 2
        try:
            training.step()
        except ZeroDivisionError:
            done["raised"] = True
        training.fails_at = -1
        for name in ("forward-backward", "forward-compute"):
            training.config.timers(name).reset()
        training.step()
        done["broken"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        mark = len(log)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            training.step(2)
            training.step(2)
            said_by(job)
        done["changed"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        done["said"] = [str(w.message) for w in seen if "perseus" in str(w.message)]
        mark = len(log)
        attached.tokens = lambda: 2048
        training.step()
        done["tokens"] = log[-1]
        attached.tokens = lambda: 1 // 0
        training.step()
        done["bad_tokens"] = [log[-1][0], job.last_error]
        attached.tokens = 0
        mark = len(log)
        with job.step():
            training.step()
            training.step()
        done["accumulated"] = [e[0] for e in log[mark:] if e[0].startswith("step")]
        held = training.config.timers
        attached.detach()
        attached.detach()
        done["restored"] = training.config.timers is before
        mark = len(log)
        training.config.timers = held  # Of somebody who kept it.
        training.step()
        done["detached"] = log[mark:]
        job, log = recorded()
        done["attached_again"] = bool(perseus.attach_megatron(training.config, job=job))
        training.step()
        done["recorded_again"] = len(actions(log))
        return done

    return ranks.run_ranks(1, on_rank)[0]


def megatron_lm() -> object:
    """Megatron-LM's trainer: global timers, which evaluation gives the config anew.

    A stand-in for megatron.training.global_vars, get_timers, train and evaluate: these are not in
    the package of Megatron-Core.
    """

    def on_rank() -> dict[str, object]:
        done: dict[str, object] = {}
        training = Training(1, 1, 2)
        count_microbatches(2)
        global_vars: Any = types.ModuleType("megatron.training.global_vars")
        global_vars._GLOBAL_TIMERS, training.config.timers = training.config.timers, None
        before = global_vars._GLOBAL_TIMERS
        sys.modules["megatron.training.global_vars"] = global_vars
        job, log = recorded()
        attached = perseus.attach_megatron(job=job, strict=True)  # In model_provider.
        training.config.timers = global_vars._GLOBAL_TIMERS  # train()
        training.step()
        done["begins"] = actions(log)
        mark = len(log)
        training.config.timers = None  # evaluate()
        with torch.no_grad():
            training.step(forward_only=True)
        done["evaluation"] = log[mark:]
        training.config.timers = global_vars._GLOBAL_TIMERS
        training.step()
        done["after"] = actions(log[mark:])
        attached.detach()
        done["restored"] = global_vars._GLOBAL_TIMERS is before
        mark = len(log)
        training.step()
        done["detached"] = log[mark:]
        # In forward_step, each time: from the next iteration on.
        training.config.timers = before
        job, log = recorded()
        original = training.model[0].forward

        def forward(data: torch.Tensor) -> torch.Tensor:
            perseus.attach_megatron(training.model[0], job=job, strict=True)
            return original(data)

        setattr(training.model[0], "forward", forward)  # noqa: B010
        training.step()
        done["first"] = list(log)
        training.step()
        done["second"] = actions(log)
        training.config.timers = None
        training.config.timers = global_vars._GLOBAL_TIMERS
        training.step()
        done["third"] = len(actions(log))
        return done

    return ranks.run_ranks(1, on_rank)[0]


def failures() -> object:
    """What cannot be attached: it says so once, and training is untouched."""

    def on_rank() -> dict[str, object]:
        said: dict[str, object] = {}

        def attempt(label: str, *arguments: Any, **options: Any) -> None:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                first = perseus.attach_megatron(*arguments, **options)
                second = perseus.attach_megatron(*arguments, **options)
            said[label] = {
                "on": bool(first),
                "reason": first.reason,
                "same": second.reason == first.reason,
                "warnings": len([w for w in seen if "perseus" in str(w.message)]),
            }

        config = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1)
        attempt("parallel state", config)
        attempt("no trainer")
        attempt("no model", torch.nn.Linear(1, 1))
        training = Training(1, 1, 2)
        before = training.config.timers
        overlapping = copy.copy(training.config)
        overlapping.overlap_moe_expert_parallel_comm = True
        job, log = recorded()
        attempt("overlap", overlapping, microbatches=2, job=job)
        attempt("profile", copy.copy(training.config), microbatches=2, profile="/nowhere.csv")
        attempt("no number", training.config)
        said["untouched"] = training.config.timers is before
        training.step()
        said["log"] = log
        # What was only too early is tried again.
        count_microbatches(2)
        said["later"] = bool(perseus.attach_megatron(training.config, job=job))
        return said

    return ranks.run_ranks(1, on_rank)[0]


def main() -> None:
    """Run the scenario that the command line names."""
    scenarios = {
        f.__name__: f for f in (orders, layout, groups, bridge, life, megatron_lm, failures)
    }
    print(json.dumps(scenarios[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
