# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""CPU time of lowtime's 1 ms frontier against perseus' whole exact one, in one run.

Usage: python bench/compare_lowtime.py [--shapes 4x16 8x12] [--repeat 20]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lowtime_runner import LowtimeRun
from measure import cpu_seconds, print_header
from oracle.binary import perseus_binary, read_frontier
from oracle.cases import A100_BLOCKING_WATTS, emulation_cases
from oracle.dag import Fixed, Pipeline, build_dag, cost_pipeline, one_forward_one_backward
from oracle.tables import Profile, Tables, write_profile


def first_stages(stages: int, microbatches: int) -> tuple[Tables, Pipeline]:
    """Return the first stages of GPT-3 175B / A100, and the last: their options, and 1F1B."""
    whole = next(iter(emulation_cases((microbatches,)))).profile()
    kept = [*range(stages - 1), whole.num_stages - 1]
    tables = {
        (stage, kind): whole.tables[original, kind]
        for stage, original in enumerate(kept)
        for kind in ("forward", "backward")
    }
    dag = build_dag(one_forward_one_backward(stages, microbatches), Fixed())
    return tables, cost_pipeline(Profile(tables, 0), dag, [A100_BLOCKING_WATTS])


def compare(stages: int, microbatches: int, unit: float, repeat: int) -> str:
    """Run both and return two table rows."""
    tables, pipeline = first_stages(stages, microbatches)
    runs = [LowtimeRun(pipeline, unit, whole) for whole in (True, False)]
    for run in runs:
        for _ in run.plans(every=0):
            pass
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "profile.csv", Path(folder) / "frontier.csv"
        write_profile(path, tables)
        command: list[str | Path] = [perseus_binary(), "frontier", path, "--schedule", "1f1b"]
        command += ["--stages", str(stages), "--microbatches", str(microbatches)]
        command += ["--blocking-power", repr(A100_BLOCKING_WATTS), "-o", out]
        ours, _ = cpu_seconds(command, repeat)
        points = len(read_frontier(out).times)
    rows = []
    for name, run in zip(("T_min to T*", "its authors'"), runs, strict=True):
        rows.append(
            f"| {stages} x {microbatches} | {name} | {run.seconds:.2f} | {run.steps} "
            f"| {1000 * ours:.2f} | {points} | {run.seconds / ours:,.0f} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", default=["4x16", "8x12"], metavar="SxM")
    parser.add_argument("--unit", type=float, default=0.001, help="lowtime's unit, s")
    parser.add_argument("--repeat", type=int, default=20, help="runs of perseus; the least counts")
    arguments = parser.parse_args()
    print_header(["lowtime"], perseus_binary())
    print("GPT-3 175B on A100 SXM, 1F1B. CPU time (user + system) of lowtime's solver alone, and")
    print("of the whole process `perseus frontier`: reading, solving, writing frontier.csv.")
    print("Its authors filter options on energy, so that their walk starts well before T*; the")
    print("first row of each shape makes it walk the whole frontier, as perseus does.\n")
    print("| shape | range | lowtime s | steps | perseus ms | breakpoints | ratio |")
    print("|---|---|---|---|---|---|---|")
    for shape in arguments.shapes:
        stages, microbatches = map(int, shape.split("x"))
        print(compare(stages, microbatches, arguments.unit, arguments.repeat), flush=True)


if __name__ == "__main__":
    main()
