# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The API over HTTP, and its OpenAPI document."""

from __future__ import annotations

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
from api_calls import (
    BINARY,
    await_running,
    check,
    create,
    job_command,
    register_all,
    run_unbelievable,
)
from drill import PROFILE, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]


def test_openapi_is_valid(server: Server) -> None:
    """The document is OpenAPI 3.1."""
    validator = pytest.importorskip("openapi_spec_validator")
    status, document = server.call("GET", "/openapi.json")
    assert status == 200
    validator.validate(document)
    assert document["openapi"].startswith("3.1")
    version = subprocess.run([str(BINARY), "--version"], capture_output=True, text=True, check=True)
    assert document["info"]["version"] in version.stdout


def test_a_job_whose_ranks_are_gone_ends_and_the_run_begins_anew(tmp_path: Path) -> None:
    """As of a torchrun that was killed. A job that somebody finished stays finished."""
    server = Server(BINARY, tmp_path / "jobs.db", "--finish-silent", "1s")
    try:
        path = create(server, client_key="night")
        waiting = create(server, client_key="nobody came yet")
        register_all(server, path)
        end = time.monotonic() + 60
        while server.call("GET", path)[1]["state"] != "finished":
            assert time.monotonic() < end
            time.sleep(0.1)
        assert "--finish-silent" in server.call("GET", path)[1]["reason"]
        assert server.call("GET", waiting)[1]["state"] != "finished"
        # What cannot be made takes nobody's place.
        nonsense = {"job": {**SETTINGS, "schedule": "2f2b"}, "client_key": "night"}
        assert server.call("POST", "/api/v1/jobs", nonsense)[0] == 422
        assert server.call("GET", path)[1]["state"] == "finished"
        again = create(server, client_key="night")
        assert again != path
        assert server.call("GET", path)[0] == 404
        assert server.call("POST", again + "/finish", {})[0] == 200
        body = {"job": SETTINGS, "profile_csv": PROFILE, "client_key": "night"}
        status, job = server.call("POST", "/api/v1/jobs", body)
        assert (status, job["state"]) == (200, "finished")
    finally:
        assert server.stop() == 0


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

    assert server.call("PUT", path + "/point", {"at": "min-energy"})[1]["at"] == "min-energy"
    assert server.call("GET", path + "/frontier")[1].startswith("iteration_time_s,energy_j")
    assert server.call("GET", path + "/plan.json?pipeline=1")[1]["stages"] == 2
    assert "following" not in server.call("GET", path)[1]
    late = {"rank": 0, "state": "waiting", "error": "no agent"}
    assert server.call("POST", path + "/iterations", {"clients": [late]})[0] == 202
    # The others may follow, and report to another server.
    assert "following" not in server.call("GET", "/api/v1/jobs")[1]["jobs"][0]
    all_late = [{**late, "rank": rank} for rank in range(4)]
    assert server.call("POST", path + "/iterations", {"clients": all_late})[0] == 202
    assert server.call("GET", "/api/v1/jobs")[1]["jobs"][0]["following"] == 0
    early = {"rank": 0, "state": "following", "calls": 3, "late": 1, "error": "", "new": None}
    assert server.call("POST", path + "/iterations", {"clients": [early]})[0] == 202
    assert server.call("GET", path)[1]["clients"]["counts"] == {"calls": 3.0, "late": 1.0}
    assert server.call("GET", "/api/v1/jobs")[1]["jobs"][0]["following"] == 1
    report = {"rank": 0, "iteration": 1, "plan_version": 1, "time_s": 5.5, "energy_j": None}
    assert server.call("POST", path + "/iterations", {"reports": [report]})[0] == 202
    assert server.call("POST", path + "/finish")[1]["state"] == "finished"
    assert server.call("GET", path + "/plan?rank=0")[1]["reason"] == "no_plan"
    metrics = server.call("GET", "/metrics")[1]
    assert 'perseus_jobs{state="finished"} 1' in metrics
    assert server.call("DELETE", path)[0] == 204
    assert server.call("GET", path)[0] == 404


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


def test_notes_of_a_job(server: Server) -> None:
    """A wrong unit is refused; who accepts it has it as a note of the job and of its plans."""
    rows = [row.split(",") for row in PROFILE.split()]
    slow = [[*row[:3], str(1000 * float(row[3])), *row[4:]] for row in rows[1:]]
    faulty = "\n".join(map(",".join, [rows[0], *slow])) + "\n"
    body: dict[str, Any] = {"job": SETTINGS, "profile_csv": faulty}
    status, answer = server.call("POST", "/api/v1/jobs", body)
    assert status == 422
    for words in ("profile_csv:2:16", "in milliseconds", "set 'accept_implausible' to true"):
        assert words in answer["error"]["message"], answer
    assert server.call("GET", "/api/v1/jobs")[1]["jobs"] == []
    body["job"] = SETTINGS | {"accept_implausible": True}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201
    notes = [note for note in job["notes"] if "in milliseconds" in note["text"]]
    assert [(n["severity"], n["source"], n["line"]) for n in notes] == [("odd", "profile_csv", 2)]
    path = f"/api/v1/jobs/{job['id']}"
    while server.call("GET", path)[1]["plan"] is None:
        time.sleep(0.05)
    shown = server.call("GET", path)[1]
    assert shown["notes"] == job["notes"]
    assert shown["believable"]
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
        status, answer = server.call("POST", "/api/v1/jobs", body)
        assert (status, says in answer["error"]["message"]) == (422, True), answer


