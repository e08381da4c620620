# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""What happens to a job that is emulated."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Straggler:
    """Something wrong with a rank (None: all of the pipeline) for some iterations (0: for good)."""

    kind: str
    value: float
    pipeline: int = 0
    rank: int | None = None
    first: int = 0
    count: int = 0

    def there(self, iteration: int) -> bool:
        """Whether it is there in an iteration."""
        since = iteration - self.first
        return since >= 0 and (self.count == 0 or since < self.count)

    def names(self, rank: int) -> bool:
        """Whether it makes a rank slower."""
        if self.rank is None:
            return rank == 0 or self.kind != "stall"
        return self.rank == rank


@dataclass
class Scenario:
    """What happens to the job; times in seconds, noise as a share."""

    target: float
    pipelines: int = 1
    iterations: int = 1
    seed: int = 0
    computation_noise: float = 0.0
    stage_noise: float = 0.0
    gpu_noise: float = 0.0
    rank_noise: float = 0.0
    correlation: float = 0.0
    rare_length: float = 0.0
    rare_share: float = 0.0
    latency: float = 0.0
    stall: float = 0.0
    latency_spread: float = 0.0
    latency_at: dict[str, float] = field(default_factory=dict)  # Of clocks that have their own.
    interval: float = 0.0  # Between two calls of a rank.
    ahead: str = "none"
    early_loss: float = 0.05
    stragglers: list[Straggler] = field(default_factory=list)
    random_rate: float = 0.0
    random_kind: str = "slow"
    random_value: float = 1.2
    random_duration: float = 3600.0
    reacts: bool = True
    delay: float = 0.0
    cheap_waits: bool = False  # Plans of perseus have a clock for waiting.

    def waits_at_own_clock(self) -> bool:
        """Whether ranks wait at a clock of their own: if nobody stalls, and it is known when."""
        return self.cheap_waits and self.stall == 0 and (self.at_once() or self.predicts())

    def latency_of(self, knob: str) -> tuple[float, float]:
        """Return the mean and the spread of the time until a call for a knob has its effect."""
        latency = self.latency_at.get(knob, self.latency)
        return latency, min(self.latency_spread, latency)

    def at_once(self) -> bool:
        """Whether every clock is in effect when it is asked for."""
        return self.latency == 0 and self.interval == 0

    def predicts(self) -> bool:
        """Whether calls are made ahead of predicted starts."""
        return self.ahead == "predicted" and not self.at_once()
