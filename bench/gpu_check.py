#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Watch a real NVIDIA GPU that trains a transformer stage. Never sets a clock.

Needs PyTorch with CUDA and libperseus_client; exits with 77 if PyTorch sees no GPU:

1. NVML by dlopen: what each query that Perseus makes answers on this card, with its error code.
2. The period of the energy counter.
3. Time of each computation (forward, backward) of a transformer stage: by CUDA events of its own,
   and by `perseus.Job(timeline="cuda")`, which is given none of them.
4. Energy of each, by regression of the counter over windows of different mixes of forward,
   backward and waiting; held against windows that were kept out of the regression.
5. What `Job` costs a step with real streams: paired, with a control.

    python bench/gpu_check.py [--seconds 60] [--json FILE]

`--cpu` runs it without a GPU, on what NVML there is (the fake one, say), to try the script.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import perseus  # isort: skip # noqa: E402

MIXES = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.0), (0.4, 0.4, 0.2), (0.7, 0.3, 0.0))


class Nvml:
    """The queries of NVML that Perseus makes, and no call that sets anything."""

    def __init__(self, uuid: str | None) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.codes: dict[str, str] = {}
        self._check("nvmlInit_v2", self.library.nvmlInit_v2())
        self.device = ctypes.c_void_p()
        if uuid is None:
            found = self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))
        else:
            found = self.library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.device))
        self._check("nvmlDeviceGetHandle", found)

    def _check(self, name: str, code: int) -> bool:
        self.library.nvmlErrorString.restype = ctypes.c_char_p
        self.codes[name] = f"{code} {self.library.nvmlErrorString(code).decode()}"
        return code == 0

    def number(self, name: str, kind: Any, *arguments: Any) -> float | None:
        """Ask for one number; None: it cannot be had."""
        value = kind()
        function = getattr(self.library, name, None)
        if function is None:
            self.codes[name] = "not in this driver"
            return None
        code = function(self.device, *arguments, ctypes.byref(value))
        return float(value.value) if self._check(name, code) else None

    def joules(self) -> float | None:
        """Return the energy counter."""
        found = self.number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)
        return None if found is None else found / 1e3

    def survey(self) -> dict[str, float | None]:
        """Ask all."""
        uint = ctypes.c_uint
        return {
            "sm_clock_mhz": self.number("nvmlDeviceGetClockInfo", uint, 1),
            "max_sm_clock_mhz": self.number("nvmlDeviceGetMaxClockInfo", uint, 1),
            "power_mw": self.number("nvmlDeviceGetPowerUsage", uint),
            "power_limit_mw": self.number("nvmlDeviceGetEnforcedPowerLimit", uint),
            "temperature_c": self.number("nvmlDeviceGetTemperature", uint, 0),
            "throttle_reasons": self.number(
                "nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong
            ),
            "energy_mj": self.number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong),
        }


