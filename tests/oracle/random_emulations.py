# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random jobs with everything that can happen to them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .dag import replay
from .emulation_scenario import Scenario, Straggler
from .random_jobs import random_job
from .tables import knob_is_number

if TYPE_CHECKING:
    from pathlib import Path

    from .dag import Pipeline

KINDS = ("quiet", "noise", "switching", "stragglers", "everything")


@dataclass
class RandomEmulation:
    """What perseus is asked, and the same in the oracle's own words."""

    arguments: list[str]  # Of plan and emulate both.
    at: str
    pipeline: Pipeline
    gpus: int  # Of a rank.
    policy: str
    scenario: Scenario  # Its target is not known before the plan is made.
    interval: float = 0.0  # Of the power trace; 0: left to the program.
    flags: list[str] = field(default_factory=list)  # The scenario, for emulate alone.


def _percent(rng: random.Random) -> int:
    return rng.choice((0, 1, 3, 10, 25))


def _add_noise(rng: random.Random, made: RandomEmulation) -> None:
    scenario = made.scenario
    computation, stage, gpu = _percent(rng), _percent(rng), _percent(rng)
    scenario.computation_noise = computation / 100
    scenario.stage_noise = stage / 100
    scenario.gpu_noise = gpu / 100
    made.flags += ["--noise", f"{computation}%"] if computation else []
    made.flags += ["--set", f"stage_noise={stage}%"] if stage else []
    made.flags += ["--set", f"gpu_noise={gpu}%"] if gpu else []
    if rng.random() < 0.5:
        rank = _percent(rng)
        scenario.rank_noise = rank / 100
        made.flags += ["--set", f"rank_noise={rank}%"]
        scenario.correlation = rng.choice((0.0, 0.3, 0.9, 0.99)) if computation else 0.0
        made.flags += ["--set", f"noise_correlation={scenario.correlation}"]
    if rng.random() < 0.5:
        length, share = rng.choice((1, 25)), rng.choice((2, 25))
        scenario.rare_length, scenario.rare_share = length / 100, share / 100
        made.flags += ["--set", f"rare_noise={length}%", "--set", f"rare_noise_share={share}%"]


def _add_switching(rng: random.Random, made: RandomEmulation) -> None:
    scenario = made.scenario
    computation = made.pipeline.options[0][0].time
    if rng.random() < 0.8:
        scenario.latency = computation * rng.choice((0.01, 0.3, 0.9, 3.0, 20.0)) * rng.random()
        made.flags += ["--switch-latency", repr(scenario.latency)]
    clocks = sorted({o.knob for own in made.pipeline.options for o in own})
    if scenario.latency > 0 and rng.random() < 0.4 and all(map(knob_is_number, clocks)):
        own = rng.sample(clocks, rng.randint(1, len(clocks)))
        scenario.latency_at = {knob: scenario.latency * rng.choice((0.0, 0.3, 2.5)) for knob in own}
        pairs = ",".join(f"{knob}={time!r}" for knob, time in scenario.latency_at.items())
        made.flags += ["--set", f"switch_latency_at={pairs}"]
    if rng.random() < 0.4:
        scenario.stall = computation * rng.choice((0.01, 0.5)) * rng.random()
        made.flags += ["--switch-stall", repr(scenario.stall)]
    scenario.ahead = rng.choice(("none", "end", "predicted", "predicted"))
    if scenario.ahead != "none" or rng.random() < 0.5:
        made.flags += ["--call-ahead", scenario.ahead]
    if scenario.latency > 0 and rng.random() < 0.3:
        scenario.latency_spread = scenario.latency * rng.choice((0.05, 0.3, 1.0))
        made.flags += ["--set", f"switch_latency_spread={scenario.latency_spread!r}"]
    if rng.random() < 0.3:
        scenario.interval = computation * rng.choice((0.1, 0.8, 5.0)) * rng.random()
        made.flags += ["--set", f"min_call_interval={scenario.interval!r}"]
    if rng.random() < 0.4:
        percent = rng.choice((0, 1, 20, 100))
        if scenario.ahead == "predicted":  # Refused elsewhere, where it would mean nothing.
            scenario.early_loss = percent / 100
            made.flags += ["--set", f"max_early_loss={percent}%"]


