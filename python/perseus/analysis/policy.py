# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What an operator could do instead of Perseus, as plans that `perseus emulate` replays.

docs/explanation/policies.md says how each policy is meant here.

>>> from perseus.analysis import policy
>>> planner = perseus.Planner("job.toml")
>>> rival = policy.plan(planner, "zeus-global", 1.05 * planner.baseline.iteration_time_seconds)
>>> pathlib.Path("rival.py").write_text(rival.text)   # perseus emulate job.toml --compare rival.py
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perseus.planner import Planner
from perseus.planner_error import PlannerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAMES = ("zeus-global", "zeus-per-stage", "envpipe", "power-cap")
_MOST_POWER_CAPS = 256
_SAME_TIME = 1e-9  # Relative.


class _Option(NamedTuple):
    """A clock of a stage and type: seconds, and joules of all GPUs of the rank."""

    mhz: int
    seconds: float
    joules: float


class RivalPlan(NamedTuple):
    """A plan of a policy: a clock for each computation, in the order of each rank."""

    name: str
    seconds: float  # Of an iteration.
    joules: float  # Of a pipeline, waiting included.
    clocks: list[list[tuple[str, int]]]  # [rank] (instruction, MHz)

    @property
    def text(self) -> str:
        """Return the plan for Zeus (docs/reference/files.md), which `perseus emulate` reads."""
        rows = [f"    {row!r},\n" for row in self.clocks]
        return f"# Plan of the policy {self.name}.\n[\n{''.join(rows)}]\n"


_Kind = tuple[int, str]  # Stage, instruction.
_Choice = dict[_Kind, int]  # Of each kind, an index into its options.


class _Pipeline:
    """A job of forwards and backwards at clocks: its order, its options, its replay."""

    def __init__(self, planner: Planner) -> None:
        plan = planner.baseline
        document = json.loads(plan.json())
        fixed = document["fixed_times"]
        if any(c.fused or c.instruction not in ("forward", "backward") for c in plan.computations):
            raise PlannerError("these policies are for schedules of whole forwards and backwards")
        if (
            document["knob_kind"] != "sm_clock_mhz"
            or any(fixed["comm_delay_s"])
            or any(fixed[name] for name in ("data_loading_s", "iteration_overhead_s"))
        ):
            raise PlannerError("these policies are for clocks in MHz, and no fixed times")
        gpus: int = document["tensor_parallel"]
        self.gpus = gpus
        self.blocking = [gpus * float(rank["blocking_power_w"]) for rank in document["ranks"]]
        self.stages: int = document["stages"]
        self.microbatches: int = document["microbatches"]
        # Highest clock first.
        self.options: dict[_Kind, list[_Option]] = {}
        for each in sorted(planner.profile.options, key=lambda o: -float(o.frequency)):
            option = _Option(int(float(each.frequency)), each.time, each.energy * gpus)
            self.options.setdefault((each.stage, each.instruction), []).append(option)
        self.clocks = sorted({o.mhz for own in self.options.values() for o in own}, reverse=True)
        self.rank_of: dict[_Kind, int] = {}
        self.uses: Counter[_Kind] = Counter()
        self.order: list[list[int]] = [[] for _ in self.blocking]
        self.kinds: list[_Kind] = []
        self.at: dict[tuple[int, str, int], int] = {}
        for each_computation in sorted(plan.computations, key=lambda c: (c.rank, c.start_seconds)):
            rank, instruction, stage, microbatch = each_computation[:4]
            kind = (stage, instruction)
            self.at[stage, instruction, microbatch] = len(self.kinds)
            self.order[rank].append(len(self.kinds))
            self.kinds.append(kind)
            self.rank_of[kind] = rank
            self.uses[kind] += 1
        self.before = [list(self._before(*key)) for key in self.at]
        self.ranks = [self.rank_of[kind] for kind in self.kinds]

    def _before(self, stage: int, instruction: str, microbatch: int) -> Iterator[int]:
        """Yield what must have ended: on other ranks first, then the one before on its own."""
        forward = instruction == "forward"
        if forward and stage > 0:
            yield self.at[stage - 1, "forward", microbatch]
        elif not forward and stage + 1 < self.stages:
            yield self.at[stage + 1, "backward", microbatch]
        elif not forward:
            yield self.at[stage, "forward", microbatch]
        own = self.order[self.rank_of[stage, instruction]]
        place = own.index(self.at[stage, instruction, microbatch])
        if place > 0:
            yield own[place - 1]

    def sequence(self) -> list[int]:
        """Return the computations so that each follows what it waits for."""
        if not hasattr(self, "_sequence"):
            done: set[int] = set()
            sequence: list[int] = []
            places = [0] * len(self.order)
            while len(sequence) < len(self.kinds):
                for rank, own in enumerate(self.order):
                    while places[rank] < len(own) and done.issuperset(
                        self.before[own[places[rank]]]
                    ):
                        done.add(own[places[rank]])
                        sequence.append(own[places[rank]])
                        places[rank] += 1
            self._sequence = sequence
        return self._sequence

    def replay(self, durations: list[float]) -> list[float]:
        """Return when each computation ends."""
        ends = [0.0] * len(durations)
        for i in self.sequence():
            ends[i] = max((ends[k] for k in self.before[i]), default=0.0) + durations[i]
        return ends

    def effective(self, kind: _Kind, option: _Option) -> float:
        """Return the energy beyond that of waiting as long."""
        waiting: float = self.blocking[self.rank_of[kind]]
        return option.joules - waiting * option.seconds

    def option_at(self, kind: _Kind, mhz: int) -> int | None:
        """Return the option of a clock, or of the nearest lower one that was measured."""
        own = self.options[kind]
        place = bisect.bisect_left(own, -mhz, key=lambda o: -o.mhz)
        return place if place < len(own) else None

    def plan(self, name: str, chosen: list[int]) -> RivalPlan:
        """Return the plan of one option for each computation."""
        options = [self.options[kind][k] for kind, k in zip(self.kinds, chosen, strict=True)]
        seconds = max(self.replay([o.seconds for o in options]))
        joules = seconds * sum(self.blocking) + sum(map(self.effective, self.kinds, options))
        clocks = [[(self.kinds[i][1], options[i].mhz) for i in own] for own in self.order]
        return RivalPlan(name, seconds, joules, clocks)


