# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`Attached.ahead`: batches as they are, and the lengths of each told one step before it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from perseus.hooks.attached import Attached
from recording import recorded


class Listener:
    """In the place of a job's step planner: writes down what is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, tuple[float, ...]]] = []
        self.others: list[Any] = []

    def coming(self, iteration: int, work: Any, others: Any = ()) -> None:
        """Write it down."""
        self.told.append((iteration, tuple(work)))
        self.others.append(others)

    def close(self) -> None:
        """Nothing to end."""


def attached() -> tuple[Attached, Listener]:
    """Return hooks on a job that trains nothing."""
    job, _ = recorded()
    listener: Any = Listener()
    job._step_planner = listener
    return Attached(job), listener


def work(batch: int) -> list[float]:
    """Return the lengths of a batch of these tests."""
    return [batch / 10]


def test_each_batch_is_told_before_the_step_that_comes_before_its_own() -> None:
    """By the numbers of the steps that train with it, also where steps were before."""
    hooks, listener = attached()
    assert hooks.job is not None
    for _ in range(3):
        with hooks.job.step():
            pass
    seen = []
    for batch in hooks.ahead([10, 20, 30], work):
        seen.append((batch, list(listener.told)))
        with hooks.job.step():
            pass
    first, second, third = (3, (1.0,)), (4, (2.0,)), (5, (3.0,))
    assert seen == [
        (10, [first, second]),
        (20, [first, second, third]),
        (30, [first, second, third]),
    ]


@pytest.mark.parametrize("batches", [[], [1], [1, 2, 3]])
def test_where_attaching_failed_batches_are_the_same(batches: list[int]) -> None:
    """And nobody asks for their lengths."""

    def never(batch: int) -> list[float]:
        raise AssertionError(batch)

    assert list(Attached(None, "no server").ahead(batches, never)) == batches


def test_no_more_than_one_batch_is_read_ahead() -> None:
    """A loader without end, and one that is not gone through."""
    hooks, _ = attached()
    drawn = []

    def loader() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    batches = hooks.ahead(loader(), work)
    assert drawn == []
    assert [next(batches) for _ in range(3)] == [0, 1, 2]
    assert drawn == [0, 1, 2, 3]


@pytest.mark.parametrize("good", [0, 1, 3])
def test_an_exception_of_the_loader_comes_in_its_place(good: int) -> None:
    """After all batches that were before it."""
    hooks, _ = attached()

    def loader() -> Iterator[int]:
        yield from range(good)
        raise OSError("the disk is gone")

    batches = hooks.ahead(loader(), work)
    assert [next(batches) for _ in range(good)] == list(range(good))
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)


def test_lengths_that_cannot_be_had_are_said_once_and_training_goes_on() -> None:
    """As all that goes wrong in Perseus."""
    hooks, listener = attached()

    def broken(batch: int) -> list[float]:
        raise KeyError(batch)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert list(hooks.ahead([1, 2, 3], broken)) == [1, 2, 3]
        hooks.detach()
    assert len(said) == 1
    assert "the work of a coming batch is not known: KeyError" in str(said[0].message)
    assert listener.told == []


def test_the_lengths_of_other_pipelines_are_told_with_each_batch() -> None:
    """Where the trainer knows them, and none where it says nothing of them."""
    hooks, listener = attached()
    assert list(hooks.ahead([10, 20], work, lambda batch: [[batch / 5]])) == [10, 20]
    assert listener.others == [[[2.0]], [[4.0]]]
    assert list(hooks.ahead([30], work)) == [30]
    assert listener.others[2:] == [()]
