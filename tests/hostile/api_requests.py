# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Property-based requests from the server's own OpenAPI document (schemathesis).

python tests/hostile/api_requests.py --perseus build/release/src/cli/perseus --examples 2000

A live server gets jobs of each kind; schemathesis sends what the document allows and
what it forbids, with ids of these jobs and small numbers most of the time, so that
requests reach further than "no such job". No answer may be a 5xx or one that the
document does not describe, nothing forbidden may be accepted, and the server must
stop as asked in the end. That a request that fits the document may be refused is
no fault: much of what a job must be cannot be said in a schema.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from drill import PROFILE, SETTINGS
from serving import Server

ZEUS_PLAN = "[[('forward', 1410), ('backward', 1200)], [('forward', 1000), ('backward', 1410)]]\n"
# Streams do not end; server_test.cc and test_watching.py have them.
STREAMS = "/events$"
JOBS_OF_A_KIND = 8


@dataclass
class Outcome:
    """What came of a run.

    Parameters
    ----------
    text
        What schemathesis printed.
    cases
        Requests that it made.
    seconds
        How long that took.
    grown_mib
        Resident memory of the server after the run less that before.
    """

    text: str
    cases: int
    seconds: float
    grown_mib: float


class FaultError(AssertionError):
    """An answer was wrong."""


def make_jobs(server: Server, kind: int) -> list[str]:
    """Create jobs that can be of use: measured, not measured, Zeus'."""
    made = []
    for number in range(JOBS_OF_A_KIND):
        if kind == 2:
            zeus = {"pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2}
            status, answer = server.call("POST", "/register_job", zeus)
            assert status == 200, answer
            made.append(answer)
            continue
        body = {"job": SETTINGS, "name": f"{kind}-{number}"}
        if kind == 0:
            body["profile_csv"] = PROFILE
        status, answer = server.call("POST", "/api/v1/jobs", body)
        assert status == 201, answer
        made.append(answer["id"])
    return made


def configuration(server: Server) -> str:
    """Return schemathesis' settings in TOML."""
    measured, unmeasured, zeus, doomed = (make_jobs(server, kind) for kind in (0, 1, 2, 0))
    small = {"dictionary": "small", "probability": 0.7}

    def table(entries: dict[str, object]) -> str:
        def value(entry: object) -> str:
            if isinstance(entry, dict):
                return "{" + ", ".join(f"{k} = {value(v)}" for k, v in entry.items()) + "}"
            return json.dumps(entry)

        return "".join(f"{json.dumps(name)} = {value(entry)}\n" for name, entry in entries.items())

    return (
        "[dictionaries]\n"
        + table(
            {
                "jobs": {"values": measured + unmeasured},
                "zeus": {"values": zeus + measured},
                "doomed": {"values": doomed},
                "small": {"values": [0, 1, 2, 3, -1, 4]},
                "short": {"values": [0, 0.01, 0.02]},
                "lists": {"values": ["0-3", "0", "1,3", "3-0", "0-99999999999", ",", "-"]},
            }
        )
        + "[parameters]\n"
        + table(
            {
                "path.id": {"dictionary": "jobs", "probability": 0.9},
                "path.straggler_id": small,
                "query.rank": small,
                "query.pipeline": small,
                "query.ranks": {"dictionary": "lists", "probability": 0.7},
                # A request that may wait long is right, and of no use here.
                "query.wait": {"dictionary": "short", "probability": 1.0},
                "body.rank": small,
                "body.dp_rank": small,
                "body.pp_rank": small,
                "body.tp_rank": small,
                "body.pp_degree": small,
                "body.dp_degree": small,
                "body.tp_degree": small,
                "body.world_size": small,
                "body.pipeline": small,
            }
        )
        + "".join(
            f"[[operations]]\n{filters}\n[operations.parameters]\n"
            + table({"path.id": {"dictionary": name, "probability": 0.9}})
            for filters, name in (
                ('include-tag = "zeus"', "zeus"),
                ('include-operation-id = ["deleteJob", "finishJob"]', "doomed"),
            )
        )
    )


def resident_mib(server: Server) -> float:
    """Return VmRSS of the server."""
    text = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


def run(binary: Path, examples: int, seed: int, max_seconds: float) -> Outcome:
    """Run schemathesis on a new server.

    Raises
    ------
    FaultError
        It found something, or the server did not end well.
    """
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "plan.py").write_text(ZEUS_PLAN)
        options = ["--zeus-plan", str(folder / "plan.py"), "--log-level", "warning"]
        server = Server(binary, folder / "jobs.db", *options)
        (folder / "settings.toml").write_text(configuration(server))
        before = resident_mib(server)
        command = [str(Path(sys.executable).parent / "schemathesis")]
        command += ["--config-file", str(folder / "settings.toml"), "--no-color", "run"]
        command += [f"{server.url}/openapi.json", "--exclude-path-regex", STREAMS]
        command += ["--max-examples", str(examples), "--seed", str(seed), "--continue-on-failure"]
        command += ["--exclude-checks", "positive_data_acceptance", "--warnings", "off"]
        command += ["--suppress-health-check", "all", "--request-timeout", "70", "--no-shrink"]
        command += ["--generation-database", "none"]
        started = time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=folder, timeout=max_seconds
            )
            seconds = time.monotonic() - started
            grown = resident_mib(server) - before
            status = server.stop()
        finally:
            server.kill()
        if done.returncode != 0:
            raise FaultError(f"schemathesis found faults:\n{done.stdout}{done.stderr}")
        if status != 0:
            raise FaultError(f"the server ended with {status}: {server.log()}")
        cases = re.search(r"(\d+) generated", done.stdout)
        return Outcome(done.stdout, int(cases[1]) if cases else 0, seconds, grown)


def main() -> int:
    """Run it and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=200, help="at most, for each operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-seconds", type=float, default=3600)
    arguments = parser.parse_args()
    try:
        outcome = run(
            arguments.perseus.resolve(), arguments.examples, arguments.seed, arguments.max_seconds
        )
    except FaultError as error:
        print(error, file=sys.stderr)
        return 1
    print(outcome.text)
    print(
        f"{outcome.cases} requests in {outcome.seconds:.0f} s, no fault; the server grew by "
        f"{outcome.grown_mib:.1f} MiB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
