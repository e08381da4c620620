# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus.simulate`: simulated GPUs for trainers. `PERSEUS_CLIENT_LIBRARY` names the library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from perseus import simulate  # noqa: E402

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
BINARY = os.environ.get("PERSEUS_BINARY", "")
pytestmark = pytest.mark.skipif(
    not LIBRARY or not os.path.exists(LIBRARY), reason="PERSEUS_CLIENT_LIBRARY names no library"
)
FORWARD = simulate.Table([(1410, 0.010, 3.2), (1200, 0.012, 2.6)])


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m perseus.simulate``."""
    return subprocess.run(
        [sys.executable, "-B", "-m", "perseus.simulate", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_makes_what_the_agents_page_needs(tmp_path: Path) -> None:
    """And `perseus doctor` sees the GPUs."""
    path = str(tmp_path / "gpus")
    made = command("create", path, "--gpus", "3")
    assert made.returncode == 0, made.stderr
    assert "3 simulated GPUs" in made.stdout
    shown = command("show", path)
    assert shown.stdout.count("1410 MHz, not locked") == 3
    if BINARY:
        doctor = subprocess.run(
            [BINARY, "doctor", "--driver", f"simulated:{path}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Simulated GPU" in doctor.stdout


def test_errors_are_one_sentence(tmp_path: Path) -> None:
    """In exit code 2 and on standard error."""
    wrong = command("create", str(tmp_path / "gpus"), "--gpus", "0")
    assert wrong.returncode == 2
    assert "expected a whole number from 1 to 256" in wrong.stderr
    missing = command("show", str(tmp_path / "none"))
    assert missing.returncode == 2
    assert "No such file" in missing.stderr


def test_kernels_take_what_their_table_says(tmp_path: Path) -> None:
    """One after the other, from when they were ready."""
    simulate.create(tmp_path / "gpus", "[[gpus]]\ncount = 2\n")
    gpus = simulate.Gpus(tmp_path / "gpus")
    assert len(gpus) == 2
    ready = gpus.now()
    first = gpus.launch(0, FORWARD, ready).wait()
    second = gpus.run(0, FORWARD, first.end_seconds)
    assert first.begin_seconds == pytest.approx(ready)
    assert second.begin_seconds == pytest.approx(first.end_seconds)
    for run in (first, second):
        assert run.seconds == pytest.approx(0.010)
        assert run.joules == pytest.approx(3.2)
        assert run.start_mhz == 1410
    gpus.set_slowdown(1, 2)
    assert gpus.run(1, FORWARD).seconds == pytest.approx(0.020)
    assert gpus.read(0).locked_mhz == 0


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    """With a sentence."""
    simulate.create(tmp_path / "gpus")
    gpus = simulate.Gpus(tmp_path / "gpus")
    with pytest.raises(simulate.SimulatedError, match="no simulated GPU 1"):
        gpus.run(1, FORWARD)
    with pytest.raises(simulate.SimulatedError, match="expected 1 to 65536"):
        gpus.run(0, simulate.Table([]))
    with pytest.raises(simulate.SimulatedError, match="cannot cost"):
        gpus.run(0, simulate.Table([(1410, -1.0, 1.0)]))
    with pytest.raises(simulate.SimulatedError, match="slowdown"):
        gpus.set_slowdown(0, 0)
    assert gpus.uuid(7) == ""
