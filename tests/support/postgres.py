# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server, and PgBouncer before it, for one test.

Both live in a temporary folder, on a Unix socket only, as the user postgres
where the test runs as root, and are killed at the end. What a test kills was
flushed to the operating system, so that it need not reach the disk (`durable`:
it does).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import TypeVar

PORT = 5432  # Part of the socket's name only.
PATIENCE_SECONDS = 60.0
PGBOUNCER = Path("/usr/sbin/pgbouncer")


def _programs() -> Path | None:
    """Find the folder of the newest PostgreSQL's programs."""
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda path: float(path.parent.name), default=None)


def _user() -> str | None:
    """Name who runs a server, which root may not: None where we may ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


def why_missing(*, pooler: bool = False) -> str:
    """Say why there is no PostgreSQL (or PgBouncer) here; empty: there is one."""
    if _programs() is None:
        return "PostgreSQL is not installed (scripts/install-deps --dev installs it)"
    if pooler and not PGBOUNCER.exists():
        return "PgBouncer is not installed (scripts/install-deps --dev installs it)"
    return ""


def _folder() -> Path:
    # Short: a socket's name has 107 letters at most.
    folder = Path(tempfile.mkdtemp(prefix="perseus-server-", dir="/tmp"))
    folder.chmod(0o755)
    user = _user()
    if user is not None:
        shutil.chown(folder, user)
    return folder


def _uri(database: str, sockets: Path) -> str:
    return f"postgresql://postgres@/{database}?host={sockets}&port={PORT}"


_Own = TypeVar("_Own", bound="_Process")


class _Process:
    """A server's process with its folder; a context manager."""

    def __init__(self) -> None:
        self.folder = _folder()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def uri(self, database: str = "perseus") -> str:
        """Give the address for --store."""
        return _uri(database, self.folder)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self) -> None:
        """Kill it and remove its folder."""
        self.kill()
        for _ in range(50):  # A killed process may write until the kernel has ended it.
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
            time.sleep(0.1)

    def spawn(self, *arguments: object) -> subprocess.Popen[bytes]:
        """Start a program as the server's user."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(argument) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "LC_ALL": "C"},
                cwd="/",
                user=_user(),
                group=None if _user() is None else pwd.getpwnam(_user() or "").pw_gid,
                extra_groups=None if _user() is None else [],
            )

    def wait_until_it_answers(self) -> None:
        """Return when the server takes connections."""
        programs = _programs()
        assert programs is not None
        assert self.process is not None
        end = time.monotonic() + PATIENCE_SECONDS
        ready = [str(programs / "pg_isready"), "-q", "-h", str(self.folder), "-p", str(PORT)]
        while subprocess.run(ready, check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                text = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"the server did not start: {text}")
            time.sleep(0.02)


class Postgres(_Process):
    """A server of PostgreSQL."""

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__()
        programs = _programs()
        if programs is None:
            raise RuntimeError(why_missing())
        self._programs = programs
        self._durable = durable
        data = self.folder / "data"
        initdb = self.spawn(
            programs / "initdb", "-D", data, "-N", "-A", "trust", "-U", "postgres",
            "-E", "UTF8", "--locale=C",
        )  # fmt: skip
        if initdb.wait(PATIENCE_SECONDS) != 0:
            raise RuntimeError((self.folder / "log").read_text(errors="replace"))
        self.start()
        self.run("CREATE DATABASE perseus", "postgres")

    def start(self) -> None:
        """Start it (again)."""
        options = ["-c", "listen_addresses=", "-c", "shared_buffers=16MB"]
        if not self._durable:
            options += ["-c", "fsync=off"]
        self.process = self.spawn(
            self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder,
            "-p", PORT, *options,
        )  # fmt: skip
        self.wait_until_it_answers()

    def pids(self) -> list[int]:
        """List the processes of the server, the postmaster first."""
        if self.process is None:
            return []
        pids = [self.process.pid]
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[1]) == self.process.pid:
                    pids.append(int(stat.parent.name))
        return pids

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of it, as SIGSTOP and SIGCONT."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kill all of it with SIGKILL."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGSTOP)  # Or it would start others.
        pids = self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        # Shared memory is in use until the last of them is gone.
        end = time.monotonic() + PATIENCE_SECONDS
        while any(_is_alive(pid) for pid in pids) and time.monotonic() < end:
            time.sleep(0.005)

    def restart(self) -> None:
        """Stop it in order, closing connections at once, and start it again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_SECONDS)
        self.start()

    def run(self, sql: str, database: str = "perseus") -> str:
        """Run SQL as the superuser and give what psql prints of the answer."""
        answer = subprocess.run(
            [
                str(self._programs / "psql"), "-X", "-q", "-t", "-A", "-h", str(self.folder),
                "-p", str(PORT), "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1",
                "-c", sql,
            ],
            check=True,
            capture_output=True,
            text=True,
        )  # fmt: skip
        return answer.stdout.strip()


class PgBouncer(_Process):
    """PgBouncer in transaction mode before a server."""

    def __init__(self, server: Postgres, *, pool_size: int = 4) -> None:
        super().__init__()
        (self.folder / "users.txt").write_text('"postgres" ""\n')
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host={server.folder} port={PORT}\n"
            f"[pgbouncer]\nlisten_addr=\nlisten_port={PORT}\nunix_socket_dir={self.folder}\n"
            f"auth_type=trust\nauth_file={self.folder}/users.txt\npool_mode=transaction\n"
            f"default_pool_size={pool_size}\nquery_wait_timeout=5\nserver_login_retry=1\n"
        )
        self.process = self.spawn(PGBOUNCER, configuration)
        self.wait_until_it_answers()


def _is_alive(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
