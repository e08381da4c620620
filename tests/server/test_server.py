# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The real server: kills, its API over HTTP, its OpenAPI document, Zeus' wire.

200 kills instead of ten: python tests/server/drill.py --perseus BINARY.
"""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import drill
import postgres
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

BINARY = Path(os.environ.get("PERSEUS_BINARY", "build/release/src/cli/perseus"))
ZEUS_PLAN = "[[('forward', 1410), ('backward', 1200)], [('forward', 1000), ('backward', 1410)]]\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server with a plan for Zeus' clients; it must end as asked."""
    (tmp_path / "plan.py").write_text(ZEUS_PLAN)
    started = Server(BINARY, tmp_path / "jobs.db", "--zeus-plan", str(tmp_path / "plan.py"))
    yield started
    assert started.stop() == 0, started.log()


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


def test_nothing_acknowledged_is_lost() -> None:
    """Ten kills at random moments."""
    done = drill.run(BINARY, kills=10, seed=3)
    assert done.acknowledged > 20


@pytest.mark.parametrize(
    ("servers", "pooled", "kills"), [(1, False, 4), (2, False, 6), (2, True, 4)]
)
def test_nothing_is_lost_of_what_servers_on_postgresql_acknowledged(
    servers: int, pooled: bool, kills: int
) -> None:
    """Servers, and the PostgreSQL under them, are killed while work goes on."""
    if missing := postgres.why_missing(pooler=pooled):
        pytest.skip(missing)
    done = drill.run_cluster(BINARY, kills, seed=5, servers=servers, pooled=pooled)
    assert done.acknowledged > 10


def test_a_server_stops_though_it_computes(tmp_path: Path) -> None:
    """SIGTERM waits for no walk of a frontier."""
    server = Server(BINARY, tmp_path / "jobs.db")
    settings = SETTINGS | {"microbatches": 700, "stages": 8, "data_parallel": 1, "coarse_watts": 0}
    rows = [line.split(",") for line in PROFILE.splitlines()[1:] if line.startswith("0")]
    profile = PROFILE.splitlines()[0] + "\n"
    for stage in range(8):
        for _, name, clock, seconds, joules in rows:
            profile += f"{stage},{name},{clock},{float(seconds) * (1 + stage / 37)},{joules}\n"
    body = {"job": settings, "profile_csv": profile}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    time.sleep(1)
    assert not server.call("GET", f"/api/v1/jobs/{job['id']}")[1]["refined"]
    start = time.monotonic()
    assert server.stop() == 0, server.log()
    assert time.monotonic() - start < 30


def test_openapi_is_valid(server: Server) -> None:
    """The document is OpenAPI 3.1."""
    validator = pytest.importorskip("openapi_spec_validator")
    status, document = server.call("GET", "/openapi.json")
    assert status == 200
    validator.validate(document)
    assert document["openapi"].startswith("3.1")
    version = subprocess.run([str(BINARY), "--version"], capture_output=True, text=True, check=True)
    assert document["info"]["version"] in version.stdout


def test_the_reference_page_is_what_the_list_of_routes_says() -> None:
    """docs/reference/api.md is made, not written."""
    document = subprocess.run([str(BINARY), "serve", "--openapi"], capture_output=True, check=True)
    script = subprocess.run(
        [sys.executable, "scripts/api-reference"],
        input=document.stdout,
        capture_output=True,
        check=True,
    )
    page = Path("docs/reference/api.md").read_text()
    assert page == script.stdout.decode(), (
        "write docs/reference/api.md anew, with scripts/api-reference"
    )


def test_every_described_route_answers(server: Server) -> None:
    """No described route is unknown, and errors have the one form."""
    _, document = server.call("GET", "/openapi.json")
    for pattern, item in document["paths"].items():
        for method in item:
            if method == "parameters" or pattern.endswith("/events"):
                continue
            path = pattern.replace("{id}", "j-none").replace("{straggler_id}", "1")
            if item[method]["tags"] != ["server"]:
                status, answer = server.call(method.upper(), path + "?nonsense=1")
                assert status == 422, (method, pattern, answer)
                assert "nonsense" in answer["error"]["message"]
            status, answer = server.call(method.upper(), path, None if method == "get" else {})
            assert status != 405, (method, pattern)
            if status >= 400:
                assert set(answer["error"]) <= {"code", "message", "field"}, answer
                assert "no such path" not in answer["error"]["message"], (method, pattern)
            assert str(status) in item[method]["responses"], (method, pattern, status, answer)


