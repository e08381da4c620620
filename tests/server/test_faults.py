# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that `perseus serve` once had, each seen from outside as whoever met it saw it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, create
from drill import PROFILE, SETTINGS
from serving import Server


def test_a_key_that_is_known_costs_no_planning(tmp_path: Path) -> None:
    """The key is looked up before a profile is read or a plan is made."""
    server = Server(BINARY, tmp_path / "jobs.db")
    path = create(server, client_key="k")
    body = {"client_key": "k", "job": SETTINGS}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert (status, path.endswith(job.get("id", "-"))) == (200, True), job
    # Another job under the same key: refused for that, and not for what it holds.
    body["profile_csv"] = "no profile"
    assert server.call("POST", "/api/v1/jobs", body)[0] == 409
    assert server.stop() == 0, server.log()


def test_who_changed_what(tmp_path: Path) -> None:
    """One line for a change: the token's name, before and after."""
    tokens = tmp_path / "tokens"
    tokens.write_text("operate 0123456789abcdef alice\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))
    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "profile.csv").write_text(PROFILE)
    (tmp_path / "job.toml").write_text(
        'profile = "profile.csv"\nschedule = "1f1b"\nmicrobatches = 2\ndp = 2\n'
        "blocking_power = 20\n"
    )
    place = ("--server", server.url, "--token-file", str(tmp_path / "token"))
    for words in (("create", str(tmp_path / "job.toml"), "--name", "x"), ("point", "x", "1.2x")):
        subprocess.run([str(BINARY), "job", *words, *place], check=True, capture_output=True)
    assert server.stop() == 0
    [line] = [line for line in server.log().splitlines() if "what=point" in line]
    for part in ("before=1.0x", "after=1.2x", "token=alice", "peer=127.0.0.1:"):
        assert part in line


def test_names_reach_no_terminal_raw(tmp_path: Path) -> None:
    """Control characters and those that turn the line are shown, not obeyed; names are cut."""
    server = Server(BINARY, tmp_path / "jobs.db")
    for key in ("a", "b"):
        create(server, name="x\x9b31my\u202ez" + 240 * key, client_key=key)
    command = [str(BINARY), "job", "list", "--server", server.url]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert server.stop() == 0
    for text in (listed, server.log()):
        assert not {"\x9b", "\u202e"} & set(text)
    assert max(len(line) for line in listed.splitlines()) < 200
