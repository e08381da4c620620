# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of the job of tests/server/drill.py, on a simulated GPU: trains until its input ends.

python trainer.py SERVER AGENT RANK

Prints a line of JSON ten times a second: what the client says of itself.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "server")]

import perseus  # noqa: E402
from drill import PROFILE, SETTINGS  # noqa: E402

# Of a computation: long beside a call, or the client follows its plan less finely.
SECONDS = 0.02
ORDER = {
    0: [("forward", 0), ("forward", 1), ("backward", 0), ("backward", 1)],
    1: [("forward", 0), ("backward", 0), ("forward", 1), ("backward", 1)],
}


def main() -> None:
    """Train."""
    server, agent, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
    stage = rank % 2
    with perseus.Client(
        server,
        job={"client_key": "e2e", "job": SETTINGS, "profile_csv": PROFILE},
        rank=rank,
        dp_rank=rank // 2,
        pp_rank=stage,
        device=f"agent:{agent}",
        gpu_index=rank,
        report_interval_seconds=0.2,
    ) as client:
        iteration = 0
        told = 0.0
        clocks: set[int] = set()  # Seen at computations' ends.
        while not select.select([sys.stdin], [], [], 0)[0]:
            with client.step(iteration):
                for kind, microbatch in ORDER[stage]:
                    with client.instruction(kind, stage, microbatch):
                        time.sleep(SECONDS)
                        stats = client.stats()
                        if stats:
                            clocks.add(stats.clock_mhz)
            iteration += 1
            if time.monotonic() - told > 0.1:
                told = time.monotonic()
                says = {
                    "pid": os.getpid(),
                    "iteration": iteration,
                    "job": client.job_id,
                    "version": client.plan_version,
                    "following": client.state == perseus.State.FOLLOWING,
                    "clocks": sorted(clocks),
                    "error": client.last_error,
                }
                print(json.dumps(says), flush=True)


if __name__ == "__main__":
    main()
