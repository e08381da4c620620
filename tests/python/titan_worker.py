# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of tests/python/test_torch_titan.py: runs a module as ``torchrun -m`` does, on the CPU.

titan_worker.py FOLDER MODULE [ARGUMENT...]; FOLDER/rank-N.json then has what it logged and, with
$RECORD, what the hooks told.

torchtitan is the package from PyPI as it is. It computes on accelerators only: here PyTorch names
the CPU as one.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import torch
import torch._utils
from perseus.hooks import data_parallel, torch_pipelining
from recording import actions, recorded
from torch.distributed.fsdp import FSDPModule


def on_cpu() -> None:
    """Have PyTorch take the CPU for an accelerator."""
    torch.set_num_threads(1)
    torch._utils._get_available_device_type = lambda: "cpu"
    torch.cpu.current_device = lambda: 0
    torch.cpu.get_device_name = lambda *_: "CPU"
    torch.cpu.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=1 << 34)
    torch.cpu.reset_peak_memory_stats = lambda *_: None
    torch.cpu.memory_stats = lambda *_: {}
    torch.cpu.empty_cache = lambda: None
    divide = FSDPModule.set_gradient_divide_factor

    def set_gradient_divide_factor(module: FSDPModule, factor: float) -> None:
        module.set_force_sum_reduction_for_comms(True)  # Gloo only sums.
        divide(module, factor)

    FSDPModule.set_gradient_divide_factor = set_gradient_divide_factor


def debugmodel() -> Any:
    """Return torchtitan 0.3's config, with an attention that has a backward on the CPU."""
    config = importlib.import_module("torchtitan.models.llama3.config_registry").llama3_debugmodel()
    attention = importlib.import_module("torchtitan.models.common.attention")
    for _, _, layer, name in list(config.model_spec.traverse(attention.FlexAttention.Config)):
        setattr(layer, name, attention.ScaledDotProductAttention.Config())
    return config


def record() -> dict[str, Any]:
    """Have the hooks tell a recorder; returns what it will have heard."""
    heard: dict[str, Any] = {}

    def open_job(place: Any, **said: Any) -> Any:
        job, log = recorded()
        heard.update(place=dataclasses.asdict(place), order=said["schedule"](), log=log)
        heard.update((name, said[name]) for name in ("stages", "microbatches"))
        return job

    for module in (torch_pipelining, data_parallel):
        vars(module)["open_job"] = open_job
    return heard


def logged(folder: Path) -> dict[str, list[float]]:
    """Return what torchtitan's logger wrote on this rank, by name."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    values: dict[str, list[float]] = {}
    for file in folder.glob(f"tb/*/events*.{os.getpid()}.*"):
        read = EventAccumulator(str(file)).Reload()
        for tag in read.Tags()["scalars"]:
            values[tag] = [float(event.value) for event in read.Scalars(tag)]
    return values


def main() -> None:
    """Run the module."""
    folder, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv[1:] = sys.argv[3:]
    on_cpu()
    heard = record() if os.environ.get("RECORD") else {}
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    log = heard.pop("log", [])
    told = {
        "logged": logged(folder),
        "begins": actions(log),
        "ends": actions(log, "instruction_end"),
        "steps": [event[0] for event in log if event[0].startswith("step")],
        **heard,
    }
    (folder / f"rank-{os.environ['RANK']}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
