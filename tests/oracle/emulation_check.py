# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs perseus emulate and the simulator on one job and compares everything that both state."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binary import RefusedError, perseus, read_frontier
from .emulation import Outcome, Simulator, Split
from .emulation_scenario import Scenario
from .tables import knob_is_number

if TYPE_CHECKING:
    from .binary import Curve
    from .dag import Pipeline
    from .random_emulations import RandomEmulation
    from .tables import Option

TOLERANCE = 1e-9
CONSERVATION = 1e-12  # Of energies against each other.


class InfeasibleError(Exception):
    """There is no plan for what is asked."""


def _chosen(plan: dict[str, Any], pipeline: Pipeline) -> list[Option]:
    """Look up the options of a plan's knobs in the oracle's own tables."""
    chosen = [options[0] for options in pipeline.options]
    for entry, order in zip(plan["ranks"], pipeline.dag.rank_order, strict=True):
        computations = iter(entry["computations"])
        for i in order:
            for action in pipeline.dag.steps[i]:
                computation = next(computations)
                have = tuple(computation[key] for key in ("type", "stage", "microbatch"))
                if have != (action.type, action.stage, action.microbatch):
                    raise RuntimeError(f"the plan has {have} in place of {action}")
                (chosen[i],) = (
                    option
                    for option in pipeline.options[i]
                    if option.knob == str(computation["knob"])
                    or (
                        knob_is_number(option.knob)
                        and float(option.knob) == float(computation["knob"])
                    )
                )
    return chosen


class Plans:
    """The plans of a job, made by perseus plan, each once."""

    def __init__(self, made: RandomEmulation) -> None:
        self._made = made
        self._plans: dict[str, list[Option]] = {}
        self.requested = 0.0
        self.curve: Curve
        self.base = self._make(made.at)
        if made.policy == "max-clocks":
            self.base = made.pipeline.baseline()

    def _make(self, at: str) -> list[Option]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "out"
            try:
                perseus(["plan", *self._made.arguments, "--at", at, "-o", folder])
            except RefusedError as error:
                raise InfeasibleError(str(error)) from error
            plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
            self.curve = read_frontier(folder / "frontier.csv")
        if at == self._made.at:
            self.requested = plan["requested_time_s"]
        return _chosen(plan, self._made.pipeline)

    def at(self, seconds: float) -> list[Option]:
        """Return the plan for a time; the base plan for the job's target."""
        if seconds == self.requested or self._made.policy == "max-clocks":
            return self.base
        text = f"{seconds!r}s"
        if text not in self._plans:
            try:
                self._plans[text] = self._make(text)
            except InfeasibleError:
                self._plans[text] = self.base
        return self._plans[text]


def _close(have: float, want: float, scale: float = 0.0, tolerance: float = TOLERANCE) -> bool:
    return math.isfinite(have) and abs(have - want) <= tolerance * max(abs(want), scale)


_FOUR = (
    ("useful_j", "useful"),
    ("intrinsic_bloat_j", "intrinsic"),
    ("extrinsic_bloat_j", "extrinsic"),
    ("blocking_j", "blocking"),
)


def _split_errors(where: str, have: dict[str, Any], want: Split, scale: float) -> list[str]:
    return [
        f"{where}: {name} is {have[name]!r}, simulated {getattr(want, attribute)!r}"
        for name, attribute in _FOUR
        if not _close(have[name], getattr(want, attribute), scale)
    ]


def _iteration_errors(result: dict[str, Any], outcome: Outcome, scale: float) -> list[str]:
    """Check the iterations; ``scale`` is a power below which joules a second are rounding."""
    errors: list[str] = []
    if len(result["iterations"]) != len(outcome.iterations):
        return [f"{len(result['iterations'])} iterations, not {len(outcome.iterations)}"]
    for n, (have, want) in enumerate(zip(result["iterations"], outcome.iterations, strict=True)):
        where = f"iteration {n}"
        for name, value in (
            ("start_s", want.start),
            ("time_s", want.time),
            ("target_s", want.target),
        ):
            if not _close(have[name], value):
                errors.append(f"{where}: {name} is {have[name]!r}, simulated {value!r}")
        if have["straggling_pipelines"] != want.straggling:
            errors.append(
                f"{where}: {have['straggling_pipelines']} straggle, simulated {want.straggling}"
            )
        errors += _split_errors(where, have, want.energy, scale * want.time)
        total = math.fsum(have[name] for name, _ in _FOUR)
        # The split is made of differences of sums of this size.
        size = max(want.drawn, math.fsum(abs(have[name]) for name, _ in _FOUR), scale * want.time)
        if abs(total - want.drawn) > CONSERVATION * size:
            errors.append(f"{where}: {want.drawn!r} J are drawn, the split sums to {total!r}")
    return errors


