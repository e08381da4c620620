# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs perseus plan and perseus frontier on a case."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .binary import Curve, perseus, read_frontier

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_plan(arguments: Sequence[str | Path], at: str = "1.0x") -> tuple[dict[str, Any], Curve]:
    """Run perseus plan and return the parsed plan.json and frontier.csv.

    Parameters
    ----------
    arguments
        Profile and what describes the pipeline.
    at
        The time of the plan.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        perseus(["plan", *arguments, "--at", at, "-o", out])
        plan: dict[str, Any] = json.loads((out / "plan.json").read_text(encoding="utf-8"))
        return plan, read_frontier(out / "frontier.csv")


def run_frontier(arguments: Sequence[str | Path]) -> Curve:
    """Run perseus frontier and return the curve that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frontier.csv"
        perseus(["frontier", *arguments, "-o", path])
        return read_frontier(path)
