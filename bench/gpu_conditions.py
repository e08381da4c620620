#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Measure what a real NVIDIA GPU does to plans, at the clocks that it has. Never sets a clock.

Needs PyTorch with CUDA and, for waiting, CuPy; exits with 77 if PyTorch sees no GPU:

1. Noise: times of each computation of a pipeline stage, cold and warm, with and without waits.
2. Drift: how time, power and clock move while the GPU becomes warm.
3. The energy counter: its period, its lag after a step of the load, and what it misses of bursts.
4. Power of a GPU that waits, by how many blocks of a kernel spin, as a communication kernel does.
5. What the launch of a kernel costs.
6. With `--perseus BINARY`: what a job of a real server estimates of the noise of the same stage.
   Its client sets the clocks of a simulated GPU. The energies of its profile are made up.

    python bench/gpu_conditions.py --raw gpu.npz          # on the GPU, about four minutes
    python bench/gpu_conditions.py --figures gpu.npz      # the figures again, anywhere

A second process reads the counter, so that Python does not delay the launches.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Raw = dict[str, NDArray[Any]]
MICROBATCHES = 8
SIMULATED_CLOCKS = (1980, 1680, 1380)
SPINNING_BLOCKS = (0, 1, 4, 16, 32, 64, 132)
SPIN = r"""
extern "C" __global__ void spin(const volatile int* flag, long long cycles) {
  const long long begin = clock64();
  while (*flag == 0 && clock64() - begin < cycles) {}
}
"""


def sample(uuid: str, pipe: Connection) -> None:
    """Read counter, power, SM clock and temperature until told to stop; send what was read."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, joules = ctypes.c_void_p(), ctypes.c_ulonglong()
    power, clock, heat, reasons = (ctypes.c_uint() for _ in range(4))
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)):
        pipe.send(None)
        return
    rows: list[tuple[float, ...]] = []
    pipe.send("ready")
    while not pipe.poll():
        begin = time.monotonic()
        nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(joules))
        read = time.monotonic()
        if len(rows) % 16 == 0:
            nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(power))
            nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(clock))
            nvml.nvmlDeviceGetTemperature(device, 0, ctypes.byref(heat))
            nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, ctypes.byref(reasons))
        slow = (float(each.value) for each in (power, clock, heat, reasons))
        rows.append((begin, read - begin, joules.value / 1e3, *slow))
        time.sleep(0.0005)
    pipe.send(np.array(rows))


class Sampler:
    """A process that reads the GPU's counter while a section runs."""

    def __init__(self, uuid: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=sample, args=(uuid, other), daemon=True)
        self._process.start()
        if self._pipe.recv() is None:
            raise SystemExit("NVML does not know the GPU that PyTorch sees")

    def rows(self) -> NDArray[Any]:
        """Stop it, and return what it read."""
        self._pipe.send("stop")
        found: NDArray[Any] = self._pipe.recv()
        self._process.join()
        return found


