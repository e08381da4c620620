# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus support-bundle`: what it holds, and that no secret is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]

# Each is found in one place alone, so that a leak says where it is.
TOKEN = "0123456789abcdef0123456789abcdef0123456789abcdeF"
SECRETS = {
    "the caller's token": TOKEN,
    "an environment variable": "hunter2-of-hf",
    "a password of PostgreSQL in the environment": "hunter2-of-pg",
    "an address in the environment": "hunter2-of-address",
    "a job's name": "hunter2-of-name",
    "a client key": "ghp_hunter2ofclientkey",
    "a model": "hunter2-of-model",
    "a label": "hunter2-of-label",
    "a label's name": "hunter2oflabelname",
    "a node": "hunter2-of-node",
    "a GPU's name": "hunter2-of-gpu",
    "an error of a rank": "hunter2-of-error",
    "a process": "hunter2-of-process",
}


def bundle(
    *words: str, code: int = 0, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it; check its exit code."""
    done = subprocess.run(
        [str(BINARY), "support-bundle", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | (environment or {}),
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def create(server: Server, **members: Any) -> str:
    """Make a job; return its id."""
    body = {"job": SETTINGS, "profile_csv": PROFILE} | members
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    return str(job["id"])


def plant(server: Server) -> str:
    """Make a job with secrets wherever text can be; return its id."""
    job = create(
        server,
        name=SECRETS["a job's name"],
        client_key=SECRETS["a client key"],
        job=SETTINGS | {"model": SECRETS["a model"]},
        labels={SECRETS["a label's name"]: SECRETS["a label"]},
    )
    path = f"/api/v1/jobs/{job}"
    for rank in range(RANKS):
        body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
        names = {"node": SECRETS["a node"], "gpu_name": SECRETS["a GPU's name"]}
        assert server.call("POST", path + "/ranks", body | names)[0] == 200
    report = {
        "rank": 0,
        "state": "following",
        "error": SECRETS["an error of a rank"],
        "process": SECRETS["a process"],
    }
    assert server.call("POST", path + "/iterations", {"reports": [], "clients": [report]})[0] == 202
    straggler = {"node": SECRETS["a node"], "factor": 1.2}
    assert server.call("POST", path + "/stragglers", straggler)[0] == 201
    return job


def test_no_secret_is_in_the_bundle_and_what_helps_is(server: Server, tmp_path: Path) -> None:
    """Secrets are planted everywhere."""
    job = plant(server)
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "token").chmod(0o600)
    words = ["--server", server.url, "--token-file", str(tmp_path / "token")]
    environment = {
        "HF_TOKEN": SECRETS["an environment variable"],
        "PGPASSWORD": SECRETS["a password of PostgreSQL in the environment"],
        "PERSEUS_SERVE_STORE": "postgresql://perseus:{}@db/x".format(
            SECRETS["an address in the environment"]
        ),
        "PERSEUS_NOTE": f"of {TOKEN}",
    }
    out = tmp_path / "support.json"
    said = bundle(*words, "-o", str(out), environment=environment).stdout
    text = out.read_text()
    assert [where for where, secret in SECRETS.items() if secret in text or secret in said] == []
    # What helps is there.
    found = json.loads(text)
    assert "PERSEUS_SERVE_STORE" in found["system"]["environment"]
    assert "HF_TOKEN" not in found["system"]["environment"]
    assert "Linux" in found["system"]["kernel"]
    assert found["system"]["perseus"]
    assert found["job"]["id"] == job
    assert found["job"]["pipeline_parallel"] == 2
    assert len(found["job/ranks"]["ranks"]) == RANKS
    assert found["server"]["jobs"] == 1
    assert [each["id"] for each in found["jobs"]] == [job]
    assert float(found["metrics"]["perseus_store_schema_version"]) == 1
    assert found["health"]["status"] == "ok"


def test_without_server_and_agent_the_bundle_says_what_is_missing(tmp_path: Path) -> None:
    """What the node says is there."""
    out = tmp_path / "support.json"
    words = ["--socket", str(tmp_path / "agent.sock")]
    said = " ".join(bundle("--server", "http://127.0.0.1:9", *words, "-o", str(out)).stdout.split())
    found = json.loads(out.read_text())
    assert found["node"]["gpus"] == []
    assert not found["server"]["is_well"]
    assert "Not in it: health: Cannot reach http://127.0.0.1:9" in said
    assert "Not in it: agent: the agent at" in said


def test_wrong_uses_write_nothing(server: Server, tmp_path: Path) -> None:
    """No file, and one that cannot be written."""
    assert "-o" in bundle("--server", server.url, code=2).stderr
    assert "directory" in bundle("-o", str(tmp_path / "none/x"), code=2).stderr
    # What is asked for and not there is said.
    words = ["--server", server.url, "--job", "nobody"]
    said = " ".join(bundle(*words, "-o", str(tmp_path / "support.json")).stdout.split())
    assert "no job has the name or client key 'nobody'" in said


def test_a_refused_token_leaves_the_rest(tmp_path: Path) -> None:
    """A server that refuses is looked at as far as it lets."""
    (tmp_path / "tokens").write_text(f"read {'b' * 40} reader\n")
    (tmp_path / "tokens").chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tmp_path / "tokens"))
    out = tmp_path / "support.json"
    said = " ".join(bundle("--server", server.url, "-o", str(out)).stdout.split())
    assert json.loads(out.read_text())["health"]["status"] == "ok"
    assert "jobs: the server wants a token" in said
    assert server.stop() == 0, server.log()


def test_jobs_that_have_not_ended_come_first(server: Server, tmp_path: Path) -> None:
    """Thousands may have ended: the one that matters is in the bundle, whenever it was made."""
    made = [create(server, name=name) for name in ("before", "goes on", "after")]
    for job in (made[0], made[2]):
        assert server.call("POST", f"/api/v1/jobs/{job}/finish")[0] == 200
    out = tmp_path / "support.json"
    bundle("--server", server.url, "-o", str(out))
    found = json.loads(out.read_text())
    jobs = [each["id"] for each in found["jobs"]]
    assert jobs[0] == made[1]
    assert sorted(jobs) == sorted(made)
    assert found["job"]["id"] == made[1]
