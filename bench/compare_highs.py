# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""CPU time of one linear program in HiGHS against perseus' whole exact frontier.

Usage: python bench/compare_highs.py [--microbatches 96] [--repeat 5]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from measure import cpu_seconds, print_header
from oracle.binary import perseus_binary, read_frontier
from oracle.cases import emulation_cases, network_of
from oracle.dag import replay
from oracle.lp import LinearProgram

SETTINGS = {
    "dual simplex, presolve": {"solver": "simplex", "presolve": "on"},
    "dual simplex": {"solver": "simplex", "presolve": "off"},
    "interior point, presolve": {"solver": "ipm", "presolve": "on"},
}


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--microbatches", type=int, default=96)
    parser.add_argument("--slowdown", type=float, default=1.05, help="time of the one point")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; the least counts")
    arguments = parser.parse_args()
    print_header(["highspy"], perseus_binary())
    print("One point from scratch in HiGHS, HiGHS' solver alone, against the whole process")
    print("`perseus frontier`: CPU seconds (user + system), least of several runs.\n")
    print("| case | HiGHS setting | HiGHS, a point s | perseus, all s | breakpoints | ratio |")
    print("|---|---|---|---|---|---|")
    for case in emulation_cases((arguments.microbatches,)):
        pipeline = case.pipeline()
        network = network_of(pipeline)
        limit = arguments.slowdown * replay(pipeline.dag, [o.time for o in pipeline.baseline()])
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "frontier.csv"
            command = [perseus_binary(), "frontier", *case.arguments(), "-o", out]
            ours, _ = cpu_seconds(command, arguments.repeat)
            points = len(read_frontier(out).times)
        for name, setting in SETTINGS.items():
            spent = float("inf")
            for _ in range(arguments.repeat):
                program = LinearProgram(network, tolerance=1e-7, settings=setting)
                program.solve(limit)
                spent = min(spent, program.solver_seconds)
            print(
                f"| {case} | {name} | {spent:.3f} | {ours:.3f} | {points} | {spent / ours:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
