# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Perseus in torchtitan: ``torchrun -m perseus.hooks.torchtitan ...`` or `attach_torchtitan`.

As a program, this module takes the arguments of ``torchtitan.train`` and does the same, with a
subclass of its trainer that has Perseus attached while it trains. Nothing of torchtitan is patched.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.attached import Attached, AttachError
from perseus.hooks.data_parallel import attach_ddp
from perseus.hooks.speaker import say
from perseus.hooks.torch_pipelining import attach
from perseus.hooks.wrap import Wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

_THIS = "perseus.hooks.torchtitan"


def attach_torchtitan(
    trainer: Any, server: str | None = None, *, strict: bool = False, **options: Any
) -> Attached:
    """Let Perseus follow a trainer of torchtitan, with a pipeline or without.

    Call it on every rank, before ``trainer.train()``, best as
    ``with perseus.attach_torchtitan(trainer): trainer.train()``. It never raises and changes
    nothing of what is computed; where it fails, it says why once and training is untouched.

    Parameters
    ----------
    trainer
        Of torchtitan's class, or of one derived from it. Its `parallel_dims` say where this rank
        stands. With torchft, all replica groups are one job; they need the same `run`.
    server, strict, options
        As for `perseus.attach`; without a pipeline as for `perseus.attach_ddp`.

    Returns
    -------
    Attached
        Its `metrics` are added to those that torchtitan logs, as ``perseus/...``.
    """
    attached = Attached(None)
    with attached.attaching("torchtitan", strict):
        options = {**_place(trainer, options), **options}
        log = Wrap(trainer.metrics_processor, "log", lambda log: _with_metrics(attached, log))
        if trainer.parallel_dims.pp_enabled:
            attached = attach(trainer.pp_schedule, server, strict=strict, **options)
        else:
            _refuse_graphs(trainer)
            attached = attach_ddp(
                trainer.model_parts[0],
                trainer.optimizers,
                server,
                accumulate=int(trainer.gradient_accumulation_steps),
                strict=strict,
                **options,
            )
        if attached:
            attached.keep(log)
    return attached


def _place(trainer: Any, options: dict[str, Any]) -> dict[str, int]:
    """Return where this rank stands: expert-parallel ranks are data-parallel ones."""
    dims = trainer.parallel_dims

    def rank_in(name: str) -> int:
        mesh = dims.get_optional_mesh(name)
        return 0 if mesh is None else int(mesh.get_local_rank())

    rank = int(importlib.import_module("torch.distributed").get_rank())
    dp, dp_rank = dims.dp_replicate * dims.dp_shard, rank_in("batch")
    torchft = getattr(trainer, "ft_manager", None)
    if torchft is not None and torchft.enabled:
        named = ("PERSEUS_RUN", "PERSEUS_JOB_ID")
        if not ({"run", "job_id", "job"} & set(options) or any(map(os.environ.get, named))):
            raise AttachError(
                "replica groups of torchft are one job and need one name: set PERSEUS_RUN to the "
                "same in all of them"
            )
        rank += dims.world_size * torchft.replica_id
        dp, dp_rank = torchft.get_dp_info(dp, dp_rank)
    return {
        "rank": rank,
        "dp": dp,
        "dp_rank": dp_rank,
        "tp": dims.cp * dims.tp,
        "tp_rank": rank_in("cp") * dims.tp + rank_in("tp"),
    }


def _refuse_graphs(trainer: Any) -> None:
    training = getattr(getattr(trainer, "config", None), "training", None)
    if trainer.device.type == "cuda" and not getattr(training, "disable_cuda_graphs", True):
        raise AttachError(
            "a CUDA graph repeats forward and backward, and Perseus cannot see them: give "
            "torchtitan --training.disable_cuda_graphs"
        )


def _with_metrics(attached: Attached, log: Callable[..., Any]) -> Callable[..., Any]:
    """Return `MetricsProcessor.log` with our figures beside torchtitan's."""

    def logged(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            ours = {f"perseus/{name}": value for name, value in attached.metrics().items()}
            kwargs["extra_metrics"] = {**(kwargs.get("extra_metrics") or {}), **ours}
        return log(*args, **kwargs)

    return logged


def following(trainer_class: Any) -> Any:
    """Return a trainer class of torchtitan's with Perseus attached while it trains."""

    class Following(trainer_class):  # type: ignore[misc]
        def train(self) -> Any:
            with attach_torchtitan(self):
                return super().train()

        if hasattr(trainer_class, "Config"):

            class Config(trainer_class.Config):  # type: ignore[misc]
                __slots__ = ()

    return Following


def __getattr__(name: str) -> Any:
    """Return the function that makes a config, for torchtitan's ``--config MODULE.CONFIG``."""
    module, dot, config = name.rpartition(".")
    if not dot:
        raise AttributeError(f"module {_THIS!r} has no attribute {name!r}")

    def make() -> Any:
        manager = importlib.import_module("torchtitan.config").ConfigManager()
        given = manager.parse_args(["--module", module, "--config", config])
        trainer_class = getattr(type(given), "_owner", None)
        if trainer_class is None:
            say("not attached: this torchtitan is not known")
            return given
        derive = importlib.import_module("torchtitan.config.override").derive
        return derive(given, following(trainer_class).Config)

    return make


def _with_perseus(arguments: Sequence[str]) -> list[str]:
    """Return torchtitan's arguments with this module for the one that has the config."""
    given: dict[str, str] = {}
    others: list[str] = []
    name = ""
    for argument in arguments:
        flag, is_whole, value = argument.partition("=")
        if name:
            given[name], name = argument, ""
        elif flag not in ("--module", "--config"):
            others.append(argument)
        elif is_whole:
            given[flag] = value
        else:
            name = flag
    if name or len(given) < 2:
        return list(arguments)  # Torchtitan says what is missing.
    return ["--module", _THIS, "--config", f"{given['--module']}.{given['--config']}", *others]


def main() -> None:
    """Train as ``torchtitan.train`` does."""
    train = importlib.import_module("torchtitan.train")
    if inspect.signature(train.main).parameters:  # Up to 0.2: the trainer's class.
        train.main(following(train.Trainer))
    else:
        sys.argv[1:] = _with_perseus(sys.argv[1:])
        train.main()


if __name__ == "__main__":
    main()