def test_notes_of_a_job(server: Server) -> None:
    """A wrong unit is said with the job as soon as it is there, and with its plans."""
    rows = [row.split(",") for row in PROFILE.split()]
    slow = [[*row[:3], str(1000 * float(row[3])), *row[4:]] for row in rows[1:]]
    faulty = "\n".join(map(",".join, [rows[0], *slow])) + "\n"
    status, job = server.call("POST", "/api/v1/jobs", {"job": SETTINGS, "profile_csv": faulty})
    assert status == 201
    notes = [note for note in job["notes"] if "in milliseconds" in note["text"]]
    assert [(n["severity"], n["source"], n["line"]) for n in notes] == [
        ("implausible", "profile_csv", 2)
    ]
    path = f"/api/v1/jobs/{job['id']}"
    while server.call("GET", path)[1]["plan"] is None:
        time.sleep(0.05)
    assert server.call("GET", path)[1]["notes"] == job["notes"]
    plan = server.call("GET", path + "/plan.json")[1]
    assert plan["notes"] == job["notes"]
    strict = {"job": SETTINGS | {"strict": True}, "profile_csv": faulty}
    status, answer = server.call("POST", "/api/v1/jobs", strict)
    assert (status, "in milliseconds" in answer["error"]["message"]) == (422, True)
    for settings, says in (
        ({"blocking_power": 0}, "draws 0 W"),
        ({"comm_delay": 1e6}, "communication delay"),
        ({"time_margin": "100%"}, "time margin of 100 %"),
    ):
        body = {"job": SETTINGS | settings, "profile_csv": PROFILE}
        notes = server.call("POST", "/api/v1/jobs", body)[1]["notes"]
        assert [n["severity"] for n in notes if says in n["text"]] == ["implausible"], notes


def test_a_client_key_means_one_description(server: Server) -> None:
    """The same job again is the same; another one is refused."""
    path = create(server, client_key="one")
    known = {"client_key": "one", "job": SETTINGS, "profile_csv": PROFILE}
    # Keys in another order, another spelling of a number, and no profile are the same.
    same = dict(reversed(SETTINGS.items())) | {"microbatches": 2.0}
    for body in (known, known | {"job": same}, {"client_key": "one", "job": SETTINGS}):
        status, job = server.call("POST", "/api/v1/jobs", body)
        assert (status, path.endswith(job.get("id", "?"))) == (200, True), job
    for change, what in (
        ({"job": SETTINGS | {"microbatches": 7}}, "'microbatches' differs"),
        ({"job": SETTINGS | {"at": "1.1x"}}, "'at' differs"),
        ({"job": SETTINGS | {"model": "m"}}, "'model' differs"),
        ({"profile_csv": PROFILE + "\n"}, "'profile_csv' differs"),
    ):
        status, answer = server.call("POST", "/api/v1/jobs", known | change)
        assert (status, answer["error"]["field"]) == (409, "client_key")
        assert what in answer["error"]["message"]
    for bare in (1.05, "1.05"):
        status, answer = server.call("PUT", path + "/point", {"at": bare})
        assert (status, "write 1.05x" in answer["error"]["message"]) == (422, True)
    assert server.call("PUT", path + "/point", {"at": "1.05x"})[0] == 200


def test_a_job_from_beginning_to_end(server: Server) -> None:
    """Life of a job as docs/explanation/server.md tells it."""
    path = create(server, client_key="k", name="small")
    again = server.call("POST", "/api/v1/jobs", {"client_key": "k", "job": SETTINGS})
    assert again[0] == 200
    assert path.endswith(again[1]["id"])
    register_all(server, path)
    status, now = server.call("GET", path + "/plan?rank=3&after=-1")
    assert (status, now["reason"]) in ((200, "no_plan"), (200, "target"))
    status, plan = server.call("GET", path + "/plan?rank=3&wait=30")
    assert status == 200
    assert (plan["rank"], plan["pipeline"], plan["pp_rank"]) == (3, 1, 1)
    assert [c[0] for c in plan["computations"]] == ["F", "B", "F", "B"]
    assert all(c[1] == 1 and c[3] in (1000, 1200, 1400) for c in plan["computations"])
    while not server.call("GET", path)[1]["refined"]:
        time.sleep(0.05)
    version = server.call("GET", path + "/plan?rank=0")[1]["version"]
    assert server.call("GET", f"{path}/plan?rank=0&after={version}&wait=0.1") == (204, None)

    # A waiting rank hears of a straggler.
    heard: list[Any] = []
    url = f"{path}/plan?rank=0&after={version}&wait=30"
    waiter = threading.Thread(target=lambda: heard.append(server.call("GET", url)))
    waiter.start()
    time.sleep(0.2)
    status, answer = server.call("POST", path + "/stragglers", {"node": "n1", "factor": 1.3})
    assert status == 201
    waiter.join(30)
    assert heard[0][0] == 200
    assert heard[0][1]["version"] == answer["plan_version"] == version + 1
    assert heard[0][1]["reason"] == "straggler"
    _, plans = server.call("GET", path + "/plans?ranks=0-3")
    assert [p["ranks"] for p in plans["plans"]] == [[0], [1], [2], [3]]
    times = [p["requested_time_s"] for p in plans["plans"]]
    assert times[0] == times[1] > times[2] == times[3]
    assert server.call("DELETE", f"{path}/stragglers/{answer['straggler_id']}")[0] == 204

    assert server.call("PUT", path + "/point", {"at": "economic"})[1]["at"] == "economic"
    assert server.call("GET", path + "/frontier")[1].startswith("iteration_time_s,energy_j")
    assert server.call("GET", path + "/plan.json?pipeline=1")[1]["stages"] == 2
    early = {"rank": 0, "state": "following", "calls": 3, "late": 1, "error": "", "new": None}
    assert server.call("POST", path + "/iterations", {"clients": [early]})[0] == 202
    assert server.call("GET", path)[1]["clients"]["counts"] == {"calls": 3.0, "late": 1.0}
    report = {"rank": 0, "iteration": 1, "plan_version": 1, "time_s": 5.5, "energy_j": None}
    assert server.call("POST", path + "/iterations", {"reports": [report]})[0] == 202
    assert server.call("POST", path + "/finish")[1]["state"] == "finished"
    assert server.call("GET", path + "/plan?rank=0")[1]["reason"] == "no_plan"
    metrics = server.call("GET", "/metrics")[1]
    assert 'perseus_jobs{state="finished"} 1' in metrics
    assert server.call("DELETE", path)[0] == 204
    assert server.call("GET", path)[0] == 404


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


