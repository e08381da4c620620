# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A small model of Megatron-Core on processes of one machine, for the tests of its hook.

Megatron is the package from PyPI as it is. It computes on CUDA devices only: here PyTorch takes
"cuda" for the CPU, and its calls that need a driver do nothing.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import logging
import sys
import types
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import perseus
import ranks
import torch
import torch.distributed as dist
from perseus.hooks import megatron as hooks
from recording import actions, recorded, steps_of
from torch import nn

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


def _on_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(make)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if "cuda" in str(options.get("device", "")):
            options["device"] = "cpu"
        return make(*arguments, **options)

    return wrapped


for _name in ("zeros", "ones", "empty", "tensor", "full"):
    setattr(torch, _name, _on_cpu(getattr(torch, _name)))
torch.cuda.current_device = lambda: "cpu"
torch.cuda.synchronize = lambda *_: None
torch.cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()
torch.cuda.random.get_rng_state = torch.cuda.get_rng_state
torch.cuda.manual_seed = torch.manual_seed

with contextlib.redirect_stdout(io.StringIO()):
    import megatron
    from megatron.core import parallel_state, timers
    from megatron.core.enums import ModelType
    from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.core.transformer.transformer_config import TransformerConfig

WIDTH, LENGTH = 8, 4


class Chunk(nn.Module):  # type: ignore[misc]
    """A part of the model, as Megatron's schedules use it."""

    model_type = ModelType.encoder_or_decoder
    share_embeddings_and_output_weights = False

    def __init__(self, config: TransformerConfig, stage: int, is_first: bool) -> None:
        super().__init__()
        torch.manual_seed(stage)
        self.config = config
        self.is_first = is_first
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.given: torch.Tensor | None = None

    def set_input_tensor(self, given: list[torch.Tensor | None]) -> None:
        """Take what the stage before computed."""
        self.given = given[0]

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return torch.tanh(self.layer(data if self.is_first else self.given))


class Training:
    """One rank of a training."""

    def __init__(
        self,
        pp: int,
        chunks: int,
        microbatches: int,
        log_level: int = 0,
        pg_collection: Any = None,
        **settings: Any,
    ) -> None:
        virtual = chunks if chunks > 1 else None
        if pg_collection is None and not parallel_state.model_parallel_is_initialized():
            layout = {
                key: settings.pop(key)
                for key in ("tensor_model_parallel_size", "context_parallel_size")
                if key in settings
            }
            parallel_state.initialize_model_parallel(
                pipeline_model_parallel_size=pp,
                virtual_pipeline_model_parallel_size=virtual,
                **layout,
            )
        self.config = TransformerConfig(
            num_layers=pp * chunks,
            hidden_size=WIDTH,
            num_attention_heads=1,
            pipeline_model_parallel_size=pp,
            virtual_pipeline_model_parallel_size=virtual,
            pipeline_dtype=torch.float32,
            deallocate_pipeline_outputs=False,
            **settings,
        )
        self.config.timers = timers.Timers(log_level, "max")
        self.groups: dict[str, Any] = {}  # As the schedule gets them.
        if pg_collection is None:
            rank = parallel_state.get_pipeline_model_parallel_rank()
        else:
            rank = pg_collection.pp.rank()
            communicator = P2PCommunicator(pg_collection.pp, self.config)
            self.groups = {"pg_collection": pg_collection, "p2p_communicator": communicator}
        self.model = [
            Chunk(self.config, chunk * pp + rank, chunk == 0 and rank == 0)
            for chunk in range(chunks)
        ]
        self.microbatches = microbatches
        self.schedule = get_forward_backward_func(pp, virtual)
        self.fails_at = -1
        self.forwards: list[str] = []

    def step(self, microbatches: int | None = None, forward_only: bool = False) -> list[float]:
        """Run an iteration; returns its losses, on the last rank."""

        def forward_step(data: Any, model: Chunk) -> Any:
            if len(self.forwards) == self.fails_at:
                raise ZeroDivisionError
            self.forwards.append("F")

            def loss(output: torch.Tensor) -> Any:
                value = output.pow(2).mean()
                return value, {"loss": float(value.detach())}

            return model(next(data)), loss

        self.forwards.clear()
        for chunk in self.model:
            chunk.zero_grad()
        torch.manual_seed(0)
        data = [torch.randn(LENGTH, 1, WIDTH) for _ in range(64)]
        done = self.schedule(
            forward_step_func=forward_step,
            data_iterator=[iter(data) for _ in self.model] if len(self.model) > 1 else iter(data),
            model=self.model if len(self.model) > 1 else self.model[0],
            num_microbatches=microbatches or self.microbatches,
            seq_length=LENGTH,
            micro_batch_size=1,
            forward_only=forward_only,
            **self.groups,
        )
        return [each["loss"] for each in done]

    def gradients(self) -> float:
        """A sum that all gradients change."""
        return float(sum(p.grad.abs().sum() for chunk in self.model for p in chunk.parameters()))


