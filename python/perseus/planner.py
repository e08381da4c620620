# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: from a profile to the frontier of time and energy, and to plans on it.

>>> import perseus
>>> plan = perseus.plan("profile.csv", schedule="1f1b", microbatches=96, blocking_power=83.64)
>>> plan.saving_percent, plan.clocks(stage=0)[:3]
>>> slower = plan.at(1.05)
>>> open("plan.json", "w").write(slower.json())

All of it is `libperseus_planner` through ctypes: the same bytes as the command line's, and no other
package is needed. `docs/python.md` describes it.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import importlib
import json
import math
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from perseus import planner_library as abi
from perseus import profile_table
from perseus.planner_library import PlannerError

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Optional[Callable[[float], object]]
    # Of a job: docs/files.md has the keys.
    Setting = Union[
        str, int, float, bool, Sequence[float], Mapping[str, object], "os.PathLike[str]", None
    ]

__all__ = ["Computation", "Expected", "Frontier", "Plan", "Planner", "PlannerError", "plan"]

_TYPES = ("forward", "backward", "backward_input", "backward_weight")
Knob = Union[int, float, str]


class Computation(NamedTuple):
    """What one computation of an iteration does.

    Attributes
    ----------
    rank
        Of the pipeline: GPUs that share its work count as one.
    instruction
        "forward", "backward", "backward_input" or "backward_weight".
    stage
        Of the model, virtual stages counted.
    knob
        MHz as a number, or the profile's label.
    start_seconds
        From the start of the iteration.
    energy_joules
        Of all GPUs of the rank.
    fused
        Instruction, stage and microbatch of the backward that runs in one with this forward.
    """

    rank: int
    instruction: str
    stage: int
    microbatch: int
    knob: Knob
    start_seconds: float
    duration_seconds: float
    energy_joules: float
    fused: tuple[str, int, int] | None = None


