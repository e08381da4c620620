# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Perseus in DeepSpeed's pipeline engine: `perseus.attach_deepspeed(engine)`.

The engine looks up how it runs an instruction of its schedule in `_INSTRUCTION_MAP`. This one
engine gets a map of its own, in which the forward and the backward pass tell Perseus as well, and
a `train_batch` that is an iteration. The class and other engines stay as they are; `detach` takes
both off again.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.attached import Attached, AttachError, open_job
from perseus.hooks.job import Job
from perseus.hooks.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK = "_perseus_attached"
_MAP = "_INSTRUCTION_MAP"
_COMPUTATIONS = {"ForwardPass", "BackwardPass"}
# With these, an order is known to be 1F1B.
_INSTRUCTIONS = _COMPUTATIONS | {
    "OptimizerStep",
    "ReduceGrads",
    "ReduceTiedGrads",
    "LoadMicroBatch",
    "SendActivation",
    "RecvActivation",
    "SendGrad",
    "RecvGrad",
}


def attach_deepspeed(
    engine: Any,
    server: str | None = None,
    *,
    name: str | None = None,
    run: str | None = None,
    job_id: str | None = None,
    profile: bool | str | os.PathLike[str] = True,
    settings: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
    tokens: int | Callable[[], int] = 0,
    job: Job | None = None,
    strict: bool = False,
    **options: Any,
) -> Attached:
    """Let Perseus follow a `deepspeed.runtime.pipe.engine.PipelineEngine`, whose order is 1F1B.

    Call it on every rank, after `deepspeed.initialize`. It never raises and changes nothing of
    what is computed; where it fails, it says why once and training is untouched.

    Parameters
    ----------
    engine
        As `deepspeed.initialize` returns it for a `PipelineModule`.
    server, name, run, job_id, profile, settings, labels, tokens, job, strict, options
        As for `perseus.attach`.

    Returns
    -------
    Attached
        Its `detach` takes everything off again; also a context manager. False in a condition where
        attaching failed.

    Notes
    -----
    Each `train_batch` is an iteration. `eval_batch` is not recorded. An iteration that an exception
    breaks off, or that has another number of microbatches (`set_train_batch_size`), is not used.
    """
    attached = Attached(None)
    with attached.attaching("DeepSpeed", strict):
        before = getattr(engine, _MARK, None)
        if before is not None:
            raise AttachError("this engine has Perseus attached already; detach that first")
        _check(engine)
        layout = layout_of_deepspeed(engine)
        if job is None:
            job = open_job(
                layout,
                schedule=lambda: {"schedule": "1f1b"},
                stages=layout.pp,
                microbatches=int(engine.micro_batches),
                device=None,
                server=server,
                name=name,
                run=run,
                job_id=job_id,
                profile=profile,
                settings=settings,
                labels=labels,
                strict=strict,
                options=options,
            )
        attached.job = job
        attached.tokens = tokens
        _hook(attached, engine, job, layout.pp_rank)
    return attached


def _check(engine: Any) -> None:
    instructions = getattr(engine, _MAP, None)
    if not isinstance(instructions, dict) or not callable(getattr(engine, "train_batch", None)):
        raise AttachError(
            f"{type(engine).__name__} is no pipeline engine; wrap the model in a PipelineModule"
        )
    names = {kind.__name__ for kind in instructions}
    unknown = names - _INSTRUCTIONS
    if unknown or not names >= _COMPUTATIONS:
        raise AttachError(
            "this DeepSpeed has instructions that Perseus does not know, so its order may not be "
            f"1F1B: {', '.join(sorted(unknown or names))}; do without Perseus, or with a version "
            "that docs/how-to/frameworks.md names"
        )


def layout_of_deepspeed(engine: Any) -> Layout:
    """Return where the engine's grid says that this rank stands.

    DeepSpeed's "model" (slice) parallel ranks compute a microbatch together.
    """
    grid = engine.grid
    return Layout(
        rank=int(engine.global_rank),
        pp_rank=int(engine.stage_id),
        pp=int(engine.num_stages),
        dp_rank=int(grid.get_data_parallel_rank()),
        dp=int(grid.get_data_parallel_world_size()),
        tp_rank=int(grid.get_slice_parallel_rank()),
        tp=int(grid.get_slice_parallel_world_size()),
    )


def _hook(attached: Attached, engine: Any, job: Job, stage: int) -> None:
    """Put the wrappers on; `attached` knows how to take them off."""
    recorder = _Recorder(attached, engine, job, stage)
    instructions = dict(getattr(engine, _MAP))
    for kind in list(instructions):
        if kind.__name__ == "ForwardPass":
            instructions[kind] = recorder.around(instructions[kind], "forward")
        elif kind.__name__ == "BackwardPass":
            instructions[kind] = recorder.around(instructions[kind], "backward")
    train_batch = recorder.train_batch(engine.train_batch)
    attached._undo.append(lambda: setattr(recorder, "on", False))
    for attribute, value in ((_MAP, instructions), ("train_batch", train_batch), (_MARK, attached)):
        _set(attached, engine, attribute, value)


def _set(attached: Attached, owner: Any, attribute: str, value: Any) -> None:
    """Set an attribute of the one object, until `attached` is detached."""
    own = vars(owner)
    had = attribute in own
    before = own.get(attribute)
    own[attribute] = value

    def undo() -> None:
        if own.get(attribute) is not value:  # Somebody else's by now, which calls ours.
            return
        if had:
            own[attribute] = before
        else:
            del own[attribute]

    attached._undo.append(undo)


class _Recorder:
    """Makes steps and computations of what the engine runs."""

    def __init__(self, attached: Attached, engine: Any, job: Job, stage: int) -> None:
        self.on = True
        self._attached = attached
        self._engine = engine
        self._job = job
        self._stage = stage
        self._microbatches = int(engine.micro_batches)
        self._in_step = False
        self._is_told = False
        self._done = {"forward": 0, "backward": 0}
        self._grad_enabled: Callable[[], bool] = importlib.import_module("torch").is_grad_enabled

    def around(self, original: Callable[..., Any], kind: str) -> Callable[..., Any]:
        """Return an entry of the map: a function of the engine and the instruction's words."""
        job, stage, done = self._job, self._stage, self._done

        def begin(engine: Any) -> None:
            # Evaluation runs forwards, too.
            self._is_told = bool(engine.module.training)
            if self._is_told:
                job.begin(kind, done[kind], stage)

        def end() -> None:
            job.end(kind, done[kind], stage)
            done[kind] += 1

        def execute(engine: Any, *args: Any, **kwargs: Any) -> Any:
            told = self._in_step and job.guarded(begin, engine) and self._is_told
            result = original(engine, *args, **kwargs)
            if told:
                job.guarded(end)
            return result

        return execute

    def train_batch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return what the engine's method is replaced by."""

        @functools.wraps(original)
        def train_batch(*args: Any, **kwargs: Any) -> Any:
            self._in_step = False
            if self.on and not self._job.guarded(self._begin):
                self._job.guarded(self._job.step_abandon)
            if not self._in_step:
                return original(*args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                self._in_step = False
                self._job.guarded(self._job.step_abandon)
                raise
            self._in_step = False
            if not self._job.guarded(self._end):
                self._job.guarded(self._job.step_abandon)
            return result

        return train_batch

    def _begin(self) -> None:
        if self._grad_enabled() and self._job.step_begin():
            self._done.update(forward=0, backward=0)
            self._in_step = True

    def _end(self) -> None:
        if self._job.is_changed(self._done["forward"], self._microbatches):
            self._job.step_abandon()
        else:
            self._job.step_end(self._attached.tokens_of_iteration())