def count_microbatches(microbatches: int, replicas: int = 1) -> None:
    """Have Megatron's calculator say so."""
    init_num_microbatches_calculator(dist.get_rank(), None, microbatches * replicas, 1, replicas)


# Pipeline ranks, chunks, microbatches, microbatches of a group (0: Megatron's default).
ALONE = ("1", "1", "4", "0")
MICROBATCHES_ALONE = 4
REFUSES_NO_GRAD = False  # It only leaves the backwards out.


class Trainer:
    """One rank: pipeline ranks, chunks, microbatches, microbatches of a group."""

    def __init__(self, pp: str, chunks: str, count: str, group: str) -> None:
        settings = {"microbatch_group_size_per_vp_stage": int(group)} if int(group) else {}
        log_level = 2 if (pp, chunks, count, group) == ALONE else 0
        self.training = Training(int(pp), int(chunks), int(count), log_level, **settings)
        self.config = self.training.config
        self.timers = self.kept = self.config.timers
        self.counted = False

    def attach(self, **options: Any) -> Any:
        """Attach Perseus."""
        if not self.counted:
            count_microbatches(self.training.microbatches)
            self.counted = True
        return perseus.attach_megatron(self.training.model, **options)

    def step(self, _seed: int = 0) -> list[float]:
        """Run an iteration; returns its losses."""
        return self.training.step()

    def weights(self) -> float:
        """Return a sum that all gradients change."""
        return self.training.gradients()

    def seen(self) -> dict[str, object]:
        """Return the schedule that the hook tells of."""
        return {"schedule": hooks._shape_of(self.config, None, None).schedule()}

    def life(self, attached: Any, log: list[list[Any]]) -> dict[str, object]:
        """Return what else holds: the timers run on, and are what a copy of the config has."""
        self.kept = self.config.timers
        done: dict[str, object] = {
            "attached once": perseus.attach_megatron(self.config) is attached,
            "timed": self.config.timers("forward-compute").elapsed() > 0,
            "levels": self.config.timers._log_level,
            "copied": type(copy.deepcopy(self.config).timers).__name__,
        }
        mark = len(log)
        self.training.step(forward_only=True)  # With gradients: it is known at its end.
        done["forward only"] = steps_of(log, mark)
        return done

    def evaluate(self) -> None:
        """Evaluate."""
        with torch.no_grad():
            self.training.step(forward_only=True)

    def fails(self, on: bool) -> None:
        """Have the third forward fail, or all be well again."""
        self.training.fails_at = 2 if on else -1
        if not on:
            for name in ("forward-backward", "forward-compute"):
                self.config.timers(name).reset()

    def use_microbatches(self, count: int) -> None:
        """Train with so many from now on."""
        self.training.microbatches = count

    def runs_what_was_kept(self) -> None:
        """Train with timers of ours that somebody kept."""
        restored, self.config.timers = self.config.timers, self.kept
        self.training.step()
        self.config.timers = restored

    def left(self) -> list[str]:
        """Return whether timers of ours are still there."""
        return [] if self.config.timers is self.timers else ["timers"]


def place(tp: int, cp: int, pp: int, dp: int) -> Any:
    """Return where this rank stands."""
    del dp
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=tp,
        context_parallel_size=cp,
        pipeline_model_parallel_size=pp,
    )
    return hooks.layout_of_megatron(parallel_state)


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


def failures(attempt: Callable[..., None]) -> dict[str, object]:
    """What cannot be attached; each is tried twice, and gives the same reason."""

    def of(label: str, *arguments: Any, **options: Any) -> None:
        def twice() -> Any:
            first = perseus.attach_megatron(*arguments, **options)
            assert perseus.attach_megatron(*arguments, **options).reason == first.reason
            return first

        attempt(label, twice)

    of("parallel state", TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1))
    of("no trainer")
    of("no model", nn.Linear(1, 1))
    training = Training(1, 1, 2)
    before = training.config.timers
    overlapping = copy.copy(training.config)
    overlapping.overlap_moe_expert_parallel_comm = True
    job, log = recorded()
    of("overlap", overlapping, microbatches=2, job=job)
    of("profile", copy.copy(training.config), microbatches=2, profile="/nowhere.csv")
    of("no number", training.config)
    untouched = training.config.timers is before
    training.step()
    seen = list(log)
    # A failure that was only too early is tried again.
    count_microbatches(2)
    later = bool(perseus.attach_megatron(training.config, job=job))
    return {"untouched": untouched, "log": seen, "later": later}


SCENARIOS: dict[str, Callable[..., object]] = {f.__name__: f for f in (groups, bridge, megatron_lm)}
