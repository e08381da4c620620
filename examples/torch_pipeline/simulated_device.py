# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs each computation of a pipeline stage on a simulated GPU as well.

A stand-in for the hardware, and no part of what a trainer needs for Perseus: on real GPUs leave it
out. Each computation does its arithmetic on the CPU while its kernel runs on the simulated GPU, for
as long and with as much energy as a table says for the clock that is in effect.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from perseus import simulate

FORWARD, BACKWARD = 0, 1
IDLE_WATTS = 83.64


def read_tables(path: Path, scale: float) -> dict[tuple[int, str], simulate.Table]:
    """Return what each computation costs at each clock, from a profile, `scale` times as long.

    Of a backward, the halves for the input and for the weights take a half each.
    """
    rows: dict[tuple[int, str], list[tuple[float, float, float]]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            cost = float(row["time"]) * scale, float(row["energy"]) * scale
            mhz, stage = float(row["frequency"]), int(row["stage"])
            rows[stage, row["instruction"]].append((mhz, *cost))
            if row["instruction"] == "backward":
                for half in ("backward_input", "backward_weight"):
                    rows[stage, half].append((mhz, cost[0] / 2, cost[1] / 2))
    return {key: simulate.Table(table) for key, table in rows.items()}


class DeviceTimeline:
    """When computations ran on the simulated GPU: what CUDA events say on a real one.

    For `perseus.attach(timeline=...)`; `perseus.hooks.timeline.Timeline` says what is asked of it.
    """

    name = "simulated"
    dropped = 0

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device
        self._iteration = 0
        self._begin = 0.0
        self._runs: list[simulate.Run] = []
        # As with events, an iteration's times are told when the next one has ended.
        self._ended: list[tuple[int, list[float], list[float]]] = []
        self._done: list[tuple[int, list[float], list[float]]] = []

    def step_begin(self, iteration: int) -> None:
        """An iteration begins."""
        self._iteration, self._begin, self._runs = iteration, self._device.gpus.now(), []

    def begin(self) -> None:
        """A computation begins."""

    def end(self) -> None:
        """It ended."""
        if self._device.last_run is not None:
            self._runs.append(self._device.last_run)

    def step_end(self) -> None:
        """The iteration ended."""
        # Its first kernel may have begun before this process knew that the iteration did.
        begin = min([self._begin] + [run.begin_seconds for run in self._runs])
        begins = [run.begin_seconds - begin for run in self._runs]
        ends = [run.end_seconds - begin for run in self._runs]
        self._done, self._ended = self._ended, [(self._iteration, begins, ends)]

    def step_abandon(self) -> None:
        """The iteration broke off."""

    def take(self) -> list[tuple[int, list[float], list[float]]]:
        """Return what has become known."""
        done, self._done = self._done, []
        return done


class SimulatedDevice:
    """The simulated GPU of this rank, and when on its clock the others' computations ended.

    A kernel begins when what it depends on has ended on the other rank's GPU, not when this
    process got to it: a machine with fewer cores than processes then distorts nothing.
    """

    def __init__(
        self,
        gpus: simulate.Gpus,
        gpu: int,
        tables: dict[tuple[int, str], simulate.Table],
        ends: Path,
        replica: int,
        replicas: int,
        stages: int,
        microbatches: int,
    ) -> None:
        self.gpus = gpus
        self.gpu = gpu
        self.on = True
        self.work = [1.0] * microbatches  # How many times as long as in the table each lasts.
        self.last_run: simulate.Run | None = None
        self._tables = tables
        self._scaled: dict[tuple[int, str, float], simulate.Table] = {}
        shape = (replicas, 2, stages + 1, microbatches)
        size = replicas * 2 * (stages + 1) * microbatches
        shared = torch.from_file(str(ends), shared=True, size=size, dtype=torch.float64)
        self._ends = shared.view(shape)[replica]
        self._stages = stages
        self._last_end = gpus.now()

    def put_under(self, stage: Any) -> None:
        """Run what this stage computes on the GPU as well."""
        forward, backward = stage.forward_one_chunk, stage.backward_one_chunk
        weight = stage.backward_weight_one_chunk
        index = stage.stage_index

        def forward_one_chunk(chunk: int, *args: Any, **kwargs: Any) -> Any:
            return self.forward(index, chunk, partial(forward, chunk, *args, **kwargs))

        def backward_one_chunk(chunk: int, *args: Any, **kwargs: Any) -> Any:
            kind = "backward" if kwargs.get("full_backward", True) else "backward_input"
            return self.backward(index, chunk, partial(backward, chunk, *args, **kwargs), kind)

        def backward_weight_one_chunk(chunk: int, *args: Any, **kwargs: Any) -> Any:
            compute = partial(weight, chunk, *args, **kwargs)
            return self._run((index, "backward_weight"), 0.0, None, chunk, compute)

        stage.forward_one_chunk = forward_one_chunk
        stage.backward_one_chunk = backward_one_chunk
        stage.backward_weight_one_chunk = backward_weight_one_chunk

    def forward(self, stage: int, chunk: int, compute: Callable[[], Any]) -> Any:
        """Run the forward of a microbatch on the GPU while `compute` does its arithmetic."""
        before = float(self._ends[FORWARD, stage - 1, chunk]) if stage > 0 else 0.0
        return self._run((stage, "forward"), before, FORWARD, chunk, compute)

    def backward(
        self, stage: int, chunk: int, compute: Callable[[], Any], kind: str = "backward"
    ) -> Any:
        """Run the backward of a microbatch; as `forward`."""
        before = float(self._ends[BACKWARD, stage + 1, chunk])
        return self._run((stage, kind), before, BACKWARD, chunk, compute)

    def _run(
        self,
        key: tuple[int, str],
        before: float,
        direction: int | None,
        chunk: int,
        compute: Callable[[], Any],
    ) -> Any:
        if not self.on:
            return compute()
        table = self._table(key, self.work[chunk])
        kernel = self.gpus.launch(self.gpu, table, max(before, self._last_end))
        result = compute()
        self.last_run = kernel.wait()
        self._last_end = self.last_run.end_seconds
        if direction is not None:
            self._ends[direction, key[0], chunk] = self._last_end
        return result

    def _table(self, key: tuple[int, str], work: float) -> simulate.Table:
        """Return what so much work costs."""
        table = self._tables[key]
        if work == 1:
            return table
        if (*key, work) not in self._scaled:
            rows = [(mhz, seconds * work, joules * work) for mhz, seconds, joules in table.rows]
            self._scaled[*key, work] = simulate.Table(rows)
        return self._scaled[*key, work]

    def end_iteration(self, until: float = 0.0) -> tuple[float, float]:
        """Wait for all ranks; returns when the last of them ended, and this GPU's joules so far.

        `until`: when what this rank did besides computations ended.
        """
        last = torch.tensor(max(self._last_end, until), dtype=torch.float64)
        dist.all_reduce(last, dist.ReduceOp.MAX)
        self._last_end = float(last)
        self._ends[:, self._stages] = 0
        now = self.gpus.read(self.gpu)
        # It has waited since then.
        return self._last_end, now.joules - IDLE_WATTS * (now.at_seconds - self._last_end)