def _zeus_global(pipeline: _Pipeline) -> Iterator[_Choice]:
    """One clock for all GPUs (You et al., NSDI'23, as in Chung et al., SOSP'24, section 6.1)."""
    for mhz in pipeline.clocks:
        choice = {kind: pipeline.option_at(kind, mhz) for kind in pipeline.uses}
        if None not in choice.values():
            yield {kind: k for kind, k in choice.items() if k is not None}


def _zeus_per_stage(pipeline: _Pipeline) -> Iterator[_Choice]:
    """One clock for each rank, which balances the forward times of the ranks."""
    members = list(_zeus_global(pipeline))
    kinds_of = [
        [kind for kind in pipeline.uses if pipeline.rank_of[kind] == rank]
        for rank in range(len(pipeline.order))
    ]

    def forward(member: _Choice, kinds: list[_Kind]) -> float:
        return sum(pipeline.options[k][member[k]].seconds for k in kinds if k[1] == "forward")

    def effective(member: _Choice, kinds: list[_Kind]) -> float:
        return sum(
            pipeline.uses[k] * pipeline.effective(k, pipeline.options[k][member[k]]) for k in kinds
        )

    for member in members:
        longest = max(forward(member, kinds) for kinds in kinds_of)
        choice: _Choice = {}
        for kinds in kinds_of:
            within = [one for one in members if forward(one, kinds) <= longest]
            best = min(within, key=lambda one: effective(one, kinds))
            choice |= {kind: best[kind] for kind in kinds}
        yield choice


