# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The measured profiles as test parameters, with a reason where they are absent."""

from __future__ import annotations

import pytest

from .cases import all_cases


def measured(microbatches: tuple[int, ...]) -> list[object]:
    """Return every case, or one that is skipped because there is no data."""
    absent = pytest.param(
        None,
        id="no-data",
        marks=pytest.mark.skip(reason="no measured data beside the checkout (PERSEUS_SHARED_DATA)"),
    )
    return [*all_cases(microbatches)] or [absent]
