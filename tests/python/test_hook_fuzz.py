# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing of the hooks is raised into training, whatever name of PyTorch is not as it was.

Schedules and stages here work without the names that are taken away: those are missing for the
hooks alone. So each exception, and each result that differs, is the hooks' fault.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import random
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
from recording import Recorder, actions, recorder  # noqa: E402
from watched import STRANGE, Breaking, Watched  # noqa: E402

MICROBATCHES = 3


class Stage(Watched):
    """As `PipelineStage`."""

    def __init__(self) -> None:
        super().__init__()
        self.num_stages = self.group_size = 1
        self.group_rank = self.stage_index = 0
        self.is_last = True
        self.device = "cpu"
        self.group = None

    def forward_one_chunk(self, fwd_chunk_id: int) -> float:
        """Compute the forward of a microbatch."""
        return 1.5 * fwd_chunk_id

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: float | None = None, full_backward: bool = True
    ) -> float:
        """Compute a backward."""
        return -bwd_chunk_id if full_backward else bwd_chunk_id

    def backward_weight_one_chunk(self, bwd_chunk_id: int) -> float:
        """Compute the half of a backward for the weights."""
        return 7.0 + bwd_chunk_id


class Schedule(Watched):
    """As a schedule class of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.own = self._stage = Stage()
        self._n_microbatches = MICROBATCHES
        self._has_backward = True

    def step(self, *args: int, target: object = None) -> list[float]:
        """Run one iteration."""
        if target == "break":
            raise ZeroDivisionError
        done = []
        for index in range(MICROBATCHES):
            done.append(self.own.forward_one_chunk(index) + sum(args))
            self._maybe_compute_loss()
        for index in range(MICROBATCHES):
            done.append(self.own.backward_one_chunk(index, full_backward=False))
            done.append(self.own.backward_weight_one_chunk(index))
        return done

    def eval(self) -> float:
        """Evaluate."""
        return self.own.forward_one_chunk(0)

    def _maybe_compute_loss(self) -> None:
        pass


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of PyTorch that the hooks need for a job that is given."""
    module: Any = types.ModuleType("torch")
    module.is_grad_enabled = lambda: True
    monkeypatch.setitem(sys.modules, "torch", module)


def job_of(client: Recorder | None = None) -> perseus.Job:
    """Return a job."""
    given: Any = client or recorder()
    return perseus.Job(client=given, timeline="host")


def names_touched() -> tuple[set[str], set[str]]:
    """Return the names of a schedule and of a stage that the hooks use."""
    schedule = Schedule()
    with perseus.attach(schedule, job=job_of(), strict=True):
        schedule.step()
        schedule.eval()
    return schedule.told, schedule.own.told


def train(
    hide: Callable[[Schedule], None], at: int, job: perseus.Job | None = None
) -> list[warnings.WarningMessage]:
    """Attach, train, evaluate and detach, and take names away at one moment of these."""
    plain = Schedule()
    schedule = Schedule()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if at == 0:
            hide(schedule)
        attached = perseus.attach(schedule, job=job or job_of())
        for step in range(3):
            if at == 1 + step:
                hide(schedule)
            assert schedule.step(5, target=1) == plain.step(5, target=1)
            assert schedule.eval() == plain.eval()
            with pytest.raises(ZeroDivisionError):
                schedule.step(target="break")
        attached.detach()
        attached.report()
    assert schedule.step(5) == plain.step(5)
    return said


def test_the_names_are_those_of_pytorch() -> None:
    """Or this file tries nothing."""
    of_schedule, of_stage = names_touched()
    assert {"step", "eval", "_stage", "_n_microbatches", "_has_backward"} <= of_schedule
    assert "_maybe_compute_loss" in of_schedule
    assert {"num_stages", "group_size", "group_rank", "stage_index", "is_last"} <= of_stage
    assert {f"{kind}_one_chunk" for kind in ("forward", "backward", "backward_weight")} <= of_stage


@pytest.mark.parametrize("strange", sorted(STRANGE))
def test_a_name_that_is_not_as_it_was(strange: str) -> None:
    """Each one, at each moment: losses are the same, and complaints are few."""
    of_schedule, of_stage = names_touched()
    hidden = [(True, name) for name in of_schedule] + [(False, name) for name in of_stage]
    for (is_schedules, name), at in itertools.product(sorted(hidden), range(4)):

        def hide(schedule: Schedule, is_schedules: bool = is_schedules, name: str = name) -> None:
            (schedule if is_schedules else schedule.own).strange[name] = STRANGE[strange]

        said = train(hide, at)
        assert len(said) <= 2, (name, at, [str(one.message) for one in said])


def test_several_names_that_are_not_as_they_were() -> None:
    """Whichever."""
    of_schedule, of_stage = (sorted(names) for names in names_touched())
    chance = random.Random(7)
    for _ in range(300):

        def hide(schedule: Schedule) -> None:
            for owner, names in ((schedule, of_schedule), (schedule.own, of_stage)):
                for name in chance.sample(names, chance.randrange(len(names))):
                    owner.strange[name] = STRANGE[chance.choice(sorted(STRANGE))]

        train(hide, chance.randrange(4))


@pytest.mark.parametrize("after", range(0, 70, 3))
def test_a_client_that_breaks(after: int) -> None:
    """At whatever call, and at all that follow."""
    assert len(train(lambda schedule: None, 0, job_of(Breaking(after)))) <= 4


def test_a_wrapped_step_looks_like_the_method() -> None:
    """To whoever reads its signature, name and documentation."""
    schedule = Schedule()
    with perseus.attach(schedule, job=job_of(), strict=True):
        assert inspect.signature(schedule.step) == inspect.signature(Schedule().step)
        assert schedule.step.__name__ == "step"
        assert schedule.step.__doc__ == Schedule.step.__doc__


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_is_not_attached(copied: Callable[[Schedule], Schedule]) -> None:
    """It runs itself, tells nobody, and can be attached."""
    schedule = Schedule()
    job = job_of()
    client: Any = job.client
    with perseus.attach(schedule, job=job, strict=True):
        schedule.step()
        mark = len(client.log)
        other = copied(schedule)
        assert other.step(5) == Schedule().step(5)
        assert len(client.log) == mark
        others = job_of()
        with perseus.attach(other, job=others, strict=True):
            other.step()
        log: Any = others.client
        assert len(actions(log.log)) == 3 * MICROBATCHES
        schedule.step()
        assert len(client.log) > mark
