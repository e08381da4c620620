# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The shape of a job's power: perseus emulate against numpy, and numpy against arithmetic."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")

from . import power_shape
from .binary import perseus
from .power_shape import interval_of, shape_errors, shape_of

if TYPE_CHECKING:
    from pathlib import Path

BAND = (0.5, 4.0)
LIMIT = 400.0  # W/s


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile of two uneven stages whose iterations take seconds."""
    rows = ["stage,instruction,frequency,time,energy"]
    for stage, factor in ((0, 1.0), (1, 1.37)):
        for clock, time, energy in ((1400, 0.1, 30.0), (1000, 0.13, 24.0)):
            rows.append(f"{stage},forward,{clock},{factor * time},{factor * energy}")
            rows.append(f"{stage},backward,{clock},{2 * factor * time},{2 * factor * energy}")
    path = tmp_path / "profile.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def emulate(profile: Path, *flags: str) -> dict[str, Any]:
    """Run perseus emulate on two pipelines."""
    arguments: list[str | Path] = ["emulate", profile, "--schedule", "1f1b", "--microbatches", "4"]
    arguments += ["--blocking-power", "60", "--dp", "2", "--noise", "2%", "--json", *flags]
    result: dict[str, Any] = json.loads(perseus(arguments))
    return result


def simulated(profile: Path, *flags: str) -> tuple[dict[str, Any], list[float]]:
    """Return what is stated, and the power trace at the shape's interval."""
    result = emulate(profile, "--power-interval", "5ms", *flags)
    whole = math.floor(result["time_s"] / 0.005 * (1 + 1e-12))
    return result, result["power_w"][:whole]


def test_a_wave_by_hand() -> None:
    """A sine is one line of the spectrum, its ramps those of its means."""
    count = 1 << 12
    hertz = 25 / (count * 0.005)
    watts = [1000 + 300 * math.sin(2 * math.pi * hertz * k * 0.005) for k in range(count)]
    shape = shape_of(watts, 0.005, (hertz / 2, 2 * hertz))
    assert shape.rms == pytest.approx(300 / math.sqrt(2), rel=1e-12)
    assert shape.share == pytest.approx(1, rel=1e-12)
    assert float(shape.hertz[np.argmax(shape.parts)]) == pytest.approx(hertz, rel=1e-12)
    # Of a sine the means over a window fall short by sinc, the difference of two is 2 sin.
    x = math.pi * hertz * 0.1
    rise = 300 * math.sin(x) / x * 2 * math.sin(x) / 0.1
    assert shape.ramps["ramp_100ms"] == pytest.approx((rise, rise), rel=1e-3)


def test_ballast_by_hand() -> None:
    """The power between two peaks falls and rises by the limit."""
    held = power_shape.ballast(np.array([10.0, 0.0, 0.0, 0.0, 8.0]), 3.0)
    assert held.tolist() == [10.0, 7.0, 4.0, 5.0, 8.0]


def test_samples_get_longer_with_the_job() -> None:
    """5 ms, doubled twice at most."""
    assert [interval_of(t) for t in (1.0, 10485.0, 10486.0, 30000.0)] == [0.005, 0.005, 0.01, 0.02]
    assert interval_of(50000.0) is None


@pytest.mark.parametrize("flags", [[], ["--switch-latency", "30ms"], ["--straggler", "stall=0.7"]])
def test_the_program_states_what_numpy_finds(profile: Path, flags: list[str]) -> None:
    """Every figure, of the policy and of maximum clocks."""
    band = ["--power-band", "0.5-4Hz", "--ramp-limit", "400W/s", "--iterations", "7"]
    result, watts = simulated(profile, *band, *flags)
    want = shape_of(watts, 0.005, BAND, LIMIT)
    assert want.ballast > 0
    assert want.ramps["ramp_1s"] is not None
    assert shape_errors(result["power_shape"], result["time_s"], want, max(watts)) == []
    rows = {row["policy"]: row for row in result["policies"]}
    assert rows["perseus"]["power_shape"] == result["power_shape"]
    assert rows["max-clocks"]["power_shape"] == result["baseline"]["power_shape"]
    before, watts = simulated(profile, *band, *flags, "--policy", "max-clocks")
    want = shape_of(watts, 0.005, BAND, LIMIT)
    assert shape_errors(before["power_shape"], before["time_s"], want, max(watts)) == []
    assert before["power_shape"] == result["baseline"]["power_shape"]


def test_the_power_is_that_of_the_default_interval(profile: Path) -> None:
    """The shape does not depend on the interval of the power trace."""
    shape = emulate(profile, "--iterations", "5")["power_shape"]
    assert shape == emulate(profile, "--iterations", "5", "--power-interval", "3s")["power_shape"]
    assert (shape["band"]["from_hz"], shape["band"]["to_hz"]) == (0.1, 20)


@pytest.mark.parametrize("band", [(0.5, 0.52), (0.5, 1.0)])
def test_a_band_is_stated_where_the_run_is_long_enough(
    profile: Path, band: tuple[float, float]
) -> None:
    """Of a run of about 10 s a fiftieth of a hertz is not."""
    flags = ["--power-band", f"{band[0]}-{band[1]}", "--band-limit", "1MW", "--iterations", "5"]
    result, watts = simulated(profile, *flags)
    want = shape_of(watts, 0.005, band)
    assert (want.band_rms is None) == (band[1] < 1)
    assert shape_errors(result["power_shape"], result["time_s"], want, max(watts)) == []
    keeps = [row["keeps"] for row in result["power_limits"]["slower"]]
    assert keeps == [None if want.band_rms is None else True]
    assert any("(--iterations)" in note for note in result["notes"]) == (want.band_rms is None)


def test_an_error_is_found(profile: Path) -> None:
    """A figure that is off by a millionth is reported."""
    result, watts = simulated(profile, "--power-band", "0.5-4", "--iterations", "5")
    want = shape_of(watts, 0.005, BAND)
    stated = result["power_shape"]
    assert shape_errors(stated, result["time_s"], want, max(watts)) == []
    for path in (("ramp_1s", "rise_w_per_s"), ("ramp_100ms", "fall_w_per_s"), ("band", "rms_w")):
        wrong = json.loads(json.dumps(stated))
        wrong[path[0]][path[1]] *= 1 + 1e-6
        assert shape_errors(wrong, result["time_s"], want, max(watts)) != [], path
    assert shape_errors(None, result["time_s"], want, max(watts)) != []


def test_the_limit_is_kept_by_the_last_slower_run(profile: Path) -> None:
    """Rows before it do not keep it; what is stated of it is what emulate says at its target."""
    limits = ["--ramp-limit", "330W/s", "--iterations", "6"]
    result = emulate(profile, *limits)
    slower = result["power_limits"]["slower"]
    assert result["power_limits"]["ramp_w_per_s"] == 330
    assert [row["keeps"] for row in slower] == [False] * (len(slower) - 1) + [slower[-1]["keeps"]]
    for row in slower:
        assert row["keeps"] == (max(row["ramp_1s"].values()) <= 330)
    last = emulate(profile, *limits, "--at", f"{slower[-1]['target_s']!r}s")
    assert last["power_shape"]["ramp_1s"] == slower[-1]["ramp_1s"]
    assert last["energy_j"] == slower[-1]["energy_j"]
