# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Divides the power of 40 measured jobs, and says what is lost and what it costs.

The jobs are ten of each of four measured tables, each 1F1B with 8 stages and 96 microbatches. The
two large models have 8 tensor-parallel GPUs a rank, and all GPUs have equal weight. A row has the
power that is taken away, the work that is lost against maximum clocks (of the best division and of
real plans), the plans that were made, and the processor time of `perseus fleet plan`.

    python bench/fleet_plan.py DATA [BINARY]
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COUNT = 10
CUTS = (0.1, 0.25, 0.4)

# Table, watts of a GPU that waits, and GPUs of a rank.
TABLES = (
    ("sosp24_data/emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 83.64, 8),
    ("sosp24_data/emulation/stage_profile/bloom+a40_bf16.csv", 70.38, 8),
    ("derived/A40_bloom-3b_dp1_tp1_pp8_mbs4_nmb128.csv", 70.38, 1),
    ("derived/A40_wide-resnet101_8_dp1_tp1_pp8_mbs32_nmb48.csv", 70.38, 1),
)


def site(data: Path, watts: float) -> str:
    """Return the site file of a budget."""
    text = f'power = "{watts!r}W"\n'
    for k, (table, waiting, gpus) in enumerate(TABLES):
        text += (
            f'[[job]]\nname = "table-{k}"\ncount = {COUNT}\nprofile = "{data / table}"\n'
            f'schedule = "1f1b"\nmicrobatches = 96\nblocking_power = {waiting}\n'
            f"tp = {gpus}\nweight = {gpus}\n"
        )
    return text


def divide(binary: Path, data: Path, watts: float) -> tuple[dict[str, Any], float]:
    """Return the answer, and the seconds of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "site.toml"
        path.write_text(site(data, watts))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [str(binary), "fleet", "plan", str(path), "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Print a row for each cut."""
    data = Path(sys.argv[1])
    binary = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "build/release/src/cli/perseus"
    full = divide(binary, data, 1e9)[0]["max_clocks_power_w"]
    weights = sum(COUNT * gpus for _, _, gpus in TABLES)
    print(f"{COUNT * len(TABLES)} jobs draw {full / 1e3:.2f} kW at maximum clocks")
    for cut in CUTS:
        answer, seconds = divide(binary, data, (1 - cut) * full)
        best, plans = (100 - 100 * answer[k] / weights for k in ("objective_bound", "objective"))
        print(
            f"{100 * cut:.0f} % less power: work lost {best:.2f} % at best, {plans:.2f} % by plans"
            f" (gap {answer['gap_percent']:.3f} %), {answer['plans_made']} plans, {seconds:.1f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
