# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Recomputes a plan from the profile and the schedule alone.

Nothing that plan.json says about times or energies is believed: the knobs of
its computations are looked up in the profile, the iteration is replayed, and
what the plan reports is compared.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .cases import network_of
from .dag import FORWARD, Action, Fixed, Pipeline, build_dag, cost_pipeline, replay, start_times
from .lp import LinearProgram
from .tables import Option, Profile, knob_is_number

if TYPE_CHECKING:
    from .dag import Schedule

ENERGY_TOLERANCE = 1e-12
BOUND_TOLERANCE = 1e-8


@dataclass
class Job:
    """What the plan was asked for, in the oracle's own words."""

    profile: Profile
    schedule: Schedule
    blocking_power: list[float]
    tensor_parallel: int = 0
    split_ratio: float = 0.5
    fixed: Fixed = field(default_factory=Fixed)
    granularity: str = "computation"
    time_margin: float = 0.0
    margin_sigmas: float = 0.0
    work: dict[Action, float] = field(default_factory=dict)

    def guarded(self, option: Option) -> float:
        """Return the time that a slowed option is planned with."""
        return option.time + max(
            self.time_margin * option.time, self.margin_sigmas * option.time_std
        )

    def pipeline(self) -> Pipeline:
        """Build the DAG with its options."""
        return cost_pipeline(
            self.profile,
            build_dag(self.schedule, self.fixed),
            self.blocking_power,
            self.tensor_parallel,
            self.split_ratio,
            self.work,
        )


def _same_knob(given: object, label: str) -> bool:
    if isinstance(given, (int, float)):
        return knob_is_number(label) and float(label) == float(given)
    return str(given) == label


def chosen_options(plan: dict[str, Any], pipeline: Pipeline) -> tuple[list[Option], list[str]]:
    """Look up the option of every computation of a plan.

    A forward and a backward that run as one are two neighbouring entries, both
    marked as fused, both with the knob and the figures of the pair.

    Returns
    -------
    chosen : list of Option
        Per computation of the DAG; meaningless where there are errors.
    errors : list of str
        Computations that are missing, out of order or at an unknown knob.
    """
    dag = pipeline.dag
    chosen = [options[0] for options in pipeline.options]
    errors: list[str] = []
    if len(plan["ranks"]) != len(dag.rank_order):
        return chosen, [f"{len(plan['ranks'])} ranks, not {len(dag.rank_order)}"]
    for rank, (entry, order) in enumerate(zip(plan["ranks"], dag.rank_order, strict=True)):
        entries = entry["computations"]
        wanted = [(i, action) for i in order for action in dag.steps[i]]
        if len(entries) != len(wanted):
            errors.append(f"rank {rank}: {len(entries)} computations, not {len(wanted)}")
            continue
        knobs: dict[int, object] = {}
        for position, (computation, (i, action)) in enumerate(zip(entries, wanted, strict=True)):
            where = f"rank {rank}, entry {position}"
            have = Action(computation["type"], computation["stage"], computation["microbatch"])
            if have != action:
                errors.append(f"{where}: {have}, not {action}")
                continue
            if bool(computation.get("fused")) != (len(dag.steps[i]) > 1):
                errors.append(f"{where}: wrongly marked as fused or not")
            if knobs.setdefault(i, computation["knob"]) != computation["knob"]:
                errors.append(f"{where}: two knobs in a fused pair")
            found = [o for o in pipeline.options[i] if _same_knob(computation["knob"], o.knob)]
            if len(found) != 1:
                errors.append(f"{where}: knob {computation['knob']!r} is not in the profile")
                continue
            chosen[i] = found[0]
    return chosen, errors


def _detail_errors(plan: dict[str, Any], pipeline: Pipeline, chosen: list[Option]) -> list[str]:
    """Check the start, duration and energy that each computation states, where it does."""
    starts, _ = start_times(pipeline.dag, [o.time for o in chosen])
    errors = []
    for entry, order in zip(plan["ranks"], pipeline.dag.rank_order, strict=True):
        nodes = [i for i in order for _ in pipeline.dag.steps[i]]
        for computation, i in zip(entry["computations"], nodes, strict=True):
            for name, want, tolerance in (
                ("start_s", starts[i], 0.0),
                ("duration_s", chosen[i].time, 0.0),
                ("energy_j", chosen[i].energy, ENERGY_TOLERANCE),
            ):
                if name in computation:
                    where = f"{name} of {pipeline.dag.steps[i]}"
                    errors += _differs(where, computation[name], want, tolerance)
    return errors


