# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The oracle itself: on projects whose optimum is known, and on wrong answers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import Curve
from .dag import (
    BACKWARD,
    FORWARD,
    Action,
    Fixed,
    build_dag,
    cost_pipeline,
    one_forward_one_backward,
    parse_schedule,
    replay,
)
from .frontier_check import compare, shape_errors
from .lp import LinearProgram, Network, lower_hull
from .mip import DiscreteProgram
from .network_check import network_from
from .random_networks import random_networks
from .tables import Option, Profile, read_profile, write_profile

if TYPE_CHECKING:
    from pathlib import Path


def test_hull_keeps_only_its_falling_vertices() -> None:
    """Dominated, inner, collinear and rising points are not vertices."""
    points = [(1.0, 10.0), (2.0, 9.5), (3.0, 2.0), (1.0, 11.0), (4.0, 1.0), (5.0, 0.0), (6.0, 3.0)]
    assert lower_hull(points) == [(1.0, 10.0), (3.0, 2.0), (5.0, 0.0)]


def test_program_on_a_chain() -> None:
    """The cheaper of two activities in a row is shortened first."""
    network = Network([[(1.0, 9.0), (3.0, 5.0)], [(1.0, 7.0), (2.0, 6.0)]], [(0, 1, 0.5)], [0, 0])
    program = LinearProgram(network)
    for time, cost in ((5.5, 11.0), (5.0, 11.5), (4.5, 12.0), (3.5, 14.0), (2.5, 16.0)):
        bracket = program.solve(time)
        assert bracket.time == pytest.approx(time, rel=1e-12)
        assert bracket.lower == pytest.approx(cost, rel=1e-12)
        assert bracket.upper == pytest.approx(cost, rel=1e-12)


def test_brackets_close_on_random_networks() -> None:
    """What HiGHS says is proved to 1e-11 by the recomputed bounds."""
    for project in random_networks(7, 60):
        network = network_from(project, project["activities"])
        magnitude = sum(max(abs(c) for _, c in hull) for hull in network.hulls) or 1.0
        program = LinearProgram(network)
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            time = network.fastest + share * (network.cheapest - network.fastest)
            bracket = program.solve(time)
            assert bracket.upper - bracket.lower <= 1e-11 * magnitude
            assert bracket.upper - bracket.lower >= -1e-12 * magnitude


def test_wrong_frontiers_are_found() -> None:
    """A curve that is off by one part in a million fails."""
    network = Network([[(1.0, 9.0), (3.0, 5.0)], [(1.0, 7.0), (2.0, 6.0)]], [(0, 1, 0.0)], [0, 0])
    right = Curve([2.0, 4.0, 5.0], [16.0, 12.0, 11.0], [2.0, 1.0, 0.0])
    assert compare(right, network, 20).difference < 1e-14
    assert shape_errors(right, network, 0.0, 1e-12) == []
    high = Curve([2.0, 4.0, 5.0], [16.0, 12.0 + 2e-5, 11.0], [2.0, 1.0, 0.0])
    low = Curve([2.0, 4.0, 5.0], [16.0, 12.0 - 2e-5, 11.0], [2.0, 1.0, 0.0])
    for wrong in (high, low):
        assert compare(wrong, network, 20).difference > 1e-6
        assert shape_errors(wrong, network, 0.0, 1e-9) != []
    late = Curve([2.1, 4.0, 5.0], [15.8, 12.0, 11.0], [2.0, 1.0, 0.0])
    assert any("first" in error for error in shape_errors(late, network, 0.0, 1e-9))


def test_one_forward_one_backward_order() -> None:
    """The textbook order on three stages and four microbatches."""
    spelled = [
        "".join(("F" if a.type == FORWARD else "B") + str(a.microbatch) for (a,) in order)
        for order in one_forward_one_backward(3, 4)
    ]
    assert spelled == ["F0F1F2B0F3B1B2B3", "F0F1B0F2B1F3B2B3", "F0B0F1B1F2B2F3B3"]


def test_schedule_text_and_replay() -> None:
    """A schedule read from text has the makespan that a drawing shows."""
    schedule = parse_schedule("0F0,0F1,,0B0,0B1\r\n,1F0,1B0,1F1,1B1\r\n")
    assert schedule[1][1] == (Action(BACKWARD, 1, 0),)
    dag = build_dag(schedule, Fixed([0.5], 0.25, 1.0))
    durations = [1.0 if step[0].type == FORWARD else 2.0 for step in dag.steps]
    # F0 ends at 1.25; 1F0 1.75-2.75; 1B0 to 4.75; 1F1 to 5.75; 1B1 to 7.75; 0B1 8.25-10.25; + 1.
    assert replay(dag, durations) == 11.25
    fused = parse_schedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\r\n")
    assert [len(step) for step in fused[0]] == [1, 2, 1]
    assert build_dag(fused, Fixed()).precedences == [(0, 1, 0.0), (1, 2, 0.0)]


def test_deadlock_is_an_error() -> None:
    """A rank that waits for its own future cannot run."""
    dag = build_dag(parse_schedule("0B0,0F0\r\n"), Fixed())
    with pytest.raises(ValueError, match="deadlock"):
        replay(dag, [1.0, 1.0])


def test_profile_is_aggregated(tmp_path: Path) -> None:
    """Times are maxima; energies are summed over tp ranks, averaged over dp ranks."""
    path = tmp_path / "profile.csv"
    path.write_text(
        "\ufeff# measured\r\ntp_rank,dp_rank,stage,instruction,frequency,time,energy\r\n"
        "0,0,0,forward,1000,1.0,10\r\n1,0,0,forward,1000,1.5,12\r\n"
        "0,1,0,forward,1000,1.25,11\r\n1,1,0,forward,1000,1.0,13\r\n"
    )
    profile = read_profile(path)
    assert profile.tensor_parallel_ranks == 2
    assert profile.tables == {(0, "forward"): [Option("1000", 1.5, 23.0)]}
    write_profile(path, profile.tables)
    assert read_profile(path).tables == profile.tables


def _random_pipeline_profile(stages: int) -> Profile:
    options = [
        Option("1400", 1.0, 10.0),
        Option("1200", 1.13, 8.7),
        Option("1000", 1.31, 7.9),
    ]
    tables = {}
    for stage in range(stages):
        for name, factor in ((FORWARD, 1.0 + 0.1 * stage), (BACKWARD, 1.9 - 0.07 * stage)):
            tables[stage, name] = [
                Option(o.knob, factor * o.time, factor * o.energy) for o in options
            ]
    return Profile(tables, 0)


def test_discrete_optimum_equals_enumeration() -> None:
    """The mixed-integer program finds what trying every combination finds."""
    pipeline = cost_pipeline(
        _random_pipeline_profile(2), build_dag(one_forward_one_backward(2, 2), Fixed()), [2.0]
    )
    best: dict[float, float] = {}
    slack = {factor: factor * replay(pipeline.dag, [1.0] * 8) for factor in (1.7, 1.8, 2.0)}
    for chosen in itertools.product(*pipeline.options):
        time = replay(pipeline.dag, [o.time for o in chosen])
        effective = sum(o.energy - 2.0 * o.time for o in chosen)
        for factor, limit in slack.items():
            if time <= limit:
                best[factor] = min(best.get(factor, float("inf")), effective)
    for factor, limit in slack.items():
        result = DiscreteProgram(pipeline).solve(limit)
        assert result.proved
        assert result.best == pytest.approx(best[factor], rel=1e-7)
        assert result.bound == pytest.approx(best[factor], rel=1e-6)
