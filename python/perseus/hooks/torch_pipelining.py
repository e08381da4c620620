# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Perseus in a trainer of `torch.distributed.pipelining`: `perseus.attach(schedule)`.

Wraps the schedule's `step` and `eval`, and of each stage the methods that compute one microbatch.
They are found on every schedule class; at the time of their call what a computation waits for has
arrived. Nothing of PyTorch is patched: the wrappers are attributes of the trainer's own objects,
and `detach` takes them off.
"""

from __future__ import annotations

import importlib
import io
import os
import uuid
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.job import Job, say
from perseus.hooks.layout import (
    DEFAULT_SERVER,
    Layout,
    LayoutError,
    default_device,
    job_body,
    layout_of_group,
    layout_of_mesh,
    run_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# PyTorch's classes whose order Perseus makes itself, by its name of it.
SCHEDULES = {
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleaved1F1B": "interleaved-1f1b",
    "ScheduleInterleavedZeroBubble": "interleaved-zero-bubble",
    "ScheduleZBVZeroBubble": "zbv-zero-bubble",
    "ScheduleDualPipeV": "dualpipev",
}
_COMPUTATIONS = ("FORWARD", "FULL_BACKWARD", "BACKWARD_INPUT", "BACKWARD_WEIGHT", "OVERLAP_F_B")
_MARK = "_perseus_attached"
_STORE_KEY = "perseus/run"


class AttachError(RuntimeError):
    """Perseus cannot be attached; only `attach(strict=True)` raises it."""


class Attached:
    """What `attach` returns: the hooks on a schedule, until `detach` or the end of a ``with``.

    Attributes
    ----------
    job
        The `perseus.Job` that the hooks tell; None: attaching failed, and training is untouched.
    reason
        Why it failed; empty: it did not.
    """

    def __init__(self, job: Job | None, reason: str = "") -> None:
        self.job = job
        self.reason = reason
        self.tokens: int | Callable[[], int] = 0
        self._undo: list[Callable[[], None]] = []
        self._computations: list[_Wrap] = []

    def __bool__(self) -> bool:
        return self.job is not None

    def report(self) -> dict[str, object]:
        """Return `perseus.Job.report`, or why there is none."""
        if self.job is None:
            return {"state": "detached", "last_error": self.reason}
        return self.job.report()

    def detach(self) -> None:
        """Take the hooks off and close the job; the clock goes back. May be called again."""
        self._listen(False)
        self._computations.clear()
        while self._undo:
            self._undo.pop()()
        if self.job is not None:
            self.job.close()

    def _listen(self, on: bool) -> None:
        """Put the wrappers of the stages on, or take them off while nobody asks for them."""
        for wrap in self._computations:
            wrap.put(on)

    def __enter__(self) -> Attached:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()


def attach(
    schedule: Any,
    server: str | None = None,
    *,
    mesh: Any = None,
    dp_rank: int | None = None,
    dp: int | None = None,
    tp_rank: int | None = None,
    tp: int | None = None,
    rank: int | None = None,
    name: str | None = None,
    run: str | None = None,
    job_id: str | None = None,
    profile: bool | str | os.PathLike[str] = True,
    settings: Mapping[str, object] | None = None,
    tokens: int | Callable[[], int] = 0,
    work: Callable[[int], float] | None = None,
    job: Job | None = None,
    strict: bool = False,
    **options: Any,
) -> Attached:
    """Let Perseus follow a schedule of `torch.distributed.pipelining`, of any class.

    Call it on every rank, once the schedule is made. It never raises and changes nothing of what
    is computed; where it fails, it says why once and training is untouched.

    Parameters
    ----------
    schedule
        The schedule that `step` is called on.
    server
        None: `$PERSEUS_SERVER`, else http://127.0.0.1:7787.
    mesh
        The `DeviceMesh` of the job, whose dimension names say which ranks are copies of a stage
        (dp, dp_replicate, dp_shard, fsdp, ep) and which compute together (tp, cp).
    dp_rank, dp, tp_rank, tp
        Instead of a mesh. With neither, the pipelines are taken to lie as the one of this rank
        does, without tensor parallel ranks.
    rank
        None: that of the default process group.
    name, run
        Of the job, for people; and what makes it the same job on all ranks and after a restart
        (None: `$PERSEUS_RUN`, Slurm's or torchrun's id, else made up by the first rank).
    job_id
        A job that the server has already, instead of one that is made.
    profile
        True: measure in the first iterations, where the server has no profile. A path: of a
        profile in CSV. False: neither.
    settings
        More of the job: ``{"blocking_power": 85, "at": "1.05x"}``; keys of job files.
    tokens
        Of an iteration on this rank, or a function that says how many the one had that ended.
    work
        Says how much work a microbatch is (tokens, say), where they differ: a function of its
        index, called for each computation.
    job
        A `perseus.Job` that is open already, instead of one that is made.
    strict
        Raise `AttachError` where attaching fails.
    options
        More for `perseus.Job`: device, gpu_uuid, gpu_index, shadow, timeline and so on. The device
        is `$PERSEUS_DEVICE`, else the node's agent, where nothing is said; the GPU that of the
        stages.

    Returns
    -------
    Attached
        Its `detach` takes everything off again; also a context manager. False in a condition where
        attaching failed.

    Notes
    -----
    Each call of ``schedule.step`` is an iteration, also where several make up one step of the
    optimizer. ``schedule.eval``, and steps without backward, are not recorded. An iteration that
    an exception breaks off, or that has another number of microbatches than the schedule had, is
    not used.
    """
    attached = Attached(None)
    made: Job | None = None
    try:
        if getattr(schedule, _MARK, None) is not None:
            raise AttachError("this schedule has Perseus attached already; detach that first")
        shape = _Shape(schedule)
        if job is None:
            place = _place(shape, mesh, rank, dp_rank, dp, tp_rank, tp)
            body = None
            if job_id is None and not os.environ.get("PERSEUS_JOB_ID"):
                given = None if isinstance(profile, bool) else Path(profile).read_text("utf-8")
                body = job_body(
                    place,
                    schedule=shape.order(),
                    stages=shape.num_stages,
                    microbatches=shape.microbatches,
                    run=run or run_key() or _agreed_run(),
                    name=name,
                    profile_csv=given,
                    settings=settings,
                )
            _add_device_options(shape, place, options)
            made = job = Job(
                server or os.environ.get("PERSEUS_SERVER") or DEFAULT_SERVER,
                job_id=job_id,
                job=body,
                rank=place.rank,
                dp_rank=place.dp_rank,
                pp_rank=place.pp_rank,
                tp_rank=place.tp_rank,
                profile=profile is True,
                strict=strict,
                **options,
            )
        attached.job = job
        attached.tokens = tokens
        _hook(attached, shape, work)
    except Exception as error:
        attached.detach()
        attached.job = None
        if made is not None:
            made.close()
        attached.reason = str(error) or type(error).__name__
        if strict:
            raise AttachError(attached.reason) from error
        say(f"not attached to {type(schedule).__name__}: {attached.reason}")
    return attached


class _Shape:
    """What a schedule object says of itself."""

    def __init__(self, schedule: Any) -> None:
        self.schedule = schedule
        stages = getattr(schedule, "_stages", None)
        if stages is None:
            stage = getattr(schedule, "_stage", None)
            stages = [] if stage is None else [stage]
        self.stages: list[Any] = list(stages)
        if not self.stages or not callable(getattr(schedule, "step", None)):
            raise AttachError(
                f"{type(schedule).__name__} is no schedule of torch.distributed.pipelining"
            )
        for method in ("forward_one_chunk", "backward_one_chunk"):
            if not all(callable(getattr(stage, method, None)) for stage in self.stages):
                raise AttachError(f"its stages have no {method}: this PyTorch is not known")
        self.num_stages = int(self.stages[0].num_stages)
        self.microbatches = int(schedule._n_microbatches)
        self.pp = int(self.stages[0].group_size)
        self.pp_rank = int(self.stages[0].group_rank)
        if not getattr(schedule, "_has_backward", True):
            raise AttachError("the schedule has no loss function: it runs no backward")

    def order(self) -> dict[str, object]:
        """Return what a job says of the order: Perseus' name of it, and its shape."""
        known = SCHEDULES.get(type(self.schedule).__name__)
        if known is None:
            raise AttachError(
                f"the order of {type(self.schedule).__name__} has no name that a server knows; "
                "give job_id= or job= of a job that runs this order"
            )
        return {"schedule": known, "virtual_stages": self.num_stages // self.pp}

    def csv(self) -> str:
        """Return the order as PyTorch writes it: a row for each rank, computations only."""
        order = getattr(self.schedule, "pipeline_order", None)
        if not order:
            raise AttachError(f"{type(self.schedule).__name__} does not tell its order")
        text = io.StringIO()
        for rank in sorted(order):
            actions = [action for action in order[rank] if _is_computation(action)]
            text.write(",".join(str(action) for action in actions) + "\n")
        return text.getvalue()


def _is_computation(action: Any) -> bool:
    return action is not None and action.computation_type.name in _COMPUTATIONS


def _place(
    shape: _Shape,
    mesh: Any,
    rank: int | None,
    dp_rank: int | None,
    dp: int | None,
    tp_rank: int | None,
    tp: int | None,
) -> Layout:
    distributed = importlib.import_module("torch.distributed")
    if rank is None:
        rank = int(distributed.get_rank())
    if mesh is not None:
        place = layout_of_mesh(mesh, rank)
    elif dp_rank is not None or tp_rank is not None:
        place = Layout(
            rank=rank,
            pp_rank=shape.pp_rank,
            pp=shape.pp,
            dp_rank=dp_rank or 0,
            dp=dp or 1,
            tp_rank=tp_rank or 0,
            tp=tp or 1,
        )
    else:
        world = int(distributed.get_world_size())
        group = shape.stages[0].group
        ranks = list(range(world))
        if group is not None:
            ranks = list(distributed.get_process_group_ranks(group))
        place = layout_of_group(ranks, rank, world, tp or 1)
    if place.pp != shape.pp:
        raise LayoutError(f"the mesh has {place.pp} pipeline ranks, the schedule {shape.pp}")
    return place


def _agreed_run() -> str:
    """Return a name for this run that the ranks agree on through their store, without waiting."""
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    store = c10d._get_default_store()
    agreed = store.compare_set(_STORE_KEY, "", f"run-{uuid.uuid4().hex[:16]}")
    return bytes(agreed).decode()


def _add_device_options(shape: _Shape, place: Layout, options: dict[str, Any]) -> None:
    """Say which device, GPU and timeline, where the caller did not."""
    options.setdefault("device", default_device())
    torch = importlib.import_module("torch")
    device = torch.device(shape.stages[0].device)
    if device.type == "cuda":
        options.setdefault("timeline", "cuda")
        if "gpu_uuid" not in options and "gpu_index" not in options:
            index = torch.cuda.current_device() if device.index is None else device.index
            identity = getattr(torch.cuda.get_device_properties(index), "uuid", None)
            if identity is not None:
                options["gpu_uuid"] = f"GPU-{identity}"
            else:
                options["gpu_index"] = index
    else:
        options.setdefault("timeline", "host")
        if "gpu_uuid" not in options:
            options.setdefault("gpu_index", int(os.environ.get("LOCAL_RANK", place.rank)))


def _hook(attached: Attached, shape: _Shape, work: Callable[[int], float] | None) -> None:
    """Put the wrappers on; `attached` knows how to take them off."""
    job = attached.job
    assert job is not None
    schedule = shape.schedule
    grad_enabled: Callable[[], bool] = importlib.import_module("torch").is_grad_enabled
    losses = _LossOf(job)
    for stage in shape.stages:
        _wrap_stage(attached, job, stage, work, losses)
    _wrap_loss(attached, schedule, losses)
    _Wrap(schedule, "step", _step_wrapper(attached, job, shape, grad_enabled, losses)).keep(
        attached
    )

    def evaluate(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with job.skip():
                return original(*args, **kwargs)

        return wrapped

    if callable(getattr(schedule, "eval", None)):
        _Wrap(schedule, "eval", evaluate).keep(attached)
    setattr(schedule, _MARK, attached)
    attached._undo.append(lambda: delattr(schedule, _MARK))


class _LossOf:
    """The forward of the last stage ends with the loss, which the schedule computes after it."""

    __slots__ = ("_job", "hooked", "open")

    def __init__(self, job: Job) -> None:
        self._job = job
        self.hooked = False
        self.open: tuple[int, int] | None = None  # Microbatch and stage.

    def close(self) -> None:
        """End the forward that still waits for its loss."""
        waiting, self.open = self.open, None
        if waiting is not None:
            self._job.end("forward", *waiting)


def _step_wrapper(
    attached: Attached,
    job: Job,
    shape: _Shape,
    grad_enabled: Callable[[], bool],
    losses: _LossOf,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    schedule = shape.schedule
    said = False
    heard = [False]  # Whether the stages' wrappers are on.

    def changed() -> bool:
        nonlocal said
        now = getattr(schedule, "_n_microbatches", shape.microbatches)
        if now == shape.microbatches:
            return False
        if not said:
            said = True
            job.fail(
                f"an iteration has {now} microbatches and the plan is for {shape.microbatches}: "
                "such iterations are not used; detach and attach again where this stays"
            )
        return True

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            if not schedule._has_backward or not grad_enabled():
                with job.skip():
                    return original(*args, **kwargs)
            recorded = job.step_begin()
            listening = not job.quiet
            if listening != heard[0]:
                heard[0] = listening
                attached._listen(listening)
            if not recorded:  # Within a step of the trainer's own, or evaluation.
                result = original(*args, **kwargs)
                losses.close()
                return result
            try:
                result = original(*args, **kwargs)
            except BaseException:
                losses.open = None
                job.step_abandon()
                raise
            losses.close()
            if changed():
                job.step_abandon()
            else:
                tokens = attached.tokens
                job.step_end(_number(job, tokens) if callable(tokens) else tokens)
            return result

        return step

    return wrap


def _number(job: Job, tokens: Callable[[], int]) -> int:
    try:
        return int(tokens())
    except Exception as error:
        job.fail("the function for tokens failed", error)
        return 0


def _wrap_stage(
    attached: Attached,
    job: Job,
    stage: Any,
    work: Callable[[int], float] | None,
    losses: _LossOf,
) -> None:
    index = int(stage.stage_index)
    with_loss = bool(stage.is_last)
    begin, end = job.begin, job.end

    def amount(microbatch: int) -> float | None:
        if work is None:
            return None
        try:
            return float(work(microbatch))
        except Exception as error:
            job.fail("the function for work failed", error)
            return None

    def forward(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward_one_chunk(*args: Any, **kwargs: Any) -> Any:
            losses.close()
            chunk = args[0] if args else kwargs.get("fwd_chunk_id", -1)
            begin("forward", chunk, index, amount(chunk))
            result = original(*args, **kwargs)
            if with_loss and losses.hooked:
                losses.open = (chunk, index)
            else:
                end("forward", chunk, index)
            return result

        return forward_one_chunk

    def backward(original: Callable[..., Any]) -> Callable[..., Any]:
        def backward_one_chunk(*args: Any, **kwargs: Any) -> Any:
            losses.close()
            chunk = args[0] if args else kwargs.get("bwd_chunk_id", -1)
            full = args[2] if len(args) > 2 else kwargs.get("full_backward", True)
            kind = "backward" if full else "backward_input"
            begin(kind, chunk, index, amount(chunk))
            result = original(*args, **kwargs)
            end(kind, chunk, index)
            return result

        return backward_one_chunk

    def weight(original: Callable[..., Any]) -> Callable[..., Any]:
        def backward_weight_one_chunk(*args: Any, **kwargs: Any) -> Any:
            losses.close()
            chunk = args[0] if args else kwargs.get("bwd_chunk_id", -1)
            begin("backward_weight", chunk, index, amount(chunk))
            result = original(*args, **kwargs)
            end("backward_weight", chunk, index)
            return result

        return backward_weight_one_chunk

    attached._computations.append(_Wrap(stage, "forward_one_chunk", forward))
    attached._computations.append(_Wrap(stage, "backward_one_chunk", backward))
    if callable(getattr(stage, "backward_weight_one_chunk", None)):
        attached._computations.append(_Wrap(stage, "backward_weight_one_chunk", weight))


def _wrap_loss(attached: Attached, schedule: Any, losses: _LossOf) -> None:
    name = "_maybe_compute_loss"
    if not callable(getattr(schedule, name, None)):
        return

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def maybe_compute_loss(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            losses.close()
            return result

        return maybe_compute_loss

    attached._computations.append(_Wrap(schedule, name, wrap))
    losses.hooked = True


class _Wrap:
    """A wrapper around a method of one object, which can be put on and taken off."""

    def __init__(
        self,
        owner: Any,
        name: str,
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._owner = owner
        self._name = name
        self._make = make
        self._active = False
        self._before: Any = None
        self._entry: Any = None  # None: it is not there.

    def put(self, on: bool) -> None:
        """Put it on, or take it off."""
        self._active = on
        attributes = vars(self._owner)
        if on and self._entry is None:
            self._before = attributes.get(self._name)
            original = getattr(self._owner, self._name)
            wrapped = self._make(original)

            def entry(*args: Any, **kwargs: Any) -> Any:
                return wrapped(*args, **kwargs) if self._active else original(*args, **kwargs)

            self._entry = entry
            setattr(self._owner, self._name, entry)
        elif not on and self._entry is not None and attributes.get(self._name) is self._entry:
            self._entry = None
            if self._before is None:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._before)
        # Else another has wrapped ours since: it stays below that, and only passes on while off.

    def keep(self, attached: Attached) -> None:
        """Put it on until `attached` is detached."""
        self.put(True)
        attached._undo.append(lambda: self.put(False))
