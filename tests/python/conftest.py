# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What several files of tests ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drilling import Drill, start_server


@pytest.fixture
def drill(tmp_path: Path) -> Iterator[Drill]:
    """A server that runs."""
    made = Drill(tmp_path)
    made.serve()
    yield made
    made.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server."""
    process, url = start_server(tmp_path)
    yield url
    process.kill()
    process.wait()
