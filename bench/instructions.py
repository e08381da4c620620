# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Instruction counts of fixed cases against the recorded ones: noise cannot move them.

Usage: python bench/instructions.py [--record] [--tolerance PERCENT]

The start of the program (`perseus --version`: the loader, the list of options) is a row of its
own and is taken off the others. Otherwise a library more would hide what the solver does.

Counts depend on the compiler and the C++ library as well: instructions.json keeps one set
for each compiler that was recorded, and a compiler without one is only reported.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

from measure import cpu_seconds, print_header
from oracle.binary import perseus_binary
from oracle.tables import Option, Tables, write_profile

RECORD = Path(__file__).with_name("instructions.json")
START = "start"
# Most of it is the system's loader and its libraries, which the system updates.
START_TOLERANCE_PERCENT = 15.0
CASES = {
    "frontier 8 x 32": ["frontier", "--stages", "8", "--microbatches", "32"],
    "plan 4 x 16": ["plan", "--stages", "4", "--microbatches", "16", "--effort", "0.02"],
}


def tables(stages: int) -> Tables:
    """Return a smooth analytic profile, by rational arithmetic: the same bits everywhere."""
    result: Tables = {}
    for stage in range(stages):
        for kind, work in (("forward", Fraction(50)), ("backward", Fraction(93))):
            work *= 1 + Fraction(stage % 3, 40)
            options = []
            for clock in range(1410, 700, -30):
                speed = Fraction(clock, 1410)
                time = work / 1000 * (Fraction(1, 5) + Fraction(4, 5) / speed)
                energy = time * (120 + 340 * speed * speed)
                options.append(Option(str(clock), float(time), float(energy)))
            result[stage, kind] = options
    return result


def case_instructions(arguments: list[str]) -> int:
    """Count the instructions of one case on the analytic profile."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile.csv"
        write_profile(profile, tables(int(arguments[arguments.index("--stages") + 1])))
        fixed = ["--schedule", "1f1b", "--blocking-power", "80"]
        return instructions([arguments[0], str(profile), *arguments[1:], *fixed])


def instructions(arguments: list[str]) -> int:
    """Count the instructions of one run of perseus under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [str(perseus_binary()), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return int(found[1])


def compiler() -> str:
    """Name the compiler of the binary, from its .comment section."""
    _, text = cpu_seconds(["readelf", "-p", ".comment", perseus_binary()])
    names = re.findall(r"\]\s+(.*\S)", text)
    return "; ".join(sorted(set(names))) or "unknown compiler"


def main() -> int:
    """Print a Markdown table; 1 where a count has grown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="keep today's counts")
    parser.add_argument("--tolerance", type=float, default=3.0, help="per cent (default 3)")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    print_header([], perseus_binary())
    kept: dict[str, dict[str, int]] = {}
    if RECORD.is_file():
        kept = json.loads(RECORD.read_text(encoding="utf-8"))
    name = compiler()
    print(f"Compiled by {name}\n")
    print("| case | instructions | recorded | change % |")
    print("|---|---|---|---|")
    grown = False
    counts = {START: instructions(["--version"])}
    for case in (START, *CASES):
        tolerance = START_TOLERANCE_PERCENT
        if case != START:
            counts[case] = case_instructions(CASES[case]) - counts[START]
            tolerance = arguments.tolerance
        before = kept.get(name, {}).get(case)
        change = 100 * (counts[case] / before - 1) if before else 0.0
        grown = grown or change > tolerance
        print(f"| {case} | {counts[case]:,} | {before or 'none'} | {change:+.2f} |", flush=True)
    if arguments.record:
        kept[name] = counts
        RECORD.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
