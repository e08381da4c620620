# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Perseus in Megatron-LM and Megatron-Core: `perseus.attach_megatron()`.

Megatron's schedules start and stop a timer around the whole of an iteration
("forward-backward"), around each forward ("forward-compute") and each backward
("backward-compute"), whatever the log level. `config.timers` is replaced by an object that hands
every call on to the timers that were there, and tells Perseus of those three. Nothing of Megatron
is patched; `detach` puts the old timers back.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.attached import Attached, AttachError, open_job
from perseus.hooks.job import Job
from perseus.hooks.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FAILED = "_perseus_failed"
_GLOBALS = "megatron.training.global_vars"  # Megatron-LM's; Megatron-Core alone has none.


def attach_megatron(
    model: Any = None,
    server: str | None = None,
    *,
    microbatches: int | None = None,
    pg_collection: Any = None,
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
    """Let Perseus follow Megatron's pipeline schedules: 1F1B, with and without interleaving.

    Call it on every rank when the parallel state is there: in `model_provider` without a model, in
    `forward_step` with it (each time: all calls after the first one return what the first did), or
    before a loop of your own. It never raises and changes nothing of what is computed; where it
    fails, it says why once and training is untouched.

    Parameters
    ----------
    model
        The model or its chunks, as the schedule gets them, or their `ModelParallelConfig`. None:
        the timers of Megatron-LM (`megatron.training.get_timers`), which `train` gives the config.
    microbatches
        Of an iteration; None: as `get_num_microbatches` of Megatron says.
    pg_collection
        The `ProcessGroupCollection` that the schedule gets. None: as `parallel_state` says; where
        that is not initialised, the model's own.
    server, name, run, job_id, profile, settings, labels, tokens, job, strict, options
        As for `perseus.attach`.

    Returns
    -------
    Attached
        Its `detach` puts the old timers back; also a context manager. False in a condition where
        attaching failed.

    Notes
    -----
    Iterations without gradients are evaluation, and not recorded; nor is one without a backward.
    One with another number of microbatches (a batch size that is ramped up) or that an exception
    broke off is not used. With `overlap_moe_expert_parallel_comm` a forward and a backward run as
    one, with `hybrid_context_parallel` their number varies, and a CUDA graph of the full iteration
    runs without timers: attaching refuses these.
    """
    attached = Attached(None)
    owner = _owner_of(model)
    failed = _failure_of(owner)
    is_final = False
    with attached.attaching("Megatron", strict, "" if failed is None else failed.attached.reason):
        config = config_of_megatron(model)
        timers = _global_timers() if config is None else config.timers
        known: Attached | None = timers._attached if isinstance(timers, _Timers) else None
        if known is not None:
            return known
        if failed is not None and failed.is_final and not strict:
            return failed.attached
        _refuse(config)
        shape = _shape_of(config, microbatches, _groups_of(model, pg_collection))
        is_final = True  # A failure from here on is not tried again with each microbatch.
        if job is None:
            job = open_job(
                shape.layout,
                schedule=shape.schedule,
                stages=shape.layout.pp * shape.chunks,
                microbatches=shape.microbatches,
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
        _hook(attached, config, _Recorder(attached, job, shape))
        with contextlib.suppress(AttributeError):
            delattr(owner, _FAILED)
    if not attached:
        with contextlib.suppress(Exception):  # It is said again then.
            setattr(owner, _FAILED, _Failure(attached, is_final))
    return attached


# The place of a rank in Megatron.


def config_of_megatron(model: Any) -> Any:
    """Return the config whose timers the schedules use; None: Megatron-LM's global timers."""
    if model is None:
        if sys.modules.get(_GLOBALS) is None:
            raise AttachError("give the model or its config: this is not Megatron-LM's trainer")
        return None
    if isinstance(model, (list, tuple)):
        model = model[0]  # As the schedules do.
    if hasattr(model, "timers") and hasattr(model, "pipeline_model_parallel_size"):
        return model
    utils = importlib.import_module("megatron.core.utils")
    return utils.get_model_config(model)


@dataclass(frozen=True)
class _Failure:
    """What an earlier call could not do."""

    attached: Attached
    is_final: bool


def _failure_of(owner: Any) -> _Failure | None:
    with contextlib.suppress(Exception):
        failed = getattr(owner, _FAILED, None)
        if isinstance(failed, _Failure):
            return failed
    return None


def _owner_of(model: Any) -> Any:
    """Return what keeps a failure in mind: the config, else Megatron-LM's globals, else `model`."""
    with contextlib.suppress(Exception):
        config = config_of_megatron(model)
        if config is not None:
            return config
    return sys.modules.get(_GLOBALS) or model


def _global_timers() -> Any:
    return getattr(sys.modules.get(_GLOBALS), "_GLOBAL_TIMERS", None)


def _refuse(config: Any) -> None:
    if getattr(config, "overlap_moe_expert_parallel_comm", False):
        raise AttachError(
            "overlap_moe_expert_parallel_comm runs a forward and a backward layer by layer at the "
            "same time, so they cannot have a clock each, and no timer of Megatron's tells of a "
            "backward; switch it off, or do without Perseus"
        )
    if getattr(config, "hybrid_context_parallel", False):
        raise AttachError("hybrid_context_parallel varies the number of computations")
    if "full_iteration" in str(getattr(config, "cuda_graph_scope", None)) and (
        getattr(config, "cuda_graph_impl", "local") != "none"
    ):
        raise AttachError(
            "a CUDA graph of the full iteration (cuda_graph_scope) runs without Megatron's timers; "
            "give smaller parts to graphs, or do without Perseus"
        )


@dataclass(frozen=True)
class _Shape:
    """What Megatron says of the job."""

    layout: Layout
    chunks: int  # Of the model on a rank: virtual stages.
    microbatches: int
    group: int  # Microbatches of a group in the interleaved order.
    count: Callable[[], int] | None  # Of the microbatches of the iteration that begins.

    def schedule(self) -> dict[str, object]:
        if self.chunks == 1:
            return {"schedule": "1f1b"}
        return {
            "schedule": "megatron-interleaved",
            "virtual_stages": self.chunks,
            "microbatch_group_size": self.group,
        }


def _shape_of(config: Any, microbatches: int | None, groups: Any) -> _Shape:
    state = importlib.import_module("megatron.core.parallel_state")
    count: Callable[[], int] | None = None
    if microbatches is None:
        calculator = importlib.import_module("megatron.core.num_microbatches_calculator")
        count = calculator.get_num_microbatches
        try:
            microbatches = int(count())
        except AttributeError:
            raise AttachError("give microbatches=: Megatron's calculator has no number") from None
    layout = layout_of_megatron(state) if groups is None else layout_of_groups(groups)
    chunks = state.get_virtual_pipeline_model_parallel_world_size()
    if chunks is None:
        chunks = getattr(config, "virtual_pipeline_model_parallel_size", None)
    group = getattr(config, "microbatch_group_size_per_vp_stage", None)
    return _Shape(layout, int(chunks or 1), microbatches, int(group or layout.pp), count)


def _groups_of(model: Any, given: Any) -> Any:
    """Return the process groups that say where this rank stands; None: the parallel state does."""
    state = importlib.import_module("megatron.core.parallel_state")
    if given is not None or state.model_parallel_is_initialized():
        return given
    with contextlib.suppress(Exception):  # It has none.
        utils = importlib.import_module("megatron.core.utils")
        chunk = model[0] if isinstance(model, (list, tuple)) else model
        return utils.get_attr_wrapped_model(chunk, "pg_collection", allow_none=False)
    raise AttachError(
        "Megatron's parallel state is not initialized yet; attach later, or give pg_collection="
    )


def layout_of_megatron(state: Any) -> Layout:
    """Return where `megatron.core.parallel_state` says that this rank stands.

    Expert parallel ranks are data parallel ones for everything else, and stay what they are there.
    """
    return _layout(
        pp=(
            state.get_pipeline_model_parallel_rank(),
            state.get_pipeline_model_parallel_world_size(),
        ),
        dp=(state.get_data_parallel_rank(), state.get_data_parallel_world_size()),
        cp=(state.get_context_parallel_rank(), state.get_context_parallel_world_size()),
        tp=(state.get_tensor_model_parallel_rank(), state.get_tensor_model_parallel_world_size()),
    )


def layout_of_groups(groups: Any) -> Layout:
    """Return where a `ProcessGroupCollection` of Megatron-Core says that this rank stands."""
    places = {}
    for name in ("pp", "dp", "cp", "tp"):
        group = getattr(groups, name, None)
        if group is None:
            raise AttachError(
                f"pg_collection has no group {name}; give one that has pp, dp, cp, tp"
            )
        places[name] = (int(group.rank()), int(group.size()))
    return _layout(**places)


def _layout(
    pp: tuple[int, int], dp: tuple[int, int], cp: tuple[int, int], tp: tuple[int, int]
) -> Layout:
    """Return the layout of ranks and sizes.

    Ranks of a context parallel group compute a microbatch together, as tensor parallel ones do.
    """
    distributed = importlib.import_module("torch.distributed")
    return Layout(
        rank=int(distributed.get_rank()),
        pp_rank=int(pp[0]),
        pp=int(pp[1]),
        dp_rank=int(dp[0]),
        dp=int(dp[1]),
        tp_rank=int(cp[0]) * int(tp[1]) + int(tp[0]),
        tp=int(cp[1]) * int(tp[1]),
    )


def interleaved_order(microbatches: int, chunks: int, group: int) -> list[tuple[int, int]]:
    """Return the (microbatch, chunk) of each forward of a rank, in Megatron's interleaved order.

    Its backwards are the same with the chunks in reverse: as `get_schedule_table` of Megatron.
    """
    return [
        (microbatch, chunk)
        for first in range(0, microbatches, group)
        for chunk in range(chunks)
        for microbatch in range(first, min(first + group, microbatches))
    ]


# The hooks.


def _hook(attached: Attached, config: Any, recorder: _Recorder) -> None:
    """Put proxies where the timers are; `attached` knows how to take them off."""
    places: list[tuple[Any, str]] = []
    if config is not None:
        places.append((config, "timers"))
    # Megatron-LM's evaluation sets config.timers anew from its global ones.
    timers = _global_timers()
    if timers is not None and (config is None or config.timers in (timers, None)):
        places.append((sys.modules[_GLOBALS], "_GLOBAL_TIMERS"))
    if not places:
        raise AttachError("there are no timers; attach after initialize_megatron")
    for owner, attribute in places:
        _replace(attached, owner, attribute, recorder)


def _replace(attached: Attached, owner: Any, attribute: str, recorder: _Recorder) -> None:
    before = getattr(owner, attribute)
    inner = before._inner if isinstance(before, _Timers) else before  # Of one that was detached.
    if inner is not None and not callable(inner):
        raise AttachError(f"{attribute} are no timers of a Megatron that Perseus knows")
    proxy = _Timers(attached, inner, recorder)
    setattr(owner, attribute, proxy)

    def undo() -> None:
        proxy._attached = None  # Holders of it are only handed on.
        proxy._hooks = {}
        if getattr(owner, attribute) is proxy:
            setattr(owner, attribute, inner)

    attached._undo.append(undo)


class _NoTimer:
    """In place of timers that there are not."""

    def start(self, barrier: bool = False) -> None:
        pass

    def stop(self, barrier: bool = False) -> None:
        pass


_Hooks = tuple[Callable[[], None], Callable[[], None]]


class _Timers:
    """Megatron's timers, which tell Perseus as well."""

    def __init__(self, attached: Attached, inner: Any, recorder: _Recorder) -> None:
        self._attached: Attached | None = attached
        self._inner = inner
        self._hooks: dict[str, _Hooks] = {
            name: (recorder.guarded(begin), recorder.guarded(end))
            for name, begin, end in (
                ("forward-backward", recorder.begin_step, recorder.end_step),
                ("forward-compute", recorder.begin_forward, recorder.end_forward),
                ("backward-compute", recorder.begin_backward, recorder.end_backward),
            )
        }

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        timer = _NO_TIMER if self._inner is None else self._inner(name, *args, **kwargs)
        hooks = self._hooks.get(name)
        return timer if hooks is None else _Timer(timer, hooks)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_inner" not in vars(self):
            raise AttributeError(name)
        return getattr(self._inner, name)

    # A copy of the config, or a checkpoint of it, has the timers alone.
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self._inner, memo)

    def __reduce__(self) -> Any:
        return copy.copy, (self._inner,)


_NO_TIMER = _NoTimer()


class _Timer:
    """One of them. What it waits for before a computation is not part of that."""

    __slots__ = ("_hooks", "_timer")

    def __init__(self, timer: Any, hooks: _Hooks) -> None:
        self._timer = timer
        self._hooks = hooks

    def start(self, *args: Any, **kwargs: Any) -> None:
        self._timer.start(*args, **kwargs)
        self._hooks[0]()

    def stop(self, *args: Any, **kwargs: Any) -> None:
        self._timer.stop(*args, **kwargs)
        self._hooks[1]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timer, name)


