# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks of Lightning and of Hugging Face's Trainer, and what Accelerate prepares."""

from __future__ import annotations

from typing import Any

import pytest
from trainers_testing import needs, scenario

# Two epochs of five batches.
EACH_BATCH = (["0F0", "0B0"] * 10, ["step_begin", "step_end"] * 10)
# Two batches make a step; the last of an epoch is one of its own, and such steps are not used.
PAIR = ["0F0", "0B0", "0F1", "0B1"]
USED, UNUSED = ["step_begin", "step_end"], ["step_begin", "step_abandon"]
EACH_PAIR = ((PAIR * 2 + PAIR[:2]) * 2, (USED * 2 + UNUSED) * 2)


@pytest.fixture(scope="module")
def lightning() -> Any:
    """What the callback sees of each training: Lightning is imported once."""
    return scenario("callbacks", "lightning")


@needs("lightning")
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("automatic", EACH_BATCH),
        ("sharded", EACH_BATCH),
        ("accumulated", EACH_PAIR),
        ("manual", EACH_BATCH),
    ],
)
def test_lightning_tells_of_each_batch(lightning: Any, case: str, expected: Any) -> None:
    """Under DDP and FSDP2, without its sanity check and evaluation; losses stay bit for bit."""
    for one in lightning:
        done = one[case]
        assert (done["begins"], done["steps"]) == expected
        assert done["ends"] == done["begins"]
        assert done["same"]
        assert done["last_error"] == ""
        assert done["closes"] == 1
        assert done["hooks"] == 0
        sharded = case == "sharded"
        assert done["mesh"] == (["data_parallel", "tensor_parallel"] if sharded else None)


@needs("lightning")
def test_with_manual_optimization_the_trainer_says_how_much_makes_a_step(lightning: Any) -> None:
    """Not used: what is accumulated over an epoch, and a batch with two backwards."""
    for one in lightning:
        done = one["manual accumulated"]
        # Of ten batches each second of five ends a step: 2, 2, 1 + 2, 2, and one that is left.
        assert done["steps"] == USED * 2 + UNUSED + USED + ["step_begin"]
        assert done["same"]
        done = one["two backwards"]
        assert done["begins"] == PAIR * 10
        assert done["steps"] == UNUSED * 10
        assert "2 microbatches and the plan is for 1" in done["last_error"]
        assert done["same"]


@needs("lightning")
def test_an_exception_in_lightning_ends_the_job(lightning: Any) -> None:
    """It passes through."""
    for one in lightning:
        done = one["fails"]
        assert done["raised"]
        assert done["same"]
        assert done["closes"] == 1
        assert done["hooks"] == 0
        assert done["begins"] == ["0F0", "0B0"] * 3 + ["0F0"]


@needs("lightning")
def test_the_callback_is_one_of_the_lightning_that_was_imported(lightning: Any) -> None:
    """Of both packages; and a copy of it, which spawned processes get, is as new."""
    for one in lightning:
        assert one["is_callback"]
        assert one["copied"] == [{"job_id": "j", "strict": True}] * 2
        assert "not begun" in one["before"]
    assert scenario("callbacks", "older_lightning") == [True, []]


@needs("accelerate")
def test_attach_ddp_takes_what_accelerate_prepared() -> None:
    """Whose optimizer holds the one that steps."""
    for one in scenario("callbacks", "accelerate"):
        for accumulate, expected in (("1", EACH_BATCH), ("2", EACH_PAIR)):
            done = one[accumulate]
            assert done["reason"] == ""
            assert (done["begins"], done["steps"]) == expected
            assert done["ends"] == done["begins"]
            assert done["same"]
            assert done["wrapped"] == ["DistributedDataParallel", "AcceleratedOptimizer"]


@needs("transformers")
def test_the_trainer_of_transformers_tells_by_a_callback() -> None:
    """With its own number of batches for a step, and evaluation after each epoch."""
    for one in scenario("callbacks", "transformers"):
        for accumulate, expected in (("1", EACH_BATCH), ("2", EACH_PAIR)):
            done = one[accumulate]
            assert done["reason"] == ""
            assert (done["begins"], done["steps"]) == expected
            assert done["same"]
            assert done["wrapped"] == "DistributedDataParallel"
            assert done["undo"] == 0
