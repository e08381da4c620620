# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The hooks in PyTorch's schedules, DDP and FSDP, Megatron-Core and DeepSpeed, as installed.

What holds for each of them comes first.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from trainers_testing import (
    TORCH,
    environment,
    flat,
    needs,
    needs_frameworks,
    needs_torch,
    planned,
    scenario,
)

ITERATIONS = 4  # Of hooks_worker.py's `orders`.
ITERATION = ["step_begin", "step_end"]
ABANDONED = ["step_begin", "step_abandon"]
NEEDS = {
    "torch": needs_torch,
    "ddp": needs_torch,
    "megatron": needs_frameworks,
    "deepspeed": needs_frameworks,
}
# The order of a rank that is alone with four microbatches under 1F1B; and each rank of two.
ALONE = ["0F0", "0B0", "0F1", "0B1", "0F2", "0B2", "0F3", "0B3"]
OF_TWO = [
    ["0F0", "0F1", "0B0", "0F2", "0B1", "0F3", "0B2", "0B3"],
    ["1F0", "1B0", "1F1", "1B1", "1F2", "1B2", "1F3", "1B3"],
]

# Perseus' name, virtual stages and microbatches, for 2 ranks and for 4.
SCHEDULES = {
    "ScheduleGPipe": ("gpipe", 1, (3, 6)),
    "Schedule1F1B": ("1f1b", 1, (4, 7)),
    "ScheduleLoopedBFS": ("looped-bfs", 2, (3, 4)),
    "ScheduleInterleaved1F1B": ("interleaved-1f1b", 2, (4, 8)),
    "ScheduleInterleavedZeroBubble": ("interleaved-zero-bubble", 2, (4, 8)),
    "ScheduleZBVZeroBubble": ("zbv-zero-bubble", 2, (4, 8)),
    "ScheduleDualPipeV": ("dualpipev", 2, (5, 9)),
}


class Case(NamedTuple):
    """A training, in the words of on_FRAMEWORK.py's `Trainer`, and the schedule that is planned."""

    framework: str
    words: str
    stages: int = 0
    microbatches: int = 0
    schedule: dict[str, Any] | None = None  # None: as the hook tells it.


CASES = [
    *(
        Case(
            "torch",
            f"{world} {name} {counts[world // 4]} {virtual}",
            world * virtual,
            counts[world // 4],
            {"schedule": ours, "virtual_stages": virtual},
        )
        for name, (ours, virtual, counts) in SCHEDULES.items()
        for world in (2, 4)
    ),
    *(
        Case("ddp", f"2 {kind} {accumulate} {optimizer}", 1, accumulate)
        for kind in ("ddp", "fsdp", "plain")
        for accumulate, optimizer in ((1, "optimizer"), (2, "optimizer"), (2, "none"))
    ),
    # Pipeline ranks, chunks, microbatches, microbatches of a group (0: Megatron's default).
    *(
        Case("megatron", f"{pp} {chunks} {count} {group}", pp * chunks, count)
        for pp, chunks, count, group in (
            *((1, 1, 3, 0), (2, 1, 4, 0), (4, 1, 2, 0), (2, 2, 4, 0)),
            *((2, 2, 5, 3), (2, 3, 6, 4), (4, 2, 8, 0)),
        )
    ),
    # Stages, microbatches, recomputation.
    *(
        Case("deepspeed", f"{stages} {count} {again}", stages, count, {"schedule": "1f1b"})
        for stages, count, again in ((1, 3, 0), (2, 1, 0), (2, 4, 0), (2, 3, 1), (4, 6, 0))
    ),
]


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """What the hooks of each framework see of its cases: each is imported once."""
    return {}


def ranks_of(seen: dict[str, Any], case: Case) -> list[Any]:
    """Return what each rank of a case has seen."""
    if case.framework not in seen:
        words = [each.words for each in CASES if each.framework == case.framework]
        seen[case.framework] = scenario(case.framework, "orders", *words)
    return list(seen[case.framework][case.words])


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=NEEDS[c.framework], id=f"{c[0]} {c[1]}") for c in CASES]
)
def test_hooks_see_exactly_what_is_trained(seen: dict[str, Any], case: Case) -> None:
    """In the order that is planned, each iteration; losses and weights stay, bit for bit."""
    of_ranks = ranks_of(seen, case)
    assert len(of_ranks) == int(case.words.split()[0])
    if case.framework == "ddp":
        order = [f"0{kind}{m}" for m in range(case.microbatches) for kind in "FB"]
        rows = [order] * len(of_ranks)
    else:
        rows = planned(case.schedule or of_ranks[0]["schedule"], case.stages, case.microbatches)
    # Without an optimizer an iteration ends with the next one's begin: the last one does not.
    ended = ITERATIONS - case.words.endswith("none")
    for row, one in zip(rows, of_ranks, strict=True):
        assert one["begins"] == one["ends"] == flat(row) * ITERATIONS
        assert one["steps"] == (ITERATION * ITERATIONS)[: ITERATIONS + ended]
        assert one["tokens"] == [7] * ended
        assert one["same"]
        assert one["detached"] == []
        assert one["left"] == (
            (2 if "fsdp" in case.words else 0) if case.framework == "ddp" else []
        )
    if case.framework == "torch":
        for rank, one in enumerate(of_ranks):
            # PyTorch 2.13 says 1F1 to 1Fm of the last rank of 1F1B, and runs 1F0 to 1F(m-1).
            if " Schedule1F1B " not in case.words or rank < len(of_ranks) - 1:
                assert flat(one["order"]) == flat(rows[rank])
                assert [a for a in one["csv"].splitlines()[rank].split(",") if a] == one["order"]
    elif case.framework == "ddp":
        told = ["step_begin", *["instruction_begin", "instruction_end"] * 2 * case.microbatches]
        assert all(one["events"][: len(told) + 1] == [*told, "step_end"] for one in of_ranks)
    assert any(one["losses"][0] for one in of_ranks)


