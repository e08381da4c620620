# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that `perseus serve` once had, each seen from outside as whoever met it saw it.

docs/evidence/server.md says how each of these ends with the program that had the fault.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import drill  # noqa: F401 (it knows where postgres is)
import postgres
from drill import PROFILE, RANKS, SETTINGS
from serving import Server

BINARY = Path(os.environ.get("PERSEUS_BINARY", "build/release/src/cli/perseus"))
CLOCK_LAYER = os.environ.get("PERSEUS_CLOCK_LAYER", "")
# Long enough that only what hangs misses it.
PATIENCE_SECONDS = 30.0
# How long a commit waits: less than the store's patience, much more than an answer takes.
COMMIT_SECONDS = 3.0
SOON_SECONDS = 1.0


def create(server: Server, **more: Any) -> str:
    """Create a job with a profile; return its path."""
    body = {"job": SETTINGS, "profile_csv": PROFILE, **more}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert status == 201, job
    return f"/api/v1/jobs/{job['id']}"


def register(server: Server, path: str, rank: int) -> None:
    """Register one rank of a job."""
    body = {"rank": rank, "dp_rank": rank // 2, "pp_rank": rank % 2}
    status, answer = server.call("POST", path + "/ranks", body)
    assert status == 200, answer


def run_job(server: Server, **more: Any) -> str:
    """Create a job all of whose ranks have their plan; return its path."""
    path = create(server, **more)
    for rank in range(RANKS):
        register(server, path, rank)
    assert server.call("GET", path + f"/plan?rank=0&wait={PATIENCE_SECONDS}")[0] == 200
    return path


def until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait for a condition; return whether it came."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def report(server: Server, path: str, versions: list[int]) -> None:
    """Report one iteration under each of the versions."""
    reports = [
        {"rank": 0, "iteration": i, "plan_version": version, "time_s": 5.5}
        for i, version in enumerate(versions)
    ]
    status, answer = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202, answer


def stored_reports(store: Path) -> int:
    """Count the reports that are in the store."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        [count] = database.execute("SELECT COALESCE(SUM(reports), 0) FROM iterations").fetchone()
    return int(count)


@contextlib.contextmanager
def slow_disk(store: Path, seconds: float) -> Iterator[None]:
    """Let no commit to a SQLite store end for so long."""
    database = sqlite3.connect(store, isolation_level=None, check_same_thread=False)
    database.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(seconds, lambda: database.execute("ROLLBACK"))
    timer.start()
    try:
        yield
    finally:
        timer.join()
        database.close()


def large_job() -> dict[str, Any]:
    """Describe a job whose plans take minutes."""
    rows = [line.split(",") for line in PROFILE.splitlines()[1:] if line.startswith("0")]
    profile = PROFILE.splitlines()[0] + "\n"
    for stage in range(8):
        for _, name, clock, seconds, joules in rows:
            profile += f"{stage},{name},{clock},{float(seconds) * (1 + stage / 37)},{joules}\n"
    settings = SETTINGS | {
        "microbatches": 2500,
        "stages": 8,
        "data_parallel": 1,
        "coarse_watts": 0,
        "accept_implausible": True,  # Iterations of hours.
    }
    return {"job": settings, "profile_csv": profile}


def test_1_a_first_plan_waits_for_no_other_job(tmp_path: Path) -> None:
    """A job of 8 computations behind one whose plans take minutes."""
    server = Server(BINARY, tmp_path / "jobs.db")
    try:
        large = create(server, **large_job())
        assert until(lambda: server.call("GET", large)[1]["plan"] is not None)
        time.sleep(1)
        small = create(server)
        assert until(lambda: server.call("GET", small)[1]["plan"] is not None, 10)
        assert not server.call("GET", large)[1]["refined"]
    finally:
        server.kill()


def test_3_sums_of_iterations_outlive_a_thousand_versions(tmp_path: Path) -> None:
    """Also those of maximum clocks, and of versions long past."""
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    path = run_job(server)
    report(server, path, [0] * 100 + [1] * 100)
    assert until(lambda: stored_reports(store) == 200)
    for i in range(1100):
        at = ("1.05x", "1.1x")[i % 2]
        assert server.call("PUT", path + "/point", {"at": at})[0] == 200
    report(server, path, [server.call("GET", path)[1]["plan"]["version"]])
    assert until(lambda: stored_reports(store) == 201)
    report(server, path, [0, 1])
    assert server.stop() == 0, server.log()
    assert stored_reports(store) == 203


def test_4_a_slow_commit_delays_nobody_who_reads(tmp_path: Path) -> None:
    """Neither who reads the job that changes, nor others, nor /metrics."""
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    path = run_job(server)
    # Planned for the target, so that nothing but what is asked for here is written.
    assert until(lambda: bool(server.call("GET", path)[1]["refined"]))
    changed: list[int] = []

    def change() -> None:
        changed.append(server.call("PUT", path + "/point", {"at": "1.2x"})[0])

    with slow_disk(store, COMMIT_SECONDS):
        changing = threading.Thread(target=change)
        changing.start()
        time.sleep(0.3)
        slowest = 0.0
        for target in (path + "/plan?rank=0&after=-1", "/metrics", "/api/v1/jobs") * 10:
            begin = time.monotonic()
            assert server.call("GET", target)[0] == 200
            slowest = max(slowest, time.monotonic() - begin)
        assert slowest < SOON_SECONDS
        assert not changed
    changing.join()
    assert changed == [200]
    assert server.stop() == 0, server.log()


@pytest.mark.skipif(not CLOCK_LAYER, reason="no layer that sets the clock was built")
def test_5_a_clock_that_is_set_back_delays_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of day goes back by an hour: what is acknowledged is written as before."""
    store = tmp_path / "jobs.db"
    clock = tmp_path / "clock"
    clock.write_text("0")
    monkeypatch.setenv("LD_PRELOAD", CLOCK_LAYER)
    monkeypatch.setenv("PERSEUS_TEST_CLOCK", str(clock))
    server = Server(BINARY, store)
    path = run_job(server)
    report(server, path, [0] * 100)
    assert until(lambda: stored_reports(store) == 100)
    clock.write_text("-3600")
    report(server, path, [0] * 100)
    assert until(lambda: stored_reports(store) == 200, 5)
    server.kill()


def test_8_a_key_that_is_known_costs_no_planning(tmp_path: Path) -> None:
    """The key is looked up before a profile is read or a plan is made."""
    server = Server(BINARY, tmp_path / "jobs.db")
    path = create(server, client_key="k")
    body = {"client_key": "k", "job": SETTINGS}
    status, job = server.call("POST", "/api/v1/jobs", body)
    assert (status, path.endswith(job.get("id", "-"))) == (200, True), job
    # Another job under the same key: refused for that, and not for what it holds.
    body["profile_csv"] = "no profile"
    assert server.call("POST", "/api/v1/jobs", body)[0] == 409
    assert server.stop() == 0, server.log()


def test_9_the_lock_file_follows_no_link(tmp_path: Path) -> None:
    """A link in its place is refused, and what it leads to stays as it is."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "jobs.db.lock").symlink_to(precious)
    done = subprocess.run(
        [str(BINARY), "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{tmp_path}/jobs.db"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert "is a link" in done.stderr
    assert precious.read_text() == "precious"


def test_10_finished_jobs_take_no_place(tmp_path: Path) -> None:
    """--max-jobs counts those that go on; /metrics says how many there may be."""
    server = Server(BINARY, tmp_path / "jobs.db", "--max-jobs", "1")
    path = create(server)
    assert server.call("POST", "/api/v1/jobs", {"job": SETTINGS})[0] == 413
    assert server.call("POST", path + "/finish")[0] == 200
    create(server)
    assert "perseus_jobs_limit 1" in server.call("GET", "/metrics")[1]
    assert server.stop() == 0, server.log()


def test_10_old_versions_are_deleted(tmp_path: Path) -> None:
    """Of a job's versions the newest 1,000 are kept."""
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    path = run_job(server)
    for i in range(1100):
        at = ("1.05x", "1.1x")[i % 2]
        assert server.call("PUT", path + "/point", {"at": at})[0] == 200
    assert server.call("GET", path)[1]["plan"]["version"] > 1100
    assert server.stop() == 0, server.log()
    with contextlib.closing(sqlite3.connect(store)) as database:
        [kept] = database.execute("SELECT COUNT(*) FROM versions").fetchone()
    assert kept <= 1000


@pytest.mark.parametrize(
    ("table", "column", "key"),
    [
        ("jobs", "state", "id"),
        ("jobs", "target", "id"),
        ("ranks", "clocks", "job"),
        ("versions", "exceptions", "job"),
        ("plans", "knobs", "job"),
    ],
)
def test_12_one_damaged_cell_stops_no_other_job(
    tmp_path: Path, table: str, column: str, key: str
) -> None:
    """The server starts, serves all others, and deletes the damaged one without reading it."""
    store = tmp_path / "jobs.db"
    server = Server(BINARY, store)
    whole, damaged = run_job(server), run_job(server)
    assert server.stop() == 0, server.log()
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as database:
        change = f"UPDATE {table} SET {column} = '{{\"' WHERE {key} = ?"
        assert database.execute(change, (damaged.rpartition("/")[2],)).rowcount > 0
    server = Server(BINARY, store)
    assert server.call("GET", whole + "/plan?rank=0&after=-1")[0] == 200
    assert len(server.call("GET", "/api/v1/jobs")[1]["jobs"]) > 0
    for _ in range(2):
        assert server.call("GET", damaged)[0] == 422
    assert "perseus_jobs_damaged 1" in server.call("GET", "/metrics")[1]
    assert server.call("DELETE", damaged)[0] == 204
    assert server.call("GET", damaged)[0] == 404
    assert "perseus_jobs_damaged 0" in server.call("GET", "/metrics")[1]
    assert server.stop() == 0, server.log()
    # Once, but for its head, which the list of the start meets too.
    told = server.log().count(f"job {damaged.rpartition('/')[2]} is damaged")
    assert told == (2 if column == "state" else 1)
    assert "what=job before=damaged after=deleted" in server.log()
    server = Server(BINARY, store)
    assert server.call("GET", damaged)[0] == 404
    assert server.call("GET", whole)[0] == 200
    assert server.stop() == 0, server.log()


def test_19_who_changed_what(tmp_path: Path) -> None:
    """One line for a change: the token's name, before and after."""
    tokens = tmp_path / "tokens"
    tokens.write_text("operate 0123456789abcdef alice\n")
    tokens.chmod(0o600)
    server = Server(BINARY, tmp_path / "jobs.db", "--token-file", str(tokens))
    (tmp_path / "token").write_text("0123456789abcdef")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "profile.csv").write_text(PROFILE)
    (tmp_path / "job.toml").write_text(
        'profile = "profile.csv"\nschedule = "1f1b"\nmicrobatches = 2\ndp = 2\n'
        "blocking_power = 20\n"
    )
    place = ("--server", server.url, "--token-file", str(tmp_path / "token"))
    for words in (("create", str(tmp_path / "job.toml"), "--name", "x"), ("point", "x", "1.2x")):
        subprocess.run([str(BINARY), "job", *words, *place], check=True, capture_output=True)
    assert server.stop() == 0
    [line] = [line for line in server.log().splitlines() if "what=point" in line]
    for part in ("before=1.0x", "after=1.2x", "token=alice", "peer=127.0.0.1:"):
        assert part in line


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server, postgres.Postgres]]:
    """Two servers on one PostgreSQL."""
    if missing := postgres.why_missing():
        pytest.skip(missing)
    with postgres.Postgres() as database:
        servers = [Server(BINARY, database.uri()) for _ in range(2)]
        yield servers[0], servers[1], database
        for server in servers:
            server.kill()