def measure(seconds: float) -> Raw:
    """Run all sections on the GPU."""
    import torch
    from gpu_check import Stage

    device = torch.device("cuda")
    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    stage = Stage(device, 2048, 6, 2048)
    raw: Raw = {"name": np.array(torch.cuda.get_device_name(0))}

    def event() -> torch.cuda.Event:
        made = torch.cuda.Event(enable_timing=True)
        made.record()
        return made

    def iterations(length: float, waits: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        draws = np.random.default_rng(1)
        times, begins = [], []
        end = time.monotonic() + length
        while time.monotonic() < end:
            marks = []
            begins.append(time.monotonic())
            for _ in range(MICROBATCHES):
                for run in (stage.forward, stage.backward):
                    if waits:
                        torch.cuda._sleep(int(draws.uniform(0, 0.01) * 1.7e9))
                    before = event()
                    run()
                    marks.append((before, event()))
            stage.model.zero_grad(set_to_none=False)
            torch.cuda.synchronize()
            times.append([a.elapsed_time(b) / 1e3 for a, b in marks])
        return np.array(begins), np.array(times)

    iterations(1.0, False)  # Compiles what is compiled at first use.
    for name, waits in (("cold", False), ("waits", True), ("warm", False)):
        sampler = Sampler(uuid)
        raw[f"{name}_begins"], raw[f"{name}_times"] = iterations(
            seconds * (2 if name == "cold" else 1), waits
        )
        raw[f"{name}_samples"] = sampler.rows()

    def burst(length: float) -> None:
        end = time.monotonic() + length
        while time.monotonic() < end:
            stage.forward()
            torch.cuda.synchronize()

    sampler, edges = Sampler(uuid), []
    draws = np.random.default_rng(2)
    for _ in range(max(4, int(seconds / 3))):
        time.sleep(1.2 + draws.uniform(0, 0.3))
        edges.append((time.monotonic(), 1.0))
        burst(1.2 + draws.uniform(0, 0.3))
        edges.append((time.monotonic(), 0.0))
    time.sleep(1)
    raw["edges"], raw["step_samples"] = np.array(edges), sampler.rows()

    period = max(0.02, counter_figures(raw)["counter_period_s"])
    sampler, bursts = Sampler(uuid), []
    for phase in range(8):  # The same load in each; a sensor that looks part of the time differs.
        start = time.monotonic() + 0.3 * period
        turns = int(max(2.0, seconds / 8) / period)
        start += (phase / 8) * period
        for turn in range(turns):
            while time.monotonic() < start + turn * period:
                pass
            burst(period / 2)
        bursts.append((start, start + turns * period))
    raw["bursts"], raw["burst_samples"] = np.array(bursts), sampler.rows()

    stage.forward()
    torch.cuda.synchronize()
    marks, launches = [], []
    tiny = torch.zeros(1, device=device)
    for _ in range(2000):
        before, begin = event(), time.perf_counter()
        tiny.add_(1)
        launches.append(time.perf_counter() - begin)
        marks.append((before, event()))
    torch.cuda.synchronize()
    raw["launch_seconds"] = np.array(launches)
    raw["launch_device_seconds"] = np.array([a.elapsed_time(b) / 1e3 for a, b in marks])

    try:
        import cupy  # type: ignore[import-not-found]
    except ImportError:
        return raw
    kernel, flag = cupy.RawKernel(SPIN, "spin"), cupy.zeros(1, dtype=cupy.int32)
    sampler, spans = Sampler(uuid), []
    for blocks in SPINNING_BLOCKS:
        begin = time.monotonic()
        while blocks and time.monotonic() < begin + 3:
            kernel((blocks,), (512,), (flag, np.int64(200_000_000)))
            cupy.cuda.Device().synchronize()
        if not blocks:
            time.sleep(3)
        spans.append((float(blocks), begin, time.monotonic()))
    raw["spin_spans"], raw["spin_samples"] = np.array(spans), sampler.rows()
    return raw


def profile_csv(forward: float, backward: float) -> str:
    """Return rows with the times measured at the clock that the GPU has, and made-up others."""
    mhz = SIMULATED_CLOCKS[0]
    rows = ["stage,instruction,frequency,time,energy"]
    for kind, seconds in (("forward", forward), ("backward", backward)):
        for clock in SIMULATED_CLOCKS:
            slower = seconds * (0.3 + 0.7 * mhz / clock)
            rows.append(f"0,{kind},{clock},{slower},{slower * (150 + 400 * (clock / mhz) ** 2.2)}")
    return "\n".join(rows) + "\n"


def job_conditions(binary: Path, seconds: float, times: NDArray[Any]) -> dict[str, Any]:
    """Train with a client of a real server, and return what the server says of the job."""
    import perseus
    import torch
    from gpu_check import Stage
    from perseus import simulate

    forward, backward = (float(np.median(times[:, each::2])) for each in (0, 1))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    job: dict[str, Any] = {
        "client_key": "gpu",
        "name": "gpu",
        "job": {
            **{"schedule": "1f1b", "stages": 1, "microbatches": MICROBATCHES},
            **{"blocking_power": 120, "at": "1.1x", "conditions": {}, "effort": 0.05},
        },
        "profile_csv": profile_csv(forward, backward),
    }

    def asked(path: str) -> Any:
        with urllib.request.urlopen(url + path, timeout=10) as answer:
            return json.load(answer)

    with tempfile.TemporaryDirectory() as folder:
        clocks = ", ".join(str(mhz) for mhz in SIMULATED_CLOCKS[::-1])
        simulate.create(f"{folder}/gpus", f"[[gpus]]\ncount = 1\nclocks_mhz = [{clocks}]\n")
        store = f"sqlite:{folder}/perseus.db"
        server = subprocess.Popen(
            [binary, "serve", "--listen", url.removeprefix("http://"), "--store", store]
        )
        try:
            stage = Stage(torch.device("cuda"), 2048, 6, 2048)
            with perseus.Job(
                url,
                job=job,
                rank=0,
                device=f"simulated:{folder}/gpus",
                gpu_index=0,
                timeline="cuda",
                report_interval_seconds=0.5,
            ) as training:
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    stage.step(training, MICROBATCHES)
                torch.cuda.synchronize()
                shown: dict[str, Any] = asked(f"/api/v1/jobs/{training.client.job_id}")
                shown["report"] = str(training.client.stats())
        finally:
            server.terminate()
            server.wait()
    return shown


def ticks(samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return when the counter stepped, and to what."""
    changed = np.flatnonzero(np.diff(samples[:, 2]) != 0) + 1
    return samples[changed, 0], samples[changed, 2]


def power_between(samples: NDArray[Any], begin: float, end: float) -> float:
    """Return the mean watts of the counter."""
    at, joules = ticks(samples)
    inside = (at >= begin) & (at <= end)
    at, joules = at[inside], joules[inside]
    if len(at) < 2:
        return float("nan")
    return float((joules[-1] - joules[0]) / (at[-1] - at[0]))


def counter_figures(raw: Raw) -> dict[str, float]:
    """Return the counter's period, and how late it shows that a load ended.

    A load's begin says less: its first tenths of a second draw more than the rest.
    """
    samples, edges = raw["step_samples"], raw["edges"]
    at, joules = ticks(samples)
    lags = []
    bounds = np.concatenate([[samples[0, 0]], edges[:, 0], [samples[-1, 0]]])
    for i, (moment, is_begin) in enumerate(edges):
        # The counter is a line before the end and another after it; they meet when it saw it.
        lines = []
        for begin, end in ((bounds[i], moment), (moment, bounds[i + 2])):
            inside = (at > begin + 0.5) & (at < end - 0.05)
            if inside.sum() >= 4 and not is_begin:
                lines.append(np.polyfit(at[inside] - moment, joules[inside], 1))
        if len(lines) == 2:
            (slope, offset), (slope_after, offset_after) = lines
            lags.append((offset - offset_after) / (slope_after - slope))
    gaps = np.diff(at)
    return {
        "counter_period_s": float(np.median(gaps)),
        "counter_period_95_percent_s": float(np.quantile(gaps, 0.95)),
        "counter_read_us": 1e6 * float(np.median(samples[:, 1])),
        "counter_lag_s": float(np.median(lags)) if lags else float("nan"),
        "counter_lag_spread_s": float(np.std(lags)) if lags else float("nan"),
    }


def noise_figures(times: NDArray[Any]) -> dict[str, float]:
    """Return noise of each computation, common to an iteration, and from one to the next.

    Each computation is compared with the same one of the iteration before, so that neither its work
    nor slow drift counts.
    """
    relative = times / np.median(times, axis=0)
    change = np.diff(relative, axis=0) / np.sqrt(2)
    middle = np.abs(change - np.median(change)) < 6 * 1.4826 * np.median(np.abs(change))
    kept = change[middle.all(axis=1)] if middle.all(axis=1).sum() > 20 else change
    size = kept.shape[1]
    total = float(np.mean(kept**2))
    lag_one = float(np.mean(kept[:, 1:] * kept[:, :-1]))
    far = float(np.mean(kept[:, size // 2 :] * kept[:, : size - size // 2]))
    own, common = total - max(far, 0.0), max(far, 0.0)
    flat = relative[:, 0::2].ravel()
    deviation = (flat - flat.mean()) / flat.std()
    return {
        "iterations": len(times),
        "noise_percent": 100 * float(np.sqrt(max(own, 0.0))),
        "noise_common_percent": 100 * float(np.sqrt(common)),
        "correlation_with_next": (lag_one - common) / own if own > 0 else float("nan"),
        "skew": float(np.mean(deviation**3)),
        "beyond_6_sigma_percent": 100 * float(1 - middle.mean()),
        "longest_relative": float(relative.max()),
    }


def drift_figures(raw: Raw, name: str) -> dict[str, float]:
    """Return where times, power, clock and temperature began and ended."""
    begins, times, samples = raw[f"{name}_begins"], raw[f"{name}_times"], raw[f"{name}_samples"]
    start, end = begins[0], begins[-1]
    report: dict[str, float] = {}
    for what, begin, finish in (("first", start + 0.5, start + 3), ("last", end - 3, end)):
        of_times = times[(begins >= begin) & (begins <= finish)]
        seen = samples[(samples[:, 0] >= begin) & (samples[:, 0] <= finish)]
        report |= {
            f"{what}_forward_ms": 1e3 * float(np.median(of_times[:, 0::2])),
            f"{what}_backward_ms": 1e3 * float(np.median(of_times[:, 1::2])),
            f"{what}_watts": power_between(samples, begin, finish),
            f"{what}_mhz": float(np.mean(seen[:, 4])),
            f"{what}_mhz_least": float(np.min(seen[:, 4])),
            f"{what}_celsius": float(np.mean(seen[:, 5])),
            f"{what}_throttle_reasons": float(np.bitwise_or.reduce(seen[:, 6].astype(np.int64))),
        }
    return report


def figures(raw: Raw) -> dict[str, Any]:
    """Return all figures."""
    found: dict[str, Any] = {"gpu": str(raw["name"])}
    for name in ("cold", "waits", "warm"):
        found[f"noise_{name}"] = noise_figures(raw[f"{name}_times"])
        found[f"drift_{name}"] = drift_figures(raw, name)
    found["counter"] = counter_figures(raw)
    found["bursts_watts"] = [
        power_between(raw["burst_samples"], begin, end) for begin, end in raw["bursts"]
    ]
    found["launch"] = {
        "host_us": 1e6 * float(np.median(raw["launch_seconds"])),
        "device_us": 1e6 * float(np.median(raw["launch_device_seconds"])),
    }
    if "spin_spans" in raw:
        samples = raw["spin_samples"]
        found["waiting"] = [
            {
                "blocks": int(blocks),
                "watts": power_between(samples, begin + 1, end),
                "mhz": float(
                    np.median(samples[(samples[:, 0] > begin + 1) & (samples[:, 0] < end)][:, 4])
                ),
            }
            for blocks, begin, end in raw["spin_spans"]
        ]
    return found


def main() -> int:
    """Measure, or read what was measured; print figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=30, help="of one kind of load")
    parser.add_argument("--perseus", type=Path, help="a binary, for the job of a real server")
    parser.add_argument("--raw", type=Path, help="write what was read")
    parser.add_argument("--figures", type=Path, help="read such a file, and measure nothing")
    options = parser.parse_args()
    if options.figures:
        raw = dict(np.load(options.figures))
    else:
        import torch

        if not torch.cuda.is_available():
            print("PyTorch sees no GPU", file=sys.stderr)
            return 77
        raw = measure(options.seconds)
        if options.raw:
            np.savez_compressed(options.raw, **raw)  # type: ignore[arg-type]
        if options.perseus:
            shown = job_conditions(options.perseus, options.seconds, raw["warm_times"])
            print(json.dumps(shown, indent=1, default=str))
    print(json.dumps(figures(raw), indent=1))
    return 0


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path[:0] = [os.fspath(here), os.fspath(here.parent / "python")]
    raise SystemExit(main())
