# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A plan that was made: what each computation does, and what it all comes to."""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union

from perseus import planner_library as abi
from perseus import program
from perseus.display import axes_of, optional, table
from perseus.note import are_believable, notes_of
from perseus.planner_error import PlannerError
from perseus.planner_input import as_bytes, number

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from perseus.frontier import Frontier
    from perseus.planner_input import Progress, Setting
    from perseus.settings import PlanSettings

_TYPES = ("forward", "backward", "backward_input", "backward_weight", "recompute")
_UNITS_IN_NAMES = ("seconds", "joules", "watts")
Knob = Union[int, float, str]


class Computation(NamedTuple):
    """What one computation of an iteration does.

    Attributes
    ----------
    rank
        Of the pipeline: GPUs that share its work count as one.
    instruction
        "forward", "backward", "backward_input", "backward_weight" or "recompute".
    stage
        Of the model, virtual stages counted.
    knob
        MHz as a number, or the profile's label.
    start_seconds
        From the start of the iteration.
    energy_joules
        Of all GPUs of the rank.
    fused
        Instruction, stage and microbatch of the backward that runs in one with this.
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


class DefaultClocks(NamedTuple):
    """An iteration at default clocks, as the job runs without Perseus, and a plan against it.

    Attributes
    ----------
    iteration_time_seconds, energy_joules
        Of one pipeline in one iteration at default clocks, waiting included.
    slowdown_percent, saving_percent
        Of the plan; below 0 it is faster, or uses more.
    """

    iteration_time_seconds: float
    energy_joules: float
    slowdown_percent: float
    saving_percent: float


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


class Origin(Protocol):
    """What made a plan and can make others: a `perseus.Planner`."""

    @property
    def frontier(self) -> Frontier:
        """The exact trade-off of time and energy."""

    @property
    def baseline(self) -> Plan:
        """Every computation at its highest clock."""

    def plan(
        self,
        at: str | None = None,
        *,
        work: Sequence[float] | None = None,
        others: Sequence[Sequence[float]] = (),
        progress: Progress = None,
        **settings: Unpack[PlanSettings],
    ) -> Plan:
        """Return a plan of the job."""

    def emulate(self, *, plan: Plan | None = None, **options: Setting) -> dict[str, Any]:
        """Simulate the whole job."""


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
    saving_interval
        In percent, where the saving is with a probability of 95 % as far as the errors of the
        measured profile go; None: the profile states none.
    default_clocks
        The plan against an iteration at default clocks, as the job runs without Perseus; None: the
        profile does not say what all computations cost then.
    lower_bound_joules, gap_percent
        No plan that takes this time can use less; by how much this one is above.
    shared_knob_bound_joules, proven_best
        The same bound where computations must share knobs (else None), and whether no plan
        within the constraints is better.
    notes
        What is odd or implausible in what it was planned from.
    expected
        What it comes to under the conditions that it was made for; None without conditions, which
        the other figures do not know.
    """

    requested_time_seconds: float
    iteration_time_seconds: float
    energy_joules: float
    average_power_watts: float
    lower_bound_joules: float
    gap_percent: float
    saving_percent: float
    knob_changes: int
    distinct_knobs: int

    def __init__(
        self,
        handle: ctypes.c_void_p,
        planner: Origin | None,
        work: Sequence[float] | None = None,
        others: Sequence[Sequence[float]] = (),
    ) -> None:
        library = abi.load()
        self._planner = planner
        self._work = work
        self._others = others
        self._handle = handle
        self._finalizer = weakref.finalize(self, library.perseus_plan_free, handle)
        self.notes = notes_of("plan", handle)
        groups = _figures(handle)
        vars(self).update(groups[""])
        shared = groups["shared_clocks"]
        interval = groups["saving_interval"]
        self.saving_interval: tuple[float, float] | None = None
        if interval:
            self.saving_interval = (interval["least_percent"], interval["most_percent"])
        default_clocks = groups["default_clocks"]
        self.default_clocks: DefaultClocks | None = None
        if default_clocks:
            self.default_clocks = DefaultClocks(
                **{name: default_clocks[name] for name in DefaultClocks._fields}
            )
        self.shared_knob_bound_joules: float | None = shared.get("lower_bound_joules")
        self.proven_best = bool(shared.get("proven", False))
        expected = groups["expected"]
        self.expected: Expected | None = None
        if expected:
            self.expected = Expected(**{name: expected[name] for name in Expected._fields})

    def __repr__(self) -> str:
        """Say what it takes and saves, if that can be believed."""
        if not are_believable(self.notes):
            return "<perseus.Plan: its figures cannot be believed, see its notes>"
        return (
            f"<perseus.Plan: {self.iteration_time_seconds:.6g} s, {self.energy_joules:.6g} J, "
            f"{self.saving_percent:.2f} % saved>"
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a `plan.json`. It says all that it said, but knows no planner.

        Raises
        ------
        PlannerError
            The file cannot be read, or holds no plan.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlannerError(f"{path}: {error}", "io") from None
        return _read(text, str(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `plan.json`: for `load`, `perseus explain`, `perseus emulate --plan`, ..."""
        Path(path).write_text(self.json(), encoding="utf-8")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text of `plan.json`: a copy knows no planner."""
        return _read, (self.json(), "plan.json")

    def _repr_html_(self) -> str:
        """Return what it comes to as a table."""
        rows = [
            ("iteration time, s", self.iteration_time_seconds),
            ("energy, J", self.energy_joules),
            ("average power, W", self.average_power_watts),
            ("saving, %", self.saving_percent),
            ("gap, %", self.gap_percent),
        ]
        return table("Energy plan", ("figure", "value"), rows)

    def plot(self, axes: Any = None) -> Any:
        """Draw what each rank does when, a colour a clock, on axes of Matplotlib; return these."""
        axes = axes_of(axes)
        knobs = dict.fromkeys(c.knob for c in sorted(self.computations, key=_by_knob))
        colours = optional("matplotlib.pyplot", "plot()").get_cmap("viridis", len(knobs))
        for k, knob in enumerate(knobs):
            those = [c for c in self.computations if c.knob == knob]
            axes.barh(
                [c.rank for c in those],
                [c.duration_seconds for c in those],
                left=[c.start_seconds for c in those],
                color=colours(k),
                edgecolor="white",
                linewidth=0.3,
                label=str(knob),
            )
        axes.invert_yaxis()
        axes.set(xlabel="time, s", ylabel="rank", title=repr(self).strip("<>"))
        axes.legend(title="clock", fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
        return axes

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write `report.html`: one file, for any browser.

        Raises
        ------
        PlannerError
            The plan was read from a file.
        """
        Path(path).write_text(self._text("perseus_plan_report"), encoding="utf-8")

    def explain(self) -> dict[str, Any]:
        """Return where it saves energy, and for whom others wait: what `perseus explain` says."""
        return program.explain(self)

    def emulate(self, **options: Setting) -> dict[str, Any]:
        """Simulate the whole job with this plan: `perseus.emulate` explains the options."""
        return self.planner.emulate(plan=self, **options)

    @property
    def planner(self) -> Origin:
        """What made it.

        Raises
        ------
        PlannerError
            The plan was read from a file or a pickle.
        """
        if self._planner is None:
            raise PlannerError("this plan was read, and knows no planner; make one for other plans")
        return self._planner

    @property
    def frontier(self) -> Frontier:
        """The frontier that it is on, or a little above.

        Of a plan for other lengths (`work`): that of the planner's own.
        """
        return self.planner.frontier

    @functools.cached_property
    def computations(self) -> tuple[Computation, ...]:
        """All computations of an iteration: rank by rank, in the order in which they run."""
        columns = abi.sized(abi.ColumnsStruct)
        abi.check(abi.load().perseus_plan_get_columns(self._handle, ctypes.byref(columns), None))
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
        target: str | None = None,
        *,
        seconds: float | None = None,
        progress: Progress = None,
        **settings: Unpack[PlanSettings],
    ) -> Plan:
        """Return another plan on the same frontier, which is not computed again.

        Parameters
        ----------
        target
            As in a job file: "1.05x" (times the time without slowdown), "5.3s" (seconds),
            "min-energy", "fastest", "tstar".
        seconds
            Instead: the iteration time.
        progress
            Called now and then with the share of the search that is done; False gives up.
        settings
            Constraints, effort and conditions, as `Planner.plan` takes them.
        """
        if (target is None) == (seconds is None):
            raise PlannerError("give a target, or seconds")
        if seconds is not None:
            target = number(seconds, "seconds") + "s"
        return self.planner.plan(
            target, work=self._work, others=self._others, progress=progress, **settings
        )

    def json(self) -> str:
        """Return the text of `plan.json` (docs/reference/files.md)."""
        return self._text("perseus_plan_json")

    def zeus(self) -> str:
        """Return the text of `zeus_plan.py`, for Zeus' client (docs/how-to/hooks.md)."""
        return self._text("perseus_plan_zeus")

    def to_frame(self) -> Any:
        """Return the computations as a pandas DataFrame.

        Its index is (rank, instruction, stage, microbatch).
        """
        frame = optional("pandas", "to_frame()").DataFrame(
            [computation[:8] for computation in self.computations],
            columns=list(Computation._fields[:8]),
        )
        return frame.set_index(list(Computation._fields[:4]))

    def _text(self, function: str) -> str:
        library = abi.load()
        text = ctypes.c_void_p()
        message = ctypes.c_void_p()
        call = getattr(library, function)
        status = call(self._handle, ctypes.byref(text), ctypes.byref(message))
        abi.check(status, abi.take_text(library, message))
        return abi.take_text(library, text)


def _by_knob(computation: Computation) -> tuple[bool, Knob]:
    return isinstance(computation.knob, str), computation.knob


def _read(text: str, name: str) -> Plan:
    """Return the plan of a text of `plan.json`."""
    library = abi.load()
    handle = ctypes.c_void_p()
    message = ctypes.c_void_p()
    encoded = as_bytes(text)
    status = library.perseus_plan_read(
        encoded, len(encoded), as_bytes(name), ctypes.byref(handle), ctypes.byref(message)
    )
    abi.check(status, abi.take_text(library, message))
    return Plan(handle, None)


def _figures(handle: ctypes.c_void_p) -> dict[str, dict[str, Any]]:
    """Return a plan's figures by group and by name, with "_seconds" for the "_s" of plan.json."""
    library = abi.load()
    groups: dict[str, dict[str, Any]] = {}
    for index in range(library.perseus_plan_figure_count(handle)):
        figure = abi.sized(abi.FigureStruct)
        abi.check(library.perseus_plan_get_figure(handle, index, ctypes.byref(figure), None))
        name, unit = figure.name.decode(), figure.unit.decode()
        if unit in _UNITS_IN_NAMES:
            name = name[:-1] + unit
        group = groups.setdefault(figure.group.decode(), {})
        if figure.known:
            group[name] = int(figure.value) if figure.whole else figure.value
    return groups


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
