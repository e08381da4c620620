# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Three trainers unlike our examples, each started by torchrun as its owner starts it.

What they save is held against the emulator by adopting.py (scripts/prove adopters).
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adopting import ADOPTERS, BINARY, TORCH, Run, follows
from harness import perseus
from perseus import simulate

pytestmark = [
    pytest.mark.skipif(not os.path.exists(TORCH), reason="no PyTorch: run scripts/zeus-venv"),
    pytest.mark.skipif(
        not (BINARY and os.environ.get("PERSEUS_CLIENT_LIBRARY")),
        reason="PERSEUS_CLIENT_LIBRARY and PERSEUS_BINARY are needed",
    ),
]

PATIENCE = 120.0  # Seconds that only a hang misses.


def small(name: str, folder: Path) -> Run:
    """Return the run of a trainer with few clocks and short computations."""
    adopter = dataclasses.replace(ADOPTERS[name], scale=0.3 * ADOPTERS[name].scale)
    return Run(adopter, folder, clock_step=150)


def the_job(server: str) -> dict[str, Any]:
    """Return the one job, as the server shows it."""

    def get(path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{server}/api/v1/jobs{path}", timeout=10) as answer:
            return dict(json.loads(answer.read()))

    (job,) = get("")["jobs"]
    return get(f"/{job['id']}")


def until(holds: Callable[[], bool], run: Run, label: str) -> None:
    """Wait until `holds`."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, run.said(label)[-3000:]
        time.sleep(0.02)


def warned(run: Run, label: str) -> list[str]:
    """Return Perseus' lines in the trainer's output, as its logger prints them."""
    return [line for line in run.said(label).splitlines() if line.startswith("perseus: ")]


@pytest.mark.parametrize("name", ["by_hand", "copies"])
def test_unaided_to_a_followed_plan(name: str, tmp_path: Path) -> None:
    """With the losses that it has without Perseus, and nothing to be said."""
    run, steps = small(name, tmp_path), 120
    with run.cluster() as environment:
        run.finish("with", run.start("with", steps, "--perseus", **environment))
        job = the_job(environment["PERSEUS_SERVER"])
    run.finish("without", run.start("without", steps, "--only-last", "1"))
    assert follows(run.steps("with")[-1])
    assert {row["last_error"] for row in run.steps("with")[-1]} == {""}
    assert run.losses("with") == run.losses("without")
    assert len(run.losses("with")) == steps
    assert warned(run, "with") == []
    assert {note["severity"] for note in job["notes"]} <= {"odd"}


def test_a_loop_by_hand_without_rights_is_told_why_once(tmp_path: Path) -> None:
    """For all ranks, in the log and in `job show`."""
    run, steps = small("by_hand", tmp_path), 60
    gpus = simulate.Gpus(run.folder / "gpus")
    with run.cluster() as environment:
        for gpu in range(len(gpus)):
            gpus.set_refuse(gpu, True)
        run.finish("with", run.start("with", steps, "--perseus", **environment))
        server = environment["PERSEUS_SERVER"]
        job = the_job(server)
        shown = perseus(BINARY, "job", "show", job["id"], "--server", server)
    (said,) = warned(run, "with")
    (trouble,) = [line for line in shown.splitlines() if line.startswith("TROUBLE")]
    assert "(all 4 ranks)" in said
    assert "4 of 4 ranks" in trouble
    for text in (said, trouble):
        assert "cannot be set" in text
        assert "lacks the right" in text


def test_an_interleaved_trainer_is_killed_resumes_and_is_killed_again(tmp_path: Path) -> None:
    """It goes on under its plan; the last time, a worker of its loader outlives it."""
    run, label = small("interleaved", tmp_path), "with"
    gpus = simulate.Gpus(run.folder / "gpus")

    def settled(other_than: int) -> bool:
        rows = [run.lines(label, rank)[-1:] for rank in (0, 1)]
        if not all(rows):
            return False
        step = [row[0] for row in rows]
        # Saved, and not at the end of an epoch: the loader has a worker.
        return (
            step[0]["pid"] != other_than and step[0]["step"] % 20 in range(10, 16) and follows(step)
        )

    with run.cluster() as environment:
        trainer = run.start(label, 1000, "--perseus", **environment)
        try:
            until(lambda: settled(0), run, label)
            first = run.lines(label, 0)[-1]["pid"]
            os.kill(run.lines(label, 1)[-1]["pid"], signal.SIGKILL)
            assert trainer.wait(PATIENCE) != 0
            trainer = run.start(label, 1000, "--perseus", **environment)
            until(lambda: settled(first), run, label)
            pids = [run.lines(label, rank)[-1]["pid"] for rank in (0, 1)]
            workers = [
                int(child)
                for pid in pids
                for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            ]
            job = the_job(environment["PERSEUS_SERVER"])
            for pid in [*workers, *pids]:
                # Stopped, a worker holds what it has inherited.
                os.kill(pid, signal.SIGSTOP if pid in workers else signal.SIGKILL)
            until(lambda: not any(gpus.read(gpu).locked_mhz for gpu in (0, 1)), run, label)
            alive = [Path(f"/proc/{worker}").exists() for worker in workers]
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            assert trainer.wait(PATIENCE) != 0
        finally:
            trainer.kill()
    assert alive == [True, True]
    assert job["state"] == "running"
    again = [row for row in run.lines(label, 0) if row["pid"] != first]
    assert again[0]["step"] % 10 == 0 < again[0]["step"]  # At the step that it had saved.
    assert again[0]["plan_version"] > 0  # From the first step on.
    assert warned(run, label) == []

    with_perseus = run.losses(label)
    steps = max(with_perseus) + 1
    run.finish("without", run.start("without", steps, "--only-last", "1"))
    assert with_perseus == run.losses("without")
