# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Checks the general solver on projects that it answered through its tool."""

from __future__ import annotations

from typing import Any

from .binary import Curve
from .frontier_check import Comparison, compare, shape_errors
from .lp import Network, lower_hull


def network_from(project: dict[str, Any], curves: list[list[list[float]]]) -> Network:
    """Return the network of a project in the tool's format, with the given curves."""
    return Network(
        [lower_hull([(t, c) for t, c in curve]) for curve in curves],
        [(int(i), int(j), float(d)) for i, j, d in project["precedences"]],
        list(project.get("release", [0.0] * len(curves))),
        float(project.get("tail", 0.0)),
    )


def check_project(
    project: dict[str, Any], answer: dict[str, Any], count: int = 12, power: float = 0.0
) -> tuple[Comparison, Comparison, list[str]]:
    """Compare an answer with linear programs on the quantised and on the given curves.

    Parameters
    ----------
    project, answer
        What the tool was asked, and what it said.
    count
        Number of times to compare at.
    power
        Watts of time itself: differences are relative to cost + power x time.

    Returns
    -------
    exact : Comparison
        Against the program that gets the quantised curves.
    quantisation : Comparison
        Against the program that gets the curves as given.
    errors : list of str
        What is wrong with the form of the frontier.
    """
    times, costs, slopes = (list(column) for column in zip(*answer["points"], strict=True))
    curve = Curve(times, costs, slopes)
    quantised = network_from(project, answer["quantised"])
    given = network_from(project, project["activities"])
    magnitude = sum(max(abs(c) for _, c in hull) for hull in given.hulls)
    magnitude += power * given.cheapest
    magnitude = magnitude or 1.0
    exact = compare(curve, quantised, count, magnitude=magnitude)
    quantisation = compare(curve, given, count, magnitude=magnitude)
    errors = shape_errors(curve, quantised, 0.0, 1e-9)
    return exact, quantisation, errors
