# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Labels of jobs: set, shown, kept, and accounted for."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from api_calls import BINARY, await_running, create, register_all
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]

JOULES = 3.6e6  # Of a rank in an iteration: a kWh.
JOB_FILE = 'schedule = "1f1b"\nstages = 2\nmicrobatches = 4\ndp = 2\nblocking_power = 20\n'
VISION = {"team": "vision", "project": "x"}


def perseus(server: Server, *words: str, code: int = 0) -> str:
    """Run a command against the server; return what it prints."""
    command = [str(BINARY), *words, "--server", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def labels_of(server: Server, path: str) -> dict[str, str]:
    """Return the labels of a job."""
    status, job = server.call("GET", path)
    assert status == 200, job
    return dict(job["labels"])


def put(server: Server, path: str, labels: object) -> tuple[int, Any]:
    """Change labels."""
    status, answer = server.call("PUT", path + "/labels", {"labels": labels})
    return status, answer


def train(server: Server, path: str, iterations: int) -> None:
    """Run a job and report so many iterations."""
    register_all(server, path)
    await_running(server, path)
    reports = [
        {"rank": rank, "iteration": n, "time_s": 0.5, "energy_j": JOULES}
        for n in range(iterations)
        for rank in range(RANKS)
    ]
    assert server.call("POST", path + "/iterations", {"reports": reports})[0] == 202
    end = time.monotonic() + 60
    while time.monotonic() < end:
        rows = server.call("GET", path + "/history?resolution=day")[1]["rows"]
        if sum(row["iterations"] for row in rows) == iterations:
            return
        time.sleep(0.05)
    raise AssertionError(rows)


def test_labels_are_made_changed_and_kept(tmp_path: Path) -> None:
    """By command and API, over a kill; audited, and told as an event."""
    server = Server(BINARY, tmp_path / "jobs.db")
    (tmp_path / "job.toml").write_text(JOB_FILE)
    made = json.loads(
        perseus(
            server,
            *("job", "create", str(tmp_path / "job.toml"), "--json", "--name", "a"),
            *("--label", "team=vision", "--label", "project=x"),
        )
    )
    path = f"/api/v1/jobs/{made['id']}"
    assert made["labels"] == VISION
    bare = create(server, name="bare")
    assert labels_of(server, bare) == {}
    server.kill()
    server = Server(BINARY, tmp_path / "jobs.db")
    assert labels_of(server, path) == VISION

    shown = perseus(server, "job", "label", "a", "team=language", "project-", "cost=1")
    assert "cost=1, team=language" in shown
    assert "project=x, team=vision" in server.log()  # What it was,
    assert "cost=1, team=language" in server.log()  # and what it is.
    revision = server.call("GET", path)[1]["revision"]
    # What changes nothing is no change, and what is not there may be taken away.
    assert put(server, path, {"team": "language", "other": None})[1]["revision"] == revision
    server.kill()
    server = Server(BINARY, tmp_path / "jobs.db")
    assert labels_of(server, path) == {"cost": "1", "team": "language"}
    # Also of a job that has ended, and that this server has not read yet.
    assert server.call("POST", path + "/finish")[0] == 200
    server.kill()
    server = Server(BINARY, tmp_path / "jobs.db")
    (listed,) = server.call("GET", "/api/v1/jobs?label=team:language")[1]["jobs"]
    assert listed["id"] == made["id"]
    assert put(server, path, {"cost": None})[0] == 200
    job = server.call("GET", path)[1]
    assert job["labels"] == {"team": "language"}
    assert job["state"] == "finished"
    assert server.stop() == 0


def test_lists_go_by_labels(server: Server) -> None:
    """In the API, `job list` and `top`; several labels must all be there."""
    one = create(server, name="one", labels=VISION)
    create(server, name="two", labels={"team": "vision"})
    create(server, name="three", labels={"team": "vision2"})
    create(server, name="four")

    def names(label: str) -> list[str]:
        status, answer = server.call("GET", f"/api/v1/jobs?label={label}")
        assert status == 200, answer
        return [job["name"] for job in answer["jobs"]]

    assert names("team:vision") == ["one", "two"]
    assert names("team:vision,project:x") == ["one"]
    assert names("team:nobody") == []
    status, answer = server.call("GET", "/api/v1/jobs?label=team")
    assert status == 422
    assert "team:vision" in answer["error"]["message"]
    assert answer["error"]["field"] == "label"
    assert server.call("GET", "/api/v1/jobs?label=a:b,a:c")[0] == 422

    text = perseus(server, "job", "list", "--label", "team=vision", "--label", "project=x")
    assert "one" in text
    assert "two" not in text
    assert "project=x, team=vision" in text
    assert "labels" in perseus(server, "job", "list")
    assert "labels" not in perseus(server, "job", "list", "--name", "four")
    assert "--label" in perseus(server, "job", "list", "--label", "team=nobody")
    top = perseus(server, "top", "--once", "--label", "project=x")
    assert "one" in top
    assert "two" not in top
    job = one.rsplit("/", 1)[1]
    with urllib.request.urlopen(server.url + "/metrics", timeout=60) as response:
        metrics = response.read().decode()
    assert f'perseus_job_label{{job_id="{job}",label="team",value="vision"}} 1' in metrics


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({f"k{n}": "v" for n in range(1000)}, ["at most 16"]),
        ({"": "x"}, ["no name"]),
        ({"team": ""}, ["'team'", "no value"]),
        ({"a=b": "x"}, ["'a=b'"]),
        ({"team": "a=b"}, ["'a=b'"]),
        ({"größe": "x"}, ["größe", "a-z"]),
        ({"team": "vision\nadmin"}, ["vision\\nadmin"]),
        ({"team": "x\u0000y"}, ["'team'"]),
        ({"k" * 64: "x"}, ["64", "63"]),
        ({"team": "v" * 100_000}, ["100000", "63"]),
        ({"team": 7}, ["'team'", "not 7"]),
        ({"team": {"a": "b"}}, ["'team'"]),
        (["team=vision"], ["object of labels"]),
        ("team=vision", ["object of labels"]),
    ],
)
def test_what_is_no_label_is_refused(server: Server, labels: Any, words: list[str]) -> None:
    """In one sentence with the field, whether the job is new or known; and nothing changes."""
    path = create(server, labels={"keep": "me"})
    for method, target, body in (
        ("POST", "/api/v1/jobs", {"job": SETTINGS, "labels": labels}),
        ("PUT", path + "/labels", {"labels": labels}),
    ):
        status, answer = server.call(method, target, body)
        assert status == 422, answer
        assert answer["error"]["field"].startswith("labels")
        for word in words:
            assert word in answer["error"]["message"], answer
        assert len(answer["error"]["message"]) < 400
    assert len(server.call("GET", "/api/v1/jobs")[1]["jobs"]) == 1
    assert labels_of(server, path) == {"keep": "me"}


