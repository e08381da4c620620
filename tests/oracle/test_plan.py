# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Plans are honest: recomputation from profile and schedule agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from .binary import perseus
from .cases import A100_BLOCKING_WATTS, Case, emulation_cases
from .dag import Fixed, one_forward_one_backward, parse_schedule
from .measured import measured
from .plan_check import Job, check_plan
from .run_plan import run_plan
from .tables import Option, Tables, read_profile, write_profile

if TYPE_CHECKING:
    from pathlib import Path


# Honesty does not depend on how long the search takes.
QUICKLY = ["--effort", "0.05"]


def job_of(case: Case) -> Job:
    """Return what a case asks for."""
    profile = case.profile()
    schedule = one_forward_one_backward(profile.num_stages, case.microbatches)
    return Job(profile, schedule, [case.blocking_power])


@pytest.mark.parametrize("at", ["1.0x", "1.05x", "min-energy", "fastest", "tstar"])
@pytest.mark.parametrize("case", measured((12,)), ids=str)
def test_plan_is_honest(case: Case, at: str) -> None:
    """Times, energies, savings and bounds of plans for measured profiles."""
    plan, _ = run_plan([*case.arguments(), *QUICKLY], at)
    assert check_plan(plan, job_of(case)) == []


SCHEDULES = [
    ("gpipe", 1, 4),
    ("looped-bfs", 2, 4),
    ("interleaved-1f1b", 2, 8),
    ("interleaved-zero-bubble", 2, 8),
    ("zbv-zero-bubble", 2, 8),
    ("dualpipev", 2, 8),
    ("early-recomputation-1f1b", 1, 8),
]


def synthetic_tables(stages: int) -> Tables:
    """Return tables of a plain power law, different for every stage."""
    tables: Tables = {}
    for stage in range(stages):
        for instruction, work in (("forward", 1.0), ("backward", 2.1)):
            tables[stage, instruction] = [
                Option(
                    str(clock),
                    work * (1 + 0.03 * stage) * (0.01 + 25.0 / clock),
                    work * (1 + 0.05 * stage) * (4.0 + (clock / 500.0) ** 2.2),
                )
                for clock in range(1500, 700, -105)
            ]
    return tables


def printed_schedule(name: str, stages: int, virtual: int, microbatches: int) -> str:
    """Return PyTorch's CSV of a schedule, as perseus prints it."""
    return perseus(
        [
            "schedule",
            name,
            "--stages",
            str(stages),
            "--virtual-stages",
            str(virtual),
            "--microbatches",
            str(microbatches),
            "--format",
            "csv",
        ]
    )


@pytest.mark.parametrize(("name", "virtual", "microbatches"), SCHEDULES)
def test_plan_of_every_schedule_is_honest(
    name: str, virtual: int, microbatches: int, tmp_path: Path
) -> None:
    """Split backwards, fused steps, tensor parallelism, delays, powers by rank."""
    ranks = 4
    stages = ranks * virtual
    path = tmp_path / "profile.csv"
    write_profile(path, synthetic_tables(stages))
    delays = [0.001 * (1 + s % 3) for s in range(stages - 1)]
    powers = [90.0 + 2.5 * r for r in range(ranks)]
    flags: list[str | Path] = [path, "--schedule", name, "--stages", str(stages)]
    flags += ["--virtual-stages", str(virtual), "--microbatches", str(microbatches)]
    flags += ["--blocking-power", ",".join(map(repr, powers)), "--tp", "4"]
    flags += ["--set", "split_ratio=0.45", "--comm-delay", ",".join(map(repr, delays))]
    flags += ["--set", "data_loading=0.002", "--set", "iteration_overhead=0.015"]
    plan, _ = run_plan([*flags, *QUICKLY], "1.03x")
    job = Job(
        read_profile(path),
        parse_schedule(printed_schedule(name, stages, virtual, microbatches)),
        powers,
        tensor_parallel=4,
        split_ratio=0.45,
        fixed=Fixed(delays, 0.002, 0.015),
    )
    assert check_plan(plan, job) == []


CONSTRAINTS: list[tuple[list[str], dict[str, Any]]] = [
    (["--granularity", "phase"], {"granularity": "phase"}),
    (["--granularity", "stage-type"], {"granularity": "stage-type"}),
    (["--granularity", "stage"], {"granularity": "stage"}),
    (["--time-margin", "2%"], {"time_margin": 0.02}),
]


@pytest.mark.parametrize(("flags", "constraint"), CONSTRAINTS, ids=lambda v: str(v))
@pytest.mark.usefixtures("sosp24")
def test_constrained_plan_is_honest(flags: list[str], constraint: dict[str, Any]) -> None:
    """Granularity and time margin are kept."""
    case = next(iter(emulation_cases((12,))))
    plan, _ = run_plan([*case.arguments(), *flags, *QUICKLY], "1.05x")
    job = job_of(case)
    for name, value in constraint.items():
        setattr(job, name, value)
    assert check_plan(plan, job) == []


def test_tensor_parallel_rows_and_labels(tmp_path: Path) -> None:
    """Rows of tensor-parallel ranks are summed; knobs may be labels."""
    path = tmp_path / "profile.csv"
    lines = ["knob,energy,time,instruction,stage,tp_rank"]
    for (stage, instruction), options in synthetic_tables(2).items():
        for option in options:
            for rank in range(2):
                time = option.time * (1 + 0.01 * rank)
                label = f"{option.knob}MHz/12SM"
                lines.append(f"{label},{option.energy!r},{time!r},{instruction},{stage},{rank}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    flags: list[str | Path] = [path, "--schedule", "1f1b", "--microbatches", "6"]
    flags += ["--blocking-power", repr(A100_BLOCKING_WATTS)]
    plan, _ = run_plan([*flags, *QUICKLY], "1.02x")
    job = Job(read_profile(path), one_forward_one_backward(2, 6), [A100_BLOCKING_WATTS])
    assert check_plan(plan, job) == []