def _kind_and_value(rng: random.Random, made: RandomEmulation, time: float) -> tuple[str, float]:
    options = [o for own in made.pipeline.options for o in own]
    kind = rng.choice(("slow", "slow", "clock", "power", "stall"))
    if kind == "clock" and not all(knob_is_number(o.knob) for o in options):
        kind = "slow"
    if kind == "clock":
        clocks = sorted({float(o.knob) for o in options})
        return kind, rng.choice((*clocks, round(rng.uniform(clocks[0], clocks[-1]), 1)))
    if kind == "power":
        powers = [option.energy / option.time / made.gpus for option in options]
        power = rng.choice(powers) * rng.uniform(0.8, 1.2)
        # Limits that no GPU of the job can have are refused.
        power = min(max(power, min(powers)), max(powers))
        return (kind, power) if power > 0 else ("slow", 1.5)
    if kind == "stall":
        return kind, time * rng.uniform(0.01, 1.0)
    return kind, rng.choice((1.0, 1.05, 1.2, 2.0, rng.uniform(1, 1.6)))


def _add_stragglers(rng: random.Random, made: RandomEmulation, time: float) -> None:
    scenario = made.scenario
    ranks = len(made.pipeline.dag.rank_order)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        kind, value = _kind_and_value(rng, made, time)
        straggler = Straggler(
            kind,
            value,
            rng.randrange(scenario.pipelines),
            rng.choice((None, rng.randrange(ranks))),
            rng.choice((0, 0, rng.randrange(scenario.iterations))),
            rng.choice((0, 1, 3)),
        )
        scenario.stragglers.append(straggler)
        text = f"{kind}={value!r},pipeline={straggler.pipeline}"
        text += "" if straggler.rank is None else f",rank={straggler.rank}"
        text += f",from={straggler.first}" if straggler.first else ""
        text += f",for={straggler.count}" if straggler.count else ""
        made.flags += ["--straggler", text]
    if time > 100:  # Else none comes within a few iterations: the most is one a GPU and day.
        percent = rng.choice((20, 100))
        scenario.random_rate = percent / 100
        scenario.random_kind, scenario.random_value = _kind_and_value(rng, made, time)
        scenario.random_duration = time * rng.uniform(0.5, 5)
        how = f"{scenario.random_kind}={scenario.random_value!r}"
        made.flags += ["--straggler-rate", f"{percent}%,{how},for={scenario.random_duration!r}"]
    what = rng.choice(("at once", "late", "late", "never"))
    if what == "late":
        scenario.delay = time * rng.uniform(0, 3)
        made.flags += ["--reaction-delay", repr(scenario.delay)]
    elif what == "never":
        scenario.reacts = False
        made.flags += ["--reaction-delay", "never"]


def random_emulation(
    seed: int,
    folder: Path,
    kind: str = "everything",
    policy: str = "perseus",
    work: bool = False,
    waiting: bool = False,
) -> RandomEmulation:
    """Return the emulation of a seed; the files of its job are written to ``folder``.

    Parameters
    ----------
    seed
        The same seed gives the same emulation.
    folder
        An existing folder.
    kind
        One of KINDS: what happens.
    policy
        ``perseus``, or ``max-clocks``, which never reacts.
    work
        Whether microbatches differ.
    waiting
        Whether what a GPU draws while it waits depends on its clock.
    """
    job = random_job(seed, folder, largest=3, plain=policy != "perseus", work=work, waiting=waiting)
    rng = random.Random(1_000_003 * seed + KINDS.index(kind))
    pipeline = job.job.pipeline()
    at = job.at
    if policy != "perseus":
        at = "1.0x"
    gpus = job.job.tensor_parallel or job.job.profile.tensor_parallel_ranks or 1
    scenario = Scenario(
        0.0,
        rng.choice((1, 2, 3, 4, 9)),
        rng.choice((1, 2, 5, 9, 25)),
        rng.choice((0, 1, rng.getrandbits(63))),
    )
    made = RandomEmulation(
        [*job.arguments, *job.constraints, "--effort", "0.02"],
        at,
        pipeline,
        gpus,
        policy,
        scenario,
    )
    scenario.reacts = policy == "perseus"
    scenario.cheap_waits = policy == "perseus"
    made.flags += ["--dp", str(scenario.pipelines), "--iterations", str(scenario.iterations)]
    made.flags += ["--seed", str(scenario.seed)]
    made.flags += [] if policy == "perseus" else ["--plan", policy]
    time = replay(pipeline.dag, [o.time for o in pipeline.baseline()])
    if kind in ("noise", "everything"):
        _add_noise(rng, made)
    if kind in ("switching", "everything"):
        _add_switching(rng, made)
    if kind in ("stragglers", "everything"):
        _add_stragglers(rng, made, time)
        scenario.reacts = scenario.reacts and policy == "perseus"
    if rng.random() < 0.7:
        made.interval = time * rng.choice((0.005, 0.1, 1.0, 3.7)) * rng.uniform(0.5, 1)
        made.flags += ["--power-interval", repr(made.interval)]
    return made
