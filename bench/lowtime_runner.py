# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Drives lowtime, the published planner's solver, on our pipelines."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from measure import cpu_seconds  # noqa: F401  (puts the oracle on the path)
from oracle.dag import replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracle.dag import Pipeline
    from oracle.tables import Option


@dataclass(frozen=True)
class LowtimePlan:
    """One step of lowtime's walk.

    Attributes
    ----------
    planned_time
        The iteration time that lowtime believes in.
    achieved_time, energy
        Its clocks replayed on the measured table.
    knobs
        Its clock of every computation of the DAG.
    """

    planned_time: float
    achieved_time: float
    energy: float
    knobs: list[str]


def _specification(options: list[Option], power: float, unit: float, whole: bool) -> Any:
    operation = importlib.import_module("lowtime.operation")
    cost_model = importlib.import_module("lowtime.cost_model")
    candidates = operation.CandidateExecutionOptions(
        options=[
            operation.ExecutionOption(
                real_time=o.time,
                unit_time=unit,
                cost=o.energy - power * o.time if whole else o.energy,
                knob=float(o.knob),
            )
            for o in options
        ]
    )
    if not whole:
        # As its authors do: Pareto filter on energy, then effective energy of floored times.
        for option in candidates.options:
            option.cost -= power * option.quant_time * unit
    return operation.OperationSpec(
        options=candidates, cost_model=cost_model.ExponentialModel(candidates)
    )


class LowtimeRun:
    """One whole walk of lowtime; ``seconds`` is its solver's CPU time so far."""

    def __init__(self, pipeline: Pipeline, unit: float = 0.001, whole: bool = False) -> None:
        """Build lowtime's graph; this is not in its time.

        Parameters
        ----------
        pipeline
            What to plan.
        unit
            Its time unit, seconds.
        whole
            Start at T*, the end of the exact frontier, by filtering options on effective
            energy; its authors filter on energy, start earlier and get a part of the frontier.
        """
        networkx: Any = importlib.import_module("networkx")
        operation = importlib.import_module("lowtime.operation")
        graph_utils = importlib.import_module("lowtime.graph_utils")
        self._pipeline = pipeline
        specs: dict[tuple[int, float], Any] = {}
        graph = networkx.DiGraph()
        self._operations = []
        for i, options in enumerate(pipeline.options):
            key = (id(options), pipeline.blocking[pipeline.dag.rank[i]])
            if key not in specs:
                specs[key] = _specification(options, key[1], unit, whole)
            self._operations.append(operation.Operation(spec=specs[key]))
            graph.add_node(i + 2, op=self._operations[-1])
        for i, j, _ in pipeline.dag.precedences:
            graph.add_edge(i + 2, j + 2)
        graph_utils.add_source_node(graph, 0)
        graph_utils.add_sink_node(graph, 1)
        graph.graph["source_node"] = 0
        graph.graph["sink_node"] = 1
        self.graph = graph
        self._solver = importlib.import_module("lowtime.solver").PhillipsDessouky(graph)
        self.seconds = 0.0
        self.steps = 0

    def plans(self, every: int = 1) -> Iterator[LowtimePlan]:
        """Walk to the end; replay every n-th plan on the measured options."""
        by_knob = [{float(o.knob): o for o in options} for options in self._pipeline.options]
        walk = self._solver.run()
        while True:
            begin = time.process_time()
            result = next(walk, None)
            self.seconds += time.process_time() - begin
            if result is None:
                return
            self.steps += 1
            if every and (self.steps - 1) % every == 0:
                chosen = [
                    table[operation.assigned_knob]
                    for table, operation in zip(by_knob, self._operations, strict=True)
                ]
                achieved = replay(self._pipeline.dag, [o.time for o in chosen])
                yield LowtimePlan(
                    result.real_time,
                    achieved,
                    self._pipeline.energy(chosen, achieved),
                    [o.knob for o in chosen],
                )