def test_a_profile_outlives_its_job_and_is_measured_again(server: Server) -> None:
    """Measured, kept, taken over, shown by the command line, replaced."""
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"} | {"model": "gpt"}

    def create_unmeasured(key: str) -> str:
        status, job = server.call("POST", "/api/v1/jobs", {"client_key": key, "job": settings})
        assert status == 201, job
        path = f"/api/v1/jobs/{job['id']}"
        for rank in range(RANKS):
            body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
            gpu = {"gpu": {"name": "A100"}, "clocks_mhz": [1000, 1200, 1400]}
            assert server.call("POST", path + "/ranks", body | gpu)[0] == 200
        return path

    path = create_unmeasured("first")
    for rank in range(RANKS):
        sweep(server, path, rank, time_std=0.01, work=2048, temperature_c=55)
    first = await_running(server, path)
    assert first["profile_source"] == "measured"
    other = create_unmeasured("second")
    second = await_running(server, other)
    assert second["profile_source"].startswith(f"reused from {first['id']} (p-")

    assert server.call("POST", other + "/reprofile")[1]["state"] == "profiling"
    _, plan = server.call("GET", other + "/plan?rank=0&after=-1")
    assert plan["profile_wanted"]
    assert plan["computations"]
    assert server.call("GET", other + "/measurements?rank=0")[1] == {"rows": [], "done": False}
    for rank in range(RANKS):
        sweep(server, other, rank, slow=1.5)
    assert await_running(server, other)["profile_source"] == "measured"
    _, answer = server.call("GET", other + "/measurements?rank=1")
    assert answer["done"]
    assert {"stage": 1, "instruction": "forward", "frequency": 1400} in answer["rows"]

    def perseus(*words: str) -> str:
        command = [str(BINARY), "profile", *words, "--server", server.url]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    profiles = json.loads(perseus("list", "--json"))["profiles"]
    assert [p["model"] for p in profiles] == ["gpt", "gpt"]
    new, old = (p["id"] for p in profiles)
    assert "A100" in perseus("show", old)
    assert "stage,instruction,frequency,time,energy,time_std" in perseus("export", old)
    compared = json.loads(perseus("compare", old, new, "--json"))
    assert {round(kind["time_ratio"]["median"], 9) for kind in compared["kinds"]} == {1.5}
    assert perseus("delete", old) == f"{old} is deleted.\n"
    assert server.call("GET", f"/api/v1/profiles/{old}")[0] == 404


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"time_std": -1}, "rows[0].time_std"),
        ({"energy_std": 1e300}, "rows[0].energy_std"),
        ({"temperature_c": 1e4}, "rows[0].temperature_c"),
        ({"throttled": 1}, "rows[0].throttled"),
        ({"work": -2}, "rows[0].work"),
        ({"time_per_work": "x"}, "rows[0].time_per_work"),
        ({"samples": 0}, "rows[0].samples"),
    ],
)
def test_bad_measurements_are_refused(server: Server, row: dict[str, Any], field: str) -> None:
    """Each field gets a sentence that names it."""
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"}
    _, job = server.call("POST", "/api/v1/jobs", {"job": settings})
    path = f"/api/v1/jobs/{job['id']}"
    register_all(server, path)
    good = {"stage": 0, "instruction": "forward", "frequency": 1400, "time": 1, "energy": 1}
    body = {"rank": 0, "rows": [good | row]}
    status, answer = server.call("POST", path + "/measurements", body)
    assert status == 422, answer
    assert answer["error"]["field"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"notes": ["x" * 301]}, "notes[0]"),
        ({"notes": ["x"] * 33}, "notes"),
        ({"sweep": {"iterations": -1}}, "sweep.iterations"),
        ({"blocking_power_std_w": -1}, "blocking_power_std_w"),
        ({"counter_period_s": -1}, "counter_period_s"),
    ],
)
def test_bad_sweeps_are_refused(server: Server, body: dict[str, Any], field: str) -> None:
    """The same of what a rank says of its sweep as a whole."""
    settings = {k: v for k, v in SETTINGS.items() if k != "blocking_power"}
    _, job = server.call("POST", "/api/v1/jobs", {"job": settings})
    path = f"/api/v1/jobs/{job['id']}"
    register_all(server, path)
    status, answer = server.call("POST", path + "/measurements", {"rank": 0} | body)
    assert status == 422, answer
    assert answer["error"]["field"] == field


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, ""),
        ([], 422, ""),
        ({"job": SETTINGS, "profil_csv": ""}, 422, ""),
        ({"job": {**SETTINGS, "profile": "/etc/passwd"}}, 422, "job.profile"),
        ({"job": SETTINGS, "profile_csv": "a,b\n"}, 422, "profile_csv"),
        ({"job": {**SETTINGS, "stages": 60000, "microbatches": 900000}}, 413, "job.microbatches"),
    ],
)
def test_jobs_that_cannot_be(server: Server, body: object, status: int, field: str) -> None:
    """Each gets a sentence, and where it is about."""
    answered, answer = server.call("POST", "/api/v1/jobs", body)
    assert answered == status, answer
    assert answer["error"].get("field", "") == field
    assert answer["error"]["message"]


