# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus top`: all jobs of a server in one table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, await_running, create, job_command, register_all
from drill import RANKS
from serving import Server

pytest_plugins = ["server_fixture"]


def top(server: Server, *words: str, code: int = 0) -> str:
    """Run it once; return what it prints."""
    command = [str(BINARY), "top", "--server", server.url, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def train(server: Server, name: str, watts: float) -> str:
    """Return the path of a job whose ranks report 16 iterations of half a second."""
    path = create(server, name=name)
    register_all(server, path)
    await_running(server, path)
    reports = [
        {"rank": rank, "iteration": n, "time_s": 0.5, "energy_j": 0.5 * watts / RANKS}
        for n in range(16)
        for rank in range(RANKS)
    ]
    status, answer = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202, answer
    return path


def names(text: str) -> list[Any]:
    """Return the names of jobs in JSON, in order."""
    return [job["name"] for job in json.loads(text)["jobs"]]


def test_jobs_are_shown_in_the_order_that_is_asked_for(server: Server) -> None:
    """What draws most comes first; a job that reports nothing comes last."""
    assert "no unfinished job" in top(server)
    train(server, "small", 100)
    large = train(server, "large", 300)
    create(server, name="awaited")
    assert names(top(server, "--json")) == ["large", "small", "awaited"]
    assert names(top(server, "--json", "--sort", "name")) == ["awaited", "large", "small"]
    text = top(server, "--sort", "name")
    assert text.startswith("3 jobs, 400")
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert "0.5000" in rows["large"]
    assert "0.5000" not in rows["awaited"]
    assert server.call("POST", large + "/finish")[0] == 200
    assert names(top(server, "--json")) == ["small", "awaited"]
    # What it drew is over.
    text = top(server, "--all", "--sort", "name")
    assert "400" not in text.splitlines()[0]
    assert "0.5000" not in next(line for line in text.splitlines() if line.startswith("large"))
    shown = job_command(server, "show", "large")
    assert " last " in " ".join(shown.split())
    assert sorted(names(top(server, "--json", "--all"))) == ["awaited", "large", "small"]


def test_it_goes_on_until_nobody_reads(server: Server) -> None:
    """Again and again with --every, until the reader goes away."""
    create(server, name="one")
    command = [str(BINARY), "top", "--server", server.url, "--every", "200ms", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert names(process.stdout.readline()) == ["one"]
        process.stdout.close()
        assert process.wait(60) == 0


def test_wrong_words_are_refused(server: Server) -> None:
    """Each with what would be right."""
    assert "stragglers" in top(server, "--sort", "size", code=2)
    assert "--every" in top(server, "--once", "--every", "1s", code=2)
    assert "200ms" in top(server, "--every", "1ms", code=2)
    command = [str(BINARY), "top", "--server", "http://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "nobody listens there" in done.stderr
