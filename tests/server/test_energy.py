# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The history of jobs, and accounts of their energy: over restarts, kills and deletions."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from api_calls import BINARY, ask, await_running, create, register_all, run_unbelievable
from drill import PROFILE, RANKS, SETTINGS
from serving import GoneError, Server

pytest_plugins = ["server_fixture"]

RESOLUTIONS = ("minute", "hour", "day")
JOULES = 3.6e6  # Of a rank in an iteration: a kWh.
CLOCK_LAYER = os.environ.get("PERSEUS_CLOCK_LAYER", "")


def report(
    server: Server, path: str, iterations: range, *, energy: bool = True, **more: Any
) -> None:
    """Report these iterations of all ranks, half a second each."""
    reports = [
        {"rank": rank, "iteration": n, "time_s": 0.5, **more}
        | ({"energy_j": JOULES} if energy else {})
        for n in iterations
        for rank in range(RANKS)
    ]
    status, answer = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202, answer


def rows_of(server: Server, path: str, resolution: str) -> list[dict[str, Any]]:
    """Return the history of a job."""
    status, history = server.call("GET", f"{path}/history?resolution={resolution}")
    assert status == 200, history
    return list(history["rows"])


def await_iterations(server: Server, path: str, number: float) -> list[dict[str, Any]]:
    """Wait until the days of a job have so many; return them."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        rows = rows_of(server, path, "day")
        if sum(row["iterations"] for row in rows) == number:
            return rows
        time.sleep(0.05)
    raise AssertionError(rows)


def running(server: Server, **more: Any) -> str:
    """Return the path of a job that has its last plan."""
    path = create(server, **more)
    register_all(server, path)
    await_running(server, path)
    return path


def utc_day() -> str:
    """Return the day of now."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%d")


def energy(
    server: Server, *words: str, code: int = 0, environment: dict[str, str] | None = None
) -> str:
    """Run `perseus report energy`; return what it prints."""
    command = [str(BINARY), "report", "energy", "--server", server.url, *words]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_the_history_says_what_was_measured(server: Server) -> None:
    """Iteration time, power of all GPUs, and the share whose energy is known."""
    path = running(server, name="a")
    assert rows_of(server, path, "minute") == []
    version = server.call("GET", path)[1]["plan"]["version"]
    report(server, path, range(6), plan_version=version, clocks="plan")
    report(server, path, range(6, 8), energy=False)
    rows = await_iterations(server, path, 8)  # Two, where midnight came between the reports.
    assert {row["iteration_time_s"] for row in rows} == {0.5}
    assert sum(row["measured_share"] * row["iterations"] for row in rows) == pytest.approx(6)
    assert sum(row["energy_j"] or 0 for row in rows) == pytest.approx(6 * RANKS * JOULES)
    powers = [row["power_w"] for row in rows if row["measured_share"] > 0]
    assert powers == pytest.approx([RANKS * JOULES / 0.5] * len(powers))
    assert sum(row["gpu_hours"] for row in rows) == pytest.approx(8 * RANKS * 0.5 / 3600)
    saving = server.call("GET", path)[1]["plan"]["saving_percent"] / 100
    for row in rows:
        known = row["energy_j"] or 0
        assert (row["predicted_saved_j"] or 0) == pytest.approx(known * saving / (1 - saving))
        # Nobody compared the plan with maximum clocks.
        assert row["compared_energy_j"] == 0
        assert row["measured_saved_j"] is None
    later = int(time.time()) + 86_400
    assert server.call("GET", f"{path}/history?resolution=day&since={later}")[1]["rows"] == []
    status, answer = server.call("GET", f"{path}/history?resolution=week")
    assert status == 422
    assert "minute hour day" in answer["error"]["message"]
    assert server.call("GET", "/api/v1/jobs/j-0000000000000000/history")[0] == 404


def test_the_history_is_of_the_slowest_rank_like_what_the_job_shows_now(server: Server) -> None:
    """Ranks that wait between their steps draw power, too: it is over the time of the slowest."""
    path = running(server, name="a")
    times = [0.5, 0.25, 0.75, 1.0]
    reports = [
        {"rank": rank, "iteration": n, "time_s": times[rank], "energy_j": 100.0 * (rank + 1)}
        for n in range(8)
        for rank in range(RANKS)
    ]
    # As trainers do, each by itself.
    for rank in range(RANKS):
        mine = [one for one in reports if one["rank"] == rank]
        assert server.call("POST", path + "/iterations", {"reports": mine})[0] == 202
    await_iterations(server, path, 8)
    for resolution in RESOLUTIONS:
        (row,) = rows_of(server, path, resolution)[-1:]
        assert row["iteration_time_s"] == 1.0
        assert row["power_w"] == 1000.0
    now = server.call("GET", path)[1]["measured"]
    assert (now["iteration_time_s"], now["power_w"]) == (1.0, 1000.0)
    # Accounts are sums over ranks, as before.
    total = server.call("GET", "/api/v1/energy")[1]["total"]
    assert total["energy_j"] == 8 * 1000.0
    assert total["gpu_hours"] == pytest.approx(8 * sum(times) / 3600)


