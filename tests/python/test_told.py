# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The wrappers around computations, in Python and compiled: both do the same.

The compiled ones lie beside the library under test, where Python's headers were there to build
them.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import shutil
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
from perseus import extension  # noqa: E402
from perseus.hooks.wrap import Wrap  # noqa: E402
from recording import CompiledRecorder, Recorder, compiled  # noqa: E402

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY")
FORWARD, BACKWARD, INPUT = 0, 1, 2
STAGE = 5
WAYS = ["python", "compiled"]


class StageError(Exception):
    """What a stage raises."""


class Vague:
    """Neither true nor false."""

    def __bool__(self) -> bool:
        raise StageError


class Bench:
    """A job, and what happened to it in order: what its client was told, and what was called."""

    def __init__(self, way: str) -> None:
        module = compiled()
        if way == "compiled" and module is None:
            pytest.skip("perseus._told was not built")
        recorder = Recorder() if way == "python" else CompiledRecorder(module)
        self.log = recorder.log
        client: Any = recorder
        self.job = perseus.Job(client=client, timeline="host")
        assert (self.job.told is module) == (way == "compiled")
        self.job.teller.plain = True

    def computation(
        self, original: Callable[..., Any] | None = None, has_loss: bool = False, most_args: int = 2
    ) -> Any:
        """Return a wrapped computation."""
        return self.job.told.computation(
            self.job.teller,
            original or self.called("original"),
            self.called("careful"),
            STAGE,
            FORWARD if has_loss else BACKWARD,
            FORWARD if has_loss else INPUT,
            most_args,
            has_loss,
        )

    def loss(self, original: Callable[..., Any] | None = None) -> Any:
        """Return a wrapped loss."""
        return self.job.told.loss(
            self.job.teller, original or self.called("loss"), self.called("careful")
        )

    def called(self, name: str) -> Callable[..., Any]:
        """Return a function that writes down its calls, and returns its first argument."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.log.append([name, args, kwargs])
            return args[0] if args else None

        return call

    def names(self) -> list[str]:
        """Return what happened since it was asked last."""
        names = [entry[0] for entry in self.log]
        self.log.clear()
        return names


@pytest.fixture(params=WAYS)
def bench(request: pytest.FixtureRequest) -> Bench:
    """Wrappers of each kind."""
    return Bench(request.param)


TOLD = ["instruction_begin", "original", "instruction_end"]


def test_a_computation_is_told_around_its_call(bench: Bench) -> None:
    """With what it is, and all of its arguments and its result as they are."""
    told = bench.computation()
    more = object()
    assert told(3, more) == 3
    assert told(4, full_backward=False, other=more) == 4
    assert told(5, full_backward=1) == 5
    assert bench.log == [
        ["instruction_begin", "backward", STAGE, 3],
        ["original", (3, more), {}],
        ["instruction_end", "backward", STAGE, 3],
        ["instruction_begin", "backward_input", STAGE, 4],
        ["original", (4,), {"full_backward": False, "other": more}],
        ["instruction_end", "backward_input", STAGE, 4],
        ["instruction_begin", "backward", STAGE, 5],
        ["original", (5,), {"full_backward": 1}],
        ["instruction_end", "backward", STAGE, 5],
    ]


def test_what_is_not_plain_is_left_to_the_careful_one(bench: Bench) -> None:
    """Whole: nothing is told before it, or after it."""
    told = bench.computation()
    told(1)
    assert bench.names() == TOLD
    for arguments, names in (
        (((), {}), {}),
        (((1, 2, 3), {}), {}),
        (((), {"bwd_chunk_id": 1}), {}),
        (((1,), {"full_backward": Vague()}), {}),
        (((1,), {}), {"plain": False}),
        (((1,), {}), {"loss": (STAGE, 0)}),
    ):
        for name, value in names.items():
            setattr(bench.job.teller, name, value)
        args, kwargs = arguments
        told(*args, **kwargs)
        assert bench.names() == ["careful"], arguments
        bench.job.teller.plain, bench.job.teller.loss = True, None


def test_an_exception_passes_through(bench: Bench) -> None:
    """The same one, and the computation has no end."""
    error = StageError()

    def breaks(*_args: object) -> None:
        raise error

    for told in (bench.computation(breaks), bench.loss(breaks)):
        with pytest.raises(StageError) as raised:
            told(1)
        assert raised.value is error
    assert bench.names() == ["instruction_begin"]


def test_a_forward_ends_with_its_loss(bench: Bench) -> None:
    """It waits in the job for it; another's loss ends nothing."""
    forward, loss = bench.computation(has_loss=True), bench.loss()
    loss("none")
    assert forward(7) == 7
    assert bench.job.teller.loss == (STAGE, 7)
    assert loss("value") == "value"
    assert bench.job.teller.loss is None
    loss("again")
    assert bench.log == [
        ["loss", ("none",), {}],
        ["instruction_begin", "forward", STAGE, 7],
        ["original", (7,), {}],
        ["loss", ("value",), {}],
        ["instruction_end", "forward", STAGE, 7],
        ["loss", ("again",), {}],
    ]
    bench.log.clear()
    bench.job.teller.loss, bench.job.teller.plain = (STAGE, 8), False
    loss("value")
    assert bench.names() == ["loss", "careful"]
    # Whatever is there, it is no loss of training.
    bench.job.teller.plain = True
    for strange in ("text", (1,), ("a", "b")):
        bench.job.teller.loss = strange
        loss("value")
        bench.job.teller.loss = None
        assert bench.names()[0] == "loss"


