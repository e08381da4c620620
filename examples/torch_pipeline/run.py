#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Profile, plan, straggler, report: a small GPT on 4 processes and simulated GPUs.

Starts a server, an agent and train.py, with Perseus and without, and holds against each other:
the losses (the same, bit for bit), what Perseus saved, and what `perseus emulate` says that its
plan saves. Exits with 1 where losses differ or the two savings differ by over a percentage point.

    python run.py [--schedule 1f1b|interleaved-1f1b|zbv-zero-bubble|all] [--variable-lengths SEED]

With --variable-lengths each microbatch is of another length in every iteration, and each iteration
gets a plan of its own, made beside training from a profile that was measured before.

It needs PyTorch, the package `perseus` (folder python/) with its library, and the command line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import (
    BUILT,
    MICROBATCHES,
    MOST_POINTS,
    PIPELINES,
    RANKS_IN_PIPELINE,
    VIRTUAL_STAGES,
    iterations_of,
    losses_of,
    mean,
    perseus,
    prepare,
    services,
    train,
)
from run_lengths import run_lengths


def emulate(binary: str, profile: Path, schedule: str, plan: Path) -> float:
    """Return the percentage that the emulator says this plan saves."""
    arguments = ["emulate", str(profile), "--schedule", schedule, "--plan", str(plan)]
    arguments += ["--virtual-stages", str(VIRTUAL_STAGES[schedule])]
    arguments += ["--microbatches", str(MICROBATCHES), "--blocking-power", "83.64"]
    arguments += ["--dp", str(PIPELINES), "--iterations", "10", "--json"]
    arguments += ["--switch-latency", "0ms", "--switch-stall", "0ms"]
    run: dict[str, Any] = json.loads(perseus(binary, *arguments))
    return float(run["saving_percent"])


def run(schedule: str, binary: str, folder: Path, measured: int) -> bool:
    """Run all of it for one schedule; False: it is not as it should be."""
    begun = time.monotonic()
    driver = prepare(schedule, binary, folder)
    print(
        f"{schedule}: a server, an agent, and 4 processes that train with Perseus ...", flush=True
    )
    common = ["--measured", str(measured)]
    on, off = folder / "with", folder / "without"
    plan = folder / "plan.json"
    with services(binary, folder, driver) as named:
        url, name = named[1], f"torch-{schedule}"
        train(folder, on, schedule, *common, *named, "--run", name)
        perseus(binary, "job", "export", name, "--server", url, "-o", str(plan))
        for row in perseus(binary, "job", "show", name, "--server", url).splitlines():
            print(f"    {row}")

    rows = iterations_of(on)
    print(f"{schedule}: the same {len(rows)} iterations without Perseus ...", flush=True)
    train(folder, off, schedule, *common, "--iterations", str(len(rows)))

    without = iterations_of(off)
    baseline, slow = (
        mean(without, "planned", measured - 1),
        mean(without, "straggler", measured - 1),
    )
    planned, answered = mean(rows, "planned", measured), mean(rows, "straggler", measured)
    foretold = emulate(binary, folder / "truth.csv", schedule, plan)
    saved = planned.saving(baseline)
    same = losses_of(on) == losses_of(off)
    digest = hashlib.sha256("".join(losses_of(on)).encode()).hexdigest()[:16]

    profile = sum(row["phase"] == "profile" for row in rows)
    print(f"\n{schedule}, one iteration, {PIPELINES} pipelines of {RANKS_IN_PIPELINE} GPUs")
    print(f"{'':<34}{'time s':>9}{'energy J':>10}{'saving':>9}")
    for label, figures, against in (
        ("maximum clocks", baseline, None),
        ("planned", planned, baseline),
        ("a straggler, maximum clocks", slow, None),
        ("a straggler, planned", answered, slow),
    ):
        line = f"{label:<34}{figures.seconds:9.4f}{figures.joules:10.1f}"
        if against is not None:
            line += f"{figures.saving(against):8.2f} %"
            line += f"   time {100 * (figures.seconds / against.seconds - 1):+.2f} %"
        print(line)
    print(
        f"the emulator says of this plan {foretold:24.2f} %   off by {saved - foretold:+.2f} points"
    )
    print(f"losses {'are the same, bit for bit' if same else 'DIFFER'}: {digest}")
    print(f"{profile} iterations until all ranks followed; {time.monotonic() - begun:.0f} s in all")
    return same and abs(saved - foretold) <= MOST_POINTS


def main() -> int:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    names = sorted(VIRTUAL_STAGES)
    parser.add_argument("--schedule", choices=[*names, "all"], default="1f1b")
    found = shutil.which("perseus") or str(BUILT / "cli" / "perseus")
    parser.add_argument("--binary", default=os.environ.get("PERSEUS_BINARY") or found)
    parser.add_argument("--measured", type=int, default=8, help="iterations of each phase")
    parser.add_argument("--variable-lengths", type=int, metavar="SEED", help="vary sequences")
    parser.add_argument("--keep", type=Path, help="a new folder for what was written")
    options = parser.parse_args()
    chosen = names if options.schedule == "all" else [options.schedule]
    with tempfile.TemporaryDirectory(prefix="perseus-torch-") as temporary:
        folder = options.keep or Path(temporary)
        good = [
            run(name, options.binary, folder / name, options.measured)
            if options.variable_lengths is None
            else run_lengths(
                name, options.binary, folder / name, options.measured, options.variable_lengths
            )
            for name in chosen
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
