# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""lowtime's `run()` beside that of `perseus.compat.lowtime`, on the same graphs, in one run.

Usage: python bench/steps_lowtime.py [--shapes 4x8 8x12] [--unit 0.001] [--repeat 2]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from compare_lowtime import first_stages
from lowtime_runner import LowtimeRun
from measure import print_header
from oracle.binary import perseus_binary

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from perseus.compat import lowtime as ours
from perseus.planner_library import load

# Of a plan's cost, over the bound: every so many steps.
_EVERY = 7


class _Walk:
    """One solver on a graph of its own: its time, steps, and mean distance from the bound."""

    def __init__(self, graph: Any, solver: Any) -> None:
        self.solution = ours.Solution(graph)
        self.graph = graph
        self.seconds = 0.0
        self.steps = 0
        self.gaps: list[float] = []
        begin = time.process_time()
        self._steps = solver(graph).run()
        self.seconds += time.process_time() - begin

    def step(self) -> bool:
        """Go a step on; False: at the end."""
        begin = time.process_time()
        result = next(self._steps, None)
        self.seconds += time.process_time() - begin
        if result is None:
            return False
        if self.steps % _EVERY == 0:
            self._compare()
        self.steps += 1
        return True

    def _compare(self) -> None:
        """Keep how far the assigned knobs, as they really are, lie above the bound."""
        end: dict[object, float] = {}
        cost = 0.0
        for node in importlib.import_module("networkx").topological_sort(self.graph):
            end[node] = max((end[before] for before in self.graph.predecessors(node)), default=0.0)
            operation = self.graph.nodes[node]["op"]
            if not operation.is_dummy:
                by_knob = {option.knob: option for option in operation.spec.options.options}
                end[node] += by_knob[operation.assigned_knob].real_time
                cost += by_knob[operation.assigned_knob].cost
        takes, frontier = max(end.values()), self.solution.frontier
        if takes >= frontier.fastest_seconds:
            bound = frontier.energy_at(takes)
            self.gaps.append(100 * (cost - bound) / frontier.baseline_energy_joules)

    @property
    def gap(self) -> float:
        """In per cent of the cost of all operations at their fastest, on average."""
        return sum(self.gaps) / max(1, len(self.gaps))


def compare(stages: int, microbatches: int, whole: bool, unit: float, repeat: int) -> str:
    """Let both go through the steps in turns, and return a row of the table."""
    least = [float("inf")] * 2
    for _ in range(repeat):
        _, pipeline = first_stages(stages, microbatches)
        walks = [
            _Walk(LowtimeRun(pipeline, unit, whole).graph, solver)
            for solver in (
                importlib.import_module("lowtime.solver").PhillipsDessouky,
                ours.PhillipsDessouky,
            )
        ]
        left = list(walks)
        while left:
            left = [walk for walk in left if walk.step()]
        least = [min(was, walk.seconds) for was, walk in zip(least, walks, strict=True)]
    theirs, mine = walks
    return (
        f"| {stages} x {microbatches} | {'T_min to T*' if whole else 'its authors'} | "
        f"{theirs.steps} | {1000 * least[0] / theirs.steps:.2f} | {theirs.gap:.2f} | "
        f"{mine.steps} | {1000 * least[1] / mine.steps:.2f} | {mine.gap:.2f} | "
        f"{least[1] / least[0]:.2f} |"
    )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shapes = ["1x1", "2x2", "2x4", "4x8", "4x16", "8x12"]
    parser.add_argument("--shapes", nargs="+", default=shapes, metavar="SxM")
    parser.add_argument("--unit", type=float, default=0.001, help="of both, s")
    parser.add_argument("--repeat", type=int, default=2, help="the least time counts")
    arguments = parser.parse_args()
    load()
    print_header(["lowtime"], perseus_binary())
    print("GPT-3 175B on A100 SXM, 1F1B. CPU time of `PhillipsDessouky(graph).run()`,")
    print("step by step in turns. Gap: the cost of the assigned knobs above the exact bound at the")
    print("time that they really take, in per cent of the cost at maximum clocks, on average.\n")
    print("| shape | range | lowtime steps | ms a step | gap % ", end="")
    print("| perseus steps | ms a step | gap % | time, perseus / lowtime |")
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in arguments.shapes:
        stages, microbatches = map(int, shape.split("x"))
        for whole in (True, False):
            print(
                compare(stages, microbatches, whole, arguments.unit, arguments.repeat), flush=True
            )


if __name__ == "__main__":
    main()