def test_while_a_rank_is_missing_no_iteration_is_complete(server: Server) -> None:
    """Its time is not known yet, though the reports count."""
    path = running(server)
    reports = [{"rank": rank, "iteration": 0, "time_s": 0.5} for rank in range(RANKS - 1)]
    assert server.call("POST", path + "/iterations", {"reports": reports})[0] == 202
    (row,) = await_iterations(server, path, (RANKS - 1) / RANKS)
    assert row["iteration_time_s"] is None
    assert row["power_w"] is None


def test_a_profile_that_nobody_can_believe_predicts_nothing(server: Server) -> None:
    """What its plans save is not known, so accounts name no saving."""
    path = run_unbelievable(server)
    job = server.call("GET", path)[1]
    assert job["believable"] is False
    report(server, path, range(2), plan_version=job["plan"]["version"], clocks="plan")
    (row,) = await_iterations(server, path, 2)
    assert row["energy_j"] == 2 * RANKS * JOULES
    assert row["predicted_saved_j"] == 0


def test_a_killed_server_loses_no_part_of_the_history_alone(tmp_path: Path) -> None:
    """Minutes, hours and days hold what the sums of iterations hold, whenever SIGKILL comes."""
    chance = random.Random(5)
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    path = running(server)
    first = 0
    least = 0.0
    for _ in range(8):
        try:
            end = time.monotonic() + 0.5 + 2 * chance.random()
            while time.monotonic() < end:
                report(server, path, range(first, first + 3))
                first += 3
                time.sleep(0.1 * chance.random())
            server.kill()
        except GoneError:
            pass
        server = Server(BINARY, store)
        sums = server.call("GET", path)[1]["iterations"]
        counted = sum(row["reports"] for row in sums) / RANKS
        for resolution in RESOLUTIONS:
            rows = rows_of(server, path, resolution)
            assert sum(row["iterations"] for row in rows) == counted
            assert sum(row["energy_j"] or 0 for row in rows) == pytest.approx(
                counted * RANKS * JOULES
            )
        # What was once in the store stays there.
        assert counted >= least
        least = counted
    assert least > 0
    # A server that ends as asked writes all.
    report(server, path, range(first, first + 3))
    assert server.stop() == 0, server.log()
    server = Server(BINARY, store)
    await_iterations(server, path, least + 3)
    assert server.stop() == 0


def test_days_stay_when_a_job_is_deleted(server: Server) -> None:
    """Accounts go on with its name; minutes and hours are gone."""
    path = running(server, name='gone, "soon"')
    report(server, path, range(2))
    assert server.call("DELETE", path)[0] == 204  # Before the sums were written by themselves.
    answer = server.call("GET", "/api/v1/energy")[1]
    (row,) = answer["rows"]
    assert row["name"] == 'gone, "soon"'
    assert row["energy_j"] == 2 * RANKS * JOULES
    assert answer["total"]["energy_j"] == 2 * RANKS * JOULES
    assert 'gone, "soon"' in energy(server)