def counter_period(nvml: Nvml, seconds: float = 2.0) -> dict[str, float]:
    """Return how often the counter changes, and how long a read takes."""
    changes, reads = [], []
    last, end = nvml.joules(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        now = nvml.joules()
        reads.append(time.perf_counter() - begin)
        if now != last:
            changes.append(begin)
            last = now
    gaps = [b - a for a, b in zip(changes, changes[1:], strict=False)]
    return {
        "median_period_s": statistics.median(gaps) if gaps else float("nan"),
        "read_us": 1e6 * statistics.median(reads),
    }


class Stage:
    """Some layers of a transformer, with what a computation of them is."""

    def __init__(self, device: torch.device, width: int, layers: int, length: int) -> None:
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        block = nn.TransformerEncoderLayer(
            width, max(1, width // 128), 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.model = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.model.to(device=device, dtype=kind)
        self.x = torch.randn(2, length, width, device=device, dtype=kind, requires_grad=True)
        self.grad = torch.randn_like(self.x)
        self.output: Any = None

    def forward(self) -> None:
        """Queue a forward."""
        self.output = self.model(self.x)

    def backward(self) -> None:
        """Queue the backward of the last forward."""
        self.output.backward(self.grad)

    def step(self, job: perseus.Job, microbatches: int) -> None:
        """Queue an iteration."""
        with job.step():
            for i in range(microbatches):
                with job.forward(i, stage=0):
                    self.forward()
                with job.backward(i, stage=0):
                    self.backward()
        self.model.zero_grad(set_to_none=False)


class Times:
    """A client that keeps the device times that `Job` gives it."""

    state, plan_version, listens, compiled = perseus.State.FOLLOWING, 1, True, None
    job_id = last_error = ""

    def __init__(self) -> None:
        self.times: list[tuple[list[float], list[float]]] = []

    def step_times(self, iteration: int, begins: list[float], ends: list[float]) -> None:
        """Keep them."""
        self.times.append((begins, ends))

    def stats(self) -> None:
        """None: closed."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def event_times(stage: Stage, cuda: bool, count: int = 50) -> dict[str, float]:
    """Return the seconds of a forward and a backward, alone on the device."""
    seen: dict[str, list[float]] = {"forward": [], "backward": []}
    for _ in range(count):
        for name, run in (("forward", stage.forward), ("backward", stage.backward)):
            if cuda:
                begin = torch.cuda.Event(enable_timing=True)
                end = torch.cuda.Event(enable_timing=True)
                begin.record()
                run()
                end.record()
                end.synchronize()
                seen[name].append(begin.elapsed_time(end) / 1e3)
            else:
                start = time.perf_counter()
                run()
                seen[name].append(time.perf_counter() - start)
    return {name: statistics.median(times[5:]) for name, times in seen.items()}


def job_times(stage: Stage, cuda: bool) -> dict[str, float]:
    """Return the same as `Job` sees it, from inside steps of 8 microbatches."""
    client: Any = Times()
    job = perseus.Job(client=client, timeline="cuda" if cuda else "host")
    for _ in range(30):
        stage.step(job, 8)
    if cuda:
        torch.cuda.synchronize()
    taken: dict[str, list[float]] = {"forward": [], "backward": []}
    for begins, ends in client.times[5:]:
        for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            taken["backward" if i % 2 else "forward"].append(end - begin)
    report = {name: statistics.median(times) for name, times in taken.items() if times}
    return {**report, "iterations": len(client.times)}


def window(stage: Stage, nvml: Nvml, cuda: bool, mix: tuple[float, ...], seconds: float) -> Any:
    """Run one mix; returns counts of forward and backward, seconds and joules."""

    def quiet() -> None:
        if cuda:
            torch.cuda.synchronize()

    chance = random.Random(repr(mix))
    stage.forward()
    quiet()
    forwards = backwards = 0
    before, begin = nvml.joules() or 0.0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        forward_share, both_share, _ = mix
        draw = chance.random()
        if draw < forward_share:
            with torch.no_grad():
                stage.forward()
            forwards += 1
        elif draw < forward_share + both_share:
            stage.forward()
            stage.backward()
            forwards, backwards = forwards + 1, backwards + 1
        else:
            quiet()
            time.sleep(0.02)
        if (forwards + backwards) % 8 == 0:
            quiet()
    quiet()
    return forwards, backwards, time.perf_counter() - begin, (nvml.joules() or 0.0) - before


def energies(stage: Stage, nvml: Nvml, cuda: bool, seconds: float) -> dict[str, float]:
    """Return joules of forward and backward above blocking power, and blocking power."""
    each = max(2.0, seconds / (2 * len(MIXES)))
    train = [window(stage, nvml, cuda, mix, each) for mix in MIXES]
    held_out = [window(stage, nvml, cuda, mix, each) for mix in MIXES]
    rows = torch.tensor([row[:3] for row in train], dtype=torch.float64)
    joules = torch.tensor([row[3] for row in train], dtype=torch.float64)
    found = torch.linalg.lstsq(rows, joules).solution
    errors = [
        abs(float(torch.tensor(row[:3], dtype=torch.float64) @ found) / row[3] - 1)
        for row in held_out
        if row[3] > 0
    ]
    return {
        "forward_j_above_blocking": float(found[0]),
        "backward_j_above_blocking": float(found[1]),
        "blocking_w": float(found[2]),
        "worst_error_held_out": max(errors, default=float("nan")),
        "median_error_held_out": statistics.median(errors) if errors else float("nan"),
    }


def cost(stage: Stage, cuda: bool, groups: int = 60) -> dict[str, float]:
    """Return what `Job` costs a step: paired medians, with a control."""
    idle: Any = Times()
    idle.state, idle.plan_version, idle.listens = perseus.State.WAITING, 0, False
    kinds: dict[str, Any] = {"without": idle, "control": idle, "following": Times()}
    jobs = {
        kind: perseus.Job(
            client=client, timeline="cuda" if cuda and kind == "following" else "host"
        )
        for kind, client in kinds.items()
    }
    seen: dict[str, list[float]] = {kind: [] for kind in jobs}
    chance = random.Random(0)
    for _ in range(groups):
        for kind in chance.sample(sorted(jobs), len(jobs)):
            begin = time.perf_counter()
            stage.step(jobs[kind], 8)
            if cuda:
                torch.cuda.synchronize()
            seen[kind].append(time.perf_counter() - begin)
    plain = statistics.median(seen["without"])
    pairs = {
        kind: statistics.median(
            (a - b) / plain for a, b in zip(seen[kind], seen["without"], strict=True)
        )
        for kind in ("control", "following")
    }
    return {"step_s": plain, **{f"{kind}_share": share for kind, share in pairs.items()}}


def main() -> int:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60, help="of the regression's windows")
    parser.add_argument("--json", type=Path, help="write what was found")
    parser.add_argument("--cpu", action="store_true", help="without a GPU, to try the script")
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--length", type=int, default=2048)
    options = parser.parse_args()
    cuda = not options.cpu
    if cuda and not torch.cuda.is_available():
        print("PyTorch sees no GPU; --cpu tries the script without one.", file=sys.stderr)
        return 77
    device = torch.device("cuda" if cuda else "cpu")
    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}" if cuda else None
    nvml = Nvml(uuid)
    name = torch.cuda.get_device_name(0) if cuda else "CPU"
    found: dict[str, Any] = {"device": name, "torch": torch.__version__, "before": nvml.survey()}
    found["counter"] = counter_period(nvml)
    stage = Stage(device, options.width, options.layers, options.length)
    found["event_seconds"] = event_times(stage, cuda)
    found["job_seconds"] = job_times(stage, cuda)
    found["energy"] = energies(stage, nvml, cuda, options.seconds)
    found["cost"] = cost(stage, cuda)
    found["after"] = nvml.survey()
    found["nvml_codes"] = nvml.codes
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
