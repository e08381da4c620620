# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus doctor --server`: what it finds of a server and its jobs."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, await_running, create, register_all, run_unbelievable
from serving import Server

pytest_plugins = ["server_fixture"]


def doctor(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run it; check its exit code."""
    command = [str(BINARY), "doctor", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def examined(server: Server, code: int = 0) -> dict[str, Any]:
    """Return what it says of a server as JSON."""
    found: dict[str, Any] = json.loads(doctor("--server", server.url, "--json", code=code).stdout)
    assert found["schema_version"] == 1
    assert found["is_well"] is (code == 0)
    return found


def levels(found: dict[str, Any], about: str) -> list[str]:
    """Return the levels of the findings about a thing."""
    return [each["level"] for each in found["findings"] if each["about"] == about]


def test_a_server_without_jobs_is_well(server: Server) -> None:
    """Text and JSON say so, and which version it is."""
    assert "This server is well." in doctor("--server", server.url).stdout
    found = examined(server)
    assert found["version"] == server.call("GET", "/openapi.json")[1]["info"]["version"]
    assert levels(found, "server") == levels(found, "token") == ["ok"]
    assert levels(found, "store") == ["ok"] * 3
    said = [each["message"] for each in found["findings"] if each["about"] == "store"]
    assert re.fullmatch(r"its tables have version \d+", said[2])
    assert found["jobs"] == 0


def test_what_jobs_complain_of_is_said(server: Server) -> None:
    """Ranks that report an error, stragglers, and a profile that nobody can believe."""
    path = create(server, name="troubled")
    register_all(server, path)
    await_running(server, path)
    assert levels(examined(server), "job") == []
    report = {"rank": 0, "state": "following", "error": "the driver refused 1410 MHz"}
    body: dict[str, Any] = {"reports": [], "clients": [report]}
    status, answer = server.call("POST", path + "/iterations", body)
    assert status == 202, answer
    assert server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})[0] == 201
    run_unbelievable(server, name="wrong units")
    found = examined(server)
    assert found["jobs"] == 2
    said = {each["message"]: each for each in found["findings"] if each["about"] == "job"}
    (complaint,) = (each for message, each in said.items() if "complain" in message)
    assert complaint["message"].startswith("troubled: 1 rank")
    assert "runbook.md#a-rank-has-no-plan" in complaint["fix"]
    (straggler,) = (each for message, each in said.items() if "slow pipeline" in message)
    assert straggler["level"] == "note"
    assert any(message.startswith("wrong units: ") for message in said)
    # Jobs that are over are nobody's trouble.
    assert server.call("POST", path + "/finish")[0] == 200
    assert examined(server)["jobs"] == 1


@contextlib.contextmanager
def changed(server: Server, change: Callable[[str, bytes], bytes]) -> Iterator[str]:
    """Answer as the server does, but with what `change` makes of the body of a path."""

    class Between(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                with urllib.request.urlopen(server.url + self.path, timeout=60) as answer:
                    status, body = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, body = error.code, error.read()
            body = change(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between) as between:
        threading.Thread(target=between.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{between.server_address[1]}"
        between.shutdown()


def with_saving(
    server: Server, measured: dict[str, float]
) -> contextlib.AbstractContextManager[str]:
    """Say of each job that this saving was measured."""

    def change(path: str, body: bytes) -> bytes:
        if not path.startswith("/api/v1/jobs?"):
            return body
        listed = json.loads(body)
        listed["jobs"] = [job | {"measured_saving": measured} for job in listed["jobs"]]
        return json.dumps(listed).encode()

    return changed(server, change)


def with_metrics(server: Server, **values: float) -> contextlib.AbstractContextManager[str]:
    """Give metrics other values; one that is not there is added."""

    def change(path: str, body: bytes) -> bytes:
        if path != "/metrics":
            return body
        lines = [
            line for line in body.decode().splitlines() if line.split(" ")[0] not in values
        ] + [f"{name} {value}" for name, value in values.items()]
        return ("\n".join(lines) + "\n").encode()

    return changed(server, change)


def test_what_the_store_and_the_certificate_need_is_said_before_they_fail(server: Server) -> None:
    """Writes that wait, a disk that is nearly full, a certificate that ends soon."""
    day = 86400

    def said(**values: float) -> list[tuple[str, str]]:
        with with_metrics(server, **values) as url:
            found = json.loads(doctor("--server", url, "--json").stdout)
        return [
            (each["about"], each["message"] + " " + each["fix"])
            for each in found["findings"]
            if each["level"] == "warning"
        ]

    assert said() == []
    waiting = {"perseus_store_waiting_requests": 17, "perseus_store_waiting_seconds": 3}
    ((about, text),) = said(**waiting)
    assert about == "store"
    assert "17 writes wait, the oldest for 3 s" in text
    assert "runbook.md#the-store-is-behind" in text
    assert said(**waiting | {"perseus_store_waiting_seconds": 0.5}) == []
    ((about, text),) = said(perseus_store_free_bytes=100 << 20)
    assert (about, text.split(" are")[0]) == ("store", "0.1 GiB")
    assert said(perseus_store_free_bytes=2 << 30) == []
    name = "perseus_certificate_expiry_timestamp_seconds"
    ((about, text),) = said(**{name: time.time() + 3.5 * day})
    assert about == "TLS"
    assert "expires in 4 days" in text or "expires in 3 days" in text
    assert said(**{name: time.time() + 90 * day}) == []


def test_the_role_of_the_token_is_said(tmp_path: Path) -> None:
    """By its name; one that is bound sees not all."""
    lines = [f"{role} {role[0] * 40} {role}-er" for role in ("read", "train", "operate")]
    lines.append(f"read {'k' * 40} bound key=a")
    (tmp_path / "tokens").write_text("\n".join(lines) + "\n")
    (tmp_path / "tokens").chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tmp_path / "tokens"))

    def said(letter: str) -> dict[str, Any]:
        (tmp_path / "token").write_text(letter * 40)
        (tmp_path / "token").chmod(0o600)
        words = ("--server", server.url, "--token-file", str(tmp_path / "token"), "--json")
        found = json.loads(doctor(*words).stdout)["findings"]
        (each,) = (each for each in found if each["about"] == "token")
        return dict(each)

    for role in ("read", "train", "operate"):
        assert said(role[0])["message"] == f"the role is {role}, as {role}-er"
    assert said("k")["level"] == "note"
    assert "bound" in said("k")["message"]
    assert server.stop() == 0, server.log()


def test_a_saving_is_held_against_the_prediction_of_its_own_plan(server: Server) -> None:
    """By a point at least, as the alarm does; `top` says that a saving is of an older plan."""
    path = create(server, name="compared")
    register_all(server, path)
    plan = await_running(server, path)["plan"]
    predicted, version = plan["saving_percent"], plan["version"]

    def said(below: float, of_version: int) -> tuple[bool, bool]:
        most = predicted - below
        measured = {"mean": most - 1, "least": most - 2, "most": most, "plan_version": of_version}
        with with_saving(server, measured) as url:
            found = json.loads(doctor("--server", url, "--json").stdout)
            shown = subprocess.run(
                [str(BINARY), "top", "--server", url], capture_output=True, text=True, timeout=60
            ).stdout
        return "were predicted" in json.dumps(found), "older plan" in shown

    assert said(1.1, version) == (True, False)
    assert said(0.9, version) == (False, False)
    assert said(1.1, version - 1) == (False, True)
    rules = Path(__file__).resolve().parents[2] / "packaging/prometheus/perseus-alerts.yml"
    assert 'saving_ratio{bound="most"} + 0.01 <' in rules.read_text(encoding="utf-8")


def test_each_link_leads_into_the_runbook() -> None:
    """Its headings are what the findings name."""
    root = Path(__file__).resolve().parents[2]
    source = (root / "src/cli/cluster/server_examination.cc").read_text(encoding="utf-8")
    headings = [
        "".join(c for c in line[3:].lower().replace(" ", "-") if c.isalnum() or c in "-_")
        for line in (root / "docs/how-to/runbook.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    named = [part.split('"')[1] for part in source.split("Case(")[1:] if '"' in part.split(",")[0]]
    assert len(named) >= 6
    for anchor in named:
        assert anchor in headings, anchor


def test_what_cannot_be_asked_is_a_fault_or_a_sentence(server: Server, tmp_path: Path) -> None:
    """No server, another server, and options that do not go together."""
    said = doctor("--server", "http://127.0.0.1:9", code=2).stdout
    assert "nobody listens there" in " ".join(said.split())
    assert "This server is not well" in said
    assert "--socket" in doctor("--server", server.url, "--socket", "/x", code=2).stderr
    assert "--server URL" in doctor("--token-file", str(tmp_path / "none"), code=2).stderr
    assert doctor("--server", "nonsense:", code=2).stderr


def test_a_wrong_token_is_a_fault(tmp_path: Path) -> None:
    """The server answers, and refuses."""
    files = {"right": "b" * 40, "wrong": "x" * 40, "tokens": f"read {'b' * 40} reader\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tmp_path / "tokens"))
    doctor("--server", server.url, "--token-file", str(tmp_path / "right"))
    words = ("--server", server.url, "--token-file", str(tmp_path / "wrong"), "--json")
    found = json.loads(doctor(*words, code=2).stdout)
    assert levels(found, "token") == ["fault"]
    assert server.stop() == 0, server.log()
