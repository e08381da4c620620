# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The Python client on the shared library: a real server of HTTP, simulated GPUs, real threads.

`PERSEUS_CLIENT_LIBRARY` names the library, `PERSEUS_MAKE_GPUS` the program that makes simulated
GPUs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import perseus  # noqa: E402

LIBRARY = os.environ.get("PERSEUS_CLIENT_LIBRARY", "")
pytestmark = pytest.mark.skipif(
    not LIBRARY or not os.path.exists(LIBRARY), reason="PERSEUS_CLIENT_LIBRARY names no library"
)

PATIENCE = 20.0  # Seconds that only a hang misses.


class Api(ThreadingHTTPServer):
    """The few answers that a client needs."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts: list[tuple[str, dict[str, object]]] = []
        self.plan: dict[str, object] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers for `Api`."""

    protocol_version = "HTTP/1.1"
    server: Api

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""

    def answer(self, status: int, body: object = None) -> None:
        """Send a status, with JSON where there is some."""
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        """Take whatever comes."""
        length = int(self.headers.get("Content-Length", 0))
        self.server.posts.append((self.path, json.loads(self.rfile.read(length))))
        self.answer(200, {"id": "job-7", "state": "running", "straggler_id": "s-1"})

    def do_GET(self) -> None:
        """Give the plan once, and no stragglers."""
        if "/plan" in self.path and self.server.plan and "after=-1" in self.path:
            self.answer(200, self.server.plan)
        elif "/plan" in self.path:
            time.sleep(0.2)
            self.answer(204)
        else:
            self.answer(200, {"stragglers": []})


@pytest.fixture
def api() -> Iterator[Api]:
    """Serve in a thread."""
    server = Api()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def train(client: perseus.Client, until: Callable[[], bool]) -> bool:
    """Train until `until` holds; False: it never did."""
    deadline = time.monotonic() + PATIENCE
    iteration = 0
    while time.monotonic() < deadline:
        with client.step(iteration, tokens=4096):
            for kind in ("forward", "backward"):
                with client.instruction(kind, stage=0, microbatch=0):
                    time.sleep(0.005)
            client.step_busy("backward", 0.25)
        time.sleep(0.005)
        iteration += 1
        if until():
            return True
    return False


def test_a_job_is_joined_and_reported(api: Api) -> None:
    """The job, then the rank, then iterations."""
    with perseus.Client(
        api.url, job={"client_key": "k"}, rank=3, pp_rank=3, report_interval_seconds=0.05
    ) as client:
        assert train(client, lambda: any(path.endswith("/iterations") for path, _ in api.posts))
        assert client.job_id == "job-7"
        assert client.state == perseus.State.WAITING
        stats = client.stats()
        assert stats is not None
        assert stats.iterations > 0
        assert len(stats.latency) == 24
    paths = [path for path, _ in api.posts]
    assert paths[:2] == ["/api/v1/jobs", "/api/v1/jobs/job-7/ranks"]
    assert api.posts[0][1] == {"client_key": "k"}
    rank = api.posts[1][1]
    assert (rank["rank"], rank["pp_rank"]) == (3, 3)
    report = next(body for path, body in api.posts if path.endswith("/iterations"))
    reports = report["reports"]
    assert isinstance(reports, list)
    assert reports[0]["tokens"] == 4096
    busy = reports[0]["busy_by_type_s"]
    assert busy["backward"] == 0.25
    assert 0.005 <= busy["forward"] < 0.25
    assert reports[0]["busy_s"] == pytest.approx(sum(busy.values()))
    assert reports[0]["clocks"] == "maximum"


def test_the_papers_straggler_call(api: Api) -> None:
    """`set_straggler(id, delay, degree)` reaches the server."""
    with perseus.Client(api.url, job_id="job-7") as client:
        assert client.set_straggler(5, delay=2.0, degree=1.3)
        assert not client.set_straggler(-5, 0, 1.3)
        assert not client.set_straggler(5, float("nan"), 1.3)
        assert not client.set_straggler(5, 0, "fast")  # type: ignore[arg-type]
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if any(path.endswith("/stragglers") for path, _ in api.posts):
                break
            time.sleep(0.01)
    sent = [body for path, body in api.posts if path.endswith("/stragglers")]
    assert sent == [{"rank": 5, "factor": 1.3, "starts_s": 2.0}]


def test_a_plan_is_followed_on_simulated_gpus(api: Api, tmp_path: Path) -> None:
    """A clock is locked as planned."""
    api.plan = {
        "version": 4,
        "reason": "target",
        "iteration_time_s": 0.01,
        "computations": [["F", 0, 0, 1200, 0.0, 0.005], ["B", 0, 0, 1200, 0.005, 0.005]],
    }
    make_gpus = os.environ.get("PERSEUS_MAKE_GPUS", "")
    if not make_gpus:
        pytest.skip("PERSEUS_MAKE_GPUS names no program")
    device = tmp_path / "gpus"
    subprocess.run([make_gpus, str(device), "[[gpus]]\ncall_ms = 2\nsettle_ms = 0\n"], check=True)
    with perseus.Client(api.url, job_id="job-7", device=f"simulated:{device}") as client:

        def follows() -> bool:
            stats = client.stats()
            return stats is not None and stats.clock_mhz == 1200

        assert train(client, follows), client.last_error
        assert client.plan_version == 4
        assert client.state == perseus.State.FOLLOWING


def test_nothing_raises_into_training() -> None:
    """Wrong arguments and a closed client do nothing."""
    with perseus.Client("http://127.0.0.1:9", job_id="none", close_timeout_seconds=0.2) as client:
        client.step_begin("one")  # type: ignore[arg-type]
        client.instruction_begin("sideways", 0, 0)
        client.instruction_begin(["forward"], 0, 0)
        client.instruction_begin("forward", None, 0)  # type: ignore[arg-type]
        client.instruction_end(17)
        client.step_end()
    client.instruction_begin("forward", 0, 0)
    client.step_end()
    client.close()
    assert client.stats() is None
    assert client.state == perseus.State.CLOSED
    assert not client.set_straggler(1, 0, 2)


