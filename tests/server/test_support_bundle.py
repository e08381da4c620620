# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus support-bundle`: what it holds, and that no secret is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
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
    "a variable, repeated in a job's name": "hunter2-of-wandb",
    "a password of PostgreSQL in the environment": "hunter2-of-pg",
    "an address in the environment": "hunter2-of-address",
    "a job's name": "hunter2-of-name",
    "a bare token in a job's name": "fedcba9876543210fedcba9876543210fedcba9876543210",
    "a client key": "ghp_hunter2ofclientkey",
    "a label": "hunter2-of-label",
    "a node": "hunter2-of-node",
    "an error of a rank": "hunter2-of-error",
    "a header in an error of a rank": "hunter2-of-header",
    "an address in a drop-in": "hunter2-of/dropin@x",
    "an option in a drop-in": "hunter2-of-option",
    "a credential in a drop-in": "hunter2-of-credential",
    "a member of a TOML file": "hunter2 of toml",
    "a key of PEM": "MIIEhunter2ofpem",
    "a line of a token file": "hunter2-of-tokens-file",
    "a line of pgpass": "hunter2 of pgpass",
    "JSON in a log": "hunter2 of json",
    "a header in a log": "hunter2-of-cookie",
    "a word in a log": "hunter2OF2log2AbCdEfGh",
}

DROP_IN = """[Service]
Environment="PERSEUS_SERVE_STORE=postgresql://perseus:{an address in a drop-in}@db/perseus?a=b"
Environment="PERSEUS_SERVER_OPTIONS=--listen 0.0.0.0:7787 --api-key {an option in a drop-in}"
LoadCredential=tokens:/etc/perseus/tokens
SetCredential=x:{a credential in a drop-in}
"""
TOML = """listen = "127.0.0.1:1234"
webhook_secret = "{a member of a TOML file}"
-----BEGIN PRIVATE KEY-----
{a key of PEM}
-----END PRIVATE KEY-----
"""
OTHERS = """train {a line of a token file} nodes
db.example:5432:perseus:perseus:{a line of pgpass}
"""
LOG = """level=info event=ready url=http://127.0.0.1:7787
level=warning message="bad body: {{\\"password\\": \\"{JSON in a log}\\"}}"
Set-Cookie: id={a header in a log}; Secure
level=info seen {a word in a log} again
"""


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


def unpacked(path: Path) -> dict[str, str]:
    """Return the bundle's files by name, without their folder."""
    with tarfile.open(path, "r:gz") as archive:
        files = {}
        for member in archive:
            assert member.isfile()
            assert member.mode == 0o600
            assert abs(member.mtime - time.time()) < 3600
            stream = archive.extractfile(member)
            assert stream is not None
            folder, _, name = member.name.partition("/")
            assert folder == "perseus-support"
            files[name] = stream.read().decode()
    return files


def plant(server: Server) -> str:
    """Make a job with secrets wherever text can be; return its id."""
    name = (
        "nightly password={a job's name} {a bare token in a job's name} "
        "{a variable, repeated in a job's name}"
    )
    label = "gpt token={a label}"
    key = "{a client key}"
    status, job = server.call(
        "POST",
        "/api/v1/jobs",
        {
            "name": name.format_map(SECRETS),
            "client_key": key.format_map(SECRETS),
            "job": SETTINGS | {"model": label.format_map(SECRETS)},
            "profile_csv": PROFILE,
        },
    )
    assert status == 201, job
    path = f"/api/v1/jobs/{job['id']}"
    for rank in range(RANKS):
        node = "node17 secret={a node}".format_map(SECRETS)
        body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2, "node": node}
        assert server.call("POST", path + "/ranks", body)[0] == 200
    error = (
        'driver refused: {{"password": "{an error of a rank}"}}, '
        "Authorization: Basic {a header in an error of a rank}"
    ).format_map(SECRETS)
    report = {"rank": 0, "state": "following", "error": error}
    body = {"reports": [], "clients": [report]}
    assert server.call("POST", path + "/iterations", body)[0] == 202
    return str(job["id"])


