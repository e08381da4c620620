# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Perseus in a data-parallel trainer of PyTorch: `perseus.attach_ddp(model, optimizer)`.

Such a job has one stage: each rank runs forward and backward, then waits until the slowest rank
has its gradients, too. Hooks of PyTorch's own kind on the model and its outputs say when a
computation begins and ends; the optimizer's says when an iteration does. `detach` takes them off.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, Callable

from perseus.hooks.attached import Attached, AttachError, open_job
from perseus.hooks.job import Job
from perseus.hooks.layout import Layout, LayoutError, layout_of_group, layout_of_mesh

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSEEN = "unseen"
_MANY_UNSEEN = 3  # So many steps of the optimizer in a row without a forward are no accident.
_ORDER = "order"  # Subject of a complaint: forwards and backwards that do not alternate.


def attach_ddp(
    model: Any,
    optimizer: Any = None,
    server: str | None = None,
    *,
    accumulate: int = 1,
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
    labels: Mapping[str, str] | None = None,
    tokens: int | Callable[[], int] = 0,
    job: Job | None = None,
    strict: bool = False,
    **options: Any,
) -> Attached:
    """Let Perseus follow a data-parallel trainer: DDP, FSDP, or any model without a pipeline.

    Call it on every rank, once the model is wrapped. It never raises and changes nothing of what
    is computed; where it fails, it says why once and training is untouched.

    Parameters
    ----------
    model
        What the trainer calls: `DistributedDataParallel`, a model after `fully_shard`, what
        `torch.compile` returned, or any other `torch.nn.Module`. Each call with gradients is
        followed by one backward.
    optimizer
        Its steps end the iterations; PyTorch's, or what Accelerate's `prepare` returned. None: an
        iteration ends when the next forward begins.
    accumulate
        How many forwards and backwards make up one step of the optimizer.
    mesh
        The `DeviceMesh` of the job, whose dimension names say which ranks are copies (dp,
        dp_replicate, dp_shard, fsdp, ep) and which compute together (tp, cp).
    dp_rank, dp, tp_rank, tp
        Instead of a mesh. `tp` alone: so many neighbours compute together. With nothing, every
        rank is a copy. Copies that have no process group in common need all of them, `rank` and
        `run`.
    rank
        None: that of the default process group, else 0.
    server, name, run, job_id, profile, settings, labels, tokens, job, strict, options
        As for `perseus.attach`.

    Returns
    -------
    Attached
        Its `detach` takes everything off again; also a context manager. False in a condition where
        attaching failed.

    Notes
    -----
    Under DDP a backward ends before the wait for other ranks. FSDP fetches and sends parameters
    within forward and backward, so their times contain waits.
    """
    attached = Attached(None)
    with attached.attaching(type(model).__name__, strict):
        for method in ("register_forward_pre_hook", "register_forward_hook", "parameters"):
            if not callable(getattr(model, method, None)):
                raise AttachError(f"{type(model).__name__} is no torch.nn.Module")
        if accumulate < 1:
            raise AttachError(f"accumulate is {accumulate}; at least one forward makes a step")
        trained = [each for each in model.parameters() if each.requires_grad]
        if not trained:
            raise AttachError("no parameter of the model is trained")
        if job is None:
            job = open_job(
                _place(mesh, rank, dp_rank, dp, tp_rank, tp),
                schedule=lambda: {"schedule": "1f1b"},
                stages=1,
                microbatches=accumulate,
                device=trained[0].device,
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
        _Recorder(attached, job, model, accumulate).hook(optimizer)
    return attached


def _place(
    mesh: Any,
    rank: int | None,
    dp_rank: int | None,
    dp: int | None,
    tp_rank: int | None,
    tp: int | None,
) -> Layout:
    distributed = importlib.import_module("torch.distributed")
    alone = not distributed.is_available() or not distributed.is_initialized()
    if rank is None:
        rank = 0 if alone else int(distributed.get_rank())
    if mesh is None and (dp_rank is not None or tp_rank is not None):
        return Layout(rank=rank, dp_rank=dp_rank or 0, dp=dp or 1, tp_rank=tp_rank or 0, tp=tp or 1)
    if mesh is None:
        world = 1 if alone else int(distributed.get_world_size())
        return layout_of_group([rank], rank, world, tp or 1)
    place = layout_of_mesh(mesh, rank)
    if place.pp > 1:
        raise LayoutError(f"the mesh has {place.pp} pipeline ranks; attach the schedule instead")
    return place


class _Recorder:
    """Makes iterations and computations of what PyTorch's hooks say.

    In a backward, hooks run on a thread of PyTorch's while the trainer's waits: never two at once.
    """

    def __init__(self, attached: Attached, job: Job, model: Any, accumulate: int) -> None:
        self._attached = attached
        self._job = job
        self._model = model
        self._accumulate = accumulate
        self._has_optimizer = False
        self._under_way = False  # An iteration.
        self._recorded = False  # It is told to the job.
        self._computing = ""  # "forward" and "backward", which are never both open.
        self._pairs = 0  # Forwards and backwards of the iteration that are over.
        self._unseen = 0  # Steps of the optimizer in a row without a forward.
        self._uneven = 0  # Iterations in a row with another number of them.
        torch = importlib.import_module("torch")
        self._grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        try:
            # As DDP and FSDP use it themselves. A callback queued first is called first: before DDP
            # waits for other ranks.
            self._at_end: Callable[[Callable[[], None]], None] = (
                torch.autograd.Variable._execution_engine.queue_callback
            )
            # In a backward a whole forward may run again: activation checkpointing.
            self._graph: Callable[[], int] = torch._C._current_graph_task_id
        except AttributeError as error:
            raise AttachError(f"this PyTorch is not known: {error}") from error

    def hook(self, optimizer: Any) -> None:
        """Put the hooks on; `attached` knows how to take them off."""
        undo = self._attached._undo
        before = _Hook(self._job, self._forward_begins)
        undo.append(self._model.register_forward_pre_hook(before, prepend=True).remove)
        after = _Hook(self._job, self._forward_ends)
        undo.append(self._model.register_forward_hook(after).remove)
        # Accelerate's holds the one that steps, and steps it when gradients are accumulated.
        optimizer = getattr(optimizer, "optimizer", optimizer)
        if optimizer is not None:
            if not callable(getattr(optimizer, "register_step_post_hook", None)):
                raise AttachError(f"{type(optimizer).__name__} is no torch.optim.Optimizer")
            stepped = _Hook(self._job, self._optimizer_stepped)
            undo.append(optimizer.register_step_post_hook(stepped).remove)
            self._has_optimizer = True

    def _forward_begins(self, *_: Any) -> None:
        if self._graph() != -1:
            return
        if self._pairs >= self._accumulate and not self._has_optimizer:
            self._end_iteration()
        if not self._model.training or not self._grad_enabled():
            return
        if self._computing:
            self._stay_out()
        self._unseen = 0
        self._job.recover(_UNSEEN)
        if not self._under_way:
            self._under_way = True
            self._recorded = self._job.step_begin()
        self._computing = "forward"
        if self._recorded:
            self._job.begin("forward", self._pairs, 0)

    def _forward_ends(self, _model: Any, _inputs: Any, output: Any) -> None:
        """The loss, which the trainer computes next, still counts to the forward."""
        if self._computing != "forward" or self._graph() != -1:
            return
        begins = _Hook(self._job, functools.partial(self._backward_begins, self._pairs))
        tensors = list(_tensors_of(output))
        for tensor in tensors:
            tensor.register_hook(begins)
        if not tensors:
            self._complain("the model's output has no tensor with a gradient")

    def _backward_begins(self, pair: int, *_: Any) -> None:
        if self._computing != "forward" or pair != self._pairs:
            return
        self._computing = "backward"
        self._at_end(_Hook(self._job, self._backward_ends))
        if self._recorded:
            self._job.end("forward", pair, 0)
            self._job.begin("backward", pair, 0)

    def _backward_ends(self) -> None:
        if self._recorded:
            self._job.end("backward", self._pairs, 0)
        self._computing = ""
        self._pairs += 1

    def _optimizer_stepped(self, *_: Any) -> None:
        if self._under_way:
            self._end_iteration()
            return
        self._unseen += 1
        if self._unseen == _MANY_UNSEEN:
            self._job.fail(
                "the optimizer steps, and Perseus sees no forward of the model: if torch.compile "
                "made one piece of it, attach what torch.compile returned; else attach the model "
                "that is called",
                about=_UNSEEN,
            )

    def _end_iteration(self) -> None:
        job = self._job
        if self._computing:
            self._stay_out()
        recorded, pairs = self._recorded, self._pairs
        self._under_way = self._recorded = False
        self._pairs = 0
        if not recorded:
            return
        self._uneven = 0 if pairs == self._accumulate else self._uneven + 1
        if self._uneven != 1:  # A scaler of gradients skips a step of the optimizer now and then.
            job.is_changed(pairs, self._accumulate)
        if self._uneven:
            job.step_abandon()
        else:
            job.recover(_ORDER)
            job.step_end(self._attached.tokens_of_iteration())

    def _stay_out(self) -> None:
        """What ran is no forward with a backward after it: nothing of the iteration is used."""
        self._complain(
            "a forward of the model had no backward before the next one"
            if self._computing == "forward"
            else "a backward of the model broke off"
        )
        self._computing = ""
        if self._recorded:
            self._recorded = False
            self._job.step_abandon()

    def _complain(self, what: str) -> None:
        self._job.fail(f"{what}: such iterations are not used", about=_ORDER)


class _Hook:
    """A hook that never raises into training, and does nothing in a copy of the model.

    Nor in code that `torch.compile` makes of it: what it calls could not be compiled.
    """

    def __init__(self, job: Job, tell: Callable[..., None]) -> None:
        self._job = job
        self._tell = tell
        compiler = getattr(importlib.import_module("torch"), "compiler", None)
        self._is_compiling: Callable[[], bool] = getattr(compiler, "is_compiling", lambda: False)

    def __call__(self, *args: Any) -> None:
        if not self._is_compiling():
            self._job.guarded(self._tell, *args)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be Python's own callable that does nothing: who reads a saved model may lack Perseus."""
        return getattr, (0, "__init__")


def _tensors_of(output: Any) -> Iterator[Any]:
    """Go through the tensors of a model's output that a loss may come from."""
    if dataclasses.is_dataclass(output):
        output = vars(output)
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        for each in output:
            yield from _tensors_of(each)
    elif getattr(output, "requires_grad", False):
        yield output
