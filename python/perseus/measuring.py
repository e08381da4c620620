# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A stage's profile, measured on one GPU before there is a job.

>>> measured = perseus.measure(stage, example)
>>> measured.save("profile.csv")

It is the sweep of a job's first iterations (`docs/how-to/measuring.md`): a job of one rank, which
computes nothing but this stage, with a server of its own that ends with it.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

from perseus import program
from perseus.hooks.devices import add_gpu
from perseus.hooks.job import Job
from perseus.hooks.layout import Layout, default_device, job_body
from perseus.hooks.speaker import Speaker
from perseus.shared_library import LibraryError

_SHORTEST_SECONDS = 1e-3  # Of a computation: below, the host's own times count.
_TRIALS = 5
_ITERATIONS = 5  # At each clock.
_SHARE_OF_WAITING = 0.15  # Of an iteration: it shows what waiting draws.
_PATIENCE_SECONDS = 10.0  # For what takes a moment: the server, the device, the profile.
_LOOK_SECONDS = 0.02
# Runs a program that ends with this process, however that ends.
_WITH_PARENT = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])"
)


class MeasureError(RuntimeError):
    """Nothing could be measured; the sentence says why, and what to do."""


class Measured:
    """A profile that was measured, with what plans need besides.

    Attributes
    ----------
    blocking_power
        Watts of the GPU while it waits at its highest clock; None: not known. Of several stages,
        their mean.
    notes
        What was odd: a card that was held back, say.
    """

    def __init__(self, text: str, blocking_power: float | None, notes: Sequence[str]) -> None:
        self._text = text
        self.blocking_power = blocking_power
        self.notes = tuple(notes)

    def __add__(self, other: Measured) -> Measured:
        """Return the profile of the stages of both."""
        columns: dict[str, None] = {}
        rows: list[dict[str, str]] = []
        for each in (self, other):
            lines = (line for line in each.csv().splitlines() if not line.startswith("#"))
            reader = csv.DictReader(lines)
            rows += reader
            columns.update(dict.fromkeys(reader.fieldnames or ()))
        text = io.StringIO()
        writer = csv.DictWriter(text, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        watts = [each.blocking_power for each in (self, other) if each.blocking_power is not None]
        mean = sum(watts) / len(watts) if watts else None
        return Measured(text.getvalue(), mean, list(dict.fromkeys(self.notes + other.notes)))

    def csv(self) -> str:
        """Return the profile, for `perseus.plan`."""
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile into a file, for `perseus plan` and job files."""
        Path(path).write_text(self._text, encoding="utf-8")


def measure(
    stage_module: Any,
    example: Any,
    *,
    stage: int = 0,
    loss: Callable[[Any], Any] | None = None,
    seconds: float = 5.0,
    device: str | None = None,
    **options: Any,
) -> Measured:
    """Measure what a stage's forward and backward take at each clock: seconds and joules.

    The stage computes again and again on its GPU, at one clock after the other. That takes some
    minutes, and the GPU must do nothing else. The agent gives the clock back, also after SIGKILL.
    Gradients of the stage are cleared; its parameters stay;
    its buffers change as in training. ``+`` joins the profiles of stages.

    Parameters
    ----------
    stage_module
        Of PyTorch, on the device and in the mode that it trains with.
    example
        The input of one microbatch: a tensor, or a tuple of them.
    stage
        Its number in the pipeline, from 0. Others than the first also compute the gradient of
        their input.
    loss
        Of the last stage: what it computes from the output. None: the backward begins with a
        gradient of ones.
    seconds
        At each clock. Four times as long halves the errors of the energies.
    device
        As for `perseus.Job`; None: `$PERSEUS_DEVICE`, else the node's agent.
    options
        More for `perseus.Job`: gpu_index, profile_stride, min_profile_mhz, profile_coarse, ...

    Raises
    ------
    MeasureError
        The stage cannot compute its example, is too short, or clocks cannot be set.
    perseus.ProgramError
        There is no program `perseus`.
    """
    if stage < 0:
        raise MeasureError(f"stage counts from 0, and is {stage}")
    if not 0.1 <= seconds <= 600:
        raise MeasureError(f"seconds is the time at each clock, from 0.1 to 600, not {seconds}")
    computations = _Computations(stage_module, example, stage, loss)
    pair = computations.seconds()
    pairs = max(1, round((1 - _SHARE_OF_WAITING) * seconds / _ITERATIONS / pair))
    add_gpu(computations.device, 0, options)
    if problem := options.pop("unknown_gpu", ""):
        raise MeasureError(f"no clock can be set: {problem}")
    device = device or default_device()
    with tempfile.TemporaryDirectory(prefix="perseus-measure-") as folder, _server(folder) as url:
        body = job_body(
            Layout(pp=1, dp=1, tp=1),
            schedule={"schedule": "1f1b", "virtual_stages": 1},
            stages=1,
            microbatches=pairs,
            run="measure",
            name="measure",
            profile_csv=None,
            settings=None,
        )
        try:
            job = Job(
                url,
                job=body,
                profile=True,
                strict=True,
                device=device,
                speaker=_Silent(),
                profile_iterations=_ITERATIONS,
                open_timeout_seconds=_PATIENCE_SECONDS,
                **options,
            )
        except LibraryError as error:
            raise MeasureError(f"{device} cannot be used: {error}") from error
        with job:
            _sweep(job, computations, pairs, pair * pairs * _SHARE_OF_WAITING)
            return _profile(url, job, stage)


class _Silent(Speaker):
    """Says nothing: what is wrong becomes an exception or a note."""

    def say(self, text: str) -> None:
        """Say nothing."""

    def inform(self, text: str) -> None:
        """Say nothing."""


class _Computations:
    """Forward and backward of a stage."""

    def __init__(
        self, module: Any, example: Any, stage: int, loss: Callable[[Any], Any] | None
    ) -> None:
        self._torch: Any = importlib.import_module("torch")
        tensor = self._torch.Tensor
        inputs = example if isinstance(example, (tuple, list)) else (example,)
        if not inputs or not all(isinstance(each, tensor) for each in inputs):
            raise MeasureError(
                "example is the input of one microbatch: a tensor, or a tuple of tensors, not "
                f"{type(example).__name__}"
            )
        self._module = module
        self._loss = loss
        self.device = inputs[0].device
        # As they come from the stage before.
        self._inputs = [
            each.detach().requires_grad_(stage > 0 and each.is_floating_point()) for each in inputs
        ]
        self._shapes = ", ".join(str(tuple(each.shape)) for each in inputs)

    def forward(self) -> Any:
        """Return what the backward begins with."""
        output = self._module(*self._inputs)
        return output if self._loss is None else self._loss(output)

    def backward(self, output: Any) -> None:
        """Compute the gradients, and add them up as a trainer does."""
        outputs = [each for each in _tensors(output) if each.requires_grad]
        self._torch.autograd.backward(outputs, [self._torch.ones_like(each) for each in outputs])

    def clear(self) -> None:
        """Forget the gradients."""
        for each in (*self._module.parameters(), *self._inputs):
            each.grad = None

    def synchronize(self) -> None:
        """Wait until the GPU has computed all."""
        if self.device.type == "cuda":
            self._torch.cuda.synchronize(self.device)

    def seconds(self) -> float:
        """Return the time of a forward and its backward, when both have been seen to work."""
        forwards, backwards = [], []
        for _ in range(1 + _TRIALS):
            begin = time.perf_counter()
            output = self._try(self.forward, "forward")
            between = time.perf_counter()
            if not any(each.requires_grad for each in _tensors(output)):
                raise MeasureError(
                    "what the stage computes has no gradient, so there is no backward to measure: "
                    "leave out no_grad() and detach(), and let parameters require gradients"
                )
            self._try(self.backward, "backward", output)
            forwards.append(between - begin)
            backwards.append(time.perf_counter() - between)
        self.clear()
        # The first may compile, or load.
        for what, times in (("forward", forwards[1:]), ("backward", backwards[1:])):
            shortest = min(times)
            if shortest < _SHORTEST_SECONDS:
                raise MeasureError(
                    f"a {what} takes {1e3 * shortest:.2g} ms, too short to be measured (1 ms): "
                    "give the example the size of a real microbatch"
                )
        return sum(sorted(times)[len(times) // 2] for times in (forwards[1:], backwards[1:]))

    def _try(self, compute: Callable[..., Any], what: str, *arguments: Any) -> Any:
        try:
            result = compute(*arguments)
            self.synchronize()
        except Exception as error:
            raise MeasureError(
                f"the {what} of the stage fails for an example of shape {self._shapes}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return result


def _tensors(output: Any) -> list[Any]:
    """Return the tensors of an output: it is one, or has several."""
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, (tuple, list)):
        return [tensor for each in output for tensor in _tensors(each)]
    return [output] if hasattr(output, "requires_grad") else []


@contextlib.contextmanager
def _server(folder: str) -> Iterator[str]:
    """A server of this process, which ends with it; its address."""
    socket = f"{folder}/server.sock"
    command = [program.find(), "serve", "--listen", f"unix:{socket}"]
    command += ["--store", f"sqlite:{folder}/jobs.db"]
    # Settings of a server that this machine may have are not for this one.
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PERSEUS_SERVE_")}
    with Path(folder, "log").open("w+b") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _WITH_PARENT, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=settings,
        )
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not os.path.exists(socket):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    said = log.read().decode(errors="replace").strip()
                    raise MeasureError(f"perseus serve does not start: {said}")
                time.sleep(_LOOK_SECONDS)
            yield f"unix:{socket}"
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _sweep(job: Job, computations: _Computations, pairs: int, wait_seconds: float) -> None:
    """Compute until all clocks are measured."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    has_begun = False
    while not has_begun or job.state == "profiling":
        has_begun = has_begun or job.state == "profiling"
        if not has_begun and time.monotonic() > deadline:
            raise MeasureError(f"the sweep does not begin: {job.last_error or job.state}")
        stats = job.client.stats()
        if stats is not None and 0 < stats.calls <= stats.refused:
            # The trainer's sentence has the reason at its end.
            said = re.sub(r"^profile: [^(]*\((.+)\)$", r"\1", job.last_error)
            raise MeasureError(f"no clock can be set: {said}")
        with job.step():
            for microbatch in range(pairs):
                with job.forward(microbatch, stage=0):
                    output = computations.forward()
                with job.backward(microbatch, stage=0):
                    computations.backward(output)
            del output
            computations.synchronize()
            time.sleep(wait_seconds)
        computations.clear()


def _profile(url: str, job: Job, stage: int) -> Measured:
    """Return what the server makes of the measurements."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    listed: Sequence[Mapping[str, Any]] = ()
    while not listed:
        if time.monotonic() > deadline:
            raise MeasureError(
                f"nothing was measured: {job.last_error or 'no clock gave a result'}"
            )
        time.sleep(_LOOK_SECONDS)
        listed = program.answer("profile", "list", "--server", url)["profiles"]
    shown = program.answer("profile", "show", str(listed[0]["id"]), "--server", url)
    watts = shown.get("blocking_power_w") or [None]
    notes = [str(each["note"]) for each in (shown.get("metadata") or {}).get("notes", ())]
    return Measured(_of_stage(shown["profile_csv"], stage), watts[0], notes)


def _of_stage(text: str, stage: int) -> str:
    """Return a profile of the only stage 0 as one of another stage."""
    header, *rows = text.splitlines()
    assert header.startswith("stage,"), header
    return "\n".join([header, *(re.sub("^0,", f"{stage},", row) for row in rows), ""])
