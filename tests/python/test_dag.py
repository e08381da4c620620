# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs of operations: the exact frontier, real choices, and lowtime beside them.

Tests with lowtime itself are skipped where it is not installed: run them with
`build/bench-venv/bin/python -m pytest tests/python/test_dag.py` (bench/README.md).
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import perseus
from perseus.compat.lowtime import PhillipsDessouky, Solution
from planner_jobs import needs_library

pytestmark = needs_library


def test_by_hand() -> None:
    """The example of the documentation."""
    cut, paint, ship = [(2, 90), (4, 40)], [(3, 50), (6, 20)], [(1, 5)]
    dag = perseus.Dag([cut, paint, paint, ship], [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert len(dag) == 4
    assert dag.frontier.points == ((6.0, 195.0), (8.0, 145.0), (11.0, 85.0))
    choice = dag.choose(9)
    assert choice.options == (0, 1, 1, 0)
    assert (choice.time, choice.cost, choice.lower_bound) == (9, 135, 125)
    assert dag.frontier.csv().splitlines()[1] == "6.0,195.0,25.0"
    later = perseus.Dag([cut, ship], [(0, 1, 2.5)])
    assert later.frontier.fastest_seconds == 2 + 2.5 + 1


@pytest.mark.parametrize(
    ("operations", "edges", "sentence"),
    [
        ([], [], "the graph has 0 operations"),
        ([[]], [], "option table 0 is empty"),
        ([[(1, 1)]], [(0, 0)], "the graph has a cycle"),
        ([[(1, 1)]], [(0, 1)], "edge 0 names operation 1"),
        ([[(1, 1)]], [(0, -1)], "edge 0 names operation -1"),
        ([[(1, 1)]], [(0, 2**40)], "expected the index of an operation"),
        ([[(1, 1)]], [(0, 0.5)], "expected the index of an operation"),
        ([[(-1, 1)]], [], "option 0 of table 0 takes -1"),
        ([[(1, math.inf)]], [], "option 0 of table 0 takes 1 and costs inf"),
        ([[(1, "much")]], [], "expected a number, found 'much'"),
    ],
)
def test_what_is_no_graph(operations: Any, edges: Any, sentence: str) -> None:
    """A sentence each."""
    with pytest.raises(perseus.PlannerError) as caught:
        perseus.Dag(operations, edges)
    assert str(caught.value).startswith(sentence)


def test_deadlines_that_are_none() -> None:
    """Too short, or no number."""
    dag = perseus.Dag([[(1, 2), (2, 1)]])
    assert dag.choose(math.inf).cost == 1
    for deadline in (0.5, math.nan):
        with pytest.raises(perseus.PlannerError, match="the fastest takes 1") as caught:
            dag.choose(deadline)
        assert caught.value.code == "infeasible"
    with pytest.raises(perseus.PlannerError, match="effort"):
        dag.choose(2, effort=0)


@dataclass
class Option:
    """What lowtime calls an execution option."""

    real_time: float
    cost: float
    knob: object
    unit_time: float = 0.001

    @property
    def quant_time(self) -> int:
        """As lowtime rounds."""
        return int(self.real_time // self.unit_time)


@dataclass
class Spec:
    """An operation's options."""

    options: list[Option]


@dataclass
class Operation:
    """What the adapter needs of lowtime's."""

    spec: Spec
    duration: int = 0
    assigned_knob: object = None
    earliest_start: int = 0
    latest_start: int = 0
    earliest_finish: int = 0
    latest_finish: int = 0


@dataclass
class Graph:
    """What the adapter needs of networkx's DiGraph."""

    node_of: dict[str, dict[str, object]] = field(default_factory=dict)
    edge_of: dict[tuple[str, str], dict[str, object]] = field(default_factory=dict)

    def nodes(self, data: bool) -> Any:
        """Nodes and their attributes."""
        assert data
        return self.node_of.items()

    def edges(self, data: bool) -> Any:
        """Edges and their attributes."""
        assert data
        return [(u, v, attributes) for (u, v), attributes in self.edge_of.items()]


def options(*pairs: tuple[float, float]) -> Spec:
    """Return options whose knobs are their times."""
    return Spec([Option(time, cost, knob=f"{time} s") for time, cost in pairs])


def test_operations_on_nodes_and_on_edges_are_the_same() -> None:
    """Only their keys differ."""
    first, second = options((0.2, 9), (0.4, 4)), options((0.3, 5), (0.6, 2))
    on_nodes = Graph(
        {"a": {"op": Operation(first)}, "b": {"op": Operation(second)}, "end": {}},
        {("a", "b"): {}, ("b", "end"): {}},
    )
    on_edges = Graph(
        {"s": {}, "m": {}, "t": {}},
        {("s", "m"): {"op": Operation(first)}, ("m", "t"): {"op": Operation(second)}},
    )
    nodes, edges = Solution(on_nodes), Solution(on_edges)
    assert nodes.frontier.points == edges.frontier.points
    assert nodes.choose(0.8).knobs == {"a": "0.4 s", "b": "0.3 s"}
    assert edges.choose(0.8).knobs == {("s", "m"): "0.4 s", ("m", "t"): "0.3 s"}
    with pytest.raises(perseus.PlannerError, match="no operation in the graph"):
        Solution(Graph({"a": {}}, {}))


def test_a_run_goes_from_slow_to_fast() -> None:
    """Deadlines are met, costs rise, operations are set in place."""
    operations = [Operation(options((0.2, 9), (0.3, 6), (0.4, 4))) for _ in range(3)]
    graph = Graph(
        {name: {"op": operation} for name, operation in zip("abc", operations, strict=True)},
        {("a", "b"): {}, ("a", "c"): {}},
    )
    with pytest.raises(perseus.PlannerError, match="unit of time"):
        PhillipsDessouky(graph, unit_time=0)
    results = []
    for result in PhillipsDessouky(graph, unit_time=0.05).run():
        results.append(result)
        knobs = result.assignment.knobs
        assert [operation.assigned_knob for operation in operations] == [knobs[k] for k in "abc"]
        a, b, c = operations
        assert a.earliest_start == 0
        assert b.earliest_start == c.earliest_start == a.duration
        assert max(b.latest_finish, c.latest_finish) == a.duration + max(b.duration, c.duration)
        assert a.latest_start == 0 or a.latest_start >= a.earliest_start
    deadlines = [result.real_time for result in results]
    assert deadlines[0] == pytest.approx(0.8)
    assert deadlines[-1] == pytest.approx(0.4)
    assert deadlines == sorted(deadlines, reverse=True)
    costs = [result.cost for result in results]
    assert costs == sorted(costs)
    assert (costs[0], costs[-1]) == (12, 27)
    for result in results:
        assert result.assignment.real_time <= result.real_time * (1 + 1e-9)
        assert result.lower_bound <= result.cost * (1 + 1e-9)


def test_units_must_agree() -> None:
    """Or one is given."""
    graph = Graph({"a": {"op": Operation(options((1, 2)))}})
    other = Spec([Option(1, 2, "x", unit_time=0.5)])
    graph.node_of["b"] = {"op": Operation(other)}
    with pytest.raises(perseus.PlannerError, match="the same unit_time"):
        PhillipsDessouky(graph)
    assert len(list(PhillipsDessouky(graph, unit_time=0.1).run())) == 1


def lowtime_graph(seed: int, size: int) -> Any:
    """Return a random graph of lowtime's own operations; skip where it is not installed."""
    networkx = pytest.importorskip("networkx")
    lowtime = pytest.importorskip("lowtime.operation")
    models = pytest.importorskip("lowtime.cost_model")
    chance = random.Random(seed)
    specs = []
    for _ in range(4):
        fastest, dearest = chance.uniform(0.02, 0.06), chance.uniform(5, 15)
        candidates = lowtime.CandidateExecutionOptions(
            options=[
                lowtime.ExecutionOption(
                    real_time=fastest * (1 + 0.08 * k),
                    unit_time=0.001,
                    cost=dearest * (0.4 + 0.6 * math.exp(-0.35 * k)),
                    knob=1400 - 100 * k,
                )
                for k in range(8)
            ]
        )
        model = models.ExponentialModel(candidates)
        specs.append(lowtime.OperationSpec(options=candidates, cost_model=model))
    graph = networkx.DiGraph(source_node=0, sink_node=1)
    graph.add_node(0, op=lowtime.DummyOperation())
    graph.add_node(1, op=lowtime.DummyOperation())
    nodes = range(2, 2 + size)
    for node in nodes:
        graph.add_node(node, op=lowtime.Operation(spec=chance.choice(specs)))
    graph.add_edges_from(
        pair for pair in itertools.combinations(nodes, 2) if chance.random() < 3 / size
    )
    graph.add_edges_from((0, n) for n in nodes if graph.in_degree(n) == 0)
    graph.add_edges_from((n, 1) for n in nodes if graph.out_degree(n) == 0)
    return graph


def replayed(graph: Any) -> tuple[float, float]:
    """Return what the assigned knobs really take and cost."""
    networkx = pytest.importorskip("networkx")
    end: dict[int, float] = {}
    cost = 0.0
    for node in networkx.topological_sort(graph):
        end[node] = max((end[before] for before in graph.predecessors(node)), default=0.0)
        operation = graph.nodes[node]["op"]
        if not operation.is_dummy:
            (option,) = (
                option
                for option in operation.spec.options.options
                if option.knob == operation.assigned_knob
            )
            end[node] += option.real_time
            cost += option.cost
    return max(end.values()), cost


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "size"), [(0, 12), (1, 14), (2, 16), (3, 30)])
def test_never_worse_than_lowtime(seed: int, size: int) -> None:
    """At the time that lowtime's own options really take, ours cost no more."""
    solver = pytest.importorskip("lowtime.solver")
    graph = lowtime_graph(seed, size)
    solution = Solution(graph)
    steps = 0
    for _ in solver.PhillipsDessouky(graph).run():
        steps += 1
        if steps % 8 != 1:
            continue
        time, cost = replayed(graph)
        ours = solution.choose(time)
        assert ours.real_time <= time * (1 + 1e-9)
        assert ours.cost <= cost * (1 + 1e-9)
        assert ours.lower_bound <= ours.cost * (1 + 1e-9)
    assert steps > 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "size"), [(0, 12), (1, 14), (2, 16), (3, 30)])