class Frontier:
    """The exact lower bound of an iteration's energy at each time, and its named points.

    Attributes
    ----------
    time_seconds, energy_joules, slope_watts
        Corners of a convex curve, times ascending; the slope is the price of a second to the
        right.
    fastest_seconds, economic_seconds, tstar_seconds
        T_min, the time of least energy, and T*, beyond which slower clocks save nothing.
    baseline_time_seconds, baseline_energy_joules
        Every computation at its highest clock.
    certified_error
        Relative; 0 where the frontier is exact.
    fitted
        Whether it is one of an exponential fit, which bounds nothing.
    notes
        Sentences on what is valid and perhaps not what was meant.
    """

    def __init__(self, struct: abi.FrontierStruct, csv: str, notes: Sequence[str] = ()) -> None:
        count = struct.count
        self.time_seconds: tuple[float, ...] = tuple(struct.time_seconds[:count])
        self.energy_joules: tuple[float, ...] = tuple(struct.energy_joules[:count])
        self.slope_watts: tuple[float, ...] = tuple(struct.slope_watts[:count])
        self.fastest_seconds: float = struct.fastest_seconds
        self.economic_seconds: float = struct.economic_seconds
        self.tstar_seconds: float = struct.tstar_seconds
        self.baseline_time_seconds: float = struct.baseline_time_seconds
        self.baseline_energy_joules: float = struct.baseline_energy_joules
        self.total_blocking_power_watts: float = struct.total_blocking_power_watts
        self.certified_error: float = struct.certified_error
        self.fitted = bool(struct.fitted)
        self.notes = tuple(notes)
        self._csv = csv

    def __len__(self) -> int:
        """How many corners there are."""
        return len(self.time_seconds)

    def __repr__(self) -> str:
        """Say where it begins and ends."""
        return (
            f"<perseus.Frontier: {len(self)} points from {self.fastest_seconds:.6g} s to "
            f"{self.tstar_seconds:.6g} s>"
        )

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Corners as (seconds, joules)."""
        return tuple(zip(self.time_seconds, self.energy_joules))

    def energy_at(self, seconds: float) -> float:
        """Return the least energy, in joules, of an iteration that takes so long."""
        times = self.time_seconds
        if not seconds >= times[0]:
            raise PlannerError(
                f"no plan takes {seconds:.6g} s: the fastest takes {times[0]:.6g} s", "infeasible"
            )
        last = len(times) - 1
        k = min(bisect.bisect_right(times, seconds) - 1, last)
        if k == last:
            waiting = self.total_blocking_power_watts * (seconds - times[last])
            return self.energy_joules[last] + waiting
        share = (seconds - times[k]) / (times[k + 1] - times[k])
        return self.energy_joules[k] + share * (self.energy_joules[k + 1] - self.energy_joules[k])

    def csv(self) -> str:
        """Return the text of `frontier.csv` (docs/files.md)."""
        return self._csv

    def to_frame(self) -> Any:
        """Return the corners as a pandas DataFrame."""
        return _pandas().DataFrame(
            {
                "time_seconds": self.time_seconds,
                "energy_joules": self.energy_joules,
                "slope_watts": self.slope_watts,
            }
        )


class Expected(NamedTuple):
    """What a plan comes to under its conditions, by emulation: means over seeds and iterations.

    Attributes
    ----------
    iteration_time_seconds
        Of the job: of its slowest pipeline.
    energy_joules
        Of one pipeline in one iteration, waiting included.
    slowdown_percent, saving_percent
        Against all clocks at maximum under the same conditions.
    clock_calls
        Of one pipeline in one iteration, all ranks together.
    """

    iteration_time_seconds: float
    energy_joules: float
    slowdown_percent: float
    saving_percent: float
    clock_calls: float


class Plan:
    """One option for each computation, and what it comes to. Made by `plan` and `Planner.plan`.

    Attributes
    ----------
    iteration_time_seconds, energy_joules, average_power_watts
        Of one iteration of one pipeline, as replayed from the measured options.
    requested_time_seconds
        What was asked for; the iteration takes no longer.
    saving_percent
        Of the energy, against every computation at its highest clock.
    lower_bound_joules, gap_percent
        No plan that takes this time can use less; by how much this one is above.
    shared_knob_bound_joules, proven_best
        The same bound where computations must share knobs (else None), and whether no plan
        within the constraints is better.
    expected
        What it comes to under the conditions that it was made for; None without conditions, which
        the other figures do not know.
    """

    def __init__(
        self,
        handle: ctypes.c_void_p,
        planner: Planner,
        work: Sequence[float] | None = None,
        others: Sequence[Sequence[float]] = (),
    ) -> None:
        library = abi.load()
        self._planner = planner
        self._work = work
        self._others = others
        self._handle = handle
        self._finalizer = weakref.finalize(self, library.perseus_plan_free, handle)
        figures = abi.sized(abi.FiguresStruct)
        abi.check(library.perseus_plan_get_figures(handle, ctypes.byref(figures)))
        self.requested_time_seconds: float = figures.requested_time_seconds
        self.iteration_time_seconds: float = figures.iteration_time_seconds
        self.energy_joules: float = figures.energy_joules
        self.lower_bound_joules: float = figures.lower_bound_joules
        self.gap_percent: float = figures.gap_percent
        self.saving_percent: float = figures.saving_percent
        self.average_power_watts: float = figures.average_power_watts
        self.distinct_knobs: int = figures.distinct_knobs
        self.knob_changes: int = figures.knob_changes
        shared = bool(figures.has_shared_knob_bound)
        self.shared_knob_bound_joules: float | None = (
            figures.shared_knob_bound_joules if shared else None
        )
        self.proven_best = bool(figures.proven_best)
        self.expected: Expected | None = None
        if figures.has_expected:
            self.expected = Expected(
                iteration_time_seconds=figures.expected_iteration_time_seconds,
                energy_joules=figures.expected_energy_joules,
                slowdown_percent=figures.expected_slowdown_percent,
                saving_percent=figures.expected_saving_percent,
                clock_calls=figures.expected_clock_calls,
            )

    def __repr__(self) -> str:
        """Say what it takes and saves."""
        return (
            f"<perseus.Plan: {self.iteration_time_seconds:.6g} s, {self.energy_joules:.6g} J, "
            f"{self.saving_percent:.2f} % saved>"
        )

    @property
    def planner(self) -> Planner:
        """What made it."""
        return self._planner

    @property
    def frontier(self) -> Frontier:
        """The frontier that it is on, or a little above.

        Of a plan for other lengths (`work`): that of the planner's own.
        """
        return self._planner.frontier

    @functools.cached_property
    def computations(self) -> tuple[Computation, ...]:
        """All computations of an iteration: rank by rank, in the order in which they run."""
        columns = abi.sized(abi.ColumnsStruct)
        abi.check(abi.load().perseus_plan_get_columns(self._handle, ctypes.byref(columns)))
        return tuple(_computation(columns, i) for i in range(columns.count))

    def clocks(self, stage: int, instruction: str | None = None) -> tuple[Knob, ...]:
        """Return the knobs of a stage's computations in the order in which they run.

        Parameters
        ----------
        instruction
            Only of those: "forward", "backward", ...
        """
        if instruction is not None and instruction not in _TYPES:
            raise PlannerError(
                f"{instruction!r} is no instruction; expected one of {', '.join(_TYPES)}"
            )
        found = tuple(
            computation.knob
            for computation in self.computations
            if any(
                (instruction is None or kind == instruction) and of == stage
                for kind, of, _ in _parts(computation)
            )
        )
        if not found and all(
            of != stage for computation in self.computations for _, of, _ in _parts(computation)
        ):
            raise PlannerError(f"the plan has no stage {stage}")
        return found

    def at(
        self,
        target: float | str | None = None,
        *,
        seconds: float | None = None,
        progress: Progress = None,
        **settings: Setting,
    ) -> Plan:
        """Return another plan on the same frontier, which is not computed again.

        Parameters
        ----------
        target
            A number is a factor of the time without slowdown (1.05: 5 % slower); a text is a
            target as in a job file: "1.05x", "5.3" (seconds), "economic", "fastest", "tstar".
        seconds
            Instead: the iteration time.
        progress
            Called now and then with the share of the search that is done; False gives up.
        settings
            Constraints: granularity, min_dwell, max_clocks, time_margin, effort, conditions.
        """
        if (target is None) == (seconds is None):
            raise PlannerError("give a target, or seconds")
        if seconds is not None:
            text = _number(seconds, "seconds")
        elif isinstance(target, str):
            text = target
        else:
            text = _number(target, "the factor") + "x"
        return self._planner.plan(
            text, work=self._work, others=self._others, progress=progress, **settings
        )

    def json(self) -> str:
        """Return the text of `plan.json` (docs/files.md)."""
        return self._text("perseus_plan_json")

    def zeus(self) -> str:
        """Return the text of `zeus_plan.py`, for Zeus' client (docs/applying.md)."""
        return self._text("perseus_plan_zeus")

    def to_frame(self) -> Any:
        """Return the computations as a pandas DataFrame."""
        return _pandas().DataFrame(
            [computation[:8] for computation in self.computations],
            columns=list(Computation._fields[:8]),
        )

    def _text(self, function: str) -> str:
        library = abi.load()
        text = ctypes.c_void_p()
        message = ctypes.c_void_p()
        call = getattr(library, function)
        status = call(self._handle, ctypes.byref(text), ctypes.byref(message))
        abi.check(status, abi.take_text(library, message))
        return abi.take_text(library, text)