def test_bodies_that_are_odd_are_refused(server: Server) -> None:
    """One label twice, none at all, a job that is not there, an old revision."""
    path = create(server, labels={"keep": "me"})
    request = urllib.request.Request(
        server.url + path + "/labels", b'{"labels": {"a": "1", "a": "2"}}', method="PUT"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 422
    assert b"twice" in refused.value.read()
    assert server.call("PUT", path + "/labels", {})[0] == 422
    assert server.call("PUT", path + "/labels", {"label": {"a": "1"}})[0] == 422
    assert server.call("PUT", path + "/labels", {"labels": None})[0] == 422
    assert server.call("PUT", path + "/labels", {"labels": {}})[0] == 200
    assert put(server, "/api/v1/jobs/j-0000000000000000", {"a": "1"})[0] == 404
    # 16 are there: one more must take the place of another.
    full = {f"k{n}": "v" for n in range(15)}
    assert put(server, path, full)[0] == 200
    assert put(server, path, {"more": "v"})[0] == 422
    assert put(server, path, {"more": "v", "k0": None})[0] == 200
    assert len(labels_of(server, path)) == 16


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["label", "a"], "labels are missing"),
        (["label", "a", "team"], "team=vision"),
        (["label", "a", "team=x", "team=y"], "'team' is given twice"),
        (["label", "a", "team=x", "team-"], "'team' is given twice"),
        (["label", "a", "team-", "team=x"], "'team' is given twice"),
        (["label", "a", "te am-"], "'te am'"),
        (["label", "a", "=x"], "no name"),
        (["label", "a", "team="], "no value"),
        (["label", "a", "team=sé"], "a-z"),
        (["create", "none.toml", "--label", "team"], "--label"),
        (["create", "none.toml", "--label", "a=1", "--label", "a=2"], "given twice"),
        (["list", "--label", "team:vision"], "team=vision"),
    ],
)
def test_commands_refuse_what_is_no_label(server: Server, words: list[str], sentence: str) -> None:
    """Before the server or a file is asked."""
    path = create(server, name="a", labels={"keep": "me"})
    assert sentence in perseus(server, "job", *words, code=2)
    assert labels_of(server, path) == {"keep": "me"}


