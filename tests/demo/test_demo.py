# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus demo` as a user runs it, and what it leaves behind: nothing."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

BINARY = os.environ.get("PERSEUS_BINARY", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="PERSEUS_BINARY names no program")

PATIENCE = 120  # Seconds that only a hang misses.


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a demonstration whose temporary files go to `folder`."""
    return subprocess.Popen(
        [BINARY, "demo", *arguments],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


def is_clean(folder: Path) -> bool:
    """Whether no process and no file is left."""
    return not processes_of(folder) and not list(folder.iterdir())


def becomes_clean(folder: Path) -> bool:
    """Wait until the kernel has ended what lost its parent."""
    deadline = time.monotonic() + 20
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_of(folder)


def test_a_whole_run(tmp_path: Path) -> None:
    """Server, agent and trainers; the table says that it is simulated."""
    kept = tmp_path / "kept"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    demo = start(scratch, "--iterations", "3", "--no-straggler", "--keep", str(kept))
    out, err = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0, err
    assert "SIMULATED" in out
    assert "plan 1" in out
    # Before the iterations that count every rank has the plan, and the rows say so.
    assert "on 8 of 8 ranks" in out
    assert "plan 0" not in out
    assert "\033" not in out
    with (kept / "rounds.csv").open(newline="") as file:
        parts = [row["part"] for row in csv.DictReader(file)]
    assert parts.count("baseline") == 4
    assert parts.count("planned") == 3
    assert (kept / "plan.json").stat().st_size > 0
    assert not processes_of(kept)
    assert is_clean(scratch)


def test_few_changes_are_followed(tmp_path: Path) -> None:
    """The server plans for late clocks, and the clients call for no more than was planned."""
    kept = tmp_path / "kept"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    few = ("--max-changes", "8", "--iterations", "6", "--no-straggler")
    demo = start(scratch, *few, "--keep", str(kept))
    out, err = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0, err
    plan = json.loads((kept / "plan.json").read_text())
    assert plan["conditions"]["max_changes"] == 8
    assert plan["conditions"]["switch_latency_s"] == 0.015
    assert plan["expected"]["saving_percent"] > 0
    assert plan["knob_changes"] <= 8
    # Two pipelines; as many again lead from one iteration to the next, and into and out of plans.
    calls = int(out.split("Clocks")[1].split()[0])
    assert calls <= 2 * 3 * 8 * (6 + 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    """Whether it comes early or late."""
    demo = start(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("max. clocks"):
            break
    demo.send_signal(number)
    _, err = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 2
    assert "stopped" in err
    assert is_clean(tmp_path)


def test_killed_it_leaves_no_process(tmp_path: Path) -> None:
    """The kernel ends its children; files stay, as nobody is left to remove them."""
    demo = start(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("max. clocks"):
            break
    demo.kill()
    demo.communicate(timeout=PATIENCE)
    assert becomes_clean(tmp_path)


def test_a_process_that_dies_ends_the_demo(tmp_path: Path) -> None:
    """And the sentence names it."""
    demo = start(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("max. clocks"):
            break
    victim = next(
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"--demo-trainer" in path.read_bytes() and str(tmp_path).encode() in path.read_bytes()
    )
    os.kill(victim, signal.SIGKILL)
    _, err = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 2
    assert "trainer" in err
    assert "signal 9" in err
    assert is_clean(tmp_path)


def test_a_folder_with_files_is_not_touched(tmp_path: Path) -> None:
    """--keep wants a new folder."""
    (tmp_path / "mine").write_text("x")
    demo = start(tmp_path, "--keep", str(tmp_path))
    _, err = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 2
    assert "not empty" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_detection_finds_the_straggler(tmp_path: Path) -> None:
    """Real clients, server and agent: slow GPUs are found, answered, and well again.

    Nobody says that the GPUs of pipeline 1 (ranks 4 to 7) are slow in iterations 10 to 24.
    """
    kept = tmp_path / "kept"
    demo = start(tmp_path, "--detect", "--iterations", "36", "--keep", str(kept))
    out, err = demo.communicate(timeout=2 * PATIENCE)
    assert demo.returncode == 0, err
    lines = [line.split(None, 2) for line in out.split("Detection")[1].splitlines()[1:]]
    # The ranks of one pipeline are one cause: told once, when the first of them is found.
    ranks = {4, 5, 6, 7}
    slow = {int(words[2].split()[0]) for words in lines if "times as long as before" in words[2]}
    well = {int(words[2].split()[0]) for words in lines if "as before again" in words[2]}
    assert "knew all slow ranks after" in out, out
    assert slow, out
    assert slow <= ranks, out
    assert well, out
    assert well <= ranks, out
    with (kept / "rounds.csv").open(newline="") as file:
        planned = [row for row in csv.DictReader(file) if row["part"] == "planned"]
    versions = [int(row["plan_version"]) for row in planned]
    # Answered while it lasts, and taken back.
    assert versions[24] > versions[10], out
    assert versions[-1] > versions[24], out
