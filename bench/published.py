# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Plans beside the paper's published ones, on the same measured profiles.

Usage: python bench/published.py DATA_DIR [--points 60 | --all] [--lowtime 12 24 ...]

DATA_DIR holds sosp24_data/ and tables/. Profiles and published frontiers are in the same
units (the paper's totals multiply both: times by 10, energies by 10 x 8).
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowtime_runner import LowtimeRun
from measure import cpu_seconds, print_header
from oracle.binary import perseus_binary
from oracle.cases import A40_BLOCKING_WATTS, A100_BLOCKING_WATTS, Case
from oracle.dag import one_forward_one_backward, replay
from oracle.plan_check import Job, check_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

MICROBATCHES = (12, 24, 48, 96)


@dataclass(frozen=True)
class Published:
    """A case with what the paper says about it."""

    case: Case
    saving: float
    frontier: list[tuple[float, float]]


def read_published(data: Path) -> list[Published]:
    """Read profiles, published frontiers and Table 6."""
    emulation = data / "sosp24_data/emulation"
    with (data / "tables/table6_emulation_intrinsic.csv").open(encoding="utf-8") as file:
        savings = {
            (row["model"], row["device"], int(row["num_microbatches"])): float(
                row["intrinsic_saving_pct"]
            )
            for row in csv.DictReader(file)
        }
    found = []
    for model, device, watts in (
        ("gpt3-175b", "a100_sxm", A100_BLOCKING_WATTS),
        ("bloom", "a40", A40_BLOCKING_WATTS),
    ):
        profile = emulation / f"stage_profile/{model}+{device}_bf16.csv"
        for count in MICROBATCHES:
            path = emulation / f"iteration_time_energy/{device}/{model}_bf16_mb{count}.csv"
            if not path.is_file():
                print(f"(skipped: {path.name} is missing)")
                continue
            with path.open(encoding="utf-8") as file:
                rows = [(float(r["time"]), float(r["energy"])) for r in csv.DictReader(file)]
            case = Case(f"{model} {device}", profile, watts, count)
            found.append(Published(case, savings[model, device, count], sorted(rows)))
    return found


def make_plan(case: Case, at: str, effort: float = 1.0) -> dict[str, Any]:
    """Plan a case and return plan.json, recomputed by the oracle."""
    command: list[str | Path] = [perseus_binary(), "plan", *case.arguments(), "--at", at]
    command += ["--effort", repr(effort)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        cpu_seconds([*command, "-o", out])
        plan: dict[str, Any] = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    job = Job(
        case.profile(),
        one_forward_one_backward(case.profile().num_stages, case.microbatches),
        [case.blocking_power],
    )
    errors = check_plan(plan, job)
    if errors:
        raise SystemExit(f"{case} at {at}: {errors[0]}")
    return plan


def subset(items: Sequence[Any], count: int) -> list[Any]:
    """Return about ``count`` items, spread evenly, first and last included."""
    if count <= 0 or len(items) <= count:
        return list(items)
    return [items[round(k * (len(items) - 1) / (count - 1))] for k in range(count)]


def print_savings(cases: Sequence[Published]) -> None:
    """Savings at no slowdown beside Table 6."""
    print("Savings at no slowdown (the all-maximum-clock time), per cent\n")
    print("| case | microbatches | published | perseus | bound on any plan | gap % |")
    print("|---|---|---|---|---|---|")
    for item in cases:
        plan = make_plan(item.case, "1.0x")
        most = 100 * (1 - plan["lower_bound_j"] / plan["baseline"]["energy_j"])
        print(
            f"| {item.case.name} | {item.case.microbatches} | {item.saving:.2f} "
            f"| {plan['saving_percent']:.2f} | {most:.2f} | {plan['gap_percent']:.4f} |",
            flush=True,
        )


def print_margins(cases: Sequence[Published], points: int, effort: float) -> None:
    """Our energy at published times beside the published energy."""
    print("\nEnergy below the published one at the published times from T_min on, per cent")
    print(f"(at {effort:g} of the usual effort; the published A100 times are below what any plan")
    print("can achieve: see the next table)\n")
    print("| case | microbatches | times | least | median | least from 1.02 T_min on |")
    print("|---|---|---|---|---|---|")
    for item in cases:
        pipeline = item.case.pipeline()
        fastest = replay(pipeline.dag, [min(o.time for o in opts) for opts in pipeline.options])
        margins = []
        power = sum(pipeline.blocking)
        feasible = [(t, e) for t, e in item.frontier if t >= fastest]
        for time, energy in subset(feasible, points):
            plan = make_plan(item.case, repr(time), effort)
            ours = plan["energy_j"] + power * max(time - plan["iteration_time_s"], 0.0)
            margins.append((time / fastest, 100 * (1 - ours / energy)))
        later = [m for share, m in margins if share >= 1.02]
        print(
            f"| {item.case.name} | {item.case.microbatches} | {len(margins)} of {len(feasible)} "
            f"| {min(m for _, m in margins):.2f} | {statistics.median(m for _, m in margins):.2f} "
            f"| {min(later):.2f} |",
            flush=True,
        )


def print_measured(cases: Sequence[Published], points: int, effort: float) -> None:
    """Plans of a lowtime run, replayed on the table, beside ours at the same achieved time."""
    print("\nEnergy below lowtime's own plans at equal achieved time, per cent (lowtime run here,")
    print("its clocks replayed on the measured table; ours waits where it ends earlier;")
    print(f"at {effort:g} of the usual effort)\n")
    print("| case | microbatches | plans | least | median | largest | lowtime CPU s |")
    print("|---|---|---|---|---|---|---|")
    for item in cases:
        pipeline = item.case.pipeline()
        run = LowtimeRun(pipeline)
        power = sum(pipeline.blocking)
        theirs = list(run.plans())
        margins = []
        for other in subset(theirs, points):
            plan = make_plan(item.case, repr(other.achieved_time), effort)
            waiting = power * (other.achieved_time - plan["iteration_time_s"])
            margins.append(100 * (1 - (plan["energy_j"] + waiting) / other.energy))
        print(
            f"| {item.case.name} | {item.case.microbatches} | {len(margins)} of {len(theirs)} "
            f"| {min(margins):.3f} | {statistics.median(margins):.3f} | {max(margins):.3f} "
            f"| {run.seconds:.1f} |",
            flush=True,
        )


def main() -> None:
    """Print three Markdown tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--points", type=int, default=60, help="times per case (default 60)")
    parser.add_argument("--all", action="store_true", help="every published time (hours)")
    parser.add_argument(
        "--effort", type=float, default=1.0, help="of the plans at many times (default 1)"
    )
    parser.add_argument(
        "--microbatches", nargs="+", type=int, default=list(MICROBATCHES), help="cases to run"
    )
    parser.add_argument(
        "--lowtime",
        nargs="*",
        type=int,
        default=[12],
        help="microbatches for which lowtime itself is run on A100 (default 12)",
    )
    arguments = parser.parse_args()
    if not (arguments.data / "sosp24_data").is_dir():
        parser.error(f"{arguments.data} holds no sosp24_data/")
    print_header(["lowtime"] if arguments.lowtime else [], perseus_binary())
    points = 0 if arguments.all else arguments.points
    published = read_published(arguments.data)
    cases = [c for c in published if c.case.microbatches in arguments.microbatches]
    print_savings(cases)
    print_margins([c for c in cases if "a40" in c.case.name], points, arguments.effort)
    counts = arguments.lowtime
    a100 = [c for c in published if "a100" in c.case.name and c.case.microbatches in counts]
    if a100:
        print_measured(a100, points, arguments.effort)


if __name__ == "__main__":
    main()