def test_a_run_stays_nearer_to_the_bound_than_lowtimes(seed: int, size: int) -> None:
    """With the little effort that its steps have."""
    solver = pytest.importorskip("lowtime.solver")
    over: list[float] = []
    for make in (PhillipsDessouky, solver.PhillipsDessouky):
        graph = lowtime_graph(seed, size)
        frontier = Solution(graph).frontier
        gaps = []
        for _ in make(graph).run():
            time, cost = replayed(graph)
            if time >= frontier.fastest_seconds:
                gaps.append(cost - frontier.energy_at(time))
        over.append(sum(gaps) / len(gaps))
    assert 0 <= over[0] <= over[1]


def test_a_step_sets_only_what_changes() -> None:
    """What sets an attribute of lowtime's operations looks for their knobs, too."""

    class Counting(Operation):
        """Keeps the names of attributes that are set, once it is made."""

        def __setattr__(self, name: str, value: object) -> None:
            self.__dict__.setdefault("names", []).append(name)
            super().__setattr__(name, value)

    first, second = (Counting(options((0.2, 9), (0.4, 4))) for _ in range(2))
    solution = Solution(Graph({"a": {"op": first}, "b": {"op": second}}, {("a", "b"): {}}))
    solution.assign(solution.choose(0.8))
    names: list[str] = second.__dict__["names"]
    for deadline, changed in ((0.8, set()), (0.4, {"duration", "latest_start", "latest_finish"})):
        names.clear()
        solution.assign(solution.choose(deadline))
        assert set(names) - {"assigned_knob", "earliest_start", "earliest_finish"} == changed


