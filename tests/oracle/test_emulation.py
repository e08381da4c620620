# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Perseus emulate against the simulator, and the simulator against arithmetic by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from . import emulation, emulation_calls, emulation_noise
from .binary import Curve, seeds
from .dag import (
    BACKWARD,
    FORWARD,
    Fixed,
    build_dag,
    cost_pipeline,
    one_forward_one_backward,
    parse_schedule,
)
from .emulation import Outcome, Simulator, limited
from .emulation_check import InfeasibleError, Plans, check_emulation, compare, emulate, simulate
from .emulation_noise import computation_numbers, draw, splitmix64
from .emulation_scenario import Scenario, Straggler
from .random_emulations import KINDS, RandomEmulation, random_emulation
from .tables import Option, Profile, write_profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from .dag import Pipeline

FAST, SLOW = Option("1400", 1.0, 400.0), Option("1000", 2.0, 300.0)


def two_stages(microbatches: int = 2) -> Pipeline:
    """Return a small pipeline: every computation takes 1 s or 2 s, a waiting GPU draws 50 W."""
    tables = {(stage, kind): [FAST, SLOW] for stage in (0, 1) for kind in (FORWARD, BACKWARD)}
    dag = build_dag(one_forward_one_backward(2, microbatches), Fixed())
    return cost_pipeline(Profile(tables, 0), dag, [50.0])


def run(scenario: Scenario, plan: Callable[[float], list[Option]] | None = None) -> Outcome:
    """Simulate two stages, at the highest clocks where no plan is given."""
    pipeline = two_stages()
    fast = [FAST] * len(pipeline.options)
    # At 6 s what is critical is fast, at 12 s everything is slow.
    curve = Curve([6.0, 12.0], [6 * 400 + 2 * 300.0, 8 * 300 + 8 * 50.0], [0.0, 0.0])
    return Simulator(pipeline, 1, scenario, plan or (lambda _: fast), curve).run()


