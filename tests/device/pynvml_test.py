# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own Python package drives the simulated GPUs through the fake NVML.

Needs nvidia-ml-py, the fake library in LD_LIBRARY_PATH and the program
make_gpus, which ctest names.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pynvml: Any = pytest.importorskip("pynvml")

CONFIG = """
time_scale = 20
[[gpus]]
count = 2
name = "NVIDIA Test"
clocks_mhz = [900, 1000, 1410]
call_ms = 1
settle_ms = 1
idle_watts = 60
counter_period_ms = 0
default_power_limit_watts = 400
power_profiles = ["MAX_Q"]
[[gpus]]
refuse_sets = true
uuid = "GPU-sim-refuses"
"""


@pytest.fixture(autouse=True)
def _nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "PERSEUS_MAKE_GPUS" not in os.environ:
        pytest.skip("run by ctest, which names make_gpus and the fake library")
    path = tmp_path / "gpus"
    subprocess.run([os.environ["PERSEUS_MAKE_GPUS"], str(path), CONFIG], check=True)
    monkeypatch.setenv("PERSEUS_FAKE_NVML", str(path))
    pynvml.nvmlInit()
    yield
    pynvml.nvmlShutdown()


def handle(index: int = 0) -> Any:
    """Return NVML's handle of one GPU."""
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def test_finds_gpus() -> None:
    """By index, uuid and bus; a wrong one is an error."""
    assert pynvml.nvmlDeviceGetCount() == 3
    assert pynvml.nvmlDeviceGetName(handle()) == "NVIDIA Test"
    uuid = pynvml.nvmlDeviceGetUUID(handle(1))
    assert uuid.startswith("GPU-sim-")
    again = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
    assert pynvml.nvmlDeviceGetIndex(again) == 1
    bus = pynvml.nvmlDeviceGetPciInfo(handle(2)).busId
    again = pynvml.nvmlDeviceGetHandleByPciBusId(bus.encode() if isinstance(bus, str) else bus)
    assert pynvml.nvmlDeviceGetUUID(again) == "GPU-sim-refuses"
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        handle(3)
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetHandleByUUID(b"GPU-none")


def test_clocks_follow() -> None:
    """Supported clocks are those of the configuration, and locks take effect."""
    memory = pynvml.nvmlDeviceGetSupportedMemoryClocks(handle())
    assert pynvml.nvmlDeviceGetSupportedGraphicsClocks(handle(), memory[0]) == [1410, 1000, 900]
    pynvml.nvmlDeviceSetGpuLockedClocks(handle(), 900, 1000)
    deadline = time.monotonic() + 20
    while pynvml.nvmlDeviceGetClockInfo(handle(), pynvml.NVML_CLOCK_SM) != 1000:
        assert time.monotonic() < deadline
    pynvml.nvmlDeviceResetGpuLockedClocks(handle())
    while pynvml.nvmlDeviceGetClockInfo(handle(), pynvml.NVML_CLOCK_SM) != 1410:
        assert time.monotonic() < deadline
    pynvml.nvmlDeviceSetMemoryLockedClocks(handle(), memory[0], memory[0])
    pynvml.nvmlDeviceResetMemoryLockedClocks(handle())
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceSetGpuLockedClocks(handle(), 1000, 900)


def test_energy_and_power() -> None:
    """An idle GPU draws its idle power, and its counter grows."""
    assert pynvml.nvmlDeviceGetPowerUsage(handle()) == 60_000
    field = pynvml.nvmlDeviceGetFieldValues(handle(), [pynvml.NVML_FI_DEV_POWER_INSTANT])[0]
    assert (field.nvmlReturn, field.value.uiVal) == (0, 60_000)
    before = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle())
    time.sleep(0.01)
    assert (
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle()) >= before + 60 * 0.01 * 20 * 1000 - 1
    )


def test_limits_and_state() -> None:
    """What others set is read back, and refused outside its range."""
    gpu = handle()
    assert pynvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu) == [100_000, 400_000]
    assert pynvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu) == 400_000
    pynvml.nvmlDeviceSetPowerManagementLimit(gpu, 250_000)
    assert pynvml.nvmlDeviceGetPowerManagementLimit(gpu) == 250_000
    assert pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) == 250_000
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceSetPowerManagementLimit(gpu, 500_000)
    pynvml.nvmlDeviceSetPersistenceMode(gpu, 1)
    assert pynvml.nvmlDeviceGetPersistenceMode(gpu) == 1
    assert pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU) == 45
    assert pynvml.nvmlDeviceGetTemperatureV(gpu, pynvml.NVML_TEMPERATURE_GPU) == 45
    assert pynvml.nvmlDeviceGetArchitecture(gpu) >= pynvml.NVML_DEVICE_ARCH_VOLTA
    assert pynvml.nvmlDeviceGetMigMode(gpu) == [0, 0]
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(gpu) == 1
    profiles = pynvml.c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t()
    pynvml.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(gpu, pynvml.byref(profiles))
    assert profiles.enforcedProfilesMask.mask[0] == 1 << pynvml.NVML_POWER_PROFILE_MAX_Q


def test_the_right_can_be_missing() -> None:
    """Sets are refused, reads are not."""
    gpu = handle(2)
    calls: list[tuple[Any, list[int]]] = [
        (pynvml.nvmlDeviceSetGpuLockedClocks, [1410, 1410]),
        (pynvml.nvmlDeviceResetGpuLockedClocks, []),
        (pynvml.nvmlDeviceSetPowerManagementLimit, [300_000]),
        (pynvml.nvmlDeviceSetPersistenceMode, [1]),
        (pynvml.nvmlDeviceSetMemoryLockedClocks, [1593, 1593]),
    ]
    for function, arguments in calls:
        with pytest.raises(pynvml.NVMLError_NoPermission):
            function(gpu, *arguments)
    assert pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM) == 1410
