# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""CPU time and memory of frontiers of large pipelines: exact and certified coarse.

Usage: python bench/large.py [--exact 16x256] [--coarse 64x512[:WATTS] ...]

The stages are copies of those of GPT-3 175B / A100 with one factor on all times and one on all
energies of each stage and instruction, up to 3 % either way: as uneven as real stages are. The
first and the last stage stay the model's. Same numbers everywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import tempfile
from pathlib import Path

from measure import print_header
from oracle.binary import perseus_binary
from oracle.cases import A100_BLOCKING_WATTS, emulation_cases
from oracle.tables import Option, Tables, write_profile

JITTER = 0.03


def jittered_tables(stages: int) -> Tables:
    """Return the tables of ``stages`` stages."""
    whole = next(iter(emulation_cases((1,)))).profile()
    rng = random.Random(stages)
    tables: Tables = {}
    for stage in range(stages):
        original, jitter = 1 + stage % (whole.num_stages - 2), JITTER
        if stage in (0, stages - 1):
            original, jitter = min(stage, whole.num_stages - 1), 0.0
        for instruction in ("forward", "backward"):
            longer, dearer = (1 + jitter * rng.uniform(-1, 1) for _ in range(2))
            tables[stage, instruction] = [
                Option(o.knob, longer * o.time, dearer * o.energy)
                for o in whole.tables[original, instruction]
            ]
    return tables


def run(command: list[str | Path], out: Path) -> tuple[float, float]:
    """Run a command with its output in a file; return CPU seconds and peak megabytes."""
    with out.open("wb") as file:
        actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), 1)]
        program = [os.fspath(part) for part in command]
        pid = os.posix_spawn(program[0], program, os.environ, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{shlex.join(program)}: exit {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def measure(shape: str, coarse: str, folder: Path) -> str:
    """Solve one pipeline and return its row."""
    stages, microbatches = map(int, shape.split("x"))
    profile, out = folder / f"{stages}.csv", folder / "out.json"
    write_profile(profile, jittered_tables(stages))
    command: list[str | Path] = [perseus_binary(), "frontier", profile, "--schedule", "1f1b"]
    command += ["--microbatches", str(microbatches), "--set", f"coarse_watts={coarse}", "--json"]
    command += ["--blocking-power", repr(A100_BLOCKING_WATTS)]
    seconds, megabytes = run(command, out)
    found = json.loads(out.read_text(encoding="utf-8"))
    return (
        f"| {shape} | {found['computations']} | {'exact' if coarse == '0' else coarse} "
        f"| {len(found['frontier'])} | {100 * found['certified_error']:.4f} | {seconds:.2f} "
        f"| {megabytes:.0f} |"
    )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exact", nargs="*", default=["16x256"], metavar="SxM")
    parser.add_argument("--coarse", nargs="*", default=["64x512:auto"], metavar="SxM[:WATTS]")
    arguments = parser.parse_args()
    print_header([], perseus_binary())
    print("1F1B; whole process `perseus frontier --json`: reading, solving, writing every")
    print("breakpoint. CPU seconds are user + system; megabytes are the peak resident set.\n")
    print("| shape | computations | slopes, W | breakpoints | certified error % | CPU s | MB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for shape in arguments.exact:
            print(measure(shape, "0", Path(name)), flush=True)
        for entry in arguments.coarse:
            shape, _, watts = entry.partition(":")
            print(measure(shape, watts or "auto", Path(name)), flush=True)


if __name__ == "__main__":
    main()