class _Recorder:
    """Makes steps and computations of the three timers. Its methods may raise; see `guarded`."""

    def __init__(self, attached: Attached, job: Job, shape: _Shape) -> None:
        self._attached = attached
        self._job = job
        self._shape = shape
        self._in_step = False
        self._forwards = 0
        self._backwards = 0
        self._orders: dict[int, Sequence[tuple[int, int]]] = {}
        self._order: Sequence[tuple[int, int]] | None = None
        self._grad_enabled: Callable[[], bool] = importlib.import_module("torch").is_grad_enabled

    def guarded(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Return `tell` so that it never raises; where it fails, the step is not used."""

        def told() -> None:
            try:
                tell()
            except Exception as error:
                self._in_step = False
                self._job.fail("the hook on Megatron's timers failed", error)
                self._job.guarded(self._job.step_abandon)

        return told

    def begin_step(self) -> None:
        if self._in_step:  # An exception broke it off.
            self._in_step = False
            self._job.step_abandon()
        if not self._grad_enabled():
            return
        self._forwards = self._backwards = 0
        shape = self._shape
        if shape.chunks > 1:
            count = shape.microbatches if shape.count is None else int(shape.count())
            if count not in self._orders:
                self._orders[count] = interleaved_order(count, shape.chunks, shape.group)
            self._order = self._orders[count]
        self._in_step = self._job.step_begin()

    def end_step(self) -> None:
        if not self._in_step:
            return
        self._in_step = False
        if self._backwards == 0 or self._is_changed():  # Evaluation with gradients.
            self._job.step_abandon()
        else:
            self._job.step_end(self._attached.tokens_of_iteration())

    def begin_forward(self) -> None:
        if self._in_step:
            self._job.begin("forward", *self._place(self._forwards, backward=False))

    def end_forward(self) -> None:
        if self._in_step:
            self._job.end("forward", *self._place(self._forwards, backward=False))
            self._forwards += 1

    def begin_backward(self) -> None:
        if self._in_step:
            self._job.begin("backward", *self._place(self._backwards, backward=True))

    def end_backward(self) -> None:
        if self._in_step:
            self._job.end("backward", *self._place(self._backwards, backward=True))
            self._backwards += 1

    def _place(self, k: int, *, backward: bool) -> tuple[int, int | None]:
        """Return microbatch and stage of the k-th of its kind."""
        layout = self._shape.layout
        if self._order is None:
            return k, layout.pp_rank
        if k >= len(self._order):
            return -1, None
        microbatch, chunk = self._order[k]
        if backward:
            chunk = self._shape.chunks - 1 - chunk
        return microbatch, chunk * layout.pp + layout.pp_rank

    def _is_changed(self) -> bool:
        return self._job.is_changed(self._forwards / self._shape.chunks, self._shape.microbatches)