@pytest.mark.filterwarnings("ignore")
def test_lowtimes_operations_are_set_as_it_sets_them() -> None:
    """What reads `assigned_knob` or the times of operations needs no change."""
    graph = lowtime_graph(5, 10)
    results = 0
    for result in PhillipsDessouky(graph).run():
        results += 1
        time, cost = replayed(graph)
        assert time == pytest.approx(result.assignment.real_time)
        assert cost == pytest.approx(result.cost)
        for node in graph.nodes:
            operation = graph.nodes[node]["op"]
            if not operation.is_dummy:
                assert operation.earliest_finish == operation.earliest_start + operation.duration
                assert operation.latest_start >= operation.earliest_start
    assert results > 10


def test_indices_may_be_of_numpy() -> None:
    """Whatever says that it is an index, and nothing else."""
    numpy = pytest.importorskip("numpy")
    indices = numpy.arange(3)
    made = perseus.Dag([[(1, 1)]] * 3, zip(indices[:-1], indices[1:], strict=True))
    assert made.choose(3.0).time == 3.0


def test_ranks_and_begins() -> None:
    """What is given beside the graph holds, and what is wrong is refused."""
    operations = [[(1, 4), (2, 1)], [(1, 4), (2, 1)], [(3, 0)]]
    plain = perseus.Dag(operations, [(0, 1)])
    ranked = perseus.Dag(operations, [(0, 1)], ranks=[0, 0, 1], begins=[0, 0, 1])
    assert plain.choose(3).cost == 5
    assert (ranked.choose(4).cost, ranked.frontier.fastest_seconds) == (2, 4)
    for ranks, begins in (([0, 0], None), ([0, 0, 3], None), (None, [0, 0, -1])):
        with pytest.raises(perseus.PlannerError):
            perseus.Dag(operations, [(0, 1)], ranks=ranks, begins=begins)