def check(server: Server, schema: str, value: object) -> None:
    """Check an answer against its schema."""
    jsonschema = pytest.importorskip("jsonschema")
    document = server.call("GET", "/openapi.json")[1]
    whole = {"$ref": f"#/components/schemas/{schema}", "components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def test_answers_are_as_their_schemas_say(server: Server) -> None:
    """Of a job that runs, with a straggler, reports and a profile."""
    path = create(server, client_key="k")
    register_all(server, path)
    await_running(server, path)
    status, straggler = server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})
    assert status == 201
    check(server, "StragglerSet", straggler)
    report = {"rank": 0, "iteration": 1, "plan_version": 1, "time_s": 5.5}
    client = {"rank": 1, "error": "no agent", "calls": 1}
    body = {"reports": [report], "clients": [client]}
    assert server.call("POST", path + "/iterations", body)[0] == 202
    check(server, "NewJob", {"job": SETTINGS, "profile_csv": PROFILE, "client_key": "k"})
    for target, schema in (
        ("", "Job"),
        ("/ranks", "RankList"),
        ("/stragglers", "StragglerList"),
        ("/plan?rank=0", "RankPlan"),
        ("/plans?ranks=0-3", "NodePlans"),
        ("/detection", "Detection"),
        ("/savings", "Savings"),
        ("/measurements?rank=0", "Reported"),
    ):
        status, answer = server.call("GET", path + target)
        assert status == 200, answer
        check(server, schema, answer)
    check(server, "JobList", server.call("GET", "/api/v1/jobs")[1])
    check(server, "ProfileList", server.call("GET", "/api/v1/profiles")[1])
    check(server, "Error", server.call("GET", "/api/v1/jobs/j-none")[1])


def test_jobs_are_listed_page_by_page(server: Server) -> None:
    """Filters, and a page that ends at a job that is deleted."""
    made = [create(server, client_key=f"k{i}", name=f"n{i % 2}")[13:] for i in range(5)]

    def ids(query: str) -> tuple[list[str], Any]:
        status, answer = server.call("GET", f"/api/v1/jobs?{query}")
        assert status == 200, answer
        return [job["id"] for job in answer["jobs"]], answer["next"]

    assert ids("") == (made, None)
    assert ids("client_key=k3") == ([made[3]], None)
    assert ids("name=n1") == ([made[1], made[3]], None)
    assert ids("state=finished") == ([], None)
    assert server.call("POST", f"/api/v1/jobs/{made[2]}/finish")[0] == 200
    assert ids("state=finished") == ([made[2]], None)
    first, after = ids("limit=2")
    assert first == made[:2]
    assert server.call("DELETE", f"/api/v1/jobs/{made[1]}")[0] == 204
    second, after = ids(f"limit=2&after={after}")
    assert second == made[2:4]
    assert ids(f"limit=2&after={after}") == ([made[4]], None)
    assert server.call("GET", "/api/v1/jobs?after=x")[1]["error"]["field"] == "after"


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


