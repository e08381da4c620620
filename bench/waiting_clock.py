#!/usr/bin/env python3
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Show what a clock for waiting saves beside the plan's other clocks.

For each profile, plans are made without slowdown: with the blocking power taken as constant, and
with rows `blocking` of an ASSUMED curve a + b f^2, which draws that power at the highest clock and
40 % or 60 % less at the lowest. Nobody has measured such a curve here. The constant plan is
followed by ranks that wait at the clock that is set, so it is emulated with the same rows. Each is
held against maximum clocks, which wait at the highest one.

    bench/waiting_clock.py [--binary build/release/src/cli/perseus] [--microbatches 24] PROFILE...

Under conditions, noise is 1 %, latency 15 ms, calls are predicted, and 0.1 % of slowdown is
accepted. Writes a table in Markdown; savings are in per cent.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WATTS = {"A100": 83.64, "A40": 70.38}  # Of a GPU that waits: docs/evidence/synth.md.
CONDITIONS = ["--noise", "1%", "--switch-latency", "15ms", "--call-ahead", "predicted"]
LESS = (0.4, 0.6)


def clocks_of(profile: Path) -> list[float]:
    """Return the clocks of a profile, the highest first."""
    with profile.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if line.strip() and not line.startswith("#"))
        return sorted({float(row["frequency"]) for row in csv.DictReader(lines)}, reverse=True)


def with_curve(profile: Path, watts: float, less: float, to: Path) -> Path:
    """Write the profile with rows `blocking` of the assumed curve."""
    with profile.open(encoding="utf-8", newline="") as file:
        header = next(line for line in file if line.strip() and not line.startswith("#"))
    columns = header.strip().split(",")
    clocks = clocks_of(profile)
    high, low = clocks[0] ** 2, clocks[-1] ** 2
    slope = watts * less / (high - low)
    lines = []
    for clock in clocks:
        power = watts - slope * (high - clock**2)
        cells = {"instruction": "blocking", "frequency": f"{clock:g}", "time": "1"}
        cells["energy"] = repr(power)
        lines.append(",".join(cells.get(column, "") for column in columns))
    text = profile.read_text(encoding="utf-8").rstrip("\n")
    to.write_text("\n".join([text, *lines, ""]), encoding="utf-8")
    return to


def run(binary: Path, arguments: list[str]) -> dict[str, object]:
    """Return the JSON that perseus prints."""
    done = subprocess.run(
        [str(binary), *arguments, "--json"], check=True, capture_output=True, text=True
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def saving_when_followed(binary: Path, job: list[str], plan: Path) -> float:
    """Return what a plan saves on paper in a job whose waiting depends on the clock."""
    energies = []
    for policy in (["--plan", str(plan)], ["--policy", "max-clocks"]):
        answer = run(binary, ["emulate", *job, "--iterations", "20", *policy])
        energies.append(float(str(answer["energy_j"])))
    return 100 * (1 - energies[0] / energies[1])


def expected_saving(folder: Path) -> float:
    """Return what a plan saves under its conditions, as its plan.json says."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    return float(plan["expected"]["saving_percent"])


def row(binary: Path, profile: Path, microbatches: int, less: float, folder: Path) -> str:
    """Return one row of the table."""
    watts = WATTS["A100" if "a100" in profile.name.lower() else "A40"]
    shape = ["--schedule", "1f1b", "--microbatches", str(microbatches)]
    power = ["--blocking-power", str(watts)]
    constant = [str(profile), *shape, *power]
    curved = [str(with_curve(profile, watts, less, folder / "curved.csv")), *shape]
    stated = run(binary, ["plan", *constant, "-o", str(folder / "constant")])
    followed = saving_when_followed(binary, curved, folder / "constant" / "plan.json")
    own = run(binary, ["plan", *curved, "-o", str(folder / "own")])
    # A stall, however short, leaves no clock for waiting.
    held = []
    for name, most in (("set", ["--switch-stall", "0.000000001"]), ("waiting", [])):
        run(binary, ["plan", *curved, *CONDITIONS, *most, "-o", str(folder / name)])
        held.append(expected_saving(folder / name))
    saving = float(str(own["saving_percent"]))
    return (
        f"| {profile.stem} | {100 * less:.0f} % | {float(str(stated['saving_percent'])):.2f} | "
        f"{followed:.2f} | {saving:.2f} | {saving - followed:+.2f} | "
        f"{held[0]:.2f} | {held[1]:.2f} | {held[1] - held[0]:+.2f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("profiles", nargs="+", type=Path)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/src/cli/perseus")
    parser.add_argument("--microbatches", type=int, default=24)
    arguments = parser.parse_args()
    print(
        "| table | less | constant | set clock | own clock | points | "
        "held, set clock | held, own clock | points |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for profile in arguments.profiles:
        for less in LESS:
            with tempfile.TemporaryDirectory() as name:
                line = row(arguments.binary, profile, arguments.microbatches, less, Path(name))
            print(line, flush=True)


if __name__ == "__main__":
    main()