class Planner:
    """A job and its frontier, computed once; then any number of plans on it.

    Any thread may use it. Planning does not hold the interpreter's lock.

    Parameters
    ----------
    profile
        What each computation costs at each clock: a pandas DataFrame or dict of columns (stage,
        instruction, frequency, time, energy), the text of such a CSV, or its path. A path that
        ends in .toml or .json is a job file, which names its profile.
    schedule
        A name ("1f1b", ...), a path or the text of PyTorch's CSV, or a schedule of
        torch.distributed.pipelining that has a `pipeline_order`.
    microbatches
        Of one iteration. A schedule that is no name knows them.
    blocking_power
        Watts of a GPU that waits: one number, or one per rank.
    name
        Of a profile that is no file, for messages and in plan.json.
    progress
        Called now and then with the share of the frontier that is done; False gives up.
    settings
        Every other key of a job file: at, dp, tp, virtual_stages, granularity, time_margin, ...
        What is given here wins over a job file.

    Raises
    ------
    PlannerError
        With the sentence that `perseus plan` says of the same input.
    LibraryError
        libperseus_planner cannot be loaded.
    """

    def __init__(
        self,
        profile: object,
        schedule: object = None,
        microbatches: int | None = None,
        blocking_power: float | Sequence[float] | None = None,
        *,
        name: str = "profile",
        progress: Progress = None,
        **settings: Setting,
    ) -> None:
        library = abi.load()
        source = abi.Input()
        library.perseus_planner_input_init(ctypes.byref(source), ctypes.sizeof(source))
        if isinstance(profile, (str, os.PathLike)) and profile_table.is_path(profile):
            source.path = _bytes(profile_table.path_text(profile))
        elif profile is not None:
            text = profile if isinstance(profile, str) else profile_table.profile_csv(profile)
            source.profile_csv = encoded = _bytes(text)
            source.profile_csv_size = len(encoded)
            source.profile_name = _bytes(name)
        _schedule_into(source, schedule, settings)
        settings.update(microbatches=microbatches, blocking_power=blocking_power)
        source.settings_json = encoded = _settings(settings)
        source.settings_json_size = len(encoded)

        watched = abi.Watched(progress)
        source.progress = watched.function
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        status = library.perseus_planner_create(
            ctypes.byref(source), ctypes.byref(handle), ctypes.byref(message)
        )
        if handle.value:
            self._finalizer = weakref.finalize(self, library.perseus_planner_free, handle)
        watched.check(library, status, message)
        self._handle = handle

    @functools.cached_property
    def frontier(self) -> Frontier:
        """The exact trade-off of time and energy."""
        library = abi.load()
        struct = abi.sized(abi.FrontierStruct)
        abi.check(library.perseus_planner_frontier(self._handle, ctypes.byref(struct)))
        csv, notes = ctypes.c_void_p(), ctypes.c_void_p()
        abi.check(library.perseus_planner_frontier_csv(self._handle, ctypes.byref(csv)))
        csv_text = abi.take_text(library, csv)
        abi.check(library.perseus_planner_notes(self._handle, ctypes.byref(notes)))
        return Frontier(struct, csv_text, abi.take_text(library, notes).splitlines())

    def plan(
        self,
        at: str | None = None,
        *,
        work: Sequence[float] | None = None,
        others: Sequence[Sequence[float]] = (),
        progress: Progress = None,
        **settings: Setting,
    ) -> Plan:
        """Return the plan that `perseus plan` makes of this job.

        Parameters
        ----------
        at
            "1.05x", "5.3" (seconds), "economic", "fastest", "tstar"; None: as the job says, or
            without slowdown.
        work
            Of one iteration whose microbatches differ: how many times as long as in the profile
            each lasts. It gets a frontier and a quick plan of its own (docs/planning.md); the same
            lengths give the same plan, on every rank.
        others
            With `work`: the same of the other data-parallel pipelines. An iteration lasts as long
            as that of the slowest of all, each at the target's time, so the others need not hurry.
        progress
            Called now and then with the share of the search that is done; False gives up.
        settings
            granularity, min_dwell, max_clocks, time_margin, effort, conditions (a dict): as a job
            file has them; None: as the job says.
        """
        library = abi.load()
        text = _settings({"at": at, **settings})
        watched = abi.Watched(progress)
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        rest = (
            text,
            len(text),
            watched.function,
            None,
            ctypes.byref(handle),
            ctypes.byref(message),
        )
        if work is None:
            if others:
                raise PlannerError("the work of other pipelines is given, but not this one's")
            status = library.perseus_planner_plan(self._handle, *rest)
        else:
            pipelines = [_factors(each) for each in (work, *others)]
            if any(len(each) != len(pipelines[0]) for each in pipelines):
                raise PlannerError("the work of other pipelines has another number of microbatches")
            own = (ctypes.c_double * len(pipelines[0]))(*pipelines[0])
            rows = [factor for each in pipelines[1:] for factor in each]
            waited_for = (ctypes.c_double * len(rows))(*rows)
            status = library.perseus_planner_plan_work_among(
                self._handle, own, len(own), waited_for, len(pipelines) - 1, *rest
            )
        made = Plan(handle, self, work, others) if handle.value else None
        watched.check(library, status, message)
        assert made is not None
        return made

    @functools.cached_property
    def baseline(self) -> Plan:
        """Every computation at its highest clock: what savings are measured against."""
        library = abi.load()
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        status = library.perseus_planner_baseline(
            self._handle, ctypes.byref(handle), ctypes.byref(message)
        )
        abi.check(status, abi.take_text(library, message))
        return Plan(handle, self)