def test_an_account_is_made_by_what_is_asked_for(server: Server, tmp_path: Path) -> None:
    """A table with a total, and the same as CSV."""
    first_day = utc_day()
    assert "No rank reported" in energy(server)
    for name, iterations in (("large", 3), ("small", 1), ("small", 1)):
        path = running(server, name=name)
        report(server, path, range(iterations))
        await_iterations(server, path, iterations)
    silent = running(server, name="silent")
    report(server, silent, range(1), energy=False)
    await_iterations(server, silent, 1)

    text = energy(server, "--by", "name", "--price", "0.5 EUR", "--carbon", "250")
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert lines["name"][-3:] == ["EUR", "kg", "CO2"]
    assert lines["large"][-2:] == ["6.00", "3.000"]
    assert lines["small"][-2:] == ["4.00", "2.000"]
    assert "n/a" in lines["silent"]
    assert lines["total"][-2:] == ["10.00", "5.000"]
    assert "0.5 EUR" in text
    # Without a price no cost is shown.
    assert "EUR" not in energy(server, "--by", "day")
    assert "cost" not in energy(server, "--by", "day")

    file = tmp_path / "energy.csv"
    assert "Written to" in energy(server, "--by", "name,day", "--price", "2", "--csv", str(file))
    rows = list(csv.DictReader(file.open()))
    # By day, then by name; those of a name may be of two days, where midnight came meanwhile.
    assert rows == sorted(rows, key=lambda row: (row["day"], row["name"]))
    assert {row["day"] for row in rows} <= {first_day, utc_day()}
    assert "co2_kg" not in rows[0]
    for name, kwh, share in (("large", 12, "1"), ("silent", 0, "0"), ("small", 8, "1")):
        own = [row for row in rows if row["name"] == name]
        assert sum(float(row["energy_kwh"] or 0) for row in own) == kwh
        assert sum(float(row["cost"] or 0) for row in own) == 2 * kwh
        assert {row["measured_share"] for row in own} == {share}
        assert all((row["energy_kwh"] == "") == (name == "silent") for row in own)

    shown = json.loads(energy(server, "--json", "--by", "day"))
    assert shown["total"]["energy_j"] == 5 * RANKS * JOULES
    assert "No rank reported" in energy(server, "--since", "2020-01-01", "--until", "2020-02-01")


@pytest.mark.skipif(not CLOCK_LAYER, reason="no layer that sets the clock was built")
def test_today_is_in_it_whatever_day_the_client_has(server: Server, tmp_path: Path) -> None:
    """Its clock may be behind the server's, for which a day has begun."""
    path = running(server, name="a")
    report(server, path, range(1))
    await_iterations(server, path, 1)
    clock = tmp_path / "clock"
    clock.write_text("-86400")
    behind = {"LD_PRELOAD": CLOCK_LAYER, "PERSEUS_TEST_CLOCK": str(clock)}
    assert "4.000" in energy(server, environment=behind)
    assert "No rank reported" in energy(server, "--until", "0d", environment=behind)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--since", "yesterday"], "a day (2026-11-01) or how long ago (30d, 12h)"),
        (["--since", "2026-02-30"], "a day (2026-11-01)"),
        (["--since", "-3d"], "how long ago"),
        (["--since", "2026-02-02", "--until", "2026-02-01"], "--since is not before --until"),
        (["--by", "team"], "job; name; user; day"),
        (["--price", "cheap"], "the price of a kWh"),
        (["--json", "--price", "1"], "leave --price out"),
        (["--json", "--csv", "x.csv"], "exclude each other"),
        (["--csv", ""], "the name of the file is empty"),
        (["--csv", "/nowhere/x.csv"], "/nowhere"),
    ],
)
def test_what_cannot_be_meant_is_refused(server: Server, words: list[str], sentence: str) -> None:
    """In a sentence, before the server is asked."""
    assert sentence in energy(server, *words, code=2)


def test_a_bound_token_sees_its_jobs_alone(tmp_path: Path) -> None:
    """And the user of a job is the name of the token that created it."""
    boss, alice = "0123456789abcdef-boss", "0123456789abcdef-alice"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operate {boss} boss\ntrain {alice} alice key=alice-\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))

    def call(token: str, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(server.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())

    for token, key in ((boss, "x-1"), (alice, "alice-1")):
        body = {"job": SETTINGS, "profile_csv": PROFILE, "client_key": key, "name": key}
        job = call(token, "POST", "/api/v1/jobs", body)["id"]
        for rank in range(RANKS):
            place = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2, "node": "n"}
            call(boss, "POST", f"/api/v1/jobs/{job}/ranks", place)
        reports = [{"rank": rank, "iteration": 0, "time_s": 1} for rank in range(RANKS)]
        call(boss, "POST", f"/api/v1/jobs/{job}/iterations", {"reports": reports})
        end = time.monotonic() + 60
        while not call(boss, "GET", f"/api/v1/jobs/{job}/history")["rows"]:
            assert time.monotonic() < end
            time.sleep(0.05)
    of_all = call(boss, "GET", "/api/v1/energy?by=user")["rows"]
    assert [row["user"] for row in of_all] == ["alice", "boss"]
    of_one = call(alice, "GET", "/api/v1/energy?by=user")
    assert [row["user"] for row in of_one["rows"]] == ["alice"]
    assert of_one["total"]["iterations"] == 1
    assert ask(server, "GET", "/api/v1/energy")[0] == 401
    assert server.stop() == 0
