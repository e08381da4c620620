# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Quality and cost of plans: gap to the lower bound and CPU time, as a Markdown table.

Usage: python bench/gaps.py [--microbatches 12 24 48 96] [--at 1.0x 1.02x 1.05x 1.1x]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from measure import cpu_seconds, print_header
from oracle.binary import perseus_binary
from oracle.cases import emulation_cases


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--microbatches", nargs="+", type=int, default=[12, 24, 48, 96])
    parser.add_argument("--at", nargs="+", default=["1.0x", "1.02x", "1.05x", "1.1x"])
    arguments = parser.parse_args()
    binary = perseus_binary()
    print_header([], binary)
    print("Gap to the lower bound at the achieved time, in per cent; saving against all-maximum")
    print(
        "clocks; CPU seconds of the whole process, which also plans every other row of its table.\n"
    )
    print("| case | at | achieved s | saving % | gap % | CPU s, process |")
    print("|---|---|---|---|---|---|")
    for case in emulation_cases(tuple(arguments.microbatches)):
        for at in arguments.at:
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "out"
                spent, _ = cpu_seconds(
                    [binary, "plan", *case.arguments(), "--at", at, "--json", "-o", out]
                )
                plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
            print(
                f"| {case} | {at} | {plan['iteration_time_s']:.5f} | {plan['saving_percent']:.3f} "
                f"| {plan['gap_percent']:.4f} | {spent:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
