# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""As test_hook_fuzz.py, for the hooks of Megatron and DeepSpeed: nothing is raised into training.

Stand-ins for these frameworks work whatever is taken away, which is missing for the hooks alone.
"""

from __future__ import annotations

import itertools
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
from perseus.hooks import callbacks  # noqa: E402
from recording import Recorder, recorder  # noqa: E402
from watched import STRANGE, Breaking, Watched  # noqa: E402

MICROBATCHES = 2


class Config(Watched):
    """As Megatron's `ModelParallelConfig`."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: Any = Timers()
        self.pipeline_model_parallel_size = 1
        self.virtual_pipeline_model_parallel_size = 2
        self.microbatch_group_size_per_vp_stage = 1
        self.overlap_moe_expert_parallel_comm = False
        self.hybrid_context_parallel = False
        self.cuda_graph_scope: list[str] = []
        self.cuda_graph_impl = "none"


class Timer:
    """One of Megatron's timers."""

    def __init__(self) -> None:
        self.runs = 0

    def start(self) -> None:
        """Start."""
        self.runs += 1

    def stop(self) -> None:
        """Stop."""
        self.runs -= 1


class Timers:
    """Megatron's timers."""

    def __init__(self) -> None:
        self.timers: dict[str, Timer] = {}

    def __call__(self, name: str, log_level: int = 0) -> Timer:
        """Return one."""
        return self.timers.setdefault(name, Timer())


class ParallelState(Watched):
    """As `megatron.core.parallel_state`."""

    def __getattr__(self, name: str) -> Callable[[], int | None]:
        if name.startswith("__"):
            raise AttributeError(name)
        if "virtual" in name:  # Older versions: the config says so.
            return lambda: None
        return lambda: int(name.endswith(("size", "initialized")))


class Calculator(Watched):
    """As `megatron.core.num_microbatches_calculator`."""

    def get_num_microbatches(self) -> int:
        """Of an iteration."""
        return MICROBATCHES


class Megatron:
    """A trainer."""

    def __init__(self) -> None:
        self.config = Config()
        self.state = ParallelState()
        self.calculator = Calculator()
        sys.modules["megatron.core.parallel_state"] = self.state  # type: ignore[assignment]
        sys.modules["megatron.core.num_microbatches_calculator"] = self.calculator  # type: ignore[assignment]

    @property
    def watched(self) -> list[Watched]:
        """What the hooks look at."""
        return [self.config, self.state, self.calculator]

    def attach(self, job: perseus.Job) -> perseus.Attached:
        """Let Perseus follow it."""
        return perseus.attach_megatron(self.config, job=job)

    def step(self, breaks: bool = False) -> list[int]:
        """Run one iteration."""
        timers = self.config.timers
        timers("forward-backward", log_level=1).start()
        done = []
        for kind in ("forward", "backward"):
            for index in range(MICROBATCHES * 2):
                timers(f"{kind}-compute", log_level=2).start()
                if breaks:
                    raise ZeroDivisionError
                done.append(index)
                timers(f"{kind}-compute", log_level=2).stop()
        timers("forward-backward").stop()
        return done


def instruction(name: str) -> type:
    """Return a class of that name."""
    return type(name, (), {})


INSTRUCTIONS = {
    name: instruction(name)
    for name in ("LoadMicroBatch", "ForwardPass", "BackwardPass", "OptimizerStep")
}


class Grid(Watched):
    """As the grid of DeepSpeed's engine."""

    def __getattr__(self, name: str) -> Callable[[], int]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda: int(name.endswith("size"))


class Module(Watched):
    """As its module."""

    training = True


class Engine(Watched):
    """As DeepSpeed's `PipelineEngine`."""

    def __init__(self) -> None:
        super().__init__()
        self.grid = Grid()
        self.module = Module()
        self.micro_batches = MICROBATCHES
        self.global_rank = self.stage_id = 0
        self.num_stages = 1
        self.breaks = False

    def execute(self, amount: int) -> int:
        """Run an instruction."""
        if self.breaks:
            raise ZeroDivisionError
        return 3 * amount

    _INSTRUCTION_MAP = dict.fromkeys(INSTRUCTIONS.values(), execute)

    def train_batch(self) -> list[int]:
        """Run one iteration."""
        names = ["LoadMicroBatch", "ForwardPass", "BackwardPass"] * MICROBATCHES + ["OptimizerStep"]
        return [
            self._INSTRUCTION_MAP[INSTRUCTIONS[name]](self, amount=amount)
            for amount, name in enumerate(names)
        ]


class DeepSpeed:
    """A trainer."""

    def __init__(self) -> None:
        self.engine = Engine()

    @property
    def watched(self) -> list[Watched]:
        """What the hooks look at."""
        return [self.engine, self.engine.grid, self.engine.module]

    def attach(self, job: perseus.Job) -> perseus.Attached:
        """Let Perseus follow it."""
        return perseus.attach_deepspeed(self.engine, job=job)

    def step(self, breaks: bool = False) -> list[int]:
        """Run one iteration."""
        self.engine.breaks = breaks
        return self.engine.train_batch()