def _phases(pipeline: Pipeline) -> list[str]:
    phases = [""] * len(pipeline.options)
    for order in pipeline.dag.rank_order:
        kinds = [[action.type for action in pipeline.dag.steps[i]] for i in order]
        first_backward = next(p for p, k in enumerate(kinds) if any(t != FORWARD for t in k))
        last_forward = max(p for p, k in enumerate(kinds) if FORWARD in k)
        for position, i in enumerate(order):
            if position < first_backward:
                phases[i] = "warm-up"
            elif position > last_forward:
                phases[i] = "cool-down"
            else:
                phases[i] = "steady"
    return phases


def groups_of(pipeline: Pipeline, granularity: str) -> list[object]:
    """Return what group each computation shares its knob with."""
    dag = pipeline.dag
    if granularity == "stage":
        return list(dag.rank)
    if granularity == "computation":
        return list(range(len(dag.steps)))
    kinds = [tuple((action.type, action.stage) for action in step) for step in dag.steps]
    if granularity == "stage-type":
        return list(kinds)
    return list(zip(kinds, _phases(pipeline), strict=True))


def constraint_errors(job: Job, pipeline: Pipeline, chosen: list[Option]) -> list[str]:
    """Say which constraints a choice of options breaks."""
    errors: list[str] = []
    groups: dict[object, set[str]] = defaultdict(set)
    for group, option in zip(groups_of(pipeline, job.granularity), chosen, strict=True):
        groups[group].add(option.knob)
    errors += [f"{group}: knobs {sorted(k)}" for group, k in groups.items() if len(k) > 1]
    return errors


def _differs(name: str, have: float, want: float, tolerance: float) -> list[str]:
    if abs(have - want) <= tolerance * max(abs(want), 1e-300):
        return []
    return [f"{name} is {have!r}, recomputed {want!r}"]


def check_plan(plan: dict[str, Any], job: Job) -> list[str]:
    """Recompute a plan and say everything that is wrong with it.

    Parameters
    ----------
    plan
        The parsed plan.json.
    job
        What it was made for.

    Returns
    -------
    list of str
        Empty for an honest plan.
    """
    pipeline = job.pipeline()
    chosen, errors = chosen_options(plan, pipeline)
    if errors:
        return errors
    dag = pipeline.dag
    time = replay(dag, [o.time for o in chosen])
    energy = pipeline.energy(chosen, time)
    baseline = pipeline.baseline()
    baseline_time = replay(dag, [o.time for o in baseline])
    baseline_energy = pipeline.energy(baseline, baseline_time) + pipeline.dearer_energy(baseline)
    errors += _waiting_errors(plan, pipeline)
    if plan["iteration_time_s"] != time:
        errors.append(f"iteration_time_s is {plan['iteration_time_s']!r}, replayed {time!r}")
    if time > plan["requested_time_s"]:
        errors.append(f"takes {time!r} s, more than {plan['requested_time_s']!r} s")
    # The margin guards what was slowed down; the highest clock keeps its time.
    slowest = replay(
        dag,
        [
            o.time if o.knob == top.knob else job.guarded(o)
            for o, top in zip(chosen, baseline, strict=True)
        ],
    )
    if slowest > plan["requested_time_s"] * (1 + 1e-12):
        errors.append(f"takes {slowest!r} s with its margin, too late")
    if plan["baseline"]["iteration_time_s"] != baseline_time:
        errors.append(
            f"baseline time is {plan['baseline']['iteration_time_s']!r}, replayed {baseline_time!r}"
        )
    errors += _differs("energy_j", plan["energy_j"], energy, ENERGY_TOLERANCE)
    errors += _differs(
        "baseline.energy_j", plan["baseline"]["energy_j"], baseline_energy, ENERGY_TOLERANCE
    )
    saving = 100 * (1 - energy / baseline_energy) if baseline_energy else 0.0
    if abs(plan["saving_percent"] - saving) > 1e-9:
        errors.append(f"saving_percent is {plan['saving_percent']!r}, recomputed {saving!r}")
    # Energies are differences of sums of this size; below its digits they are 0.
    digits = 1e-11 * (sum(abs(o.energy) for o in chosen) + sum(pipeline.blocking) * time)
    gap = 0.0
    if plan["lower_bound_j"] > digits:
        gap = 100 * (plan["energy_j"] / plan["lower_bound_j"] - 1)
    if abs(plan["gap_percent"] - gap) > 1e-9:
        errors.append(f"gap_percent is {plan['gap_percent']!r}, recomputed {gap!r}")
    if "shared_clocks" in plan:
        errors += _shared_clocks_errors(plan, digits)
    if "average_power_w" in plan:
        errors += _differs("average_power_w", plan["average_power_w"], energy / time, 1e-12)
    for name, want in (
        ("stages", 1 + max(a.stage for step in dag.steps for a in step)),
        ("microbatches", 1 + max(a.microbatch for step in dag.steps for a in step)),
    ):
        if plan[name] != want:
            errors.append(f"{name} is {plan[name]!r}, not {want}")
    if "knob_changes" in plan:
        pairs = [pair for order in dag.rank_order for pair in zip(order, order[1:], strict=False)]
        changes = sum(chosen[a].knob != chosen[b].knob for a, b in pairs)
        distinct = len({o.knob for o in chosen})
        if (plan["knob_changes"], plan["distinct_knobs"]) != (changes, distinct):
            errors.append(f"not {changes} knob changes and {distinct} distinct knobs")
    errors += _detail_errors(plan, pipeline, chosen)
    errors += _bound_errors(plan, pipeline, time)
    return errors + constraint_errors(job, pipeline, chosen)


