# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""CPU time and memory of `perseus emulate` for 8,192 GPUs, and how they grow.

Usage: python bench/emulate.py [--repeat N]

128 pipelines of 8 stages with tensor parallel 8 and 12 microbatches, 1,000 iterations, noise per
computation and per GPU, clocks that settle after 15 ms, stragglers by chance and a control plane
that reacts after 30 s. Then twice the iterations, the pipelines and the microbatches. How that
grows is measured with --reaction-delay never, where the number of plans is always the same, less
the time of the same command with one pipeline and one iteration. The profile is modelled
(`perseus synth`: GPT-3 175B on A100 SXM), so no data is needed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))

from large import run
from measure import print_header
from oracle.binary import perseus_binary
from perseus.analysis import synth

MODEL = synth.Spec(model="gpt3-175b", gpu="a100-sxm", stages=8, tp=8, microbatches=12)
JOB = "--schedule 1f1b --blocking-power 83.64 --tp 8"
SCENARIO = "--noise 1% --set gpu_noise=1% --switch-latency 15ms --straggler-rate 5%,slow=1.2,for=1h"


@dataclass(frozen=True)
class Size:
    """One job to emulate."""

    pipelines: int = 128
    iterations: int = 1000
    microbatches: int = 12


def command_of(size: Size, profile: Path, *, reacts: bool = True) -> list[str | Path]:
    """Return the command line that emulates a job."""
    command: list[str | Path] = [perseus_binary(), "emulate", profile, *shlex.split(JOB)]
    command += shlex.split(SCENARIO)
    command += ["--dp", str(size.pipelines), "--iterations", str(size.iterations)]
    command += ["--microbatches", str(size.microbatches), "--json"]
    return [*command, "--reaction-delay", "30s" if reacts else "never"]


def emulation_alone(size: Size, profile: Path, out: Path, repeat: int) -> float:
    """Return the CPU seconds without reading, planning and writing."""
    whole, rest = (
        min(run(command_of(s, profile, reacts=False), out)[0] for _ in range(repeat))
        for s in (size, replace(size, pipelines=1, iterations=1))
    )
    return whole - rest


def measure(size: Size, profile: Path, out: Path, repeat: int) -> tuple[float, float, float]:
    """Return the least CPU seconds, the peak megabytes and the error of the power trace's sum."""
    command = command_of(size, profile)
    runs = [run(command, out) for _ in range(repeat)]
    found = json.loads(out.read_text(encoding="utf-8"))
    drawn = found["power_interval_s"] * sum(found["power_w"])
    return (
        min(seconds for seconds, _ in runs),
        max(megabytes for _, megabytes in runs),
        abs(drawn / found["energy_j"] - 1),
    )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, help="runs; the least time counts")
    arguments = parser.parse_args()
    print_header([], perseus_binary())
    print(f"`perseus emulate PROFILE {JOB} {SCENARIO}")
    print("--reaction-delay 30s --json`, the whole process, planning and the")
    print("baseline of maximum clocks included. CPU seconds are user + system; megabytes are the")
    print("peak resident set; `emulation` is without planning; the last column is how far the")
    print("four parts of the energy are from the sum of the power trace.\n")
    print(
        "| pipelines | GPUs | iterations | microbatches | CPU s | emulation | ratio | MB | energy |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile, out = folder / "profile.csv", folder / "out.json"
        profile.write_text(synth.synthesize(MODEL).profile_csv, encoding="utf-8")
        base = Size()
        first = 0.0
        for size in (
            base,
            replace(base, iterations=2 * base.iterations),
            replace(base, pipelines=2 * base.pipelines),
            replace(base, microbatches=2 * base.microbatches),
        ):
            seconds, megabytes, error = measure(size, profile, out, arguments.repeat)
            emulated = emulation_alone(size, profile, out, arguments.repeat)
            first = first or emulated
            print(
                f"| {size.pipelines} | {64 * size.pipelines:,} | {size.iterations:,} "
                f"| {size.microbatches} | {seconds:.2f} | {emulated:.2f} "
                f"| {emulated / first:.2f} | {megabytes:.0f} | {error:.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