def detection(server: Server, path: str) -> Any:
    """Return the threshold of detection."""
    return server.call("GET", path + "/detection")[1]["threshold"]


def test_22_what_one_server_acknowledged_the_other_shows(
    pair: tuple[Server, Server, postgres.Postgres],
) -> None:
    """At once, and also of a job that has finished meanwhile."""
    one, other, _ = pair
    path = run_job(one)
    shown = []
    for i in range(40):
        settings = {"mode": "advisory", "threshold": (i + 1) / 100}
        assert one.call("PUT", path + "/detection", settings)[0] == 200
        shown.append(detection(other, path))
    assert shown == [(i + 1) / 100 for i in range(40)]
    old = 0
    for _ in range(10):
        path = run_job(one)
        assert other.call("GET", path)[0] == 200
        settings = {"mode": "advisory", "threshold": 0.5}
        assert one.call("PUT", path + "/detection", settings)[0] == 200
        assert one.call("POST", path + "/finish")[0] == 200
        old += detection(other, path) != 0.5
    assert old == 0


def test_22_a_rank_of_the_other_server_is_not_denied(
    pair: tuple[Server, Server, postgres.Postgres],
) -> None:
    """Acknowledged by one, and then the database dies: the other says that it cannot know."""
    one, other, database = pair
    path = create(one)
    assert other.call("GET", path)[0] == 200
    for rank in range(RANKS):
        register(one, path, rank)
    database.kill()
    for rank in range(RANKS):
        status, answer = other.call("GET", path + f"/plan?rank={rank}&after=-1")
        assert status in (200, 503), answer


