# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a trainer, or a framework's hook, tells Perseus: steps and their computations.

>>> with perseus.Job("http://127.0.0.1:7787", job_id="j-1", rank=3, pp_rank=3) as job:
...     for batch in batches:
...         with job.step():
...             with job.forward(microbatch=0):
...                 ...
...             with job.backward(microbatch=0):
...                 ...

`Job` wraps `perseus.Client` and knows what a client does not: evaluation, iterations that break
off, and computations that are only queued on a device.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

from perseus.client import Client, State
from perseus.hooks.blocks import Computation, Skip, Step
from perseus.hooks.complaints import Complaints
from perseus.hooks.devices import add_gpu
from perseus.hooks.layout import (
    DEFAULT_SERVER,
    Layout,
    default_device,
    job_body,
    run_key,
)
from perseus.hooks.report import Report, metrics_of
from perseus.hooks.speaker import Speaker, other_of_rank, speaker_of_ranks, store_of_ranks
from perseus.hooks.step_planner import StepPlanner
from perseus.hooks.timeline import Timeline, find_timeline, is_recording_graph
from perseus.hooks.told import choose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perseus.planner import Planner

# So many computations one after another outside of a step are no accident.
_MANY_OUTSIDE = 16
_OUTSIDE = "outside"
_GRAPH = (
    "a CUDA graph is being recorded, and its replays do not tell Perseus what they compute: "
    "Perseus stays out, and clocks are the driver's; record smaller parts than a forward or a "
    "backward to have them planned"
)
_LOOK_SECONDS = 0.005