def test_a_job_that_is_known_keeps_its_labels(server: Server, tmp_path: Path) -> None:
    """Whoever asks for it with others is told how to change them."""
    (tmp_path / "job.toml").write_text(JOB_FILE)
    words = ("job", "create", str(tmp_path / "job.toml"), "--client-key", "k")
    perseus(server, *words, "--label", "team=vision")
    again = perseus(server, *words, "--label", "team=language")
    assert "perseus job label j-" in again
    assert "team=language\n" in again
    assert "perseus job label" not in perseus(server, *words, "--label", "team=vision")
    assert "perseus job label" not in perseus(server, *words)
    (job,) = server.call("GET", "/api/v1/jobs")[1]["jobs"]
    assert job["labels"] == {"team": "vision"}


def test_two_at_once_both_count(server: Server) -> None:
    """Each sets another label of the same job."""
    path = create(server)

    def label(name: str) -> None:
        assert put(server, path, {name: "v"})[0] == 200

    threads = [threading.Thread(target=label, args=(f"k{n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert labels_of(server, path) == {f"k{n}": "v" for n in range(12)}


def test_only_operators_change_labels(tmp_path: Path) -> None:
    """A token that reads or trains may not; one that trains may create with labels."""
    tokens = {role: f"0123456789abcdef-{role}" for role in ("read", "train", "operate")}
    file = tmp_path / "tokens"
    file.write_text("".join(f"{role} {token} {role}\n" for role, token in tokens.items()))
    file.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(file))

    def call(role: str, method: str, path: str, body: object) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {tokens[role]}"}
        data = json.dumps(body).encode()
        request = urllib.request.Request(server.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    body = {"job": SETTINGS, "profile_csv": PROFILE, "labels": VISION}
    assert call("read", "POST", "/api/v1/jobs", body)[0] == 403
    status, job = call("train", "POST", "/api/v1/jobs", body)
    assert (status, job["labels"]) == (201, VISION)
    target = f"/api/v1/jobs/{job['id']}/labels"
    for role in ("read", "train"):
        assert call(role, "PUT", target, {"labels": {"team": None}})[0] == 403
    assert call("operate", "PUT", target, {"labels": {"team": None}})[1]["labels"] == {
        "project": "x"
    }
    assert server.stop() == 0


def test_energy_is_accounted_by_label(server: Server, tmp_path: Path) -> None:
    """By the labels that a job has now, or had when it was deleted; jobs without one have a row."""
    late = create(server, name="late")
    train(server, late, 1)
    assert put(server, late, {"team": "vision"})[0] == 200  # After it used its energy.
    other = create(server, name="other", labels={"team": "language", "project": "x"})
    train(server, other, 2)
    bare = create(server, name="bare", labels={"project": "x"})
    train(server, bare, 4)

    def rows(by: str, more: str = "") -> dict[str | None, float]:
        status, answer = server.call("GET", f"/api/v1/energy?by={by}{more}")
        assert status == 200, answer
        sums: dict[str | None, float] = {}
        for row in answer["rows"]:  # Two of a label by day, where midnight came meanwhile.
            of_label = sums.get(row["label"], 0)
            sums[row["label"]] = of_label + row["energy_j"] / JOULES / RANKS
        return sums

    assert rows("label:team") == {None: 4, "language": 2, "vision": 1}
    assert rows("label:team,day") == {None: 4, "language": 2, "vision": 1}
    assert rows("label:team", "&label=project:x") == {None: 4, "language": 2}
    assert rows("label:nobody") == {None: 7}
    # A job that is gone keeps those that it had last.
    assert put(server, other, {"team": "audio"})[0] == 200
    assert server.call("DELETE", other)[0] == 204
    assert rows("label:team") == {None: 4, "audio": 2, "vision": 1}
    job = server.call("GET", "/api/v1/energy?label=team:audio")[1]["rows"][0]
    assert job["labels"] == {"team": "audio", "project": "x"}
    for by in ("label:", "label:a b", "team", "user,name", "day,day", "label:team,user", ",day"):
        status, answer = server.call("GET", f"/api/v1/energy?by={by.replace(' ', '%20')}")
        assert status == 422, by
        assert answer["error"]["field"] == "by"

    text = perseus(server, "report", "energy", "--by", "label:team", "--label", "project=x")
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert lines["label:team"][0] == "label:team"
    assert "vision" not in lines
    assert "16.000" in lines["(none)"]
    assert "24.000" in lines["total"]
    file = tmp_path / "energy.csv"
    perseus(server, "report", "energy", "--by", "label:team,day", "--csv", str(file))
    table = list(csv.DictReader(file.open()))
    assert all(row["day"] for row in table)
    assert table == sorted(table, key=lambda row: (row["day"], row["label:team"]))
    for team, kwh in (("(none)", 16), ("audio", 8), ("vision", 4)):
        own = [float(row["energy_kwh"]) for row in table if row["label:team"] == team]
        assert sum(own) == kwh
    perseus(server, "report", "energy", "--csv", str(file))
    assert {row["name"]: row["labels"] for row in csv.DictReader(file.open())} == {
        "late": "team=vision",
        "other": "project=x, team=audio",
        "bare": "project=x",
    }
    assert "label:NAME" in perseus(server, "report", "energy", "--by", "team", code=2)
    assert "label:NAME" in perseus(server, "report", "energy", "--by", "label:", code=2)
    assert "'a b'" in perseus(server, "report", "energy", "--by", "label:a b", code=2)


def test_an_account_says_for_how_long_nobody_heard(tmp_path: Path) -> None:
    """A server that was down: the share of the time that its figures cover is below one."""
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    path = create(server, name="a")
    register_all(server, path)
    await_running(server, path)

    def report(first: int) -> None:
        """An iteration that takes a quarter of a second."""
        time.sleep(0.25)
        body = {
            "reports": [{"rank": rank, "iteration": first, "time_s": 0.25} for rank in range(RANKS)]
        }
        assert server.call("POST", path + "/iterations", body)[0] == 202

    for n in range(4):
        report(n)
    assert server.stop() == 0
    began = time.monotonic()
    time.sleep(3)  # Iterations go on, of which nobody hears.
    server = Server(BINARY, store)
    down = time.monotonic() - began
    for n in range(20, 24):
        report(n)
    time.sleep(2.5)
    total = server.call("GET", "/api/v1/energy")[1]["total"]
    # Two seconds of iterations, and at least three in which the server was down.
    assert total["iterations"] == 8
    assert 0 < total["covered_share"] <= 2 / (2 + 3)
    assert down >= 3
    for by in ("job", "day", "name,day"):
        rows = server.call("GET", f"/api/v1/energy?by={by}")[1]["rows"]
        assert sum(row["iterations"] for row in rows) == 8
        if len(rows) == 1:  # Midnight did not come meanwhile.
            assert rows[0]["covered_share"] == pytest.approx(total["covered_share"])
    text = perseus(server, "report", "energy")
    assert "covered" in text
    assert f"{100 * total['covered_share']:.0f} %" in text
    assert server.stop() == 0
