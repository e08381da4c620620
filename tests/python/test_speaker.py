# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Complaints that several ranks have in common, and what they tell each other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402
from perseus.hooks.speaker import Speaker  # noqa: E402
from recording import Recorder, Store, said_by  # noqa: E402


@pytest.mark.parametrize(
    ("complaining", "world", "named"),
    [
        ([0, 1, 2], 3, "all 3 ranks"),
        ([4], 6, "rank 4"),
        ([5, 1], 6, "ranks 1, 5"),
        (list(range(12)), 20, "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more"),
    ],
)
def test_ranks_complain_once_together(complaining: list[int], world: int, named: str) -> None:
    """And a problem that comes later is another one."""
    store = Store()
    speakers = [Speaker(store, rank, world) for rank in complaining]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        # The first of them waits until it is told to close.
        for rank, speaker in zip(complaining, speakers, strict=True):
            speaker.say(f"GPU {rank}, GPU-{10 + rank:x}0f, is away.")
        while len(store.values) < 1 + len(complaining):  # A count, and a number for each.
            time.sleep(0.001)
        for speaker in speakers:
            speaker.close()
    (said,) = [str(one.message) for one in seen]
    assert said.startswith("perseus: GPU ")
    assert said.endswith(f"0f, is away ({named}); training goes on")


@pytest.mark.parametrize("setup", ["", "-W error", "logging.basicConfig()"])
def test_a_plain_script_shows_a_complaint_once(setup: str) -> None:
    """From the log; who sets up logging has the warning beside it."""
    code = "import logging, sys; sys.path.insert(0, sys.argv[1])\n"
    code += setup if setup.startswith("logging") else ""
    code += "\nfrom perseus.hooks.speaker import say\nsay('the agent is away')"
    words = ["-W", "error"] if setup == "-W error" else []
    done = subprocess.run(
        [sys.executable, *words, "-c", code, str(ROOT / "python")],
        capture_output=True,
        text=True,
        check=True,
    )
    times = 2 if setup.startswith("logging") else 1
    assert done.stderr.count("perseus: the agent is away; training goes on") == times, done.stderr


def test_a_rank_whose_store_is_gone_speaks_for_itself() -> None:
    """Nothing is lost."""

    def speak() -> None:
        speaker = Speaker(Store(broken=True), 3, 4)
        speaker.say("it is away")
        speaker.close()

    with pytest.warns(RuntimeWarning, match=r"it is away \(rank 3\)"):
        speak()


def test_two_processes_that_are_the_same_rank_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second says which process was first; the same process may attach again."""
    store = Store()
    monkeypatch.setattr("perseus.hooks.job.store_of_ranks", lambda: store)

    def error_of(rank: int, key: str = "a") -> str:
        client: Any = Recorder()
        job = perseus.Job(client=client, job={"client_key": key}, rank=rank)
        said_by(job)
        return job.last_error

    assert error_of(0) == error_of(0) == error_of(1) == ""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    with pytest.warns(RuntimeWarning, match="rank 1 is process"):
        assert error_of(1).startswith("rank 1 is process ")
    assert error_of(1, "another job") == error_of(2) == ""
    store.broken = True
    assert error_of(1) == ""
