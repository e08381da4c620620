# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How soon many jobs that come at once have their first plans, and at what cost.

python bench/first_plans.py --perseus build/release/src/cli/perseus --jobs 200

Starts the real server, creates the jobs one after the other (4 stages, 16 microbatches),
and asks until each has a plan. Prints the time and the processor time of the server until
then. --large STAGES MICROBATCHES refines a larger job meanwhile. --behind creates a job
of 8 stages and 96 microbatches last, and prints when that one has its first plan.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "server"))
from serving import Server

PROFILE = Path(__file__).parent.parent / "examples" / "gpt3-1.3b-a100-sxm.csv"
POLL_SECONDS = 0.1
LIMIT_SECONDS = 600.0


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def create(server: Server, stages: int, microbatches: int, profile: str) -> str:
    """Create a job whose profile is known; return its path."""
    settings: dict[str, object] = {"schedule": "1f1b", "stages": stages}
    settings |= {"microbatches": microbatches, "blocking_power": 83.64}
    body = {"job": settings, "name": f"{stages}x{microbatches}", "profile_csv": profile}
    status, created = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, created
    return f"/api/v1/jobs/{created['id']}"


def profile_of(perseus: Path, stages: int) -> str:
    """Return a modelled profile of so many stages."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        subprocess.run(
            [
                *(str(perseus), "synth", "--model", "gpt3-1.3b", "--gpu", "a100-sxm"),
                *("--stages", str(stages), "--microbatch-size", "4", "-o", str(job)),
            ],
            check=True,
            capture_output=True,
        )
        return (job / "profile.csv").read_text()


def has_plan(server: Server, path: str) -> bool:
    """Return whether the job's first plan is there."""
    status, shown = server.call("GET", path)
    assert status == 200, shown
    return shown["plan"] is not None


def main() -> None:
    """Create the jobs; print what their first plans took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--large", type=int, nargs=2, metavar=("STAGES", "MICROBATCHES"))
    parser.add_argument("--behind", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.perseus, Path(folder) / "store.sqlite")
        if options.large:
            stages, microbatches = options.large
            path = create(server, stages, microbatches, profile_of(options.perseus, stages))
            while not has_plan(server, path):
                time.sleep(POLL_SECONDS)
        profile = PROFILE.read_text()
        began, cpu = time.perf_counter(), cpu_seconds(server.pid)
        waiting = [create(server, 4, 16, profile) for _ in range(options.jobs)]
        last = create(server, 8, 96, profile_of(options.perseus, 8)) if options.behind else None
        created = time.perf_counter() - began
        cpu_created = cpu_seconds(server.pid) - cpu
        while (waiting or last) and time.perf_counter() - began < LIMIT_SECONDS:
            if last and has_plan(server, last):
                print(f"8 x 96: first plan after {time.perf_counter() - began - created:.1f} s")
                last = None
            waiting = [path for path in waiting if not has_plan(server, path)]
            time.sleep(POLL_SECONDS)
        print(
            f"{options.jobs} jobs: created in {created:.1f} s ({cpu_created:.1f} s of CPU); "
            f"{options.jobs - len(waiting)} first plans after "
            f"{time.perf_counter() - began:.1f} s and {cpu_seconds(server.pid) - cpu:.1f} s of CPU"
        )
        server.kill()


if __name__ == "__main__":
    main()
