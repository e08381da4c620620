# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks of trainers, which attach Perseus as training begins: `perseus.lightning_callback()`.

A trainer's package is imported when its function is called, and no earlier.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.attached import Attached
from perseus.hooks.data_parallel import attach_ddp
from perseus.hooks.megatron import attach_megatron, config_of_megatron

if TYPE_CHECKING:
    from collections.abc import Iterable


def lightning_callback(**options: Any) -> Any:
    """Return a callback of Lightning: ``Trainer(callbacks=[perseus.lightning_callback()])``.

    A forward lasts from the begin of a batch to that of its backward, so automatic and manual
    optimization are both seen. Iterations end with a step of the (last) optimizer.

    Parameters
    ----------
    options
        As for `perseus.attach_ddp`. `accumulate` is that of the trainer where it is not given:
        with manual optimization, how many batches make up a step.

    Returns
    -------
    Callback
        Of the Lightning that was imported (`lightning.pytorch` or `pytorch_lightning`). Its
        `attached` is what `perseus.attach_ddp` returned. It is detached as training ends or fails.
    """
    old = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
    package = importlib.import_module("pytorch_lightning" if old else "lightning.pytorch")
    return _of(package.Callback, _Lightning, lightning_callback, options)


def transformers_callback(**options: Any) -> Any:
    """Return a callback of Hugging Face's Trainer: ``Trainer(callbacks=[...])``.

    Parameters
    ----------
    options
        As for `perseus.attach_ddp`. `accumulate` is that of the trainer.

    Returns
    -------
    TrainerCallback
        Its `attached` is what `perseus.attach_ddp` returned. It is detached as training ends. The
        trainer tells callbacks of no exception: call ``callback.attached.detach()`` where you catch
        one.
    """
    package = importlib.import_module("transformers")
    return _of(package.TrainerCallback, _Transformers, transformers_callback, options)


def megatron_callback(**options: Any) -> Any:
    """Return a callback of Megatron-Bridge: ``pretrain(..., callbacks=[...])``.

    Parameters
    ----------
    options
        As for `perseus.attach_megatron`.

    Returns
    -------
    object
        Its `attached` is what `perseus.attach_megatron` returned. It is detached as training ends.
    """
    return _Megatron(options)


def _of(base: Any, ours: Any, make: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a callback of a class of theirs and ours; a copy of it is made anew."""

    def made_anew(self: _Callback) -> tuple[Any, ...]:
        return functools.partial(make, **self._options), ()

    return type("PerseusCallback", (ours, base), {"__reduce__": made_anew})(options)


class _Callback:
    """What all have in common."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self._options = options
        self.attached = Attached(None, "training has not begun")

    def _attach(self, framework: str, attach: Callable[[], Attached]) -> None:
        """Attach; what the trainer lacks for it is a reason as any other."""
        self.attached = Attached(None)
        with self.attached.attaching(framework, bool(self._options.get("strict"))):
            self.attached = attach()


class _Lightning(_Callback):
    """Tells Perseus of Lightning's batches."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._batches = Lightning()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Attach; Lightning has made its strategy, and done its sanity check."""

        def attach() -> Attached:
            self._batches = Lightning(pl_module.parameters)
            options = {
                "accumulate": trainer.accumulate_grad_batches,
                "mesh": _mesh_of(trainer.strategy),
                **self._options,
            }
            optimizer = trainer.optimizers[-1] if trainer.optimizers else None
            return attach_ddp(self._batches, optimizer, **options)

        self._attach("Lightning", attach)

    def on_train_batch_start(self, *_: Any) -> None:
        """A forward begins."""
        self._batches.begin()

    def on_before_backward(self, _trainer: Any, _pl_module: Any, loss: Any) -> None:
        """The forward has ended."""
        self._batches.end(loss)

    def on_train_end(self, *_: Any) -> None:
        """Detach."""
        self.attached.detach()

    def on_exception(self, *_: Any) -> None:
        """Detach."""
        self.attached.detach()


def _mesh_of(strategy: Any) -> Any:
    """Return the device mesh of a strategy of Lightning's that has one with names."""
    with contextlib.suppress(Exception):
        if strategy.device_mesh.mesh_dim_names:
            return strategy.device_mesh
    return None


class Lightning:
    """Stands for the model in `attach_ddp`, whose forward is a batch until its loss."""

    training = True

    def __init__(self, parameters: Callable[[], Iterable[Any]] = tuple) -> None:
        self.parameters = parameters
        self._before: dict[object, Callable[..., Any]] = {}
        self._after: dict[object, Callable[..., Any]] = {}
        self._begun = False

    def register_forward_pre_hook(self, hook: Callable[..., Any], **_: Any) -> _Handle:
        """As of a `torch.nn.Module`."""
        return _Handle(self._before, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> _Handle:
        """As of a `torch.nn.Module`."""
        return _Handle(self._after, hook)

    def begin(self) -> None:
        """A batch begins."""
        self._begun = True
        for hook in list(self._before.values()):
            hook(self, ())

    def end(self, loss: Any) -> None:
        """Its loss goes backward."""
        if not self._begun:  # A second backward of the batch is one more than was planned for.
            self.begin()
        self._begun = False
        for hook in list(self._after.values()):
            hook(self, (), loss)


class _Handle:
    """What takes a hook off."""

    def __init__(self, hooks: dict[object, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        hooks[self] = hook

    def remove(self) -> None:
        """Take it off."""
        self._hooks.pop(self, None)


class _Transformers(_Callback):
    """Attaches Perseus in Hugging Face's Trainer."""

    def on_train_begin(self, args: Any, _state: Any, _control: Any, **given: Any) -> None:
        """Attach; the trainer has wrapped model and optimizer."""

        def attach() -> Attached:
            options = {"accumulate": args.gradient_accumulation_steps, **self._options}
            return attach_ddp(given["model"], given["optimizer"], **options)

        self._attach("Transformers", attach)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Detach."""
        self.attached.detach()


class _Megatron(_Callback):
    """Attaches Perseus in Megatron-Bridge."""

    def on_train_start(self, context: Any) -> None:
        """Attach; the model has its process groups and timers."""
        self._attach("Megatron", lambda: attach_megatron(context.model, **self._options))
        if self.attached:
            self._config = config_of_megatron(context.model)
            self._timers = self._config.timers

    def on_train_step_start(self, _context: Any) -> None:
        """Evaluation has given the config its old timers."""
        if self.attached:
            self._config.timers = self._timers

    def on_train_end(self, _context: Any) -> None:
        """Detach."""
        self.attached.detach()
