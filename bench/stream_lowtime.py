# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""One iteration whose microbatches differ: lowtime's walk beside ours, for scale.

Usage: python bench/stream_lowtime.py PROFILE.csv WORK.csv --blocking-power WATTS

WORK.csv has the columns microbatch,factor (bench/stream writes one). The schedule is 1F1B.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path

from lowtime_runner import LowtimeRun
from measure import cpu_seconds
from oracle.binary import perseus_binary
from oracle.dag import Action, Fixed, build_dag, cost_pipeline, one_forward_one_backward, replay
from oracle.tables import read_profile


def main() -> None:
    """Print CPU times and energies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--blocking-power", type=float, required=True, help="watts per GPU")
    parser.add_argument("--unit", type=float, default=0.001, help="lowtime's unit, s")
    arguments = parser.parse_args()
    profile = read_profile(arguments.profile)
    with arguments.work.open(encoding="utf-8", newline="") as file:
        factors = {int(row["microbatch"]): float(row["factor"]) for row in csv.DictReader(file)}
    dag = build_dag(one_forward_one_backward(profile.num_stages, len(factors)), Fixed())
    work: dict[Action, float] = {a: factors[a.microbatch] for step in dag.steps for a in step}
    pipeline = cost_pipeline(profile, dag, [arguments.blocking_power], work=work)
    baseline = pipeline.baseline()
    wanted = replay(dag, [o.time for o in baseline])
    today = pipeline.energy(baseline, wanted)
    run = LowtimeRun(pipeline, arguments.unit)
    plans = list(run.plans(every=10))
    best = min(
        (p for p in plans if p.realised_time <= wanted), key=lambda p: p.energy, default=None
    )
    told = f"{100 * (1 - best.energy / today):.2f} %" if best else "no plan in time"
    print(f"lowtime: {run.seconds:.1f} s of CPU, {run.steps} steps; saving: {told}")
    command: list[str | Path] = [perseus_binary(), "plan", arguments.profile, "--schedule", "1f1b"]
    command += ["--microbatches", str(len(factors)), "--work", arguments.work]
    command += ["--blocking-power", repr(arguments.blocking_power)]
    with tempfile.TemporaryDirectory() as folder:
        seconds, _ = cpu_seconds([*command, "-o", Path(folder) / "out"], 1)
        plan = json.loads((Path(folder) / "out/plan.json").read_text(encoding="utf-8"))
    print(
        f"perseus plan, its whole table: {seconds:.1f} s of CPU; saving "
        f"{plan['saving_percent']:.2f} %, gap {plan['gap_percent']:.3f} %"
    )


if __name__ == "__main__":
    main()
