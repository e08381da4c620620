# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The keywords of the planner, for type checkers: docs/reference/files.md says what they mean."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict, Union

_Path = Union[str, "os.PathLike[str]", None]
# "15ms", "75W", "1%", or a plain number of seconds, watts, or a share.
_Quantity = Union[str, float, None]
_Quantities = Union[str, float, Sequence[float], Sequence[str], None]


class Conditions(TypedDict, total=False):
    """What real GPUs do to a plan."""

    noise: _Quantity
    stage_noise: _Quantity
    gpu_noise: _Quantity
    rank_noise: _Quantity
    noise_correlation: _Quantity
    rare_noise: _Quantity
    rare_noise_share: _Quantity
    switch_latency: _Quantity
    switch_latency_at: str | None
    switch_latency_spread: _Quantity
    switch_stall: _Quantity
    call_ahead: str | None
    max_early_loss: _Quantity
    min_call_interval: _Quantity
    change_price: _Quantity
    confidence: _Quantity
    max_slowdown: _Quantity
    max_changes: int | None
    profile_errors: bool | None


class PlanSettings(TypedDict, total=False):
    """In what plans of one job may differ, beside `at`."""

    conditions: Conditions | None
    time_margin: str | None
    granularity: str | None
    effort: float | None


class JobSettings(PlanSettings, total=False):
    """What else a job file may say."""

    strict: bool | None
    accept_implausible: bool | None
    baseline: str | None
    schedule_file: _Path
    stages: int | None
    virtual_stages: int | None
    microbatch_group_size: int | None
    tp: int | None
    dp: int | None
    split_ratio: float | None
    work: _Path | Sequence[float]
    work_fit: _Path
    work_tokens: float | None
    comm_delay: _Quantities
    data_loading: _Quantity
    iteration_overhead: _Quantity
    at: str | None
    coarse_watts: _Quantity
    exponential_fit: bool | None