def plan(
    profile: object,
    schedule: object = None,
    microbatches: int | None = None,
    blocking_power: float | Sequence[float] | None = None,
    *,
    name: str = "profile",
    progress: Progress = None,
    **settings: Setting,
) -> Plan:
    """Plan a job: the clock of each computation. `Planner` explains the arguments.

    The plan is where `at` says (a text: "1.05x", "economic", ...), or without slowdown;
    `plan.at(1.05)` then gives others at little cost, `plan.frontier` all there are.
    """
    return Planner(
        profile,
        schedule,
        microbatches,
        blocking_power,
        name=name,
        progress=_part(progress, 0.0),
        **settings,
    ).plan(progress=_part(progress, 0.5))


def _part(progress: Progress, begin: float) -> Progress:
    """Return the callback for the half of the work that begins there."""
    if progress is None:
        return None
    return lambda share: progress(begin + share / 2)


def _bytes(text: str) -> bytes:
    if "\0" in text:
        raise PlannerError("a text with a zero byte in it cannot be read")
    return text.encode("utf-8", "surrogateescape")


def _number(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise PlannerError(f"{what} must be a number, not {value!r}")
    return repr(float(value))


def _factors(work: Sequence[float]) -> list[float]:
    """Return the work of each microbatch as numbers."""
    return [float(_number(_jsonable(factor), "work")) for factor in work]


def _jsonable(value: object) -> object:
    item = getattr(value, "tolist", None)  # NumPy's arrays and scalars.
    if callable(item):
        return item()
    if isinstance(value, os.PathLike):
        return profile_table.path_text(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_jsonable(element) for element in value]
    return value


def _settings(settings: Mapping[str, object]) -> bytes:
    given = {key: _jsonable(value) for key, value in settings.items() if value is not None}
    if not isinstance(given.get("at", ""), str):
        at = given["at"]
        raise PlannerError(f'at={at!r} may mean two things: write "{at}x" or "{at}" (seconds)')
    try:
        return json.dumps(given, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise PlannerError(f"a setting cannot be read: {error}") from None


def _schedule_into(source: abi.Input, schedule: object, settings: dict[str, Setting]) -> None:
    """Put a schedule where it belongs: its text, its file, or its name."""
    if schedule is None:
        return
    text = profile_table.schedule_csv(schedule)
    if text is not None:
        source.schedule_csv = encoded = _bytes(text)
        source.schedule_csv_size = len(encoded)
    elif isinstance(schedule, os.PathLike):
        settings["schedule_file"] = profile_table.path_text(schedule)
    elif isinstance(schedule, str):
        settings["schedule_file" if schedule.endswith(".csv") else "schedule"] = schedule
    else:
        raise PlannerError(
            "the schedule must be a name, a path, the text of PyTorch's CSV, or an object with a "
            f"pipeline_order, not {type(schedule).__name__}"
        )


def _knob(columns: abi.ColumnsStruct, i: int) -> Knob:
    clock: float = columns.clock_mhz[i]
    if math.isnan(clock):
        label: bytes = columns.knob[i]
        return label.decode("utf-8", "replace")
    return int(clock) if clock.is_integer() else clock


def _computation(columns: abi.ColumnsStruct, i: int) -> Computation:
    fused = None
    if columns.fused_type[i] >= 0:
        fused = (
            _TYPES[columns.fused_type[i]],
            columns.fused_stage[i],
            columns.fused_microbatch[i],
        )
    return Computation(
        columns.rank[i],
        _TYPES[columns.type[i]],
        columns.stage[i],
        columns.microbatch[i],
        _knob(columns, i),
        columns.start_seconds[i],
        columns.duration_seconds[i],
        columns.energy_joules[i],
        fused,
    )


def _parts(computation: Computation) -> list[tuple[str, int, int]]:
    """Return a computation, and the one that runs with it, by instruction, stage, microbatch."""
    own = (computation.instruction, computation.stage, computation.microbatch)
    return [own] if computation.fused is None else [own, computation.fused]


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ImportError("to_frame() needs pandas; `pip install pandas`") from None
