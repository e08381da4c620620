# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The shape of a job's power, against arithmetic and against what `perseus emulate` writes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import perseus

np = pytest.importorskip("numpy", reason="numpy is not installed (tests/requirements.txt)")
power = pytest.importorskip("perseus.analysis.power")


def _emulation(watts: list[float], interval: float = 0.005) -> dict[str, Any]:
    return {"power_w": watts, "power_interval_s": interval, "time_s": len(watts) * interval}


def test_a_sine_is_one_line() -> None:
    """Its ramps are those of its means, its swing is in one place of the spectrum."""
    count = 1 << 12
    hertz = 25 / (count * 0.005)
    watts = [1000 + 300 * math.sin(2 * math.pi * hertz * k * 0.005) for k in range(count)]
    shape = power.shape(_emulation(watts), (hertz / 2, 2 * hertz))
    assert shape["rms_w"] == pytest.approx(300 / math.sqrt(2), rel=1e-12)
    assert shape["band"]["share"] == pytest.approx(1, rel=1e-12)
    assert shape["band"]["strongest_hz"] == pytest.approx(hertz, rel=1e-12)
    assert sum(column["rms_w"] > 1 for column in shape["spectrum"]) == 1
    # Of a sine the means over a window fall short by sinc, the difference of two is 2 sin.
    x = math.pi * hertz * 0.1
    rise = 300 * math.sin(x) / x * 2 * math.sin(x) / 0.1
    assert shape["ramp_100ms"]["rise_w_per_s"] == pytest.approx(rise, rel=1e-3)


def test_ballast_fills_the_valley_between_two_peaks() -> None:
    """The power falls and rises by the limit: 10, 7, 4, 5, 8 instead of 10, 0, 0, 0, 8."""
    assert power.ballast(np.array([10.0, 0.0, 0.0, 0.0, 8.0]), 1.0, 3.0) == pytest.approx(16)


def test_what_cannot_be_said() -> None:
    """A short job has no ramp of a second, and no band; a coarse one has no shape."""
    shape = power.shape(_emulation([1.0, 2.0] * 30))
    assert shape["ramp_1s"] is None
    assert shape["ramp_100ms"] is not None
    assert power.shape(_emulation([1.0, 2.0] * 30), (0.5, 0.52))["band"]["rms_w"] is None
    steady = power.shape(_emulation([500.0] * 4000), ramp_limit=10.0)
    assert (steady["rms_w"], steady["ballast_j"], steady["band"]["share"]) == (0, 0, 0)
    with pytest.raises(perseus.PlannerError, match="--power-interval 5ms"):
        power.shape(_emulation([1.0] * 10, 0.1))
    with pytest.raises(perseus.PlannerError, match="at most 25 Hz"):
        power.shape(_emulation([1.0] * 10), (2, 1))


@pytest.mark.skipif("PERSEUS_BINARY" not in os.environ, reason="PERSEUS_BINARY names no program")
def test_of_an_emulated_job(tmp_path: Path) -> None:
    """The command reads emulation.json; the variance of the power is that of its values."""
    example = Path(__file__).resolve().parents[2] / "examples" / "gpt3-1.3b-a100-sxm.toml"
    command = [os.environ["PERSEUS_BINARY"], "emulate", str(example), "--iterations", "5"]
    subprocess.run([*command, "--power-interval", "5ms", "-o", str(tmp_path)], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "perseus", "power", str(tmp_path / "emulation.json"), "--json"],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(perseus.__file__).parents[1])},
    )
    shape = json.loads(done.stdout)
    emulation = json.loads((tmp_path / "emulation.json").read_text(encoding="utf-8"))
    watts = np.array(emulation["power_w"][: shape["values"]])
    assert shape["rms_w"] == pytest.approx(watts.std(), rel=1e-9)
    assert shape["ramp_1s"]["rise_w_per_s"] > 0