def test_one_slow_pipeline_is_one_however_often_it_is_reported(server: Server) -> None:
    """Where counts stand, they are of pipelines; each report has its own line."""
    path = create(server, name="slow")
    register_all(server, path)
    await_running(server, path)
    for rank in (2, 3):  # Both of pipeline 1.
        server.call("POST", path + "/stragglers", {"rank": rank, "factor": 1.3})

    def counts() -> set[int]:
        listed = server.call("GET", "/api/v1/jobs")[1]["jobs"][0]
        metrics = server.call("GET", "/metrics")[1]
        (metric,) = (x for x in metrics.splitlines() if x.startswith("perseus_job_stragglers{"))
        shown = server.call("GET", path)[1]["slow_pipelines"]
        column = job_command(server, "list").splitlines()[-1].split()[-1]
        return {listed["slow_pipelines"], shown, int(float(metric.split()[-1])), int(column)}

    assert counts() == {1}
    text = job_command(server, "show", "slow")
    assert "1 pipeline, reported 2 times" in text
    assert "rank 2, x 1.3" in text
    server.call("POST", path + "/stragglers", {"node": "n0", "factor": 1.3})
    assert counts() == {2}


def test_what_is_not_there_is_named_with_what_there_is(server: Server) -> None:
    """Which job, by name and id, and what to do."""
    path = create(server, name="llama")
    name = f"job 'llama' ({path.rsplit('/', 1)[1]}): "

    def says(method: str, target: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        status, answer = server.call(method, target, body)
        return status, answer["error"]["message"]

    status, text = says("GET", "/api/v1/jobs/j-none")
    assert (status, "j-none" in text, "perseus job list" in text) == (404, True, True), text
    status, text = says("DELETE", path + "/stragglers/7")
    assert (status, text.startswith(name), "perseus job show" in text) == (404, True, True), text
    status, text = says("POST", path + "/reprofile")
    assert (status, "perseus job show" in text) == (409, True), text
    assert server.call("POST", path + "/finish")[0] == 200
    rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0}
    for method, target, body in (
        ("PUT", "/point", {"at": "1.1x"}),
        ("POST", "/stragglers", {"pipeline": 0, "factor": 1.3}),
        ("POST", "/ranks", rank),
    ):
        status, text = says(method, path + target, body)
        assert (status, text.startswith(name + "the job has finished")) == (409, True), text
        assert "another" in text


def test_browsers_get_a_page_where_nothing_is(server: Server) -> None:
    """In words; programs get JSON. The documentation says how it comes here."""
    for target, words in (("/docs", "perseus serve --docs"), ("/<none>", "&lt;none&gt;")):
        for accepted, kind in (("text/html,*/*;q=0.8", "text/html"), ("*/*", "application/json")):
            request = urllib.request.Request(server.url + target, headers={"Accept": accepted})
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=60)
            assert refused.value.code == 404
            assert refused.value.headers.get_content_type() == kind
            text = refused.value.read().decode()
            if kind == "text/html":
                assert text.startswith("<!DOCTYPE html>")
                assert words in text


def test_what_nobody_can_believe_is_refused_before_it_is_measured(server: Server) -> None:
    """Once the ranks have measured, nobody can be asked; a job that is there is found."""
    wrong = SETTINGS | {"blocking_power": 0}
    of_a_profile = server.call("POST", "/api/v1/jobs", {"job": wrong, "profile_csv": PROFILE})
    measured = server.call("POST", "/api/v1/jobs", {"job": wrong})
    assert [status for status, _ in (of_a_profile, measured)] == [422, 422]
    assert measured[1]["error"]["message"] == of_a_profile[1]["error"]["message"]
    assert "draws 0 W" in measured[1]["error"]["message"]
    by_rank = {"job": SETTINGS | {"blocking_power": [20, 2000]}}
    assert "rank 1" in server.call("POST", "/api/v1/jobs", by_rank)[1]["error"]["message"]
    assert server.call("GET", "/api/v1/jobs")[1]["jobs"] == []
    create(server, client_key="meant", job=wrong | {"accept_implausible": True})
    # A rank that asks for it need not say that it is meant.
    asks = {"client_key": "meant", "job": wrong}
    assert server.call("POST", "/api/v1/jobs", asks)[0] == 200
    assert server.call("POST", "/api/v1/jobs", asks | {"client_key": "other"})[0] == 422


def test_no_door_tells_figures_that_nobody_can_believe(server: Server) -> None:
    """Where ranks measured, nobody could be asked."""
    path = run_unbelievable(server)
    shown = server.call("GET", path)[1]
    assert "implausible" in [note["severity"] for note in shown["notes"]]
    listed = server.call("GET", "/api/v1/jobs")[1]["jobs"][0]
    assert [each["believable"] for each in (shown, listed, shown["savings"]["predicted"])] == [
        False
    ] * 3
    assert "perseus_job_planned_saving_ratio{" not in server.call("GET", "/metrics")[1]
    text = " ".join(job_command(server, "show", shown["id"]).split())
    assert 0 <= text.find(" WARNING ") < text.find("takes 20 s")


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
