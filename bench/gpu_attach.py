#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own pipelining on a real GPU, with `perseus.attach`. Never sets a clock.

Pipelines of one stage take turns in one process, one of them attached to a real server: what does
attaching cost a step, and what does the server hear? The attached rank follows a plan; the clocks
that it sets are those of a simulated GPU. The plan's profile is made up. Needs PyTorch with CUDA.

    python bench/gpu_attach.py PERSEUS [--pairs 60]

`--cpu` runs it without a GPU, to try the script.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.pipelining import PipelineStage, Schedule1F1B  # noqa: E402

import perseus  # isort: skip # noqa: E402
from gpu_conditions import SIMULATED_CLOCKS, profile_csv  # isort: skip # noqa: E402
from perseus import simulate  # isort: skip # noqa: E402

MICROBATCHES = 8


class Pipeline:
    """One stage of a transformer under PyTorch's schedule."""

    def __init__(self, device: torch.device, width: int, length: int) -> None:
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        block = nn.TransformerEncoderLayer(
            width, max(1, width // 128), 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.model = nn.TransformerEncoder(block, 6, enable_nested_tensor=False)
        self.model.to(device=device, dtype=kind)
        stage = PipelineStage(self.model, 0, 1, device)
        self.schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss)
        self.batch = torch.randn(2 * MICROBATCHES, length, width, device=device, dtype=kind)

    def step(self) -> float:
        """Train one iteration; return its seconds."""
        begin = time.perf_counter()
        self.schedule.step(self.batch, target=self.batch, losses=[])
        self.model.zero_grad(set_to_none=False)
        if self.batch.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - begin


def free_address() -> str:
    """Return an address that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def compared(pipelines: dict[str, Pipeline], pairs: int) -> dict[str, float]:
    """Return what attaching costs a step: medians of pairs in random order, with a control."""
    for each in pipelines.values():
        for _ in range(5):
            each.step()
    seen: dict[str, list[float]] = {name: [] for name in pipelines}
    chance = random.Random(0)
    for _ in range(pairs):
        for name in chance.sample(sorted(pipelines), len(pipelines)):
            seen[name].append(pipelines[name].step())
    plain = statistics.median(seen["plain"])
    shares = {
        f"{name}_percent": 100
        * statistics.median((a - b) / plain for a, b in zip(seen[name], seen["plain"], strict=True))
        for name in ("control", "attached")
    }
    return {"step_ms": 1e3 * plain, **shares}


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("perseus", type=Path, help="the binary")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--cpu", action="store_true", help="without a GPU, to try the script")
    options = parser.parse_args()
    if not options.cpu and not torch.cuda.is_available():
        print("PyTorch sees no GPU; --cpu tries the script without one.", file=sys.stderr)
        return 77
    device = torch.device("cpu" if options.cpu else "cuda")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_address().split(":")[1]}
    dist.init_process_group("gloo", rank=0, world_size=1)
    size = (128, 32) if options.cpu else (2048, 2048)
    pipelines = {name: Pipeline(device, *size) for name in ("plain", "control", "attached")}
    address = free_address()
    with tempfile.TemporaryDirectory() as folder:
        command = [options.perseus, "serve", "--listen", address]
        server = subprocess.Popen([*command, "--store", f"sqlite:{folder}/perseus.db"])
        try:
            gpus, profile = f"{folder}/gpus", Path(folder) / "profile.csv"
            clocks = ", ".join(str(mhz) for mhz in SIMULATED_CLOCKS[::-1])
            simulate.create(gpus, f"[[gpus]]\ncount = 1\nclocks_mhz = [{clocks}]\n")
            profile.write_text(profile_csv(0.006, 0.013), encoding="utf-8")
            with perseus.attach(
                pipelines["attached"].schedule,
                server=f"http://{address}",
                device=f"simulated:{gpus}",
                gpu_index=0,
                gpu_uuid="",
                profile=profile,
                settings={"blocking_power": 120, "at": "1.1x", "effort": 0.05},
                run="gpu",
            ) as attached:
                assert attached, attached.reason
                end = time.monotonic() + 60
                while attached.report()["state"] != "following" and time.monotonic() < end:
                    pipelines["attached"].step()
                found: dict[str, Any] = {"cost": compared(pipelines, options.pairs)}
                time.sleep(2)
                found["report"] = {key: str(value) for key, value in attached.report().items()}
                url = f"http://{address}/api/v1/jobs"
                with urllib.request.urlopen(url, timeout=10) as answer:
                    (job,) = json.load(answer)["jobs"]
                found["job"] = job
        finally:
            server.terminate()
            server.wait()
    dist.destroy_process_group()
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