def test_no_secret_is_in_the_bundle_and_what_helps_is(server: Server, tmp_path: Path) -> None:
    """Secrets are planted everywhere; all files and their packed bytes are searched."""
    job = plant(server)
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "token").chmod(0o600)
    words = ["--server", server.url, "--token-file", str(tmp_path / "token")]
    for option, name, text in (
        ("--config", "tls.conf", DROP_IN),
        ("--config", "serve.toml", TOML),
        ("--config", "others", OTHERS),
        ("--log", "server.log", LOG),
    ):
        (tmp_path / name).write_text(text.format_map(SECRETS))
        words += [option, str(tmp_path / name)]
    environment = {
        "HF_TOKEN": SECRETS["an environment variable"],
        "WANDB_API_KEY": SECRETS["a variable, repeated in a job's name"],
        "PGPASSWORD": SECRETS["a password of PostgreSQL in the environment"],
        "PERSEUS_SERVE_STORE": "postgresql://perseus:{}@db/x".format(
            SECRETS["an address in the environment"]
        ),
        "PERSEUS_NOTE": f"of {TOKEN}",
    }
    out = tmp_path / "support.tar.gz"
    said = bundle(*words, "-o", str(out), environment=environment).stdout
    files = unpacked(out)
    leaks = [
        f"{where} is in {name}"
        for where, secret in SECRETS.items()
        for name, text in (files | {"the output": said}).items()
        if secret in text or secret.split("/")[0] in text
    ]
    assert leaks == []
    # What helps is still there.
    assert "secrets removed" in said
    config = {name.rpartition("_")[2]: text for name, text in files.items() if "onfig/" in name}
    assert "perseus:[removed]@db/perseus?a=b" in config["tls.conf"]
    assert "LoadCredential=tokens:/etc/perseus/tokens" in config["tls.conf"]
    assert 'listen = "127.0.0.1:1234"' in config["serve.toml"]
    assert "PERSEUS_SERVE_STORE=postgresql://perseus:[removed]@db/x" in files["environment.txt"]
    assert "HF_TOKEN" not in files["environment.txt"]
    assert "PGPASSWORD=[removed]" in files["environment.txt"]
    for name, text in files.items():
        if name.endswith(".json"):
            assert json.loads(text) is not None, name
    shown = json.loads(files["job/job.json"])
    assert shown["id"] == job
    assert shown["name"].startswith("nightly password=[removed]")
    assert len(json.loads(files["job/ranks.json"])["ranks"]) == RANKS
    assert json.loads(files["server/doctor.json"])["jobs"] == 1
    assert [each["id"] for each in json.loads(files["server/jobs.json"])["jobs"]] == [job]
    assert "perseus_build_info" in files["server/metrics.txt"]
    assert job in files["server/events.txt"]
    assert "driver refused" in json.dumps(files)
    assert "Linux" in files["system.txt"]
    assert files["system.txt"].startswith("perseus ")
    for name in files:
        assert name == "README.txt" or f"  {name}\n" in files["README.txt"]


def test_without_server_and_agent_the_bundle_says_what_is_missing(tmp_path: Path) -> None:
    """What the node says is there."""
    out = tmp_path / "support.tar.gz"
    words = ["--socket", str(tmp_path / "agent.sock")]
    said = bundle("--server", "http://127.0.0.1:9", *words, "-o", str(out)).stdout
    files = unpacked(out)
    assert "node/doctor.json" in files
    assert not json.loads(files["server/doctor.json"])["is_well"]
    for text in (files["README.txt"], said):
        plain = " ".join(text.split())
        assert "server/: Cannot reach http://127.0.0.1:9" in plain
        assert "node/agent.json: the agent at" in plain


