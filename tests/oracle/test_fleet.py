# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""The division of power equals linear programs, on random sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("highspy", reason="highspy is not installed (tests/requirements.txt)")
pytest.importorskip("scipy", reason="scipy is not installed (tests/requirements.txt)")

from .fleet_check import check, site_errors
from .fleet_site import random_site

if TYPE_CHECKING:
    pass

SITES = 100


@pytest.mark.usefixtures("fleet_program")
def test_division_equals_linear_program() -> None:
    """The first sites of the thousand that `python -m oracle.full fleet` checks."""
    assert check(0, SITES) == []


@pytest.mark.usefixtures("fleet_program")
def test_check_sees_a_wrong_answer() -> None:
    """A division that is one part in a million too good, or too bad, is found."""
    from .binary import divide_sites

    site = next(s for s in map(random_site, range(100)) if s["objective"] == "throughput")
    (answer,) = divide_sites([site])
    assert site_errors(site, answer) == []
    for factor in (1 - 1e-6, 1 + 1e-6):
        wrong = {"bound": {**answer["bound"], "objective": answer["bound"]["objective"] * factor}}
        assert len(site_errors(site, wrong)) == 1
