# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The command `perseus job` against a server."""

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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import BINARY, create, job_command, register_all
from drill import PROFILE, SETTINGS
from serving import Server

pytest_plugins = ["server_fixture"]


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


def test_a_schedule_in_a_file_is_sent_as_its_text(server: Server, tmp_path: Path) -> None:
    """The server reads no files."""
    order = "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n"
    (tmp_path / "order.csv").write_text(order)
    (tmp_path / "job.toml").write_text('schedule_file = "order.csv"\nblocking_power = 20\n')
    shown = job_command(server, "create", str(tmp_path / "job.toml"), "--json")
    made = json.loads(shown)
    assert made["settings"]["schedule_csv"] == order
    assert made["world_size"] == 2


def test_a_watcher_whose_reader_left_ends(server: Server) -> None:
    """Although nothing happens that it could write."""
    watcher = subprocess.Popen(
        [str(BINARY), "job", "watch", "--server", server.url], stdout=subprocess.PIPE
    )
    assert watcher.stdout is not None
    watcher.stdout.close()
    assert watcher.wait(timeout=30) == 0


def watched(server: Server, *words: str) -> subprocess.Popen[str]:
    """Watch jobs."""
    command = [str(BINARY), "job", "watch", *words, "--server", server.url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_watcher_says_at_once_what_it_waits_for(server: Server) -> None:
    """Before anything happens: state, plan and what comes next; then what changes."""
    with watched(server) as watcher:
        assert watcher.stdout is not None
        assert "no jobs" in watcher.stdout.readline()
        path = create(server, name="llama")
        assert "llama" in watcher.stdout.readline()
        watcher.kill()
    with watched(server, "llama") as watcher:
        assert watcher.stdout is not None
        assert "llama: registering" in watcher.stdout.readline()
        assert "waits for its ranks to register (0 of 4 have)" in watcher.stdout.readline()
        register_all(server, path)
        said = ""
        while "waits for other plans" not in said:
            line = watcher.stdout.readline()
            assert line, said
            said += line
        watcher.kill()
    # Who comes later hears the same of a job that runs.
    with watched(server, "llama") as watcher:
        assert watcher.stdout is not None
        line = watcher.stdout.readline()
        assert all(word in line for word in ("running", "plan ", "iteration ", "saving ")), line
        assert "waits for other plans" in watcher.stdout.readline()
        watcher.kill()


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


def test_a_job_is_shown_with_its_notes(server: Server, tmp_path: Path) -> None:
    """By create and show: what is odd is a note, what is implausible only where it is accepted."""
    header, *rows = (row.split(",") for row in PROFILE.split())
    slow = [[*row[:3], str(1000 * float(row[3])), *row[4:]] for row in rows]
    one_clock = [row for row in rows if row[2] == "1400"]
    refused = [[*row[:3], str(-float(row[3])), *row[4:]] for row in rows]

    def create(name: str, table: list[list[str]], fails: bool = False, **more: Any) -> str:
        (tmp_path / "profile.csv").write_text("\n".join(map(",".join, [header, *table])) + "\n")
        settings = {"profile": "profile.csv", **SETTINGS, **more}
        settings["dp"] = settings.pop("data_parallel")  # As a job file calls it.
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
        (tmp_path / "job.toml").write_text("".join(lines))
        return job_command(
            server, "create", str(tmp_path / "job.toml"), "--client-key", name, fails=fails
        )

    for name, table, more, says in (
        ("loud", slow, {"accept_implausible": True}, "in milliseconds"),
        ("odd", one_clock, {}, "one clock only"),
    ):
        made = create(name, table, **more).split()[0]
        while server.call("GET", f"/api/v1/jobs/{made}")[1]["plan"] is None:
            time.sleep(0.05)
        for text in (create(name, table, **more), job_command(server, "show", name)):
            words = " ".join(text.split())
            assert 0 <= words.find(" note ") < words.find(says), text
    assert "profile_csv:2:16" in create("none", refused, fails=True)
    assert "accept_implausible" in create("none", slow, fails=True)
    assert "no job has the name" in job_command(server, "show", "none", fails=True)
    # Another description under a known key.
    other = create("odd", one_clock, fails=True, at="1.3x")
    assert "'at' differs" in other
    assert server.call("GET", "/api/v1/jobs?client_key=odd")[1]["jobs"][0]["at"] == "1.0x"


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
    state = server.call("GET", f"/api/v1/jobs/{job['id']}")[1]["state"]
    asked = ("--state", state, "--name", "llama", "--client-key", "key-7")
    assert "llama" in job_command(server, "list", *asked)
    assert "no job like that" in job_command(server, "list", "--state", "failed")
    server.call("POST", "/api/v1/jobs", {"name": "$(id)", "client_key": "odd", "job": SETTINGS})
    names = job_command(server, "list", "--names").split()
    assert {"llama", "key-7", "odd", job["id"]} <= {*names}
    assert "$(id)" not in names, "a shell would run it"
    server.call("POST", "/api/v1/jobs", {"name": "over", "client_key": "over", "job": SETTINGS})
    job_command(server, "finish", "over")
    assert job_command(server, "list", "--names").split() == names, "there may be very many"
    job_command(server, "delete", "odd", "--yes")
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


def test_lists_of_more_than_a_page(server: Server) -> None:
    """All pages are shown, or as many jobs as are asked for; a job of the last page is found."""
    for i in range(1002):
        body = {"name": f"n{i % 501}", "client_key": f"k{i}", "job": SETTINGS}
        assert server.call("POST", "/api/v1/jobs", body)[0] == 201
    listed = json.loads(job_command(server, "list", "--json"))
    assert [job["client_key"] for job in listed["jobs"]] == [f"k{i}" for i in range(1002)]
    assert listed["next"] is None
    few = json.loads(job_command(server, "list", "--json", "--limit", "1001"))
    assert len(few["jobs"]) == 1001
    assert few["next"]
    twice = json.loads(job_command(server, "list", "--json", "--name", "n7"))
    assert [job["client_key"] for job in twice["jobs"]] == ["k7", "k508"]
    assert json.loads(job_command(server, "show", "k1001", "--json"))["name"] == "n500"