def test_wrong_uses_write_nothing(server: Server, tmp_path: Path) -> None:
    """No file, a file that cannot be written, and one that would replace an input."""
    log = tmp_path / "log"
    log.write_text("x\n")
    here = sorted(tmp_path.iterdir())
    assert "-o" in bundle("--server", server.url, code=2).stderr
    assert "directory" in bundle("-o", str(tmp_path / "none/x"), code=2).stderr
    assert "would replace a log" in bundle("--log", str(log), "-o", str(log), code=2).stderr
    assert sorted(tmp_path.iterdir()) == here
    # What is asked for and not there is said.
    out = tmp_path / "support.tar.gz"
    words = ["--server", server.url, "--job", "nobody", "--log", str(tmp_path / "none")]
    said = " ".join(bundle(*words, "-o", str(out)).stdout.split())
    assert "no job has the name or client key 'nobody'" in said
    assert "log/" in said


def test_a_refused_token_leaves_the_rest(tmp_path: Path) -> None:
    """A server that refuses is looked at as far as it lets."""
    (tmp_path / "tokens").write_text(f"read {'b' * 40} reader\n")
    (tmp_path / "tokens").chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tmp_path / "tokens"))
    out = tmp_path / "support.tar.gz"
    said = " ".join(bundle("--server", server.url, "-o", str(out)).stdout.split())
    files = unpacked(out)
    assert json.loads(files["server/healthz.json"])["status"] == "ok"
    assert "server/jobs.json: the server wants a token" in said
    assert server.stop() == 0, server.log()


def test_the_last_events_and_the_end_of_a_log(server: Server, tmp_path: Path) -> None:
    """Of many, the last ones."""
    status, job = server.call("POST", "/api/v1/jobs", {"job": SETTINGS, "profile_csv": PROFILE})
    assert status == 201
    path = f"/api/v1/jobs/{job['id']}/stragglers"
    for factor in range(5):
        body: dict[str, Any] = {"pipeline": 1, "factor": 1.1 + factor / 10}
        assert server.call("POST", path, body)[0] == 201
    log = tmp_path / "server.log"
    log.write_text("first line\n" + "x=1 filler\n" * 150000 + "last line\n")
    out = tmp_path / "support.tar.gz"
    bundle("--server", server.url, "--log", str(log), "-o", str(out))
    files = unpacked(out)
    (text,) = (text for name, text in files.items() if name.startswith("log/"))
    assert text.endswith("last line\n")
    assert "first line" not in text
    assert text.startswith("x=1 filler\n")
    events = [line.split(" ", 2) for line in files["server/events.txt"].splitlines()]
    assert len([name for _, name, _ in events if "straggler" in name]) >= 5


def test_jobs_that_have_not_ended_come_first(server: Server, tmp_path: Path) -> None:
    """Thousands may have ended: the one that matters is in the bundle, whenever it was made."""
    made = []
    for name in ("before", "goes on", "after"):
        body = {"name": name, "job": SETTINGS, "profile_csv": PROFILE}
        status, job = server.call("POST", "/api/v1/jobs", body)
        assert status == 201
        made.append(job["id"])
    for job in (made[0], made[2]):
        assert server.call("POST", f"/api/v1/jobs/{job}/finish")[0] == 200
    out = tmp_path / "support.tar.gz"
    bundle("--server", server.url, "-o", str(out))
    files = unpacked(out)
    jobs = [each["name"] for each in json.loads(files["server/jobs.json"])["jobs"]]
    assert jobs[0] == "goes on"
    assert sorted(jobs) == ["after", "before", "goes on"]
    assert json.loads(files["job/job.json"])["name"] == "goes on"


def test_of_a_log_larger_than_memory_the_end_is_taken(tmp_path: Path) -> None:
    """It begins with a whole line: of a secret, not half of it stays."""
    log = tmp_path / "large.log"
    with log.open("wb") as file:
        file.seek(300 << 20)
        file.write(b" half of a secret\nlast line\n")
    one_line = tmp_path / "one-line.log"
    one_line.write_text("x" * (2 << 20))
    out = tmp_path / "support.tar.gz"
    bundle("--log", str(log), "--log", str(one_line), "-o", str(out))
    ends = {name: text for name, text in unpacked(out).items() if name.startswith("log/")}
    assert sorted(ends.values()) == ["", "last line\n"]
