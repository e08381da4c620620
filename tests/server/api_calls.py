# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the binary ask of a server, and of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

BINARY = Path(os.environ.get("PERSEUS_BINARY", "build/release/src/cli/perseus"))


def create(server: Server, **more: Any) -> str:
    """Create a job with a profile; return its path."""
    body = {"job": SETTINGS, "profile_csv": PROFILE, **more}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    return f"/api/v1/jobs/{job['id']}"


def register_all(server: Server, path: str) -> None:
    """Register all ranks of a job."""
    for rank in range(RANKS):
        body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2, "node": f"n{rank // 2}"}
        assert server.call("POST", path + "/ranks", body)[0] == 200


def sweep(server: Server, path: str, rank: int, slow: float = 1, **more: Any) -> None:
    """Report what a rank measured of its stage."""
    rows = []
    for line in PROFILE.splitlines()[1:]:
        stage, name, clock, seconds, joules = line.split(",")
        if int(stage) == rank % 2:
            row = {"stage": int(stage), "instruction": name, "frequency": int(clock)}
            rows.append(row | {"time": slow * float(seconds), "energy": float(joules)} | more)
    body = {"rank": rank, "rows": rows, "blocking_power_w": 20, "done": True}
    status, answer = server.call("POST", path + "/measurements", body)
    assert status == 200, answer


def await_running(server: Server, path: str) -> dict[str, Any]:
    """Return the job once it runs and no better plan is to come."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        _, job = server.call("GET", path)
        if job["state"] == "running" and job["refined"]:
            return dict(job)
        time.sleep(0.05)
    raise AssertionError(job)


def report_timed(
    server: Server, path: str, iteration: int, ranks: Sequence[int] = (0, 1), **more: Any
) -> dict[str, Any]:
    """Report an iteration of pipeline 0 as planned; each rank's clock begins at its own time.

    Parameters
    ----------
    more
        Members of each report, such as `clocks`; `slow`, how many times as long as planned all
        takes; `version`, of the plan.
    """
    slow = more.pop("slow", 1.0)
    version = more.pop("version", None) or server.call("GET", path)[1]["plan"]["version"]
    plan: dict[str, Any] = server.call("GET", path + "/plan.json")[1]
    reports = []
    for rank in ranks:
        began = -0.5 - 3 * rank  # Of what the plan counts from.
        runs = plan["ranks"][rank]["computations"]
        begins = [slow * run["start_s"] - began for run in runs]
        ends = [begin + slow * run["duration_s"] for begin, run in zip(begins, runs, strict=True)]
        reports.append(
            {
                **{"rank": rank, "iteration": iteration, "plan_version": version},
                **{"time_s": slow * plan["iteration_time_s"], "clocks": "plan"},
                "timeline": {
                    "begin_ns": [1e9 * begin for begin in begins],
                    "end_ns": [1e9 * end for end in ends],
                },
                **more,
            }
        )
    status, answer = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202, answer
    return plan


def run_unbelievable(server: Server, **more: Any) -> str:
    """Let ranks measure for a job whose figures nobody can believe; return its path.

    A transfer would take longer than all that a rank computes.
    """
    body = {"job": SETTINGS | {"comm_delay": 20}, **more}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    path = f"/api/v1/jobs/{job['id']}"
    register_all(server, path)
    for rank in range(RANKS):
        sweep(server, path, rank)
    await_running(server, path)
    return path


def ask(server: Server, method: str, path: str, **headers: str) -> tuple[int, Any, Any]:
    """Ask with headers; return status, headers and JSON."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    body = b"{}" if method in ("POST", "PUT") else None
    request = urllib.request.Request(server.url + path, body, names, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return response.status, response.headers, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def job_command(server: Server, *words: str, fails: bool = False) -> str:
    """Run `perseus job`; return what it prints."""
    command = [str(BINARY), "job", *words, "--server", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == (2 if fails else 0), done.stderr
    return done.stderr if fails else done.stdout


class Stream:
    """A stream of events."""

    def __init__(self, server: Server, path: str, last: str = "") -> None:
        headers = {"Last-Event-ID": last} if last else {}
        request = urllib.request.Request(server.url + path, headers=headers)
        self._stream = urllib.request.urlopen(request, timeout=60)

    def next(self) -> dict[str, str]:
        """Return the fields of the next event."""
        fields: dict[str, str] = {}
        while line := self._stream.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        return fields if fields else self.next()

    def close(self) -> None:
        """Leave."""
        self._stream.close()


def check(server: Server, schema: str, value: object) -> None:
    """Check an answer against its schema."""
    jsonschema = pytest.importorskip("jsonschema")
    document = server.call("GET", "/openapi.json")[1]
    whole = {"$ref": f"#/components/schemas/{schema}", "components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)
