# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What lies under the three trainers instead of a cluster: simulated GPUs, and a log.

A trainer is started by torchrun as ``TRAINER.py FOLDER --steps N [--perseus] [--only-last M]``.
Each rank appends a line of JSON for each step of the optimizer to FOLDER/rank-N.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "torch_pipeline"))

import simulated_device as device  # noqa: E402
from perseus import simulate  # noqa: E402


def parse() -> argparse.Namespace:
    """Return the options of a trainer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--perseus", action="store_true", help="train with Perseus")
    parser.add_argument("--only-last", type=int, help="compute on simulated GPUs in these steps")
    return parser.parse_args()


class Cluster:
    """The simulated GPU of this rank, and what it takes to train on it."""

    def __init__(
        self, options: argparse.Namespace, stages: int, microbatches: int, dp: int
    ) -> None:
        self._options = options
        self.rank = dist.get_rank()
        ranks = dist.get_world_size() // dp
        folder = options.folder
        gpus = simulate.Gpus(folder.parent / "gpus")
        tables = device.read_tables(folder.parent / "profile.csv", 1.0)
        self.gpu = device.SimulatedDevice(
            gpus, self.rank, tables, folder / "ends", self.rank // ranks, dp, stages, microbatches
        )
        self._log = (folder / f"rank-{self.rank}").open("a", buffering=1)
        self._before = (0.0, 0.0)

    def for_perseus(self) -> dict[str, Any]:
        """Return what Perseus must be told because these GPUs are simulated."""
        return {
            "timeline": device.DeviceTimeline(self.gpu),
            "min_interval_seconds": 0.002,
            "report_interval_seconds": 0.5,
        }

    def begin(self, step: int) -> None:
        """A step begins; since the one before, other things may have been done."""
        last = self._options.only_last
        self.gpu.on = last is None or step >= self._options.steps - last
        if self.gpu.on:
            self._before = self.gpu.end_iteration(self.gpu.gpus.now())

    def end(self, step: int, losses: list[torch.Tensor], report: dict[str, Any]) -> None:
        """A step ended: write down what it took."""
        line: dict[str, Any] = {"pid": os.getpid(), "step": step}
        line["losses"] = [float(loss.detach()).hex() for loss in losses]
        if self.gpu.on:
            end, joules = self.gpu.end_iteration()
            line |= {"seconds": end - self._before[0], "joules": joules - self._before[1]}
        line |= {key: value for key, value in report.items() if key != "stats"}
        self._log.write(json.dumps(line) + "\n")
