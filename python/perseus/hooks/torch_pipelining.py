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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.attached import Attached, AttachError, open_job
from perseus.hooks.job import Job
from perseus.hooks.layout import Layout, LayoutError, layout_of_group, layout_of_mesh
from perseus.hooks.wrap import Wrap
from perseus.library import Instruction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perseus.planner import Planner

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
_MANY = 65_536


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
    order: str | os.PathLike[str] | None = None,
    name: str | None = None,
    run: str | None = None,
    job_id: str | None = None,
    profile: bool | str | os.PathLike[str] = True,
    settings: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
    tokens: int | Callable[[], int] = 0,
    work: Callable[[int], float] | None = None,
    planner: Planner | None = None,
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
    order
        Of a schedule class that Perseus has no name for: the path of its CSV file, as PyTorch
        writes and loads it. None: as the schedule itself says, which all of PyTorch's do.
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
    labels
        For accounts and lists: ``{"team": "vision"}``. They come before those of `$PERSEUS_LABELS`.
    tokens
        Of an iteration on this rank, or a function that says how many the one had that ended.
    work
        Says how much work a microbatch is (tokens, say), where they differ: a function of its
        index, called for each computation.
    planner
        Of this rank's pipeline: makes a plan for each batch that `Attached.ahead` tells of.
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
    not used. Computations that functions of the trainer's own run (`register_custom_function`), or
    that a CUDA graph repeats, cannot be seen: Perseus then stays out.
    """
    attached = Attached(None)
    with attached.attaching(type(schedule).__name__, strict):
        if getattr(schedule, _MARK, None) is not None:
            raise AttachError("this schedule has Perseus attached already; detach that first")
        shape = _Shape(schedule, order)
        if job is None:
            place = _place(shape, mesh, rank, dp_rank, dp, tp_rank, tp)
            job = open_job(
                place,
                schedule=shape.order,
                stages=shape.num_stages,
                microbatches=shape.microbatches,
                device=shape.stages[0].device,
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
        if planner is not None:
            job.plan_with(planner, rank=shape.pp_rank)
        _hook(attached, shape, work)
    return attached


class _Shape:
    """What a schedule object says of itself."""

    def __init__(self, schedule: Any, order: str | os.PathLike[str] | None = None) -> None:
        self.schedule = schedule
        self._order = order
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
        unseen = self.unseen()
        if unseen:
            raise AttachError(unseen)

    def unseen(self) -> str:
        """Return why computations of the schedule cannot be seen; empty: they can."""
        own = getattr(self.schedule, "_comp_type_to_function_map", None)
        if not own or not isinstance(own, dict):
            return ""
        kinds = [kind.name for kind in own if kind.name in _COMPUTATIONS]
        if not kinds:
            return ""
        return (
            f"functions of your own (register_custom_function) run {', '.join(sorted(kinds))}, "
            "and Perseus cannot see what they compute: it stays out, and clocks are the driver's; "
            "use perseus.Job in these functions to have them planned"
        )

    def order(self) -> dict[str, object]:
        """Return what a job says of the order: Perseus' name of it and its shape, or all of it."""
        if self._order is not None:
            return {"schedule_csv": Path(self._order).read_text("utf-8")}
        known = SCHEDULES.get(type(self.schedule).__name__)
        if known is None:
            return {"schedule_csv": self.csv()}
        return {"schedule": known, "virtual_stages": self.num_stages // self.pp}

    def csv(self) -> str:
        """Return the order as PyTorch writes it: a row for each rank, computations only."""
        order = getattr(self.schedule, "pipeline_order", None)
        if not order:  # Loaded with communication in it.
            order = getattr(self.schedule, "pipeline_order_with_comms", None)
        if not order:
            raise AttachError(
                f"the order of {type(self.schedule).__name__} has no name in Perseus, and the "
                "schedule does not tell it; give order= (its CSV file)"
            )
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


def _hook(attached: Attached, shape: _Shape, work: Callable[[int], float] | None) -> None:
    """Put the wrappers on; `attached` knows how to take them off."""
    job = attached.job
    assert job is not None
    schedule = shape.schedule
    grad_enabled: Callable[[], bool] = importlib.import_module("torch").is_grad_enabled
    losses = _LossOf(job)
    for stage in shape.stages:
        before = getattr(stage, _MARK, None)
        if before is not None:
            before.detach()  # Of a schedule that this one takes the place of.
        _wrap_stage(attached, job, stage, work, losses)
        _mark(attached, stage)
    _wrap_loss(attached, job, schedule, losses)
    step = _step_wrapper(attached, job, shape, grad_enabled, losses)
    attached.keep(Wrap(schedule, "step", step))

    def evaluate(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with job.skip():
                return original(*args, **kwargs)

        return wrapped

    if callable(getattr(schedule, "eval", None)):
        attached.keep(Wrap(schedule, "eval", evaluate))
    _mark(attached, schedule)


def _mark(attached: Attached, owner: Any) -> None:
    setattr(owner, _MARK, attached)
    attached._undo.append(lambda: vars(owner).pop(_MARK, None))


class _LossOf:
    """The forward of the last stage ends with the loss, which the schedule computes after it."""

    __slots__ = ("_job", "hooked")

    def __init__(self, job: Job) -> None:
        self._job = job
        self.hooked = False

    def close(self) -> None:
        """End the forward that still waits for its loss."""
        teller = self._job.teller
        waiting, teller.loss = teller.loss, None
        if waiting is not None:
            self._job.end("forward", waiting[1], waiting[0])

    def close_guarded(self) -> None:
        """Do so in a computation, into which nothing is raised."""
        try:
            self.close()
        except Exception as error:
            self._job.fail("a computation is not recorded", error)


class _Steps:
    """Tells a job of the calls of `schedule.step`. Its methods may raise, and are guarded."""

    def __init__(
        self,
        attached: Attached,
        job: Job,
        shape: _Shape,
        grad_enabled: Callable[[], bool],
        losses: _LossOf,
    ) -> None:
        self._attached = attached
        self._job = job
        self._shape = shape
        self._grad_enabled = grad_enabled
        self._losses = losses
        self._heard = False  # Whether the stages' wrappers are on.
        self._is_out = False

    def begin(self) -> bool | None:
        """Begin a step; False: it is part of another, or not recorded; None: it does not train."""
        if not (getattr(self._shape.schedule, "_has_backward", True) and self._grad_enabled()):
            return None
        unseen = self._shape.unseen()
        if unseen and not self._is_out:
            self._is_out = True
            self._job.stay_out(unseen)
        recorded = self._job.step_begin()
        listening = not self._job.quiet
        if listening != self._heard:
            self._heard = listening
            self._attached._listen(listening)
        return recorded

    def end(self, recorded: bool) -> None:
        """End it."""
        if self._job.teller.loss is not None:
            self._losses.close()
        if not recorded:
            return
        planned = self._shape.microbatches
        now = int(getattr(self._shape.schedule, "_n_microbatches", planned))
        if self._job.is_changed(now, planned):
            self._job.step_abandon()
        else:
            self._job.step_end(self._attached.tokens_of_iteration())

    def abandon(self) -> None:
        """The step raised."""
        self._job.teller.loss = None
        self._job.step_abandon()


def _step_wrapper(
    attached: Attached,
    job: Job,
    shape: _Shape,
    grad_enabled: Callable[[], bool],
    losses: _LossOf,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    steps = _Steps(attached, job, shape, grad_enabled, losses)

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            recorded: bool | None = None
            try:
                recorded = steps.begin()
            except Exception as error:
                job.fail("a step is not recorded", error)
                job.guarded(steps.abandon)
            if recorded is None:  # Evaluation.
                with job.skip():
                    return original(*args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                if recorded:
                    job.guarded(steps.abandon)
                raise
            try:
                steps.end(recorded)
            except Exception as error:
                job.fail("a step is not recorded", error)
                job.guarded(steps.abandon)
            return result

        return step

    return wrap


def _wrap_stage(
    attached: Attached,
    job: Job,
    stage: Any,
    work: Callable[[int], float] | None,
    losses: _LossOf,
) -> None:
    index = int(stage.stage_index)
    with_loss = bool(stage.is_last)
    told: Callable[..., Callable[..., Any]] = job.told.computation

    def amount(microbatch: int) -> float | None:
        assert work is not None
        try:
            return float(work(microbatch))
        except Exception as error:
            job.fail("the function for work failed", error)
            return None

    def computation(
        original: Callable[..., Any], name: str, whole: str, half: str
    ) -> Callable[..., Any]:
        """Return `original` with its begin and end told.

        Parameters
        ----------
        name
            Of the argument that is the microbatch.
        whole, half
            What it is, and what it is without `full_backward`.
        """
        has_loss = whole == "forward" and with_loss and losses.hooked

        def carefully(*args: Any, **kwargs: Any) -> Any:
            begun = False
            try:
                if job.teller.loss is not None:
                    losses.close()
                chunk = args[0] if args else kwargs.get(name, -1)
                full = args[2] if len(args) > 2 else kwargs.get("full_backward", True)
                kind = whole if full else half
                job.begin(kind, chunk, index, None if work is None else amount(chunk))
                begun = True
            except Exception as error:
                job.fail("a computation is not recorded", error)
            result = original(*args, **kwargs)
            if not begun:
                return result
            if has_loss:
                job.teller.loss = (index, chunk)
                return result
            try:
                job.end(kind, chunk, index)
            except Exception as error:
                job.fail("a computation is not recorded", error)
            return result

        if work is not None:
            return carefully
        # The path that does nothing but tell: this is what each computation costs.
        return told(
            job.teller,
            original,
            carefully,
            index,
            Instruction[whole.upper()],
            Instruction[half.upper()],
            2 if half != whole else _MANY,
            has_loss,
        )

    def forward(original: Callable[..., Any]) -> Callable[..., Any]:
        return computation(original, "fwd_chunk_id", "forward", "forward")

    def backward(original: Callable[..., Any]) -> Callable[..., Any]:
        return computation(original, "bwd_chunk_id", "backward", "backward_input")

    def weight(original: Callable[..., Any]) -> Callable[..., Any]:
        return computation(original, "bwd_chunk_id", "backward_weight", "backward_weight")

    attached._computations.append(Wrap(stage, "forward_one_chunk", forward))
    attached._computations.append(Wrap(stage, "backward_one_chunk", backward))
    if callable(getattr(stage, "backward_weight_one_chunk", None)):
        attached._computations.append(Wrap(stage, "backward_weight_one_chunk", weight))


def _wrap_loss(attached: Attached, job: Job, schedule: Any, losses: _LossOf) -> None:
    name = "_maybe_compute_loss"
    if not callable(getattr(schedule, name, None)):
        return

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        wrapped: Callable[..., Any] = job.told.loss(job.teller, original, losses.close_guarded)
        return wrapped

    attached._computations.append(Wrap(schedule, name, wrap))
    losses.hooked = True
