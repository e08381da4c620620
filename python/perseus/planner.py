# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: from a profile to the frontier of time and energy, and to plans on it.

>>> import perseus
>>> plan = perseus.plan("profile.csv", schedule="1f1b", microbatches=96, blocking_power=83.64)
>>> plan.saving_percent, plan.clocks(stage=0)[:3]
>>> slower = plan.at("1.05x")
>>> open("plan.json", "w").write(slower.json())

All of it is `libperseus_planner` through ctypes: the same bytes as the command line's, and no other
package is needed. `docs/reference/python.md` describes it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from typing import TYPE_CHECKING, Any

from perseus import planner_library as abi
from perseus import profile_table, program
from perseus.frontier import Frontier
from perseus.made_plan import Computation, DefaultClocks, Expected, Plan
from perseus.note import ImplausibleWarning, Note, notes_of, warn_of
from perseus.planner_error import PlannerError
from perseus.planner_input import as_bytes, factors, schedule_into, settings_json
from perseus.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from perseus.planner_input import Progress, Setting
    from perseus.settings import JobSettings, PlanSettings

__all__ = [
    "Computation",
    "DefaultClocks",
    "Expected",
    "Frontier",
    "ImplausibleWarning",
    "Note",
    "Plan",
    "Planner",
    "PlannerError",
    "plan",
]


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

    Attributes
    ----------
    notes
        What is odd or implausible in profile and job. Of what is implausible (a wrong unit, most
        likely) Python warns, too (`ImplausibleWarning`).

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
        _stacklevel: int = 2,
        **settings: Unpack[JobSettings],
    ) -> None:
        library = abi.load()
        given: dict[str, Setting] = {**settings}  # type: ignore[dict-item]
        source = abi.Input()
        library.perseus_planner_input_init(ctypes.byref(source), ctypes.sizeof(source))
        if isinstance(profile, (str, os.PathLike)) and profile_table.is_path(profile):
            source.path = as_bytes(profile_table.path_text(profile))
        elif profile is not None:
            if not isinstance(profile, str):
                profile = profile_table.profile_csv(profile)
            source.profile_csv = encoded = as_bytes(profile)
            source.profile_csv_size = abi.size_of(encoded)
            source.profile_name = as_bytes(name)
        schedule_into(source, schedule, given)
        given.update(microbatches=microbatches, blocking_power=blocking_power)
        source.settings_json = encoded = settings_json(given)
        source.settings_json_size = abi.size_of(encoded)

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
        # Its arguments, to make it again: a table is a text by now.
        self._profile = profile
        order = source.schedule_csv
        self._schedule = order.decode() if order else given.pop("schedule", None)
        self._name = name
        self._settings = given
        self.notes = notes_of("planner", handle)
        warn_of(self.notes, _stacklevel)

    def __repr__(self) -> str:
        """Say what it plans for."""
        return f"<perseus.Planner of {self.profile!r}: {self.frontier!r}>"

    def _repr_html_(self) -> str:
        """Return its frontier as a table."""
        return self.frontier._repr_html_()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made of: a copy reads its path and computes the frontier again."""
        return _again, (self._profile, self._schedule, self._name, self._settings)

    @functools.cached_property
    def profile(self) -> Profile:
        """What each computation costs at each clock, as it was read."""
        library = abi.load()
        text = ctypes.c_void_p()
        message = ctypes.c_void_p()
        status = library.perseus_planner_profile_csv(
            self._handle, ctypes.byref(text), ctypes.byref(message)
        )
        abi.check(status, abi.take_text(library, message))
        name = self._name
        if isinstance(self._profile, (str, os.PathLike)) and profile_table.is_path(self._profile):
            name = os.path.basename(self._profile)
        return Profile(abi.take_text(library, text), name)

    def emulate(self, *, plan: Plan | None = None, **options: Setting) -> dict[str, Any]:
        """Simulate the whole job: `perseus.emulate` explains the options."""
        options = {**self._settings, **options}
        return program.emulate(self._profile, self._schedule, plan=plan, **options)  # type: ignore[arg-type]

    @functools.cached_property
    def frontier(self) -> Frontier:
        """The exact trade-off of time and energy."""
        library = abi.load()
        struct = abi.sized(abi.FrontierStruct)
        abi.check(library.perseus_planner_frontier(self._handle, ctypes.byref(struct), None))
        csv = ctypes.c_void_p()
        abi.check(library.perseus_planner_frontier_csv(self._handle, ctypes.byref(csv), None))
        return Frontier(struct, abi.take_text(library, csv))

    def plan(
        self,
        at: str | None = None,
        *,
        work: Sequence[float] | None = None,
        others: Sequence[Sequence[float]] = (),
        progress: Progress = None,
        **settings: Unpack[PlanSettings],
    ) -> Plan:
        """Return the plan that `perseus plan` makes of this job.

        Parameters
        ----------
        at
            "1.05x", "5.3s" (seconds), "min-energy", "fastest", "tstar"; None: as the job says, or
            without slowdown.
        work
            Of one iteration whose microbatches differ: how many times as long as in the profile
            each lasts. It gets a frontier and a quick plan of its own
            (docs/explanation/planning.md); the same lengths give the same plan, on every rank.
        others
            With `work`: the same of the other data-parallel pipelines. An iteration lasts as long
            as that of the slowest of all, each at the target's time, so the others need not hurry.
        progress
            Called now and then with the share of the search that is done; False gives up.
        settings
            What `perseus.settings.PlanSettings` names, as a job file has it; None: as the job says.
        """
        library = abi.load()
        text = settings_json({"at": at, **settings})
        watched = abi.Watched(progress)
        handle = ctypes.c_void_p()
        message = ctypes.c_void_p()
        rest = (
            text,
            abi.size_of(text),
            watched.function,
            None,
            ctypes.byref(handle),
            ctypes.byref(message),
        )
        if work is None:
            if len(others) > 0:
                raise PlannerError("the work of other pipelines is given, but not this one's")
            status = library.perseus_planner_plan(self._handle, *rest)
        else:
            pipelines = [factors(each) for each in (work, *others)]
            for k, each in enumerate(pipelines[1:]):
                if len(each) != len(pipelines[0]):
                    raise PlannerError(
                        f"others[{k}] has length {len(each)}, but work has length "
                        f"{len(pipelines[0])}; give each pipeline one factor for each microbatch"
                    )
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
    **settings: Unpack[JobSettings],
) -> Plan:
    """Plan a job: the clock of each computation. `Planner` explains the arguments.

    The plan is where `at` says (a text: "1.05x", "min-energy", ...), or without slowdown;
    `plan.at("1.05x")` then gives others at little cost, `plan.frontier` all there are.
    """
    return Planner(
        profile,
        schedule,
        microbatches,
        blocking_power,
        name=name,
        progress=_part(progress, 0.0),
        _stacklevel=3,
        **settings,
    ).plan(progress=_part(progress, 0.5))


def _again(profile: object, schedule: object, name: str, settings: dict[str, Any]) -> Planner:
    """Return a planner like the one that was pickled."""
    return Planner(profile, schedule, name=name, **settings)


def _part(progress: Progress, begin: float) -> Progress:
    """Return the callback for the half of the work that begins there."""
    if progress is None:
        return None
    return lambda share: progress(begin + share / 2)