class Job(Complaints):
    """One rank of a training job. Nothing here raises into training.

    If Perseus itself fails, or its client reports a problem (no server, a refused clock), training
    goes on. Each problem is reported once, through `warnings.warn` and the logger "perseus". An
    exception of the trainer passes through unchanged; Perseus then drops what it measured in the
    step that the exception ended.

    Parameters
    ----------
    server, job_id, job, rank, dp_rank, pp_rank, tp_rank, gpu_uuid, gpu_index, shadow, profile, \
strict, ahead, options
        As for `perseus.Client`.
    device
        As for `perseus.Client`; None: `$PERSEUS_DEVICE`. "": none, so that no clock is set.
    timeline
        When computations run. "host": while they are between begin and end, which is right where
        these return when the device is done. "cuda": as CUDA events say that are recorded at
        begin and end on the current stream; they are read at the end of a later step, without
        synchronisation. "auto": "cuda" where PyTorch uses a GPU by the time of the first
        computation, else "host". Or an object with the methods of
        `perseus.hooks.timeline.Timeline`.
    clock
        The host's clock in seconds that CUDA events are set against; None: `time.perf_counter`.
    client
        Instead of all the above: a client that is open already, and stays open when the job is
        closed.
    speaker
        Says problems once for all ranks, as hooks have it; None: this rank says its own.

    Notes
    -----
    `$PERSEUS_SERVER`, `$PERSEUS_JOB_ID`, `$PERSEUS_DEVICE`, `$PERSEUS_TOKEN_FILE` and
    `$PERSEUS_CA_FILE` are used for what is not given.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        job_id: str | None = None,
        job: Mapping[str, object] | None = None,
        rank: int = 0,
        dp_rank: int = 0,
        pp_rank: int = 0,
        tp_rank: int = 0,
        device: str | None = None,
        gpu_uuid: str | None = None,
        gpu_index: int | None = None,
        unknown_gpu: str = "",
        shadow: bool = False,
        profile: bool = False,
        strict: bool = False,
        ahead: bool = True,
        timeline: str | Timeline = "auto",
        clock: Callable[[], float] | None = None,
        client: Client | None = None,
        speaker: Speaker | None = None,
        **options: str | float,
    ) -> None:
        super().__init__(speaker)
        self._step_lock = threading.Lock()
        self._skipping = 0
        self._iteration = 0
        self._open = False  # A step is under way.
        self.quiet = False  # No plan is near: nobody asks for the step's computations.
        self._seen_problems: object = None  # `Client.problems` when its complaint was passed on.
        self._last: Report | None = None  # The report of when it was closed.
        self._abandoned = 0
        self._ignored_steps = 0
        self._outside = 0
        self._outside_in_a_row = 0
        self._outer = False  # The step under way is one of the trainer's own.
        self._within = 0  # Steps of a hook in it.
        self._accumulates = False  # A step of the trainer's own is several of the hook's.
        self.gpu: tuple[object, ...] | None = None  # Whose clock it sets, where a hook knows.
        self._clock = clock
        self._timeline: Timeline | None = None
        self._find: str | None = None  # How a timeline is still to be found.
        self._only_stage = -1  # Of the rank; -1: it has several, or it is not known.
        if isinstance(timeline, str):
            self._find = timeline
        else:
            self._timeline = timeline
        self._step_planner: StepPlanner | None = None
        self._owns_client = client is None
        token = os.environ.get("PERSEUS_TOKEN_FILE")
        if token and "token" not in options and client is None:
            try:
                options["token"] = Path(token).read_text(encoding="utf-8").strip()
            except OSError as error:
                said = f"the token in PERSEUS_TOKEN_FILE ({token}) cannot be read"
                self.fail(said, error, about="token")
        certificates = os.environ.get("PERSEUS_CA_FILE")
        if certificates and client is None:
            options.setdefault("ca_file", certificates)
        server = server or os.environ.get("PERSEUS_SERVER")
        # The first rank's sentence once the server has registered it; empty: it was said, or others
        # say it.
        self._has_server = bool(server) or client is not None
        self._greeting = f"{server}" if server and rank == 0 and client is None else ""
        self._name = "" if job is None else str(job.get("name") or "")
        own: dict[str, Any] = {}
        if client is None and gpu_uuid is None and gpu_index is None and not unknown_gpu:
            add_gpu(None, 0, own)
        if unknown_gpu := unknown_gpu or own.get("unknown_gpu", ""):
            device = ""
            self.fail(f"no clock is set: {unknown_gpu}", about="gpu")
        self.client = client or _Client(
            server,
            job_id=job_id or (os.environ.get("PERSEUS_JOB_ID") if job is None else None),
            job=job,
            rank=rank,
            dp_rank=dp_rank,
            pp_rank=pp_rank,
            tp_rank=tp_rank,
            device=os.environ.get("PERSEUS_DEVICE") if device is None else device,
            gpu_uuid=gpu_uuid or own.get("gpu_uuid"),
            gpu_index=own.get("gpu_index", 0) if gpu_index is None else gpu_index,
            shadow=shadow,
            profile=profile,
            strict=strict,
            ahead=ahead,
            **options,
        )
        # The wrappers of computations, and their common state: see `perseus.hooks.told`.
        self.told, self.teller = choose(self.client, self.fail)
        self._pass_on_news()
        if job is not None:
            other = other_of_rank(store_of_ranks(), str(job.get("client_key")), rank)
            if other:
                self.fail(f"rank {rank} is {other}, too: give each its own rank", about="rank")
        # From here on whoever complains trains, and must not wait for a log.
        if self._speaker is None:
            self._speaker = Speaker()
        if self._greeting:
            self._greet()

    @classmethod
    def for_pipeline(
        cls,
        schedule: str,
        stages: int,
        microbatches: int,
        *,
        run: str | None = None,
        name: str | None = None,
        pp: int | None = None,
        dp: int = 1,
        tp: int = 1,
        profile: bool | str | os.PathLike[str] = True,
        settings: Mapping[str, object] | None = None,
        labels: Mapping[str, str] | None = None,
        server: str | None = None,
        device: str | None = None,
        **options: Any,
    ) -> Job:
        """Open the job of a loop of your own; all ranks that say the same are of one job.

        Parameters
        ----------
        schedule
            Its name, as in job files; "1f1b", say.
        stages
            Of the model, virtual ones counted.
        microbatches
            Of an iteration.
        run
            A name that all ranks share, and that stays when training restarts (None: as for
            `perseus.attach`).
        name
            For people; None: that of the run.
        pp
            Ranks of the pipeline; None: as many as stages.
        dp, tp
            How many pipelines there are, and how many ranks compute a microbatch together.
        profile
            True: measure in the first iterations, where the server has no profile. A path: of a
            profile in CSV. False: neither.
        settings
            More of the job: ``{"blocking_power": 85, "at": "1.05x"}``; keys of job files.
        labels
            For accounts and lists: ``{"team": "vision"}``. They come before those of
            `$PERSEUS_LABELS`.
        server, device
            None: `$PERSEUS_SERVER`, else http://127.0.0.1:7787; `$PERSEUS_DEVICE`, else the node's
            agent.
        options
            More for `perseus.Job`: rank, pp_rank, dp_rank and so on. Without gpu_uuid and
            gpu_index the GPU is PyTorch's current one, else that of `$LOCAL_RANK` or
            `$SLURM_LOCALID` among `$CUDA_VISIBLE_DEVICES`.

        Raises
        ------
        ValueError
            Nothing names the run, `stages` is no multiple of `pp`, `$PERSEUS_LABELS` cannot be
            read, or it is not said which of several ranks this one is.
        OSError
            The profile cannot be read.
        """
        run = run or run_key()
        if run is None:
            raise ValueError("nothing names the run: give run=, the same on all ranks")
        pp = stages if pp is None else pp
        if pp < 1 or stages % pp:
            raise ValueError(f"{stages} stages cannot be shared by {pp} ranks evenly")
        sizes = {"rank": pp * dp * tp, "pp_rank": pp, "dp_rank": dp, "tp_rank": tp}
        missing = [f"{key}=" for key, size in sizes.items() if size > 1 and key not in options]
        if missing:
            raise ValueError(
                f"the job has {pp * dp * tp} ranks: say which this one is, by {', '.join(missing)}"
            )
        add_gpu(None, options.get("rank", 0), options)
        options.setdefault("speaker", speaker_of_ranks())
        body = job_body(
            Layout(pp=pp, dp=dp, tp=tp),
            schedule={"schedule": schedule, "virtual_stages": stages // pp},
            stages=stages,
            microbatches=microbatches,
            run=run,
            name=name,
            profile_csv=None if isinstance(profile, bool) else Path(profile).read_text("utf-8"),
            settings=settings,
            labels=labels,
        )
        job = cls(
            server or os.environ.get("PERSEUS_SERVER") or DEFAULT_SERVER,
            job=body,
            profile=profile is True,
            **({"device": default_device() if device is None else device} | options),
        )
        # Not where V-schedules and the like give a rank another one.
        if stages == pp:
            job._only_stage = int(options.get("pp_rank", 0))
        return job

    # Called by trainers.

    def step(
        self,
        tokens: int = 0,
        work: Sequence[float] | None = None,
        others: Sequence[Sequence[float]] = (),
    ) -> Step:
        """Return a context manager around an iteration; its `tokens` may be set within.

        A step within a step, or beside it in another thread, is part of the first.

        Parameters
        ----------
        tokens
            Of this iteration on this rank; 0: unknown.
        work
            Of the coming batch, the one after this step's: how many times as long as in the
            profile each microbatch lasts. Planned while this step runs (`plan_with`).
        others
            With `work`: the same of the other data-parallel pipelines, in any order (`coming`).
        """
        if work is not None:
            self.coming(work, self._iteration + 1, others)
        return Step(self, tokens)

    def plan_with(self, planner: Planner, rank: int, **settings: str | float | None) -> None:
        """Plan each iteration for its lengths, in this process, on a thread beside training.

        Parameters
        ----------
        planner
            Of this rank's pipeline.
        rank
            Of the pipeline.
        settings
            As for `Planner.plan`: at, effort, ...
        """
        if self._step_planner is not None:
            self._step_planner.close()
        self._step_planner = StepPlanner(self.client, planner, rank, **settings)

    def coming(
        self,
        work: Sequence[float],
        iteration: int | None = None,
        others: Sequence[Sequence[float]] = (),
    ) -> None:
        """Say how much work each microbatch of a coming step is; `step(work=...)` does, too.

        Returns at once. The plan is used where it is there before that step begins; else the last
        one stays (`report()` counts both). Every rank of a pipeline is told the same.

        Parameters
        ----------
        work
            One number for each microbatch: how many times as long as in the profile it lasts.
        iteration
            Counted from 0; None: the next that begins.
        others
            `work` of the other data-parallel pipelines. An iteration lasts as long as that of the
            slowest pipeline, so those with less work run slower; without it each plans for itself.
        """
        if self._step_planner is not None:
            number = self.next_iteration if iteration is None else iteration
            self._step_planner.coming(number, work, others)

    @property
    def next_iteration(self) -> int:
        """The iteration that begins next, counted from 0."""
        return self._iteration + int(self._open)

    def forward(
        self, microbatch: int = -1, stage: int | None = None, work: float | None = None
    ) -> Computation:
        """Return a context manager around a forward computation.

        Parameters
        ----------
        microbatch
            From 0; -1: not known, matched by order.
        stage
            Of the model, virtual stages counted, from 0; None: the only one that this rank has
            (`for_pipeline`), else not known.
        work
            Amount of it: tokens, or any number that time grows with; None: not known.
        """
        return Computation(self, "forward", microbatch, stage, work)

    def backward(
        self, microbatch: int = -1, stage: int | None = None, work: float | None = None
    ) -> Computation:
        """Return a context manager around a backward computation; as `forward`."""
        return Computation(self, "backward", microbatch, stage, work)

    def backward_input(
        self, microbatch: int = -1, stage: int | None = None, work: float | None = None
    ) -> Computation:
        """Return a context manager around a backward for the input alone ("I")."""
        return Computation(self, "backward_input", microbatch, stage, work)

    def backward_weight(
        self, microbatch: int = -1, stage: int | None = None, work: float | None = None
    ) -> Computation:
        """Return a context manager around a backward for the weights alone ("W")."""
        return Computation(self, "backward_weight", microbatch, stage, work)

    def recompute(
        self, microbatch: int = -1, stage: int | None = None, work: float | None = None
    ) -> Computation:
        """Return a context manager around a forward that runs again, before its backward ("R")."""
        return Computation(self, "recompute", microbatch, stage, work)

    def skip(self) -> Skip:
        """Return a context manager within which nothing is recorded: evaluation, say."""
        return Skip(self)

    def skip_begin(self) -> None:
        """Record nothing until `skip_end`: for callbacks, which cannot hold a ``with`` open."""
        self._skipping += 1
        self.teller.plain = False

    def skip_end(self) -> None:
        """End what `skip_begin` began."""
        self._skipping = max(0, self._skipping - 1)
        self._see_if_plain()

    def report(self) -> Report:
        """Return what is going on: state, plan, counters and what went wrong last.

        Once the job is closed, what there was then.
        """
        if self._last is not None:
            last_error = super().last_error or self._last["last_error"]
            return {**self._last, "state": self.state, "last_error": last_error}
        client = self.client
        return {
            "state": client.state.name.lower(),
            "plan_version": client.plan_version,
            "job_id": client.job_id,
            "last_error": self.last_error,
            "stats": client.stats(),
            "steps": self._iteration,
            "abandoned_steps": self._abandoned,
            "ignored_steps": self._ignored_steps,
            "outside": self._outside,
            "timeline": "host" if self._timeline is None else self._timeline.name,
            "timeline_dropped": 0 if self._timeline is None else self._timeline.dropped,
            "step_plans": None
            if self._step_planner is None
            else {
                "planned": self._step_planner.planned,
                "skipped": self._step_planner.skipped,
                "failed": self._step_planner.failed,
                "last_error": self._step_planner.last_error,
            },
        }

    def metrics(self) -> dict[str, float]:
        """Return this rank's figures, for a logger; quick, and without the network.

        `following` (0 or 1), `plan_version` (-1: none), `clock_mhz` (0: the driver's own, -1: a
        call failed), `iteration_seconds` of the last iteration, `overhead_percent`; since the
        start `clock_calls`, `joules` of its GPU (0: not known), and `clocks_late`, the changes that
        came late or not at all. While it follows a plan: `saving_percent`, which the plan predicts,
        with `saving_least_percent` and `saving_most_percent` where the profile states its errors.
        Empty: the job is closed.
        """
        return metrics_of(self.client.stats())

    def wait_until(self, state: str, timeout: float = 60.0) -> bool:
        """Wait until the client is "following", say; False: the time is over, or it is closed.

        For scripts and tests: what a plan needs is measured while steps run, so a training thread
        that waits here may wait for itself.

        Raises
        ------
        ValueError
            There is no such state.
        """
        names = [each.name.lower() for each in State]
        if state not in names:
            raise ValueError(f"no state {state!r}; expected one of {', '.join(names)}")
        deadline = time.monotonic() + timeout
        while self.state != state:
            if self.client.state == State.CLOSED or time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    @property
    def state(self) -> str:
        """What the client is doing now: "following", say."""
        return self.client.state.name.lower()

    @property
    def last_error(self) -> str:
        """What is wrong now, one sentence; empty: nothing is."""
        return super().last_error or self.client.last_error or self._lack()

    def _lack(self) -> str:
        """Say why no plan will come, where nobody was asked for one."""
        if self._has_server or self._step_planner is not None:
            return ""
        return "no server was named, so there is no plan: give server=, or set PERSEUS_SERVER"

    def close(self) -> None:
        """Give the clock back and send what is to be reported. May be called again."""
        if self._open:
            self.step_abandon()
        if self._step_planner is not None:
            self._step_planner.close()
        self._pass_on_news()
        if self._speaker is not None:
            self._speaker.close()
        if self._last is None:
            with contextlib.suppress(Exception):  # The clock goes back, whatever a report needs.
                self._last = self.report()
        if self._owns_client:
            self.client.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Called by hooks.

    def step_begin(self) -> bool:
        """Begin an iteration; False: it is not recorded, and another's to end."""
        if self._skipping:
            return False
        if self._outer:
            self._within += 1
            # One of several that accumulate gradients: each runs the plan's order once.
            if self._within > 1:
                self._accumulates = True
                self.step_abandon()
        return self._begin_step()

    def begin_outer_step(self) -> bool:
        """Begin an iteration of the trainer's own, which hooks' steps may be within."""
        if self._skipping or self._accumulates:
            return False
        self._outer = mine = self._begin_step()
        return mine

    def _begin_step(self) -> bool:
        if not self._step_lock.acquire(blocking=False):
            self._ignored_steps += 1
            return False
        timeline = self._timeline
        if (timeline is not None or self._find is not None) and is_recording_graph():
            self._step_lock.release()
            self.stay_out(_GRAPH)
            return False
        self._open = True
        self._within = self._outside_in_a_row = 0
        if self._failures:
            self.recover(_OUTSIDE)
            self.recover_step()
        self.client.step_begin(self._iteration)
        # After it: a plan that comes now is followed from the next step on.
        self.quiet = not self.client.listens
        if timeline is not None and not self.quiet:
            try:
                timeline.step_begin(self._iteration)
            except Exception as error:
                self._lose_timeline(error)
        self._see_if_plain()
        return True

    def step_end(self, tokens: int = 0) -> None:
        """End the iteration that `step_begin` began."""
        if not self._open:
            return
        timeline = self._timeline
        if self.quiet and self.client.listens:
            self.client.step_abandon()  # It began before there was a plan, and told nothing.
            self._close_step()
            return
        self.client.step_end(tokens)
        if timeline is not None and not self.quiet:
            try:
                timeline.step_end()
                for done in timeline.take():
                    self.client.step_times(*done)
            except Exception as error:
                self._lose_timeline(error)
        self._close_step()

    def step_abandon(self) -> None:
        """End the iteration that `step_begin` began, of which nothing is to be used."""
        if not self._open:
            return
        self._abandoned += 1
        try:
            self.client.step_abandon()
            if self._timeline is not None:
                try:
                    self._timeline.step_abandon()
                except Exception as error:
                    self._lose_timeline(error)
        finally:
            self._close_step()

    def begin(
        self,
        kind: object,
        microbatch: int = -1,
        stage: int | None = None,
        work: float | None = None,
    ) -> None:
        """Say that a computation begins.

        Parameters
        ----------
        kind
            "forward", "backward", "backward_input", "backward_weight", "recompute", or F, B, I,
            W, R.
        microbatch, stage, work
            As for `forward`.
        """
        if stage is None:
            stage = self._only_stage
        if self.teller.plain and work is None:
            self.client.instruction_begin(kind, stage, microbatch)
            return
        if self._skipping or self.quiet:
            return
        if not self._open:
            self._outside += 1
            self._outside_in_a_row += 1
            if self._outside_in_a_row == _MANY_OUTSIDE:
                self.fail(
                    f"{_MANY_OUTSIDE} computations ran outside of the step that Perseus knows: "
                    "attach the schedule that runs now, or put evaluation into job.skip()",
                    about=_OUTSIDE,
                )
            return
        if is_recording_graph():  # No event is allowed in it.
            self.stay_out(_GRAPH)
            return
        if work is not None:
            self.client.instruction_work(work)
        self.client.instruction_begin(kind, stage, microbatch)
        if self._find is not None:
            self._find_timeline()
        timeline = self._timeline
        if timeline is not None:
            try:
                timeline.begin()
            except Exception as error:
                self._lose_timeline(error)

    def end(self, kind: object, microbatch: int = -1, stage: int | None = None) -> None:
        """Say that the computation ended."""
        if stage is None:
            stage = self._only_stage
        if self.teller.plain:
            self.client.instruction_end(kind, stage, microbatch)
            return
        if self._skipping or self.quiet or not self._open:
            return
        timeline = self._timeline
        if timeline is not None:
            try:
                timeline.end()
            except Exception as error:
                self._lose_timeline(error)
        self.client.instruction_end(kind, stage, microbatch)

    def stay_out(self, why: str) -> None:
        """Do nothing any more, and give the clock back: what is computed cannot be seen."""
        self.fail(why, about="out")
        self.skip_begin()
        if self._open:
            self.step_abandon()
        self.quiet = True
        self.client.close()

    def wait_for_complaint(self, seconds: float) -> None:
        """Pass on the client's first complaint, for which it waits so long at most."""
        deadline = time.monotonic() + seconds
        while not self.client.last_error and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        self._pass_on_news()

    def _close_step(self) -> None:
        self._open = self._outer = self.quiet = self.teller.plain = False
        self._iteration += 1
        self._step_lock.release()
        self._pass_on_news()

    def _pass_on_news(self) -> None:
        """Say what the client's threads complain of: who trains reads no `report()`."""
        problems = self.client.problems
        if problems != self._seen_problems:
            self._seen_problems = problems
            self.complain(self.client.last_error)
            if self._greeting:
                self._greet()

    def _greet(self) -> None:
        """Say that all went well, once a job: on its first rank, when the server knows it."""
        state, job_id = self.client.state, self.client.job_id
        if state in (State.CONNECTING, State.CLOSED) or not job_id or self._speaker is None:
            return
        if state == State.RELEASED and self.client.last_error:
            return  # All is not well: it has said so, and may recover.
        name = f" ({self._name})" if self._name else ""
        text = f"attached: job {job_id}{name} at {self._greeting}, {state.name.lower()}"
        self._greeting = ""
        self._speaker.inform(text)

    def _see_if_plain(self) -> None:
        self.teller.plain = (
            self._open
            and not self._skipping
            and not self.quiet
            and self._timeline is None
            and self._find is None
        )

    def _find_timeline(self) -> None:
        how, self._find = self._find, None
        try:
            # It says nothing of this step, which began without it.
            self._timeline = find_timeline(how or "host", self._clock)
        except Exception as error:
            self.fail(f"no timeline {how!r}, the host's clock is used", error, about="timeline")
        self._see_if_plain()

    def _lose_timeline(self, error: BaseException) -> None:
        self._timeline = None
        self._see_if_plain()
        said = "the device's timeline failed, the host's clock is used from here on"
        self.fail(said, error, about="timeline")


class _Client(Client):
    """A client whose job says why it could not be opened."""

    def _say_failure(self) -> None:
        pass
