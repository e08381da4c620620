# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Early recomputation is that of lowtime from PyPI, by its own generator.

lowtime comes with zeus: scripts/zeus-venv installs it; without it the test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from oracle.binary import perseus
from oracle.dag import BACKWARD, FORWARD, RECOMPUTE, Fixed, Step, build_dag, parse_schedule

ROOT = Path(__file__).parents[2]
ZEUS_PYTHON = Path(os.environ.get("PERSEUS_ZEUS_PYTHON", ROOT / "build/zeus-venv/bin/python"))
SHAPES = [(p, m) for p in range(1, 7) for m in range(1, 25)]
NAMES = {
    (FORWARD,): "Forward",
    (BACKWARD,): "Backward",
    (RECOMPUTE,): "Recomputation",
    (RECOMPUTE, BACKWARD): "ForwardBackward",
}
Instruction = tuple[str, int, int]

# Its orders, and which of its instructions on different stages its rules make dependent. Its
# authors use their rule for backwards with ForwardBackward, too (rene, lowtime's former name).
LOWTIME = """
import json, sys, types
from unittest import mock
from lowtime.perseus import instruction as i
from lowtime.perseus.schedule import EarlyRecomputation1F1B

options = mock.MagicMock(options=[mock.MagicMock(quant_time=1)])
spec = types.SimpleNamespace(options=options)
shapes = []
for stages, microbatches in json.loads(sys.argv[1]):
    made = [[], []]
    kinds = (i.Forward, i.Backward, i.Recomputation, i.ForwardBackward)
    orders = [list(EarlyRecomputation1F1B(stages, microbatches, s, {k: spec for k in kinds}))
              for s in range(stages)]
    name = lambda one: (type(one).__name__, one.stage_id, one.micro_batch_id)
    every = [one for order in orders for one in order]
    forwards = [one for one in every if isinstance(one, i.Forward)]
    backwards = [one for one in every if isinstance(one, (i.Backward, i.ForwardBackward))]
    waits = [(name(a), name(b)) for group, rule in ((forwards, i.forward_dep),
             (backwards, i.backward_dep)) for a in group for b in group if rule(a, b)]
    shapes.append(([[name(one) for one in order] for order in orders], waits))
print(json.dumps(shapes))
"""


def named(step: Step) -> Instruction:
    """Return a step in lowtime's words."""
    return NAMES[tuple(a.type for a in step)], step[-1].stage, step[-1].microbatch


@pytest.mark.skipif(
    not ZEUS_PYTHON.exists(), reason=f"no lowtime at {ZEUS_PYTHON}; scripts/zeus-venv installs it"
)
def test_early_recomputation_is_lowtimes() -> None:
    """The same orders and the same dependencies, for every shape up to 6 ranks x 24."""
    command = [str(ZEUS_PYTHON), "-B", "-c", LOWTIME, json.dumps(SHAPES)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    early = 0
    for (stages, microbatches), (orders, waits) in zip(
        SHAPES, json.loads(said.stdout), strict=True
    ):
        shape = ["--stages", str(stages), "--microbatches", str(microbatches), "--format", "csv"]
        schedule = parse_schedule(perseus(["schedule", "EarlyRecomputation1F1B", *shape]))
        ours = [[named(step) for step in order] for order in schedule]
        theirs = [[tuple(one) for one in order] for order in orders]
        assert ours == theirs, (stages, microbatches)
        early += sum(one[0] == "Recomputation" for order in ours for one in order)

        dag = build_dag(schedule, Fixed())
        names = [named(step) for step in dag.steps]
        chains = {pair for order in ours for pair in pairwise(order)}
        between = {
            (names[a], names[b]) for a, b, _ in dag.precedences if dag.rank[a] != dag.rank[b]
        }
        assert chains | between == chains | {(tuple(a), tuple(b)) for a, b in waits}
    assert early == sum(min(m, p - 1 - stage) for p, m in SHAPES for stage in range(p))