def sweep_rows(rank: int, clocks: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return what a rank measures of its stage at some clocks."""
    rows = []
    for line in PROFILE.splitlines()[1:]:
        stage, name, clock, seconds, joules = line.split(",")
        if int(stage) == rank % 2 and int(clock) in clocks:
            row: dict[str, Any] = {"stage": int(stage), "instruction": name}
            row |= {"frequency": int(clock), "time": float(seconds), "energy": float(joules)}
            rows.append(row)
    return rows


def sweep_anew(server: Server, path: str) -> None:
    """Have a job profiled again as soon as it has its first plan."""
    assert until(lambda: server.call("POST", path + "/reprofile")[0] == 200)


def test_rows_of_a_new_sweep_are_not_taken_for_the_old() -> None:
    """At a server that has not heard of the new sweep yet; nobody tells it but its own looks."""
    if missing := postgres.why_missing(pooler=True):
        pytest.skip(missing)
    lost = 0
    with postgres.Postgres() as database, postgres.PgBouncer(database) as pooler:
        one, other = Server(BINARY, pooler.uri()), Server(BINARY, pooler.uri())
        for _ in range(5):
            path = f"/api/v1/jobs/{one.call('POST', '/api/v1/jobs', {'job': SETTINGS})[1]['id']}"
            for rank in range(RANKS):
                register(one, path, rank)
            assert other.call("GET", path)[1]["state"] == "profiling"
            for rank in range(RANKS):
                body = {"rank": rank, "rows": sweep_rows(rank, (1400, 1200, 1000)), "done": True}
                answer = one.call("POST", path + "/measurements", body | {"blocking_power_w": 20})
                assert answer[0] == 200, answer
            sweep_anew(one, path)
            body = {"rank": 0, "rows": sweep_rows(0, (1400,)), "blocking_power_w": 20}
            # Refused is well, too: the rank says it again.
            if other.call("POST", path + "/measurements", body)[0] == 200:
                found = one.call("GET", path + "/measurements?rank=0")[1]["rows"]
                lost += len(found) < 2
        one.kill()
        other.kill()
    assert lost == 0


@pytest.mark.parametrize("suffix", ["", "-wal", ".lock"])
def test_23_a_store_that_was_deleted_takes_nothing_more(tmp_path: Path, suffix: str) -> None:
    """No acknowledgement, and /readyz says so."""
    server = Server(BINARY, tmp_path / "jobs.db")
    create(server)
    (tmp_path / f"jobs.db{suffix}").unlink()
    status, answer = server.call("POST", "/api/v1/jobs", {"job": SETTINGS, "profile_csv": PROFILE})
    assert status == 503, answer
    assert server.call("GET", "/readyz")[0] == 503
    server.kill()


def test_28_names_reach_no_terminal_raw(tmp_path: Path) -> None:
    """Control characters and those that turn the line are shown, not obeyed; names are cut."""
    server = Server(BINARY, tmp_path / "jobs.db")
    for key in ("a", "b"):
        create(server, name="x\x9b31my\u202ez" + 240 * key, client_key=key)
    command = [str(BINARY), "job", "list", "--server", server.url]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert server.stop() == 0
    for text in (listed, server.log()):
        assert not {"\x9b", "\u202e"} & set(text)
    assert max(len(line) for line in listed.splitlines()) < 200