# Results of one framework's trainer alone.
OWN_LIFE: dict[str, dict[str, Any]] = {
    "torch": {"no_grad": "gradients to be enabled"},
    "megatron": {
        "attached once": True,
        "timed": True,
        "levels": 2,
        "copied": "Timers",
        "forward only": ABANDONED,
    },
    "deepspeed": {"other": [], "no_grad": "gradients enabled"},
}


@pytest.mark.parametrize("framework", [pytest.param(f, marks=NEEDS[f]) for f in OWN_LIFE])
def test_what_happens_in_a_training_does_not_confuse_it(framework: str) -> None:
    """Evaluation, exceptions, other numbers of microbatches, recomputation, accumulation."""
    done = scenario(framework, "life")
    assert done["begins"] == ALONE
    assert done["evaluation"] == []
    assert done["raised"]
    assert done["broken"] == ABANDONED + ITERATION
    assert done["changed"] == ABANDONED * 2
    assert len(done["said"]) == 1
    assert "2 microbatches and the plan is for 4" in done["said"][0]
    assert done["tokens"] == ["step_end", 2048]
    assert done["bad_tokens"][0] == "step_end"
    assert "function for tokens" in done["bad_tokens"][1]
    # The second step within one of the trainer's own shows that each is an iteration.
    assert done["accumulated"] == ABANDONED + ITERATION * 3
    assert done["detached"] == []
    assert done["left"] == []
    assert done["again"]
    assert done["recorded_again"] == ALONE
    for name, value in OWN_LIFE[framework].items():
        assert (value in done[name]) if name == "no_grad" else (done[name] == value), name
    if framework == "torch":
        assert done["recomputed"] >= 8  # It did run: four forwards, and each again.


# The reason of each failure; and what the framework's own part returns.
FAILURES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "torch": (
        {
            "no schedule": "Thing is no schedule of torch.distributed.pipelining",
            "mesh": "dimension 'spam'",
            "profile": "/nowhere/profile.csv",
            "strange": "backward_one_chunk",
            "no loss": "no loss function",
            "twice": "already",
        },
        {"same": True, "once": 4, "again": True},
    ),
    "megatron": (
        {
            "parallel state": "not initialized yet",
            "no trainer": "give the model",
            "no model": "config",
            "no number": "give microbatches=",
            "overlap": "overlap_moe_expert_parallel_comm",
            "profile": "/nowhere.csv",
        },
        {"untouched": True, "log": [], "later": True},
    ),
    "deepspeed": (
        {
            "no engine": "no pipeline engine",
            "profile": "/nowhere.csv",
            "unknown": "WeightPass",
            "twice": "already",
        },
        {"left": [], "once": 4},
    ),
}


@pytest.mark.parametrize("framework", [pytest.param(f, marks=NEEDS[f]) for f in FAILURES])
def test_attaching_fails_softly(framework: str) -> None:
    """One warning says why, and training is as it was."""
    done = scenario(framework, "failures")
    words, own = FAILURES[framework]
    assert done["own"] == own
    for label, word in words.items():
        one = done["said"][label]
        assert not one["on"], label
        assert word in one["reason"], label
        assert word in one["report"], label
        # Without a model there is nothing to remember that it was said.
        assert len(one["warnings"]) == (2 if label == "no trainer" else 1), label
        assert word in one["warnings"][0], label
    if framework == "torch":
        assert len(done["said"]["option"]["warnings"]) == 1
        assert "spam" in done["said"]["option"]["report"]