def test_a_computation_may_end_what_is_plain(bench: Bench) -> None:
    """Then its end is not told."""

    def ends(_microbatch: int) -> None:
        bench.job.skip_begin()

    bench.computation(ends)(1)
    assert bench.names() == ["instruction_begin"]


def test_a_wrapper_is_taken_off_while_it_runs(bench: Bench) -> None:
    """And thrown away."""

    class Stage:
        def compute(self, microbatch: int) -> int:
            wrap.put(False)
            gc.collect()
            return microbatch

    stage = Stage()
    wrap = Wrap(stage, "compute", bench.computation)
    for _ in range(3):
        wrap.put(True)
        assert stage.compute(2) == 2
        assert bench.names() == ["instruction_begin", "instruction_end"]


def test_a_compiled_wrapper_lives_while_it_runs() -> None:
    """Also where nobody else has it any more."""
    bench = Bench("compiled")
    alive: list[bool] = []

    def lives() -> bool:
        return any(type(each) is bench.job.told.computation for each in gc.get_objects())

    def forgets(_microbatch: int) -> None:
        entry.__setstate__((print, (), {}, {}))  # type: ignore[attr-defined]
        alive.append(lives())

    entry = functools.partial(bench.computation(forgets))
    entry(1)
    assert alive == [True]
    assert not lives()
    assert bench.names() == ["instruction_begin", "instruction_end"]


def test_nothing_keeps_a_stage(bench: Bench) -> None:
    """Which has a wrapper that has the stage."""

    class Stage:
        told: Any = None

        def compute(self, microbatch: int) -> int:
            return microbatch

    stage = Stage()
    stage.told = bench.computation(stage.compute)
    assert stage.told(1) == 1
    gone = weakref.ref(stage)
    del stage
    gc.collect()
    assert gone() is None


