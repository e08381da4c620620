# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The measured profiles of the paper, as cases to plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .binary import shared_data
from .dag import Fixed, Pipeline, build_dag, cost_pipeline, one_forward_one_backward
from .lp import Network, Point, lower_hull
from .tables import Profile, read_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

A100_BLOCKING_WATTS = 83.64
A40_BLOCKING_WATTS = 70.38


@dataclass(frozen=True)
class Case:
    """One profile with a number of microbatches, run as 1F1B."""

    name: str
    path: Path
    blocking_power: float
    microbatches: int

    def __str__(self) -> str:
        """Name for test identifiers."""
        return f"{self.name}-mb{self.microbatches}"

    def profile(self) -> Profile:
        """Read the profile."""
        return read_profile(self.path)

    def pipeline(self) -> Pipeline:
        """Build the DAG with its options, by the oracle's own code."""
        profile = self.profile()
        schedule = one_forward_one_backward(profile.num_stages, self.microbatches)
        return cost_pipeline(profile, build_dag(schedule, Fixed()), [self.blocking_power])

    def arguments(self) -> list[str | Path]:
        """Command-line arguments that describe this case to perseus."""
        return [
            self.path,
            "--schedule",
            "1f1b",
            "--stages",
            str(self.profile().num_stages),
            "--microbatches",
            str(self.microbatches),
            "--blocking-power",
            repr(self.blocking_power),
        ]


def network_of(pipeline: Pipeline) -> Network:
    """Return the relaxation of a pipeline: effective-energy hulls on its DAG."""
    cache: dict[tuple[int, float], list[Point]] = {}
    hulls = []
    for i, options in enumerate(pipeline.options):
        key = (id(options), pipeline.blocking[pipeline.dag.rank[i]])
        if key not in cache:
            cache[key] = lower_hull(pipeline.effective(i))
        hulls.append(cache[key])
    dag = pipeline.dag
    return Network(hulls, dag.precedences, dag.release, dag.tail)


def emulation_cases(microbatches: tuple[int, ...]) -> Iterator[Case]:
    """GPT-3 175B on A100 and Bloom 176B on A40, 8 stages, as emulated in the paper."""
    folder = shared_data() / "sosp24/sosp24_data/emulation/stage_profile"
    for count in microbatches:
        path = folder / "gpt3-175b+a100_sxm_bf16.csv"
        yield Case("gpt3-a100", path, A100_BLOCKING_WATTS, count)
    for count in microbatches:
        yield Case("bloom-a40", folder / "bloom+a40_bf16.csv", A40_BLOCKING_WATTS, count)


def derived_cases(microbatches: tuple[int, ...]) -> Iterator[Case]:
    """The profiles derived from four real jobs of the paper."""
    for path in sorted((shared_data() / "sosp24/derived").glob("*.csv")):
        device, model = path.stem.split("_")[:2]
        watts = A100_BLOCKING_WATTS if device == "A100" else A40_BLOCKING_WATTS
        for count in microbatches:
            yield Case(f"{model}-{device.lower()}", path, watts, count)


def all_cases(microbatches: tuple[int, ...] = (12, 24, 48)) -> list[Case]:
    """Every shared profile at each number of microbatches; empty without the data."""
    if not (shared_data() / "sosp24").is_dir():
        return []
    return [*emulation_cases(microbatches), *derived_cases(microbatches)]