def _waiting_errors(plan: dict[str, Any], pipeline: Pipeline) -> list[str]:
    """Check at which clocks the plan says that its ranks wait, and what they draw."""
    errors = []
    for rank, entry in enumerate(plan["ranks"]):
        if not pipeline.waiting:
            if "waiting" in entry or "waiting_knob" in entry:
                errors.append(f"rank {rank} has clocks for waiting, which is constant")
            continue
        if not _same_knob(entry["waiting_knob"], pipeline.waiting_knob(rank)):
            errors.append(f"rank {rank} waits at {entry['waiting_knob']!r}")
        gpus = plan["tensor_parallel"]
        for each in entry["waiting"]:
            (watts,) = (w for k, w in pipeline.waiting[rank].items() if _same_knob(each["knob"], k))
            errors += _differs("waiting power_w", gpus * each["power_w"], watts, 1e-12)
    return errors


def _shared_clocks_errors(plan: dict[str, Any], digits: float) -> list[str]:
    shared = plan["shared_clocks"]
    bound = shared["lower_bound_j"]
    errors = []
    if not plan["lower_bound_j"] - digits <= bound <= plan["energy_j"]:
        errors.append(f"shared_clocks.lower_bound_j is {bound!r}")
    gap = 100 * (plan["energy_j"] / bound - 1) if bound > digits else 0.0
    if abs(shared["gap_percent"] - gap) > 1e-9:
        errors.append(f"shared_clocks.gap_percent is {shared['gap_percent']!r}, recomputed {gap!r}")
    return errors


def _bound_errors(plan: dict[str, Any], pipeline: Pipeline, time: float) -> list[str]:
    network = network_of(pipeline)
    bracket = LinearProgram(network).solve(min(time, network.cheapest))
    waiting = sum(pipeline.blocking)
    at = max(time, bracket.time)
    bound = plan["lower_bound_j"]
    # Energies are sums of this size; where they cancel out, digits are lost.
    digits = 1e-11 * (abs(bracket.upper) + waiting * at)
    if bound > (bracket.upper + waiting * at) * (1 + BOUND_TOLERANCE) + digits:
        return [f"lower_bound_j {bound!r} is above the optimum {bracket.upper + waiting * at!r}"]
    # A true bound that is needlessly low would hide nothing, but says that the
    # frontier is wrong: the coarse mode certifies 0.03 %.
    if bound < (bracket.lower + waiting * at) * (1 - 1e-3) - digits:
        return [f"lower_bound_j {bound!r} is far below {bracket.lower + waiting * at!r}"]
    return []