def _total_errors(result: dict[str, Any], outcome: Outcome, gpus: int, scale: float) -> list[str]:
    errors = _split_errors("totals", result, outcome.energy, scale * outcome.time)
    average = outcome.drawn / outcome.time
    for name, value, least in (
        ("time_s", outcome.time, 0.0),
        ("energy_j", outcome.drawn, scale * outcome.time),
        ("average_w", average, scale),
        ("gpu_average_w", average / gpus, scale / gpus),
        ("gpu_peak_w", outcome.gpu_peak, 0.0),
    ):
        if not _close(result[name], value, least):
            errors.append(f"{name} is {result[name]!r}, simulated {value!r}")
    for name, count in (
        ("gpus", gpus),
        ("clock_calls", outcome.clock_calls),
        ("late_computations", outcome.late),
        ("stragglers", outcome.stragglers),
        ("replans", outcome.replans),
    ):
        if result[name] != count:
            errors.append(f"{name} is {result[name]!r}, simulated {count!r}")
    sums = [math.fsum(i[name] for i in result["iterations"]) for name, _ in _FOUR]
    size = max(math.fsum(map(abs, sums)), scale * outcome.time)
    for (name, _), total in zip(_FOUR, sums, strict=True):
        if not _close(result[name], total, size, CONSERVATION):
            errors.append(f"{name} is {result[name]!r}, its iterations sum to {total!r}")
    total = math.fsum(result[name] for name, _ in _FOUR)
    if not _close(result["energy_j"], total, size, CONSERVATION):
        errors.append(f"energy_j is {result['energy_j']!r}, its four parts sum to {total!r}")
    return errors


def _power_errors(result: dict[str, Any], outcome: Outcome, scale: float) -> list[str]:
    interval = result["power_interval_s"]
    have = result["power_w"]
    # By its own time, since another last digit may give another value.
    if len(have) != math.ceil(result["time_s"] / interval * (1 - 1e-12)):
        return [f"the power trace has {len(have)} values of {interval!r} s"]
    want = outcome.power(interval, len(have))
    # The rounding of the job's energy may be in any one interval.
    least = max(scale, CONSERVATION / TOLERANCE * outcome.drawn / interval)
    errors = [
        f"power of interval {k} is {h!r} W, simulated {w!r}"
        for k, (h, w) in enumerate(zip(have, want, strict=True))
        if not _close(h, w, least)
    ]
    drawn = interval * math.fsum(have)
    if not _close(drawn, outcome.drawn, scale * outcome.time):
        errors.append(f"the power trace sums to {drawn!r} J, {outcome.drawn!r} are drawn")
    peak = max(*want, outcome.drawn / outcome.time)
    if not _close(result["peak_w"], peak, scale):
        errors.append(f"peak_w is {result['peak_w']!r}, simulated {peak!r}")
    return errors


def emulate(made: RandomEmulation) -> dict[str, Any]:
    """Run perseus emulate."""
    text = perseus(["emulate", *made.arguments, "--at", made.at, *made.flags, "--json"])
    result: dict[str, Any] = json.loads(text)
    return result


def simulate(made: RandomEmulation, plans: Plans, stated: list[float]) -> Outcome:
    """Run the simulator.

    Parameters
    ----------
    made
        The job.
    plans
        Its plans.
    stated
        Times that plans were made for by perseus emulate: one that agrees with the simulator's
        but for rounding gives the plan, since another last digit may give another plan.
    """

    def plan_for(seconds: float) -> list[Option]:
        near = [t for t in stated if abs(t - seconds) <= 1e-12 * seconds]
        return plans.at(near[0] if near and seconds != plans.requested else seconds)

    scenario = Scenario(**{**vars(made.scenario), "target": plans.requested})
    return Simulator(made.pipeline, made.gpus, scenario, plan_for, plans.curve).run()


def compare(made: RandomEmulation, result: dict[str, Any], outcome: Outcome) -> list[str]:
    """Say in what perseus emulate and the simulator differ."""
    pipelines = made.scenario.pipelines
    gpus = pipelines * made.gpus * len(made.pipeline.dag.rank_order)
    options = [max(o.energy / o.time for o in own) for own in made.pipeline.options]
    # Watts: energies are differences of what is drawn in computing and in waiting.
    scale = pipelines * (sum(made.pipeline.blocking) + max(options))
    errors = []
    if result["pipelines"] != pipelines:
        errors.append(f"{result['pipelines']} pipelines, not {pipelines}")
    interval = made.interval or result["target_s"] / 100
    if not _close(result["power_interval_s"], interval, tolerance=CONSERVATION):
        errors.append(f"power_interval_s is {result['power_interval_s']!r}, not {interval!r}")
    errors += _iteration_errors(result, outcome, scale)
    errors += _total_errors(result, outcome, gpus, scale)
    return errors + _power_errors(result, outcome, scale)


def check_emulation(made: RandomEmulation) -> list[str]:
    """Emulate a job, simulate it, and say everything that differs.

    Raises
    ------
    InfeasibleError
        There is no plan for the job's target, and perseus emulate says so too.
    """
    try:
        plans = Plans(made)
    except InfeasibleError as error:
        try:
            emulate(made)
        except RefusedError:
            raise error from None
        return [f"emulate has a plan where plan has none: {error}"]
    result = emulate(made)
    errors = []
    if not _close(result["target_s"], plans.requested, tolerance=CONSERVATION):
        errors.append(f"target_s is {result['target_s']!r}, plan says {plans.requested!r}")
    stated = [i["target_s"] for i in result["iterations"]]
    return errors + compare(made, result, simulate(made, plans, stated))