def _power_cap(pipeline: _Pipeline) -> Iterator[_Choice]:
    """One power limit for all GPUs: the highest clock with a mean power within it."""

    def watts(option: _Option) -> float:
        return option.joules / option.seconds / pipeline.gpus

    tables = [[watts(o) for o in pipeline.options[kind]] for kind in pipeline.uses]
    least = max(min(table) for table in tables)
    caps = sorted({w for w in itertools.chain(*tables) if w >= least})
    if len(caps) > _MOST_POWER_CAPS:
        last = len(caps) - 1
        caps = [caps[i * last // (_MOST_POWER_CAPS - 1)] for i in range(_MOST_POWER_CAPS)]
    for cap in caps:
        yield {
            kind: next(k for k, o in enumerate(pipeline.options[kind]) if watts(o) <= cap)
            for kind in pipeline.uses
        }


def _longest_path(pipeline: _Pipeline, durations: list[float]) -> list[int]:
    """Return one longest path, last first; where two end at once, that of the other rank."""
    ends = pipeline.replay(durations)
    tolerance = _SAME_TIME * max(ends)
    path: list[int] = []
    i: int | None = max(range(len(ends)), key=ends.__getitem__)
    while i is not None:
        path.append(i)
        start = ends[i] - durations[i]
        late = [k for k in pipeline.before[i] if ends[k] >= start - tolerance]
        others = [k for k in late if pipeline.ranks[k] != pipeline.ranks[i]]
        i = next(iter(others or late), None)
    return path


def _envpipe(pipeline: _Pipeline) -> RivalPlan:
    """EnvPipe (Choi et al., USENIX ATC'23), with the reconfiguration "balanced"."""
    if len(pipeline.order) != pipeline.stages:
        raise PlannerError("envpipe is for pipelines of one stage a rank")
    least = {
        kind: min(range(len(pipeline.options[kind])), key=lambda k: pipeline.options[kind][k][2])
        for kind in pipeline.uses
    }
    chosen = []
    for stage, instruction, microbatch in pipeline.at:
        edge = 0 if instruction == "forward" else pipeline.microbatches - 1
        outer = stage == pipeline.stages - 1 or microbatch == edge
        chosen.append(0 if outer else least[stage, instruction])

    def option(i: int) -> _Option:
        return pipeline.options[pipeline.kinds[i]][chosen[i]]

    while True:  # Ends: every step raises a computation.
        path = _longest_path(pipeline, [option(i).seconds for i in range(len(chosen))])
        path = [i for i in path if chosen[i] > 0]
        if not path:
            return pipeline.plan("envpipe", chosen)
        lowest = min(option(i).mhz for i in path)
        for i in path:
            if option(i).mhz == lowest:
                chosen[i] -= 1


def plan(planner: Planner, name: str, seconds: float | None = None) -> RivalPlan:
    """Return a policy's plan: of its plans that end in time, that of least effective energy.

    Parameters
    ----------
    planner
        The job.
    name
        One of NAMES. "envpipe" has one plan, for any time.
    seconds
        The time of an iteration; None: that at maximum clocks.

    Raises
    ------
    PlannerError
        With a sentence: an unknown name, a job that the policy is not for, or no plan so fast.
    """
    if name not in NAMES:
        raise PlannerError(f"there is no policy '{name}'; the names are {', '.join(NAMES)}")
    pipeline = _Pipeline(planner)
    if name == "envpipe":
        return _envpipe(pipeline)
    family = {
        "zeus-global": _zeus_global,
        "zeus-per-stage": _zeus_per_stage,
        "power-cap": _power_cap,
    }[name]
    members = [
        pipeline.plan(name, [choice[kind] for kind in pipeline.kinds])
        for choice in family(pipeline)
    ]
    if not members:
        raise PlannerError(f"{name} has no plan: there is no clock that every computation has")
    limit = planner.baseline.iteration_time_seconds if seconds is None else seconds
    in_time = [one for one in members if one.seconds <= limit * (1 + 1e-12)]
    if not in_time:
        fastest = min(one.seconds for one in members)
        raise PlannerError(
            f"the policy {name} has no plan that takes {limit:.6g} s: its fastest takes "
            f"{fastest:.6g} s; ask for at least that"
        )
    waiting = sum(pipeline.blocking)
    return min(in_time, key=lambda one: one.joules - waiting * one.seconds)


def main(arguments: Sequence[str]) -> int:
    """Answer `perseus policy`."""
    parser = argparse.ArgumentParser(prog="perseus policy", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("job", help="a job file: JOB.toml or JOB.json")
    parser.add_argument("--at", default="1.0x", help="1.05x, or seconds (default: 1.0x)")
    parser.add_argument("-o", "--output", metavar="FILE.py", help="write the plan here")
    options = parser.parse_args(arguments)
    planner = Planner(options.job)
    usual = planner.baseline.iteration_time_seconds
    try:
        factor = options.at.endswith("x")
        seconds = float(options.at.rstrip("xs")) * (usual if factor else 1.0)
    except ValueError:
        parser.error(f"--at: expected a time such as 1.05x or 5.3s, got '{options.at}'")
    made = plan(planner, options.name, seconds)
    saved = 100 * (1 - made.joules / planner.baseline.energy_joules)
    says = f"{made.seconds:.6g} s, {made.joules:.6g} J, {saved:.2f} % less than at maximum clocks"
    if options.output is None:
        sys.stdout.write(made.text)
        print(f"# {says}", file=sys.stderr)
        return 0
    Path(options.output).write_text(made.text, encoding="utf-8")
    print(f"{says}\nNext  perseus emulate {options.job} --compare {options.output}")
    return 0