def test_a_job_that_is_no_json_only_warns() -> None:
    """As any wrong option."""
    with pytest.warns(UserWarning, match="JSON"):
        client = perseus.Client("http://127.0.0.1:9", job={"key": {1, 2}})
    assert client.state == perseus.State.CLOSED
    with pytest.raises(perseus.LibraryError, match="JSON"):
        perseus.Client("http://127.0.0.1:9", job={"key": {1, 2}}, strict=True)


def test_another_thread_may_close() -> None:
    """Who still trains does nothing then, and raises nothing."""
    failures: list[BaseException] = []

    def trains(client: perseus.Client) -> None:
        try:
            while client.state != perseus.State.CLOSED:
                for _ in range(100):
                    with client.step(1), client.instruction("forward"):
                        client.clear_straggler(1)
                client.stats()
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            client = perseus.Client()
            threads = [threading.Thread(target=trains, args=(client,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            client.close()
            for thread in threads:
                thread.join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def test_an_exception_of_the_trainer_goes_through() -> None:
    """The context managers swallow nothing."""
    client = perseus.Client()
    with pytest.raises(ZeroDivisionError), client.step(1), client.instruction("forward"):
        _ = 1 / 0
    client.close()


def test_wrong_options_warn_or_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning; an exception only where strict."""
    with pytest.warns(UserWarning, match="job_id or job_json"):
        client = perseus.Client("http://127.0.0.1:9")
    assert "job_id or job_json" in client.last_error
    client.instruction_begin("forward", 0, 0)
    with pytest.raises(perseus.LibraryError, match="job_id or job_json"):
        perseus.Client("http://127.0.0.1:9", strict=True)
    with pytest.warns(UserWarning, match="no option"):
        perseus.Client(min_interval="soon", colour="red")
    wrong: dict[str, Any] = {
        "server": 5,
        "device": ["agent"],
        "rank": "3",
        "gpu_index": 2**31,
        "profile_iterations": 1.5,
        "max_overhead": "much",
    }
    for name, value in wrong.items():
        with pytest.warns(UserWarning, match=f"{name} is .*; expected (text|a .*number)"):
            client = perseus.Client(**{name: value})
        assert client.state == perseus.State.CLOSED
    with pytest.warns(UserWarning, match="nvidia"):
        perseus.Client(device="nvidia")
    monkeypatch.setenv("PERSEUS_CLIENT_LIBRARY", "/nonexistent.so")
    with pytest.warns(UserWarning, match="nonexistent"):
        client = perseus.Client()
    assert client.state == perseus.State.CLOSED


def test_a_bad_argument_ends_with_its_step() -> None:
    """What only Python saw, too."""
    with perseus.Client("http://127.0.0.1:9", job_id="j") as client:
        client.step_begin(0)
        client.instruction_begin("sideways")
        client.step_end()
        assert "sideways" in client._failure
        client.step_begin(1)
        assert client._failure == ""


def test_strict_waits_for_the_server(api: Api) -> None:
    """Registered when the constructor returns, or not opened."""
    with perseus.Client(api.url, job_id="job-7", strict=True) as client:
        assert client.job_id == "job-7"
    with pytest.raises(perseus.LibraryError, match=r"127\.0\.0\.1:9"):
        perseus.Client("http://127.0.0.1:9", job_id="x", strict=True, open_timeout_seconds=0.3)


def test_a_forked_child_has_no_client() -> None:
    """Every call does nothing there."""
    client = perseus.Client()
    client.step_begin(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        good = client.state == perseus.State.CLOSED and client.stats() is None
        client.instruction_begin("forward", 0, 0)
        client.close()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.stats() is not None
    client.close()


def test_the_interpreter_ends_with_an_open_client() -> None:
    """Nothing hangs or crashes at exit."""
    done = subprocess.run(
        [sys.executable, "-c", "import perseus; c = perseus.Client(); c.step_begin(1)"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0


def test_the_interpreter_ends_while_a_daemon_thread_trains() -> None:
    """The client is stopped, not freed under its feet."""
    script = (
        "import perseus, threading, time\n"
        "c = perseus.Client()\n"
        "def train():\n"
        "    while True:\n"
        "        c.stats(); c.last_error\n"
        "for _ in range(4): threading.Thread(target=train, daemon=True).start()\n"
        "time.sleep(0.05)\n"
    )
    for _ in range(10):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            timeout=60,
            check=False,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_structs_are_those_of_the_header(tmp_path: Path) -> None:
    """Sizes and offsets as a C compiler sees them."""
    from perseus import library

    checks = []
    for name, struct in (
        ("perseus_client_options", library.Options),
        ("perseus_client_stats", library.StatsStruct),
    ):
        import ctypes

        checks.append(f"sizeof({name}) == {ctypes.sizeof(struct)}")
        for field in struct._fields_:
            checks.append(f"offsetof({name}, {field[0]}) == {getattr(struct, field[0]).offset}")
    source = tmp_path / "layout.c"
    source.write_text(
        '#include "perseus/client.h"\n'
        + "".join(f'_Static_assert({check}, "{check}");\n' for check in checks)
    )
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-std=c11", "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)], check=True
    )


def test_signals_are_the_trainers() -> None:
    """Background threads take no signal: handlers run in the trainer's own."""
    seen: list[str] = []
    client = perseus.Client()
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread().name))
    try:
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
        client.close()
    assert set(seen) == {"MainThread"}