def test_a_change_may_depend_on_the_revision(server: Server) -> None:
    """ETag and If-Match."""
    path = create(server)
    register_all(server, path)
    await_running(server, path)
    _, headers, job = ask(server, "GET", path)
    tag = headers["ETag"]
    assert tag == f'"{job["revision"]}"'
    straggler = {"pipeline": 1, "factor": 1.3}
    assert server.call("POST", path + "/stragglers", straggler)[0] == 201
    # Whoever looked before that does not undo it unknowingly.
    status, headers, answer = ask(server, "DELETE", path + "/stragglers", If_Match=tag)
    assert (status, answer["error"]["code"]) == (412, "changed")
    assert len(server.call("GET", path + "/stragglers")[1]["stragglers"]) == 1
    now = headers["ETag"]
    assert now != tag
    assert ask(server, "DELETE", path + "/stragglers", If_Match=now)[0] == 204
    assert ask(server, "POST", path + "/finish", If_Match="17")[0] == 422
    assert ask(server, "POST", path + "/iterations", If_Match=now)[0] == 422
    status, headers, answer = ask(server, "POST", path + "/finish", If_Match="*")
    assert status == 200
    assert headers["ETag"] == f'"{answer["revision"]}"'


def test_a_token_may_be_bound_to_jobs(tmp_path: Path) -> None:
    """It sees, changes and creates only its jobs."""
    boss, alice, bob = ("0" * 16, "a" * 16, "b" * 16)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operate {boss} boss\ntrain {alice} alice key=alice-\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))

    def call(token: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(server.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def made(token: str, key: str) -> tuple[int, Any]:
        body = {"client_key": key, "job": SETTINGS, "profile_csv": PROFILE}
        return call(token, "POST", "/api/v1/jobs", body)

    try:
        status, other = made(boss, "bob-1")
        assert status == 201
        for key in ("bob-1", "bob-2", ""):
            status, answer = made(alice, key)
            assert (status, answer["error"]["field"]) == (422, "client_key")
        status, own = made(alice, "alice-1")
        assert status == 201
        theirs, mine = (f"/api/v1/jobs/{job['id']}" for job in (other, own))
        rows = {"rank": 0, "rows": []}
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/finish", {}),
            ("POST", "/measurements", rows),
            ("POST", "/iterations", {}),
            ("POST", "/ranks", {"rank": 0, "dp_rank": 0, "pp_rank": 0}),
            ("POST", "/stragglers", {"pipeline": 0, "factor": 2}),
            ("DELETE", "/stragglers", None),
            ("GET", "/plan?rank=0&after=-1", None),
            ("GET", "/events", None),
        ):
            assert call(alice, method, theirs + path, body)[0] == 404, path
        status, listed = call(alice, "GET", "/api/v1/jobs")
        assert [job["id"] for job in listed["jobs"]] == [own["id"]]
        assert call(alice, "GET", "/metrics")[0] == 403
        assert len(call(boss, "GET", "/api/v1/jobs")[1]["jobs"]) == 2
        assert call(alice, "POST", mine + "/finish", {})[0] == 200
        # A token of one job, by its id: read again without a restart.
        with tokens.open("a") as file:
            file.write(f"train {bob} bob job={other['id']}\n")
        os.kill(server.pid, signal.SIGHUP)
        end = time.monotonic() + 30
        while call(bob, "GET", theirs)[0] != 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert made(bob, "bob-1")[0] == 200
        assert made(bob, "bob-2")[0] == 422
        assert call(bob, "GET", mine)[0] == 404
        assert call(bob, "POST", theirs + "/finish", {})[0] == 200
    finally:
        assert server.stop() == 0, server.log()


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


def test_streams_go_on_where_they_were(server: Server) -> None:
    """Numbers of events, Last-Event-ID, and a reset where it is not known."""
    path = create(server)
    stream = Stream(server, path + "/events")
    state = stream.next()
    assert state["event"] == "state"
    assert json.loads(state["data"])["revision"] > 0
    register_all(server, path)
    await_running(server, path)
    seen = [state]
    while seen[-1]["event"] != "plan":
        seen.append(stream.next())
    stream.close()
    # Missed meanwhile:
    ids = []
    for _ in range(2):
        body = {"pipeline": 1, "factor": 1.3}
        ids.append(server.call("POST", path + "/stragglers", body)[1]["straggler_id"])
    epoch, number = seen[-1]["id"].split("-")
    stream = Stream(server, path + "/events", seen[-1]["id"])
    told: list[dict[str, str]] = []
    while len(told) < 2:
        event = stream.next()
        assert event["id"].split("-")[0] == epoch
        assert int(event["id"].split("-")[1]) > int(number)
        number = event["id"].split("-")[1]
        if event["event"] == "straggler":
            told.append(json.loads(event["data"])["straggler_id"])
    assert told == ids
    stream.close()
    # Of another process.
    stream = Stream(server, "/api/v1/events", "00000000-7")
    assert stream.next()["event"] == "reset"
    state = stream.next()
    assert state["event"] == "state"
    assert json.loads(state["data"])["stragglers"] == 2
    check(server, "JobSummary", json.loads(state["data"]))
    stream.close()
    stream = Stream(server, f"/api/v1/events?after={state['id']}")
    assert server.call("POST", path + "/finish")[0] == 200
    assert stream.next()["event"] in ("state", "plan")
    stream.close()


def test_events_tell_what_happens(server: Server) -> None:
    """A stream begins with the state, and has each new version of the plan."""
    path = create(server)
    seen: list[str] = []
    with urllib.request.urlopen(server.url + path + "/events", timeout=60) as stream:
        register_all(server, path)
        while "event: plan" not in seen or 'running"' not in "".join(seen):
            seen.append(stream.readline().decode().strip())
    assert "event: state" in seen[:2]


def job_command(server: Server, *words: str, fails: bool = False) -> str:
    """Run `perseus job`; return what it prints."""
    command = [str(BINARY), "job", *words, "--server", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == (2 if fails else 0), done.stderr
    return done.stderr if fails else done.stdout


def test_deletion_asks_on_a_terminal(server: Server) -> None:
    """Only there, and not with --yes."""
    made = server.call("POST", "/api/v1/jobs", {"name": "llama", "job": SETTINGS})[1]

    def delete(answer: str, *words: str) -> str:
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode())
        done = subprocess.run(
            [str(BINARY), "job", "delete", made["id"], *words, "--server", server.url],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            timeout=60,
        )
        os.close(theirs)
        os.close(ours)
        assert done.returncode == 0
        return done.stdout

    assert delete("\n") == "Nothing is deleted.\n"
    assert delete("n\n") == "Nothing is deleted.\n"
    assert server.call("GET", f"/api/v1/jobs/{made['id']}")[0] == 200
    assert "is deleted" in delete("", "--yes")
    made = server.call("POST", "/api/v1/jobs", {"name": "llama", "job": SETTINGS})[1]
    assert "is deleted" in delete("y\n")


def test_a_watcher_learns_that_the_server_is_gone(tmp_path: Path) -> None:
    """A server that is stopped sends no end of its stream; one that is killed does."""
    server = Server(BINARY, tmp_path / "jobs.db")
    made = server.call(
        "POST", "/api/v1/jobs", {"name": "llama", "job": SETTINGS, "profile_csv": PROFILE}
    )[1]
    path = f"/api/v1/jobs/{made['id']}"
    watcher = subprocess.Popen(
        [str(BINARY), "job", "watch", "llama", "--server", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    assert watcher.stderr is not None
    points = itertools.count(1)

    def hears() -> None:
        """See a change; the first ones may come before it listens."""
        ended = threading.Event()

        def change() -> None:
            while not ended.wait(0.1):
                server.call("PUT", path + "/point", {"at": f"1.{next(points):04}x"})

        changing = threading.Thread(target=change)
        changing.start()
        assert watcher.stdout is not None
        line = watcher.stdout.readline()
        ended.set()
        changing.join()
        assert made["id"] in line or "llama" in line

    try:
        hears()
        os.kill(server.pid, signal.SIGSTOP)
        assert "The server is gone since" in watcher.stderr.readline()
        os.kill(server.pid, signal.SIGCONT)
        assert "The server is back" in watcher.stderr.readline()
        hears()
        server.kill()
        assert "The server is gone since" in watcher.stderr.readline()
    finally:
        watcher.kill()
        watcher.wait()
        server.kill()


def test_the_job_command(server: Server, tmp_path: Path) -> None:
    """Each action, in the order of a job's life."""
    assert job_command(server, "list") == "The server has no jobs.\n"
    (tmp_path / "profile.csv").write_text(PROFILE)
    (tmp_path / "job.toml").write_text(
        'profile = "profile.csv"\nschedule = "1f1b"\nmicrobatches = 2\ndp = 2\n'
        'blocking_power = 20\nat = "1.1x"\ntime_margin = "1%"\n'
    )
    creation = ("create", str(tmp_path / "job.toml"), "--name", "llama", "--client-key", "key-7")
    text = job_command(server, *creation)
    assert "registering" in text
    assert "was there before" not in text
    assert "was there before" in job_command(server, *creation)
    [job] = server.call("GET", "/api/v1/jobs")[1]["jobs"]
    assert job["at"] == "1.1x"
    register_all(server, f"/api/v1/jobs/{job['id']}")
    server.call("GET", f"/api/v1/jobs/{job['id']}/plan?rank=0&wait=30")
    assert "llama" in job_command(server, "list")
    assert "1.2x" in job_command(server, "point", "llama", "1.2x")
    slow = ("--pipeline", "1", "--factor", "1.3", "--expires", "1h")
    assert "Straggler 1" in job_command(server, "straggler", "set", "llama", *slow)
    shown = job_command(server, "show", "key-7")
    assert "pipeline 1, x 1.3, until 20" in shown
    assert "against maximum clocks with the same straggler" in shown
    # By either name; meanwhile a better plan can come, but not without end.
    ways = ("key-7", job["id"])
    assert any(len({job_command(server, "show", way) for way in ways}) == 1 for _ in range(60))
    assert "Straggler 1" in job_command(server, "straggler", "clear", "llama", "1")
    assert "All" in job_command(server, "straggler", "clear", "llama")
    plan = tmp_path / "plan.json"
    job_command(server, "export", "llama", "-o", str(plan))
    assert json.loads(plan.read_text())["microbatches"] == 2
    assert job_command(server, "export", "llama", "--frontier").startswith("iteration_time_s")
    assert json.loads(job_command(server, "show", "llama", "--json"))["id"] == job["id"]
    assert "Nothing is compared" in job_command(server, "compare", "llama", "--off")
    assert "finished" in job_command(server, "finish", "llama")
    assert f"perseus job delete {job['id']}" in job_command(server, *creation)
    other = job_command(server, *creation[:-1], "key-8", "--json")
    ambiguous = job_command(server, "show", "llama", fails=True)
    assert "2 jobs are called 'llama'" in ambiguous
    assert job["id"] in ambiguous
    job_command(server, "delete", json.loads(other)["id"])
    assert "is deleted" in job_command(server, "delete", "llama")
    assert "there is no job" in job_command(server, "show", job["id"], fails=True)
    assert "no job has the name or client key" in job_command(server, "show", "llama", fails=True)
    assert "did you mean 'show'?" in job_command(server, "shwo", "x", fails=True)


def zeus_job(server: Server, **more: Any) -> tuple[int, Any]:
    """Register as Zeus' client does."""
    body = {"job_id": "", "pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2}
    return server.call("POST", "/register_job", {**body, "job_metadata": None, **more})


def zeus_rank(server: Server, job: str, rank: int) -> tuple[int, Any]:
    """Register a rank as Zeus' client does."""
    body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
    body_with_clocks = {**body, "available_frequencies": [1410, 1200, 1000]}
    return server.call("POST", f"/register_rank/{job}", body_with_clocks)


def test_detection_and_comparison_over_http(server: Server) -> None:
    """Settings are checked, kept, shown by the command line; plans carry the comparison."""
    path = create(server)
    register_all(server, path)
    while not server.call("GET", path)[1]["refined"]:
        time.sleep(0.05)
    status, settings = server.call("PUT", path + "/detection", {"mode": "act", "threshold": 0.1})
    assert (status, settings) == (200, {"mode": "act", "threshold": 0.1, "window": 16})
    assert server.call("PUT", path + "/detection", {"window": 8})[1]["threshold"] == 0.1
    for body, field in (
        ({"mode": "maybe"}, "mode"),
        ({"threshold": 0}, "threshold"),
        ({"window": 3}, "window"),
        ({"limit": 1}, ""),
    ):
        status, answer = server.call("PUT", path + "/detection", body)
        assert status == 422, answer
        assert answer["error"].get("field", "") == field
    assert server.call("PUT", path + "/comparison", {"every": 10, "iterations": 9})[0] == 422
    status, answer = server.call("PUT", path + "/comparison", {"every": 10, "iterations": 4})
    assert (status, answer) == (200, {"comparison": {"every": 10, "iterations": 4}})
    _, plan = server.call("GET", path + "/plan?rank=3")
    assert plan["comparison"] == {"every": 10, "iterations": 4}
    _, plans = server.call("GET", path + "/plans?ranks=0-3")
    assert all(each["comparison"]["every"] == 10 for each in plans["plans"])

    name = path.rsplit("/", 1)[1]
    assert "act: threshold 10.0 %, window 8" in job_command(server, "detection", name)
    assert "advisory" in job_command(
        server, "detection", name, "--mode", "advisory", "--threshold", "5%"
    )
    every = ("--every", "20", "--iterations", "5")
    assert "of every 20 iterations 5" in job_command(server, "compare", name, *every)
    shown = job_command(server, "show", name)
    assert "advisory: threshold 5.0 %" in shown
    assert "promised" in shown
    assert "comparison" not in job_command(server, "compare", name, "--off")
    assert "comparison" not in server.call("GET", path + "/plan?rank=3")[1]


def test_zeus_clients_get_the_given_plan(server: Server) -> None:
    """And what hangs Zeus' own server (notes on its job_manager.py) gets an answer."""
    status, job = zeus_job(server)
    assert status == 200
    assert isinstance(job, str)
    assert zeus_rank(server, job, 1) == (200, None)
    # A rank asks while the other never comes; asks twice; registers twice.
    expected = {"rank": 1, "frequencies": [["forward", 1000], ["backward", 1410]]}
    assert server.call("GET", f"/schedule/{job}?rank=1") == (200, expected)
    assert server.call("GET", f"/schedule/{job}?rank=1") == (200, expected)
    assert zeus_rank(server, job, 1) == (200, None)
    assert zeus_rank(server, job, 0) == (200, None)
    assert server.call("GET", f"/schedule/{job}?rank=0")[0] == 200
    result = {"rank": 0, "iter_time": [1.5, 1.6], "iter_energy": [9, 9]}
    assert server.call("POST", f"/result/{job}", result) == (200, None)
    # What cannot be.
    assert server.call("GET", f"/schedule/{job}?rank=-1")[0] == 422
    assert server.call("GET", f"/schedule/{job}?rank=7")[0] == 422
    assert server.call("GET", "/schedule/unknown?rank=0")[0] == 404
    assert zeus_job(server, world_size=3)[0] == 422
    assert zeus_job(server, pp_degree=0)[0] == 422


def test_zeus_jobs_without_a_plan(server: Server) -> None:
    """Another shape: maximum clocks where the order is known, else a sentence."""
    status, job = zeus_job(server, pp_degree=3, world_size=3)
    assert zeus_rank(server, job, 2) == (200, None)
    status, answer = server.call("GET", f"/schedule/{job}?rank=2")
    assert status == 409
    assert "--zeus-plan" in answer["error"]["message"]
    _, job = zeus_job(server, pp_degree=3, world_size=3, job_metadata="x,microbatches=2")
    zeus_rank(server, job, 2)
    status, answer = server.call("GET", f"/schedule/{job}?rank=2")
    steps = [["forward", 1410], ["backward", 1410]] * 2
    assert (status, answer) == (200, {"rank": 2, "frequencies": steps})


def test_a_straggler_that_no_plan_helps(server: Server) -> None:
    """Its pipeline runs at maximum clocks, and every route says so."""
    path = create(server, client_key="slow")
    register_all(server, path)
    while not server.call("GET", path)[1]["refined"]:
        time.sleep(0.05)
    # The lighter stage: what the plan slows there is critical now.
    slow = {"rank": 2, "factor": 2}
    version = server.call("POST", path + "/stragglers", slow)[1]["plan_version"]
    status, plan = server.call("GET", path + "/plan?rank=3&after=-1")
    assert (status, plan["version"], plan["reason"]) == (200, version, "no_plan"), plan
    assert "maximum clocks" in plan["sentence"]
    pipelines = server.call("GET", path)[1]["plan"]["pipelines"]
    assert pipelines["1"]["saving_percent"] == 0
    assert server.call("GET", path + "/plan.json?pipeline=0")[0] == 200
    status, answer = server.call("GET", path + "/plan.json?pipeline=1")
    assert status == 409
    assert "maximum clocks" in answer["error"]["message"]
    job = path.rsplit("/", 1)[1]
    status, schedule = server.call("GET", f"/schedule/{job}?rank=3")
    assert {step[1] for step in schedule["frequencies"]} == {1400}


def test_zeus_clients_of_a_job_without_plan_run_at_maximum_clocks(server: Server) -> None:
    """Refused, their training would end."""
    settings = {"schedule": "1f1b", "stages": 2, "microbatches": 2}
    body = {"job": settings, "client_key": "measuring"}
    job = server.call("POST", "/api/v1/jobs", body)[1]["id"]
    assert zeus_rank(server, job, 1) == (200, None)
    assert server.call("POST", f"/api/v1/jobs/{job}/finish")[0] == 200
    steps = [["forward", 1410], ["backward", 1410]] * 2
    expected = {"rank": 1, "frequencies": steps}
    assert server.call("GET", f"/schedule/{job}?rank=1") == (200, expected)


def test_zeus_clients_follow_a_job_of_ours(server: Server) -> None:
    """A job that was created with its profile, named by its client key."""
    path = create(server, client_key="llama")
    shape = {"pp_degree": 2, "dp_degree": 2, "world_size": 4}
    status, job = zeus_job(server, **shape, job_metadata="perseus:llama")
    assert status == 200
    assert path.endswith(job)
    assert zeus_rank(server, job, 1) == (200, None)
    status, schedule = server.call("GET", f"/schedule/{job}?rank=1")
    assert status == 200
    assert [step[0] for step in schedule["frequencies"]] == ["forward", "backward"] * 2
    assert zeus_job(server, job_metadata="perseus:llama")[0] == 409
    assert zeus_job(server, job_metadata="perseus:nobody")[0] == 404
