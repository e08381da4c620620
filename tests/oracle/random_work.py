# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Random work tables: microbatches that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dag import BACKWARD, FORWARD, INPUT, RECOMPUTE, WEIGHT, Action

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from .dag import Schedule


def _factor(rng: random.Random) -> float:
    return rng.choice((1.0, 0.5, 2.0, rng.uniform(0.3, 3.0), rng.lognormvariate(0.0, 0.6)))


def random_work(
    rng: random.Random, schedule: Schedule, folder: Path, seed: int
) -> tuple[dict[Action, float], list[str]]:
    """Return the factor of every computation, and the flags that say so.

    Parameters
    ----------
    rng
        Where everything is drawn from.
    schedule
        Whose computations get factors.
    folder
        Where the table is written to.
    seed
        Part of its name.
    """
    actions = sorted({action for rank in schedule for step in rank for action in step})
    microbatches = 1 + max(action.microbatch for action in actions)
    path = folder / f"work{seed}.csv"
    flags = ["--work", str(path)]
    kind = rng.choice(("microbatch", "microbatch", "all", "tokens", "profiled tokens"))
    if kind == "all":
        rows: dict[tuple[int, int, str], float] = {}
        for action in actions:
            if rng.random() < 0.8:
                rows[action.microbatch, action.stage, action.type] = _factor(rng)
            # Of the whole, which holds for halves without a row.
            if action.type == INPUT and rng.random() < 0.5:
                rows[action.microbatch, action.stage, BACKWARD] = _factor(rng)
        lines = ["microbatch,stage,type,factor"]
        lines += [f"{m},{s},{t},{factor!r}" for (m, s, t), factor in rows.items()]
        work: dict[Action, float] = {}
        for action in actions:
            own = rows.get((action.microbatch, action.stage, action.type))
            if own is None and action.type in (INPUT, WEIGHT):
                own = rows.get((action.microbatch, action.stage, BACKWARD))
            if own is None and action.type == RECOMPUTE:
                own = rows.get((action.microbatch, action.stage, FORWARD))
            work[action] = 1.0 if own is None else own
        if not rows:
            return work, []
    elif kind == "microbatch":
        factors = {m: _factor(rng) for m in range(microbatches) if rng.random() < 0.9}
        if not factors:
            return {}, []
        lines = ["microbatch,factor", *(f"{m},{factor!r}" for m, factor in factors.items())]
        work = {action: factors.get(action.microbatch, 1.0) for action in actions}
    else:
        tokens = [float(rng.randint(100, 4000)) for _ in range(microbatches)]
        lines = ["tokens,microbatch", *(f"{t!r},{m}" for m, t in enumerate(tokens))]
        total = 0.0
        for t in tokens:
            total += t
        reference = total / microbatches
        if kind == "profiled tokens":
            reference = float(rng.randint(500, 2000))
            flags += ["--set", f"work_tokens={reference!r}"]
        work = {action: tokens[action.microbatch] / reference for action in actions}
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return work, flags