def test_splitmix64_is_the_published_generator() -> None:
    """The first two numbers under seed 0."""
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    assert splitmix64(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


def test_draws_have_mean_1_and_the_spread_asked_for() -> None:
    """Of 20,000 draws, to three standard errors."""
    draws = [draw(0.1, 7, 1, i) - 1 for i in range(20000)]
    assert abs(math.fsum(draws)) / 20000 < 3 * 0.1 / math.sqrt(20000)
    assert abs(math.sqrt(math.fsum(d * d for d in draws) / 20000) - 0.1) < 0.0015
    assert max(map(abs, draws)) < 0.347


def test_numbers_go_by_start_in_unit_times() -> None:
    """1F1B on two ranks: starts 0, 1, 3, 6 on the first and 1, 2, 4, 5 on the second."""
    assert computation_numbers(two_stages().dag) == [0, 1, 4, 7, 2, 3, 5, 6]


def test_a_quiet_job_by_hand() -> None:
    """Two iterations of two pipelines: 8 computations of 1 s, ranks wait 2 s each."""
    outcome = run(Scenario(6.0, pipelines=2, iterations=2))
    assert [i.time for i in outcome.iterations] == [6.0, 6.0]
    assert outcome.drawn == pytest.approx(2 * 2 * (8 * 400 + 2 * 2 * 50), rel=1e-12)
    assert outcome.energy.blocking == pytest.approx(2 * 2 * 2 * 2 * 50, rel=1e-12)
    assert outcome.energy.total() == pytest.approx(outcome.drawn, rel=1e-12)
    # 8 x 350 effective joules, 2400 of them at 6 s by the curve.
    assert outcome.energy.intrinsic == pytest.approx(4 * (8 * 350 - (3000 - 600)), rel=1e-12)
    assert outcome.energy.extrinsic == 0
    assert outcome.power(6.0, 2) == pytest.approx([2 * 3400 / 6] * 2, rel=1e-12)


def test_a_late_clock_by_hand() -> None:
    """Rank 1 asks for another clock at its second computation: half of it runs at the old one."""

    def plan(_: float) -> list[Option]:
        return [FAST] * 5 + [SLOW] + [FAST] * 2

    outcome = run(Scenario(7.0, latency=0.5), plan)
    # Rank 1: F0 1-2, B0 2-2.5 fast and 2.5-3.5 slow, F1 3.5-4 slow, then fast.
    assert outcome.clock_calls == 2
    assert outcome.late == 2
    assert outcome.iterations[0].time == pytest.approx(6.75, rel=1e-12)
    assert outcome.drawn - outcome.energy.blocking == pytest.approx(6 * 400 + 2 * 350 + 25)


def test_a_known_straggler_moves_the_others() -> None:
    """From the second iteration on, with a delay of half an iteration; it runs the base plan."""
    asked: list[float] = []

    def plan(seconds: float) -> list[Option]:
        asked.append(seconds)
        return [FAST if seconds < 12 else SLOW] * 8

    slow = Straggler("slow", 2.0, pipeline=1, first=0, count=2)
    outcome = run(Scenario(6.0, 2, 4, stragglers=[slow], delay=3.0), plan)
    assert [i.target for i in outcome.iterations] == [6.0, 12.0, 12.0, 6.0]
    assert [i.time for i in outcome.iterations] == [12.0, 12.0, 12.0, 6.0]
    assert [i.straggling for i in outcome.iterations] == [1, 1, 0, 0]
    assert (outcome.stragglers, outcome.replans) == (1, 2)
    assert outcome.iterations[0].energy.extrinsic == pytest.approx(2400 - 8 * 200, rel=1e-12)
    assert outcome.iterations[1].energy.extrinsic == 0


def test_limits_choose_options() -> None:
    """The highest clock that is allowed; the fastest option within the watts."""
    options = [FAST, Option("1200", 1.3, 390.0), SLOW]
    assert limited(FAST, options, [Straggler("clock", 1300.0)], 1).knob == "1200"
    assert limited(FAST, options, [Straggler("clock", 900.0)], 1).knob == "1000"
    assert limited(FAST, options, [Straggler("power", 310.0)], 1).knob == "1200"
    assert limited(FAST, options, [Straggler("power", 100.0)], 1).knob == "1000"
    assert limited(FAST, options, [Straggler("power", 200.0)], 2).knob == "1400"


@pytest.mark.parametrize("policy", ["perseus", "max-clocks"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 8))
def test_random_emulation(seed: int, kind: str, policy: str, tmp_path: Path) -> None:
    """Times, targets, energies, power, calls: everything that is stated."""
    try:
        assert check_emulation(random_emulation(seed, tmp_path, kind, policy)) == []
    except InfeasibleError:
        assert policy == "perseus"


@pytest.mark.parametrize("policy", ["perseus", "max-clocks"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(200, 8))
def test_random_emulation_with_clocks_for_waiting(
    seed: int, kind: str, policy: str, tmp_path: Path
) -> None:
    """What a GPU that waits draws depends on its clock, and ranks of perseus' plans set one."""
    try:
        assert check_emulation(random_emulation(seed, tmp_path, kind, policy, waiting=True)) == []
    except InfeasibleError:
        assert policy == "perseus"


def test_emulate_makes_the_plan_that_plan_gives_out(tmp_path: Path) -> None:
    """Of seed 79 within constraints: a plan for less time than T* is the better one."""
    assert check_emulation(random_emulation(79, tmp_path, "quiet", "perseus")) == []


def odd_job(folder: Path) -> RandomEmulation:
    """Return what random jobs do not have.

    Rank 0 holds the last stage, so that a data stall of "rank 0" comes late; and the clock in
    effect is often missing in the table of the next computation, with two equally near.
    """
    clocks = {FORWARD: (1400, 1300), BACKWARD: (1400, 1200)}
    tables = {
        (stage, kind): [
            Option(str(mhz), (1 + stage) * 1400 / mhz, 200 + mhz / 10 + 30 * stage) for mhz in own
        ]
        for stage in (0, 1)
        for kind, own in clocks.items()
    }
    write_profile(folder / "profile.csv", tables)
    schedule = "1F0,1B0,1F1,1B1\n0F0,0F1,0B0,0B1\n"
    (folder / "schedule.csv").write_text(schedule, encoding="utf-8")
    arguments = [str(folder / "profile.csv"), "--schedule-file", str(folder / "schedule.csv")]
    arguments += ["--blocking-power", "40", "--effort", "0.02"]
    dag = build_dag(parse_schedule(schedule), Fixed())
    pipeline = cost_pipeline(Profile(tables, 0), dag, [40.0])
    stragglers = [Straggler("clock", 1300.0), Straggler("stall", 2.5, pipeline=1, first=1)]
    scenario = Scenario(0.0, 2, 4, latency=0.3, stragglers=stragglers, reacts=False)
    made = RandomEmulation(arguments, "1.0x", pipeline, 1, "max-clocks", scenario)
    made.flags += ["--dp", "2", "--iterations", "4", "--plan", "max-clocks"]
    made.flags += ["--switch-latency", "300ms", "--straggler", "clock=1300"]
    made.flags += ["--straggler", "stall=2.5,pipeline=1,from=1"]
    return made


def test_an_odd_job(tmp_path: Path) -> None:
    """Of two equally near clocks the lower counts; a stall is of rank 0, whatever its stage."""
    assert check_emulation(odd_job(tmp_path)) == []


MUTATIONS: dict[str, tuple[ModuleType, str, object]] = {
    "spread": (emulation_noise, "SPREAD", 1.7320508),
    "computation word": (emulation, "COMPUTATION_WORD", 5),
    "stage word": (emulation, "STAGE_WORD", 5),
    "GPU word": (emulation, "GPU_WORD", 5),
    "rank word": (emulation, "RANK_WORD", 5),
    "rare word": (emulation_noise, "RARE_WORD", 5),
    "cut-off": (emulation_noise, "MOST", 1.0),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_an_error_is_found(mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator with one constant changed disagrees with the program."""
    made = random_emulation(11, tmp_path, "quiet", "max-clocks")
    made.scenario.computation_noise = made.scenario.stage_noise = made.scenario.gpu_noise = 0.01
    made.flags += ["--noise", "1%", "--set", "stage_noise=1%", "--set", "gpu_noise=1%"]
    made.scenario.rank_noise, made.scenario.correlation = 0.01, 0.5
    made.flags += ["--set", "rank_noise=1%", "--set", "noise_correlation=0.5"]
    made.scenario.rare_length, made.scenario.rare_share = 0.05, 0.2
    made.flags += ["--set", "rare_noise=5%", "--set", "rare_noise_share=20%"]
    plans, result = Plans(made), emulate(made)
    assert compare(made, result, simulate(made, plans, [])) == []
    module, name, value = MUTATIONS[mutation]
    monkeypatch.setattr(module, name, value)
    assert compare(made, result, simulate(made, plans, [])) != []


CALL_MUTATIONS: dict[str, tuple[str, object]] = {
    "latency word": ("LATENCY_WORD", 6),
    "high latency": ("HIGH", 1.2),
    "least latency": ("LEAST", 1.0),
}


@pytest.mark.parametrize("mutation", CALL_MUTATIONS)
def test_an_error_in_calls_is_found(
    mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same of calls ahead of time."""
    made = random_emulation(1, tmp_path, "quiet", "perseus")  # Its plan changes clocks.
    scenario = made.scenario
    scenario.iterations, scenario.ahead, scenario.computation_noise = 5, "predicted", 0.03
    scenario.latency = made.pipeline.options[0][0].time * 0.3
    scenario.latency_spread, scenario.early_loss = scenario.latency / 4, 0.2
    made.flags[made.flags.index("--iterations") + 1] = "5"
    made.flags += ["--noise", "3%", "--call-ahead", "predicted", "--set", "max_early_loss=20%"]
    made.flags += ["--switch-latency", repr(scenario.latency)]
    made.flags += ["--set", f"switch_latency_spread={scenario.latency_spread!r}"]
    plans, result = Plans(made), emulate(made)
    assert compare(made, result, simulate(made, plans, [])) == []
    name, value = CALL_MUTATIONS[mutation]
    monkeypatch.setattr(emulation_calls, name, value)
    assert compare(made, result, simulate(made, plans, [])) != []