@needs_frameworks
@pytest.mark.parametrize(
    ("framework", "tp", "cp", "pp", "dp"),
    [
        ("megatron", 2, 2, 2, 1),
        ("megatron", 2, 1, 2, 2),
        ("megatron", 1, 2, 1, 2),
        ("deepspeed", 1, 1, 2, 2),
    ],
)
def test_the_layout_is_the_frameworks(framework: str, tp: int, cp: int, pp: int, dp: int) -> None:
    """Tensor and context parallel ranks, which compute together; then replicas; then stages."""
    sizes = (tp, cp, pp, dp) if framework == "megatron" else (pp, dp)
    for rank, place in enumerate(scenario(framework, "layout", *map(str, sizes))):
        assert place["rank"] == rank
        assert place["tp_rank"] == rank % (tp * cp)
        assert place["dp_rank"] == rank // (tp * cp) % dp
        assert place["pp_rank"] == rank // (tp * cp * dp)
        assert (place["pp"], place["dp"], place["tp"]) == (pp, dp, tp * cp)


# PyTorch's schedules.


@needs_torch
def test_every_schedule_class_is_known() -> None:
    """Of the PyTorch that is installed: a new one must be added to the hooks and to these tests."""
    assert scenario("torch", "classes") == sorted(SCHEDULES)


@needs_torch
def test_an_order_from_a_file_is_followed_and_told_as_pytorch_writes_it() -> None:
    """Of a class that Perseus does not know."""
    rows = planned({"schedule": "interleaved-1f1b", "virtual_stages": 2}, 4, 4)
    text = "\n".join(",".join(row) for row in rows) + "\n"
    for rank, one in enumerate(scenario("torch", "from_csv", text)):
        assert one["on"]
        assert one["begins"] == rows[rank]
        assert one["order"] == one["lowered"] == {"schedule_csv": text}
        assert one["given"] == {"schedule_csv": "another\n"}


@needs_torch
def test_functions_of_ones_own_are_left_alone() -> None:
    """What they compute cannot be seen: it is said once, and training goes on without Perseus."""
    done = scenario("torch", "custom")
    on, reason, losses, log = done["refused"]
    assert not on
    assert "BACKWARD_WEIGHT" in reason
    assert losses == done["plain"]
    assert log == []
    assert done["harmless"] == ["0F0", "0F1", "0B0", "0B1"]
    assert done["losses"] == [done["plain"]] * 2
    assert done["told"] == 1
    assert done["closed"] == 1
    assert "BACKWARD_WEIGHT" in done["last_error"]
    assert len(done["said"]) == 2


