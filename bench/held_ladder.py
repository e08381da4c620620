# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a server takes for the plans of a job with conditions.

python bench/held_ladder.py --perseus build/release/src/cli/perseus --profile gpt3.csv --stages 8 \
    --microbatches 96

Starts a server, creates a job with 15 ms of switch latency, 1 % noise and at most 300 changes
of clock, registers its ranks, and prints when plans come and what CPU the server has used.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

CONDITIONS = {
    "noise": "1%",
    "switch_latency": "15ms",
    "call_ahead": "predicted",
    "max_changes": 300,
}
MOST_SECONDS = 1800


def call(url: str, body: dict[str, object] | None = None) -> dict[str, Any]:
    """Ask the server."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=60) as answer:
        return dict(json.loads(answer.read() or "{}"))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process until now, its own code and the kernel's."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(server: str, pid: int, job: str) -> None:
    """Print each state until the plans are the refined ones."""
    before: tuple[object, ...] = ()
    begin = time.monotonic()
    while time.monotonic() - begin < MOST_SECONDS:
        shown = call(f"{server}/api/v1/jobs/{job}")
        plan = shown["plan"] or {}
        now = (shown["state"], shown["refined"], plan.get("saving_percent"))
        if now != before:
            print(
                f"{time.monotonic() - begin:6.1f} s, {cpu_seconds(pid):6.1f} s of CPU: {now[0]}"
                + ("" if now[2] is None else f", {now[2]:.2f} % saved")
                + (", refined" if now[1] else "")
                + (f": {shown['reason']}" if shown["reason"] else "")
            )
            before = now
        if shown["refined"] or shown["state"] == "failed":
            return
        time.sleep(0.5)


def main() -> None:
    """Run one job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--profile", type=Path, required=True)
    parser.add_argument("--stages", type=int, required=True)
    parser.add_argument("--microbatches", type=int, default=96)
    parser.add_argument("--blocking-power", type=float, default=83.64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        command = [str(given.perseus), "serve", "--store", f"sqlite:{directory}/perseus.db"]
        with subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            server = next(
                word for line in process.stdout for word in line.split() if word.startswith("http")
            ).rstrip(".,")
            settings: dict[str, object] = {"schedule": "1f1b", "conditions": CONDITIONS}
            settings |= {"microbatches": given.microbatches}
            settings |= {"blocking_power": given.blocking_power}
            body = {"name": "job", "job": settings, "profile_csv": given.profile.read_text()}
            job = call(f"{server}/api/v1/jobs", body)["id"]
            for rank in range(given.stages):
                place = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "node": "n"}
                gpu = {"uuid": f"GPU-{rank}", "name": "A100"}
                call(
                    f"{server}/api/v1/jobs/{job}/ranks", {**place, "gpu": gpu, "clocks_mhz": [1410]}
                )
            watch(server, process.pid, job)
            process.terminate()


if __name__ == "__main__":
    main()
