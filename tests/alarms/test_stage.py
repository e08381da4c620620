# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What a drill has started ends with it, however early it fails."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import stage
from monitoring import NODE_EXPORTER

pytestmark = pytest.mark.skipif(
    not (stage.LIBRARY and NODE_EXPORTER), reason="no client library, or no node_exporter"
)


def children() -> set[int]:
    """Return the processes that this one has started and that have not ended."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # It has ended.
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(status.parent.name))
    return found


def test_a_drill_that_fails_early_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Server, agent, relay and exporter run, and then the node is not there in time."""
    before = children()
    drill = stage.Stage(tmp_path)
    try:
        server = drill.serve()

        def misses(_holds: object, what: str) -> None:
            raise AssertionError(what)

        monkeypatch.setattr(stage, "until", misses)
        with pytest.raises(AssertionError, match=r"there is no .*agent\.sock"):
            drill.node(server.url)
        assert len(children() - before) == 4
    finally:
        drill.close()
    assert children() == before


def test_what_cannot_be_ended_lets_the_others_end(tmp_path: Path) -> None:
    """All are tried, and what went wrong is told."""
    before = children()
    drill = stage.Stage(tmp_path)
    node = drill.node(drill.serve().url)

    def fails() -> None:
        node.agent.close()
        raise OSError("it does not end")

    drill.held.callback(fails)
    with pytest.raises(OSError, match="does not end"):
        drill.close()
    assert children() == before
