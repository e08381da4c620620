# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""perseus.measure with PyTorch on a simulated GPU: it finds what the GPU's tables say."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drilling import NEEDED, PATIENCE, Drill, profile
from trainers_testing import BINARY, HERE, ROOT, TORCH, environment

sys.path.insert(0, str(ROOT / "python"))

import perseus

pytestmark = NEEDED


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    """A machine with a simulated GPU and an agent."""
    drill = Drill(tmp_path, gpus=1)
    (tmp_path / "truth.csv").write_text(profile())
    drill.start_agent()
    yield drill
    assert drill.agent is not None
    drill.agent.terminate()
    drill.agent.wait(PATIENCE)


def start(machine: Drill, case: str, device: str | None = None) -> subprocess.Popen[str]:
    """Begin to measure."""
    worker = str(HERE / "measure_worker.py")
    device = device or f"agent:{machine.socket}"
    return subprocess.Popen(
        [TORCH, "-B", worker, str(machine.folder), device, case],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def measured(machine: Drill, case: str, device: str | None = None) -> dict[str, Any]:
    """Return what was measured, or the sentence why not."""
    out, err = start(machine, case, device).communicate(timeout=PATIENCE)
    assert err == ""  # Nothing but the exception says what is wrong.
    answer: dict[str, Any] = json.loads(out)
    return answer


def locked_mhz(machine: Drill) -> object:
    """Return the clock that the agent has locked."""
    status = [BINARY, "agent", "status", "--socket", str(machine.socket), "--json"]
    text = subprocess.run(status, check=True, capture_output=True, text=True, timeout=60).stdout
    return json.loads(text)["gpus"][0]["locked_mhz"]


def test_it_finds_what_the_gpu_takes(machine: Drill) -> None:
    """Of two stages, each time, and each energy within its stated error; a plan is made of it."""
    said = measured(machine, "stages")

    def cells(text: str) -> dict[tuple[str, str, str], dict[str, str]]:
        lines = (line for line in text.splitlines() if not line.startswith("#"))
        rows = csv.DictReader(lines)
        return {(row["stage"], row["instruction"], row["frequency"]): row for row in rows}

    truth, found = cells(profile()), cells(said["csv"])
    # Beside them, a GPU that waits, and computations at the clocks of the driver.
    assert {key for key in found if key[1] != "blocking" and key[2].isdigit()} == set(truth)
    for key, row in truth.items():
        assert float(found[key]["time"]) == pytest.approx(float(row["time"]), rel=1e-3), key
        error = float(found[key]["energy"]) - float(row["energy"])
        stated = float(found[key]["energy_std"])
        assert 0 < stated < 0.1 * float(row["energy"]), key
        assert abs(error) < 5 * stated + 0.01 * float(row["energy"]), (key, error, stated)
    path = machine.folder / "measured.csv"
    plan = perseus.plan(path, schedule="1f1b", microbatches=8, blocking_power=85)
    assert plan.saving_percent > 0
    assert locked_mhz(machine) is None


@pytest.mark.parametrize(
    ("case", "device", "words"),
    [
        ("shape", None, r"the forward of the stage fails .*\(4, 7\).*RuntimeError: mat1 and mat2"),
        ("raises", None, r"the forward of the stage fails .*KeyError: 'embedding'"),
        ("no_gradient", None, r"no gradient.*no_grad\(\)"),
        ("short", None, r"a forward takes .* ms, too short .*microbatch"),
        ("seconds", None, r"seconds is the time at each clock, .*not 0"),
        (
            "none",
            "agent:/nowhere/agent.sock",
            r"^agent:/nowhere/agent.sock cannot be used: .*agent",
        ),
        ("none", "nvlm", r"^nvlm cannot be used: .*nvml"),
        ("refused", None, r"^no clock can be set: (?!profile).*right"),
    ],
)
def test_what_is_wrong_is_said(machine: Drill, case: str, device: str | None, words: str) -> None:
    """In one sentence, before the minutes of a sweep."""
    assert re.search(words, measured(machine, case, device)["error"], re.DOTALL)
    assert locked_mhz(machine) is None


def test_the_clock_comes_back_after_a_kill(machine: Drill) -> None:
    """And the server that measured beside it ends, too."""
    worker = start(machine, "stages")
    machine.until(lambda: locked_mhz(machine) is not None, "no clock is locked")
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    assert children
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=PATIENCE)
    machine.until(lambda: locked_mhz(machine) is None, "the clock stays")
    machine.until(lambda: not any(map(runs, children)), "the server stays")


def runs(process: str) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