def test_whatever_is_called_both_do_the_same() -> None:
    """Random calls, states and failures."""
    benches = [Bench(way) for way in WAYS]
    chance = random.Random(3)

    def original(microbatch: int, *_args: object, **kwargs: object) -> int:
        if kwargs.get("breaks"):
            raise StageError
        return microbatch

    told = [
        [
            bench.computation(original),
            bench.computation(original, has_loss=True),
            bench.computation(original, most_args=9),
            bench.loss(original),
        ]
        for bench in benches
    ]
    for _ in range(5000):
        which = chance.randrange(4)
        args = tuple(chance.randrange(-1, 4) for _ in range(chance.randrange(1, 5)))
        kwargs: dict[str, Any] = {}
        if chance.random() < 0.5:
            kwargs["full_backward"] = chance.choice([True, False, None, 0, 1, "", Vague()])
        if chance.random() < 0.1:
            kwargs["breaks"] = True
        plain = chance.random() < 0.8
        forget = chance.random() < 0.2
        seen = []
        for bench, wrapped in zip(benches, told, strict=True):
            bench.job.teller.plain = plain
            if forget:
                bench.job.teller.loss = None
            try:
                result: object = wrapped[which](*args, **kwargs)
            except StageError:
                result = StageError
            seen.append([result, bench.job.teller.loss, list(bench.log)])
            bench.log.clear()
        assert seen[0] == seen[1], (which, args, kwargs, plain)


def test_a_compiled_wrapper_takes_only_what_it_knows() -> None:
    """A mistake of ours is an exception as it is made, and no crash."""
    bench = Bench("compiled")
    module, teller = bench.job.told, bench.job.teller
    for strange in (object(), None, module, 1):
        with pytest.raises(TypeError):
            module.computation(strange, print, print, 0, 0, 0, 2, False)
        with pytest.raises(TypeError):
            module.loss(strange, print, print)
    with pytest.raises(ValueError, match="addresses"):
        module.Teller(None, 1, 0, 0)
    with pytest.raises(TypeError):
        module.computation(teller, print)
    bench.computation()("one")  # No microbatch.
    assert bench.names() == ["careful"]
    for words in ((), (1,), ("a", "b", "c"), (1, 2, None), (1, 2, 3, 4)):
        assert teller.begin(*words) is None
        assert teller.end(*words) is None
    assert bench.names() == []


@pytest.mark.skipif(not LIBRARY, reason="PERSEUS_CLIENT_LIBRARY is needed")
def test_a_client_tells_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also numbers that C cannot hold, and words that are none."""
    if compiled() is None:
        pytest.skip("perseus._told was not built")
    counts = []
    for way in WAYS:
        monkeypatch.setenv("PERSEUS_EXTENSION", "0" if way == "python" else "1")
        with perseus.Client() as client:
            assert (client.compiled is None) == (way == "python")
            client.step_begin(0)
            for kind, stage, microbatch in (
                ("forward", 0, 1),
                ("R", -1, -1),
                (perseus.Instruction.BACKWARD, 2**40, -(2**40)),
                ("sideways", 0, 0),
                ("forward", None, 0),
            ):
                client.instruction_begin(kind, stage, microbatch)  # type: ignore[arg-type]
                client.instruction_end(kind, stage, microbatch)  # type: ignore[arg-type]
            assert "None" in client._failure
            client.step_end()
            for _ in range(1000):
                stats = client.stats()
                if stats is not None and stats.instructions >= 3:
                    break
                time.sleep(0.01)
            assert stats is not None
            counts.append((stats.instructions, client.last_error))
    assert counts[0] == counts[1]
    assert counts[0][0] == 3


@pytest.mark.skipif(not LIBRARY, reason="PERSEUS_CLIENT_LIBRARY is needed")
def test_a_client_goes_on_without_a_file_that_it_can_load(tmp_path: Path) -> None:
    """Broken, of another version, or not there at all: nobody notices."""
    assert LIBRARY is not None
    library = tmp_path / "libperseus_client.so"
    shutil.copy(LIBRARY, library)
    file = tmp_path / extension._FILE
    code = (
        "import perseus\n"
        "with perseus.Client() as client, client.step(0), client.instruction('forward', 0, 1):\n"
        "    print(client.compiled is None, client.last_error)\n"
    )
    for content in (None, b"", b"\x7fELF nonsense", library.read_bytes()):
        if content is not None:
            file.write_bytes(content)
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "python"),
                "PERSEUS_CLIENT_LIBRARY": str(library),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == ("True \n", "")
