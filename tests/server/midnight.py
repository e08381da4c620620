# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: midnight UTC comes between the first two reports of iterations of a test.

`pytest -p midnight` with tests/server in PYTHONPATH and tests/support/clock_layer.cc preloaded. The
time of day of the test and of all processes that it starts is then half a minute before midnight.
"""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DAY_SECONDS = 86_400
VARIABLE = "PERSEUS_TEST_CLOCK"


def put_clock(file: Path, from_midnight: float) -> None:
    """Let it be so many seconds after the next midnight."""
    offset = int(file.read_text()) if file.exists() else 0
    offset += round(DAY_SECONDS - time.time() % DAY_SECONDS + from_midnight)
    new = file.with_suffix(".new")
    new.write_text(str(offset))
    new.replace(file)  # Whoever reads it meanwhile finds the old one, or the new.


@pytest.fixture(autouse=True)
def midnight(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Have midnight come after the first report."""
    file = tmp_path_factory.mktemp("clock") / "offset"
    monkeypatch.setenv(VARIABLE, str(file))
    put_clock(file, -30)
    assert time.time() % DAY_SECONDS > DAY_SECONDS - 60, "the clock layer is not preloaded"
    open_url = urllib.request.urlopen

    def and_then_midnight(request: Any, *args: Any, **more: Any) -> Any:
        answer = open_url(request, *args, **more)
        is_report = str(getattr(request, "full_url", request)).endswith("/iterations")
        if is_report and time.time() % DAY_SECONDS > DAY_SECONDS / 2:
            put_clock(file, 1)
        return answer

    monkeypatch.setattr(urllib.request, "urlopen", and_then_midnight)
    yield
    assert os.environ[VARIABLE] == str(file)
