# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures stages of PyTorch on a simulated GPU, for test_torch_measure.py: FOLDER DEVICE CASE.

Prints what it measured as JSON, or the sentence of the error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/torch_pipeline"))

import perseus  # noqa: E402
import simulated_device  # noqa: E402
from perseus import simulate  # noqa: E402


class Backward(torch.autograd.Function):  # type: ignore[misc]
    """Runs the backward's kernel where autograd comes by."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, run: Any) -> torch.Tensor:
        """Pass the output on."""
        ctx.run = run
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Run the kernel, and pass the gradient on."""
        ctx.run("backward")
        return gradient, None


class Stage(torch.nn.Module):  # type: ignore[misc]
    """A layer, with kernels on a simulated GPU of which a table says what they take."""

    def __init__(self, gpus: simulate.Gpus, tables: dict[str, simulate.Table], case: str) -> None:
        super().__init__()
        self.net = torch.nn.Linear(8, 8)
        self.device = SimpleNamespace(gpus=gpus, last_run=None)
        self.tables = tables
        self.case = case
        self.inputs_with_gradient = 0

    def run_kernel(self, kind: str) -> None:
        """Run a computation's kernel to its end."""
        self.device.last_run = self.device.gpus.run(0, self.tables[kind])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        self.inputs_with_gradient += int(x.requires_grad)
        if self.case == "raises":
            raise KeyError("embedding")
        if self.case == "no_gradient":
            x, self.net.weight.requires_grad, self.net.bias.requires_grad = x.detach(), False, False
        y = self.net(x)
        if self.case == "short":
            return y
        self.run_kernel("forward")
        return Backward.apply(y, self.run_kernel)


def main(folder: str, device: str, case: str) -> None:
    """Measure."""
    gpus = simulate.Gpus(f"{folder}/gpus")
    read = simulated_device.read_tables(Path(folder, "truth.csv"), 1.0)

    def measure(number: int, **options: Any) -> perseus.Measured:
        tables = {kind: read[number, kind] for kind in ("forward", "backward")}
        stage = Stage(gpus, tables, case)
        timeline = simulated_device.DeviceTimeline(cast(Any, stage.device))
        example = torch.ones(4, 7 if case == "shape" else 8)
        try:
            return perseus.measure(
                stage, example, stage=number, device=device, timeline=timeline, **options
            )
        finally:
            assert (stage.inputs_with_gradient > 0) == (number > 0)
            assert all(each.grad is None for each in stage.parameters())

    if case == "refused":
        gpus.set_refuse(0, True)
    try:
        measured = measure(0, seconds=0 if case == "seconds" else 1.0)
        if case == "stages":
            measured += measure(1, seconds=1.0, loss=torch.Tensor.sum)
            measured.save(f"{folder}/measured.csv")
    except perseus.MeasureError as error:
        print(json.dumps({"error": str(error)}))
        return
    print(json.dumps({"csv": measured.csv(), "watts": measured.blocking_power}))


if __name__ == "__main__":
    main(*sys.argv[1:])
