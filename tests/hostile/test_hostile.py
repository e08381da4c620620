# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Short forms of the drills beside this file; each says how to run its long one."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
import agent_messages
import api_requests
import attacks
from drill import SETTINGS
from serving import Server

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"
BINARY = Path(os.environ.get("PERSEUS_BINARY", RELEASE / "src/cli/perseus"))
MAKE_GPUS = Path(os.environ.get("PERSEUS_MAKE_GPUS", RELEASE / "tests/device/make_gpus"))


def test_requests_made_from_the_openapi_document() -> None:
    """No 5xx, nothing undescribed, nothing forbidden taken."""
    if shutil.which("schemathesis", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("schemathesis is not installed; tests/requirements.txt names it")
    outcome = api_requests.run(BINARY, examples=10, seed=1, max_seconds=500)
    assert outcome.cases > 500
    assert outcome.grown_mib < 128


def test_attacks() -> None:
    """Slow, silent, broken and too large; honest clients are answered all the while."""
    attacks.run(BINARY, rounds=1, slow=40, silent=1000, reset_count=200)


def test_bodies_that_would_fill_the_memory(tmp_path: Path) -> None:
    """A value takes a hundred bytes of memory, and two of a body."""
    server = Server(BINARY, tmp_path / "jobs.db", "--log-level", "warning")
    try:
        path = attacks.make_job(server)
        many = 2_600_000
        profile = "stage,instruction,frequency,time,energy\n" + "".join(
            f"0,forward,{clock},1,1\n" for clock in range(1, 370_000)
        )
        bodies = {
            "/api/v1/jobs": [
                b'{"job":{"x":[' + b"[]," * many + b"[]]}}",
                b'{"job":{' + b",".join(b'"%x":0' % i for i in range(600_000)) + b"}}",
                b"[" * 8_000_000,
                json.dumps({"job": SETTINGS, "profile_csv": profile}).encode(),
            ],
            f"{path}/measurements": [b'{"rank":0,"rows":[' + b"{}," * many + b"{}]}"],
            f"{path}/iterations": [b'{"reports":[' + b"0," * 400_000 + b"0]}"],
            "/register_job": [b'{"a":[' + b"0," * 400_000 + b"0]}"],
        }
        for place, texts in bodies.items():
            for text in texts:
                [(status, body)] = attacks.answers(server, attacks.post(place, text))
                assert status == 422, (place, text[:30], status, body)
        shown = Path(f"/proc/{server.pid}/status").read_text()
        most = re.search(r"VmHWM:\s+(\d+) kB", shown)
        assert most is not None
        assert int(most[1]) / 1024 < attacks.MOST_RESIDENT_MIB
        assert server.stop() == 0
    finally:
        server.kill()


def test_every_operation_asks_for_its_role(tmp_path: Path) -> None:
    """As the OpenAPI document says it: 401 without a token, 403 with too low a role."""
    roles = ["read", "train", "operate"]
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{role} {role}-0123456789abcdef {role}\n" for role in roles))
    tokens.chmod(0o600)
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("index.html", "page.js"):
        (docs / name).write_text("")
    options = ("--token-file", str(tokens), "--docs", str(docs))
    server = Server(BINARY, tmp_path / "jobs.db", *options)
    try:
        [(status, text)] = attacks.answers(server, attacks.get(b"/openapi.json"))
        assert status == 200
        checked = 0
        for pattern, item in json.loads(text)["paths"].items():
            path = pattern.replace("{id}", "j-none").replace("{straggler_id}", "1")
            path = path.replace("{file}", "page.js")
            for method, operation in item.items():
                if method == "parameters":
                    continue
                needed = operation.get("x-perseus-role")
                assert (needed is None) == (operation.get("security") == []), (method, pattern)
                for role in ["", "none", *roles]:
                    header = f"Authorization: Bearer {role}-0123456789abcdef\r\n" if role else ""
                    request = f"{method.upper()} {path} HTTP/1.1\r\nHost: x\r\n{header}"
                    body = "{}" if "requestBody" in operation else ""
                    request += f"Content-Length: {len(body)}\r\n\r\n{body}"
                    [(status, answer)] = attacks.answers(server, request.encode())
                    if needed is None:
                        answers = {int(each) for each in operation["responses"] if each < "400"}
                        assert status in answers | {503}, (method, pattern, status)
                    elif role not in roles:
                        assert status == 401, (method, pattern, role, status, answer)
                    elif roles.index(role) < roles.index(needed):
                        assert status == 403, (method, pattern, role, status, answer)
                    else:
                        assert status not in (401, 403), (method, pattern, role, status, answer)
                    assert b"0123456789abcdef" not in answer
                    checked += 1
        assert checked > 100
        assert server.stop() == 0
        assert "0123456789abcdef" not in server.log()
    finally:
        server.kill()


def test_broken_messages_to_the_agent() -> None:
    """Whatever comes, an honest client gets its lease, and its clock comes back."""
    if not MAKE_GPUS.exists():
        pytest.skip("run by ctest, which names make_gpus")
    agent_messages.run(BINARY, MAKE_GPUS, rounds=2, connections=100, seed=4)