@needs_torch
def test_a_run_that_is_started_again_has_its_key(tmp_path: Path) -> None:
    """Where torchrun takes a random id in place of the one that it was given."""
    script = tmp_path / "rank.py"
    script.write_text(
        "import os\nfrom perseus.hooks import layout\n"
        "print(os.environ['TORCHELASTIC_RUN_ID'], layout.run_key())\n"
    )

    def start(*options: str) -> list[str]:
        done = subprocess.run(
            [TORCH, "-B", "-m", "torch.distributed.run", *options, str(script)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )
        return done.stdout.split()

    (one, key), (other, again) = start("--rdzv-id", "night"), start("--rdzv-id", "night")
    assert key == again == f"torchrun-night@{socket.gethostname()}"
    assert one != other  # Else a plain id would do.


@needs_torch
def test_wrappers_above_ours_stay_when_ours_go() -> None:
    """What another put over ours calls the original then."""
    assert scenario("torch", "over") == {"calls": [0, 1, 0, 1], "after": [], "kept": True}


@needs_torch
def test_stages_are_untouched_while_no_client_listens() -> None:
    """Waiting, profiling, following, a straggler without a plan, connecting."""
    done = scenario("torch", "waiting")
    assert done["counts"] == [0, 0, 4, 4, 0]
    assert done["wrapped"] == [False, False, True, True, False]
    assert not done["left"]


@needs_torch
def test_each_rank_gets_its_part_of_the_plans_for_lengths_that_are_told_ahead() -> None:
    """By the iteration that trains with them."""
    for rank, told in enumerate(scenario("torch", "lengths")):
        assert told == [[1, [[rank, [2.0, 3.0]]]], [2, [[rank, [3.0, 4.0]]]]]


# DDP, FSDP and models without a wrapper.


@pytest.fixture(scope="module")
def ddp_life() -> Any:
    """What else happens in a training without a pipeline."""
    return scenario("ddp", "life")


@needs_torch
def test_what_happens_in_data_parallel_training_does_not_confuse_it(ddp_life: Any) -> None:
    """Copies, forwards without backward, unused parameters, scalers."""
    assert ddp_life["recomputed"] == ["0F0", "0B0"] * 3
    assert ddp_life["evaluation"] == ddp_life["copied"] == []
    assert ddp_life["after"] == ITERATION
    steps, error = ddp_life["two forwards"]
    assert steps == ABANDONED
    assert "no backward" in error
    assert ddp_life["recovered"] == [ITERATION, ""]
    assert ddp_life["unused"] == ITERATION * 4
    assert ddp_life["skipped"] == [ABANDONED + ITERATION, ""]
    assert "2 microbatches" in ddp_life["uneven"]
    assert ddp_life["deep"] == ["0F0", "0B0"] * 2
    assert not ddp_life["saved"], "a saved model cannot be read where Perseus is not installed"
    # Without an optimizer: what was trained before an evaluation is an iteration.
    assert ddp_life["evaluation ends"] == ["step_end"]


@needs_torch
def test_under_ddp_a_backward_ends_before_the_wait_for_other_ranks() -> None:
    """Rank 1 ends its backward only when rank 0 has told of its own end, so else none would."""
    assert scenario("ddp", "waits") == [3, 3]


@needs_torch
@pytest.mark.parametrize("compiled", ["in place", "whole", "attached"])
def test_a_model_that_is_compiled_is_seen_or_said_not_to_be(ddp_life: Any, compiled: str) -> None:
    """What the hooks call cannot be compiled: with fullgraph=True, PyTorch would raise."""
    same, begins, error = ddp_life[f"compiled {compiled}"]
    assert same
    assert bool(begins) == (compiled == "attached")
    assert ("torch.compile" in error) == (compiled != "attached")


@needs_torch
def test_what_is_no_model_says_why_once(ddp_life: Any) -> None:
    """And training goes on."""
    assert "object is no torch.nn.Module" in ddp_life["no model"]
    assert "object is no torch.optim.Optimizer" in ddp_life["no optimizer"]
    assert "no parameter" in ddp_life["frozen"]
    assert ddp_life["alone"] == ""
    not_attached = [said for said in ddp_life["said"] if "not attached" in said]
    assert len(not_attached) == len(set(not_attached)) == 3


@needs_torch
def test_nothing_of_ours_raises_into_training() -> None:
    """Whatever fails in a job."""
    failing = scenario("ddp", "failing")
    assert len(failing) == 6
    assert all(failing.values()), failing


# Megatron.


@needs_frameworks
def test_process_groups_may_be_passed_without_a_parallel_state() -> None:
    """As an argument or as the model's own; where one is missing, it says which."""
    of_ranks = scenario("megatron", "groups")
    for rank, (pp_rank, dp_rank) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert of_ranks[rank]["place"] == [rank, pp_rank, 2, dp_rank, 2, 1]
        assert of_ranks[rank]["begins"] == [OF_TWO[pp_rank]] * 2 + [[]]
        given, own, none, missing = of_ranks[rank]["reasons"]
        assert given == own == ""
        assert "give pg_collection=" in none
        assert "no group dp;" in missing


@needs("megatron/bridge")
def test_megatron_bridge_tells_by_its_callbacks() -> None:
    """Iterations are seen before and after an evaluation, which gives the config its old timers."""
    for rank, one in enumerate(scenario("megatron", "bridge")):
        assert one["begins"] == OF_TWO[rank] * 3
        assert one["steps"] == ITERATION * 3
        assert one["same"]
        assert one["restored"]
        before, attached, unable = one["reasons"]
        assert "not begun" in before
        assert attached == ""
        assert "/nowhere.csv" in unable


@needs_frameworks
def test_megatron_lm_finds_it_after_an_evaluation() -> None:
    """With a stand-in for the trainer's global timers, which evaluation gives the config anew."""
    done = scenario("megatron", "megatron_lm")
    iteration = ["0F0", "0B0", "0F1", "0B1"]
    assert done["begins"] == iteration
    assert done["evaluation"] == []
    assert done["after"] == iteration
    assert done["restored"]
    assert done["detached"] == []
    assert done["first"] == []  # Attached in its first forward: not in the middle of it.
    assert done["second"] == iteration
    assert done["third"] == 8