Trainer = Callable[[], Any]
TRAINERS: list[Trainer] = [Megatron, DeepSpeed]


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of PyTorch that the hooks need for a job that is given."""
    module: Any = types.ModuleType("torch")
    module.is_grad_enabled = lambda: True
    distributed: Any = types.ModuleType("torch.distributed")
    distributed.get_rank = lambda: 0
    distributed.is_initialized = lambda: False
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    for name in ("parallel_state", "num_microbatches_calculator"):
        monkeypatch.setitem(sys.modules, f"megatron.core.{name}", types.ModuleType(name))


def job_of(client: Recorder | None = None) -> perseus.Job:
    """Return a job."""
    given: Any = client or recorder()
    return perseus.Job(client=given, timeline="host")


def names_touched(trainer: Trainer) -> list[tuple[int, str]]:
    """Return the names that the hooks use, each with the place of its object in `watched`."""
    trained = trainer()
    job = job_of()
    attached = trained.attach(job)
    assert attached, attached.reason
    trained.step()
    client: Any = job.client
    told = [call[0] for call in client.log]
    assert told.count("instruction_begin") == told.count("instruction_end") >= 2 * MICROBATCHES
    assert told[-1] == "step_end"
    attached.detach()
    names = []
    for place, watched in enumerate(trained.watched):
        assert watched.told
        names += [(place, name) for name in sorted(watched.told)]
    return names


def train(
    trainer: Trainer, hide: Callable[[Any], None], at: int, job: perseus.Job | None = None
) -> list[warnings.WarningMessage]:
    """Attach, train and detach, and take names away at one moment of these."""
    plain = trainer().step()
    trained = trainer()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if at == 0:
            hide(trained)
        attached = trained.attach(job or job_of())
        for step in range(3):
            if at == 1 + step:
                hide(trained)
            assert trained.step() == plain
            with pytest.raises(ZeroDivisionError):
                trained.step(breaks=True)
        attached.detach()
        attached.report()
    assert trained.step() == plain
    return said


@pytest.mark.parametrize("strange", sorted(STRANGE))
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_name_that_is_not_as_it_was(trainer: Trainer, strange: str) -> None:
    """Each one, at each moment: training is the same, and complaints are few."""
    for (place, name), at in itertools.product(names_touched(trainer), range(4)):

        def hide(trained: Any, place: int = place, name: str = name) -> None:
            trained.watched[place].strange[name] = STRANGE[strange]

        said = train(trainer, hide, at)
        assert len(said) <= 2, (name, at, [str(one.message) for one in said])


@pytest.mark.parametrize("trainer", TRAINERS)
def test_several_names_that_are_not_as_they_were(trainer: Trainer) -> None:
    """Whichever."""
    names = names_touched(trainer)
    chance = random.Random(7)
    for _ in range(200):

        def hide(trained: Any) -> None:
            watched = trained.watched
            for place, name in chance.sample(names, chance.randrange(len(names))):
                watched[place].strange[name] = STRANGE[chance.choice(sorted(STRANGE))]

        train(trainer, hide, chance.randrange(4))


@pytest.mark.parametrize("after", range(0, 40, 3))
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_client_that_breaks(trainer: Trainer, after: int) -> None:
    """At whatever call, and at all that follow."""
    assert len(train(trainer, lambda trained: None, 0, job_of(Breaking(after)))) <= 4


def test_a_cuda_graph_of_the_whole_iteration_is_refused() -> None:
    """Its replays run without Megatron's timers."""
    trained = Megatron()
    trained.config.cuda_graph_scope = ["CudaGraphScope.full_iteration"]
    assert trained.attach(job_of())
    trained = Megatron()
    trained.config.cuda_graph_scope = ["CudaGraphScope.full_iteration"]
    trained.config.cuda_graph_impl = "local"
    with pytest.warns(RuntimeWarning, match="cuda_graph_scope"):
        attached = trained.attach(job_of())
    assert not attached
    assert isinstance(trained.config.timers, Timers)


@pytest.mark.parametrize("name", ["WeightPass", "ForwardBackwardPass", "Anything"])
def test_instructions_that_are_not_known_are_refused(name: str) -> None:
    """Whatever they are called."""
    trained = DeepSpeed()
    known = trained.engine._INSTRUCTION_MAP
    trained.engine._INSTRUCTION_MAP = {**known, instruction(name): Engine.execute}
    with pytest.warns(RuntimeWarning, match=name):
        assert not trained.attach(job_of())
    assert "train_batch" not in vars(trained.engine)


@pytest.mark.parametrize(
    "kind", [callbacks._Lightning, callbacks._Transformers, callbacks._Megatron]
)
def test_a_callback_in_a_trainer_that_has_nothing(kind: Any) -> None:
    """It says once why it is not attached, and is still then."""
    callback = kind({})
    assert callback.attached.report()["state"] == "detached"
    nothing = types.SimpleNamespace()
    begin = next(name for name in ("on_train_start", "on_train_begin") if hasattr(kind, name))
    arguments = [nothing] * (getattr(kind, begin).__code__.co_argcount - 1)
    with pytest.warns(RuntimeWarning, match="not attached") as said:
        getattr(callback, begin)(*arguments)
    assert len(said) == 1
    assert callback.attached.reason
    for name in ("on_train_batch_start", "on_train_step_start", "on_train_end", "on_exception"):
        getattr(callback, name, print)(nothing)
    getattr(callback, "on_before_backward", print)(nothing, nothing, nothing)
    with pytest.raises(perseus.AttachError):
        getattr(kind({"strict": True}), begin)(*arguments)
