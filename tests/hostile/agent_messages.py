# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Broken messages to a real agent on simulated GPUs; its first duty must not suffer.

python tests/hostile/agent_messages.py --perseus build/release/src/cli/perseus \
    --make-gpus build/release/tests/device/make_gpus

Clients say valid lines that were cut, doubled, spliced, flipped, nested and blown up,
go away in the middle, or never read. Every answer must be one, a client that does
nothing wrong must get its lease and have its clock back when it goes, and memory must
not grow from round to round. fuzz/agent_protocol_fuzzer.cc is the parser's own.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

GPUS = "[[gpus]]\ncount = 2\nclocks_mhz = [900, 1200, 1410]\ncall_ms = 1\nsettle_ms = 1\n"
# Only a hang misses it.
PATIENCE = 30.0
HELLO = b'{"id":1,"op":"hello","version":1,"client":"x"}\n'


def line(**fields: Any) -> bytes:
    """Return a message."""
    return json.dumps(fields).encode() + b"\n"


class Agent:
    """A process of `perseus agent` with two simulated GPUs.

    Parameters
    ----------
    binary, make_gpus
        The programs.
    folder
        Where everything goes.
    make
        Whether the GPUs are made; else they are those of an agent before.
    """

    def __init__(self, binary: Path, make_gpus: Path, folder: Path, *, make: bool = True) -> None:
        if make:
            subprocess.run([make_gpus, folder / "gpus", GPUS], check=True)
        self._binary = binary
        self._socket = folder / "agent.sock"
        command = [str(binary), "agent", "run", "--driver", f"simulated:{folder / 'gpus'}"]
        command += ["--socket", str(self._socket), "--journal", str(folder / "journal")]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._log = ""
        deadline = time.monotonic() + PATIENCE
        while not self._socket.exists():
            assert time.monotonic() < deadline
            assert self._process.poll() is None
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    def connect(self) -> socket.socket:
        """Open a connection; refused is for later."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE)
        connection.connect(str(self._socket))
        return connection

    def status(self) -> Any:
        """Return what `perseus agent status --json` prints."""
        command = [str(self._binary), "agent", "status", "--json", "--socket", str(self._socket)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def resident_mib(self) -> float:
        """Return VmRSS."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) / 1024

    def stop(self) -> int:
        """End it as systemd does; return the exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            _, self._log = self._process.communicate(timeout=60)
        finally:
            self._process.kill()
        return self._process.returncode

    def log(self) -> str:
        """Return what it logged, once it has ended."""
        return self._log


def read_lines(connection: socket.socket, wanted: int) -> list[dict[str, Any]]:
    """Return answers until there are so many or the agent closes."""
    got = b""
    while got.count(b"\n") < wanted:
        try:
            more = connection.recv(1 << 16)
        except ConnectionError:
            break
        if not more:
            break
        got += more
    return [json.loads(text) for text in got.split(b"\n")[:-1]]


def mutated(chance: random.Random, lines: list[bytes]) -> bytes:
    """Return a line that is wrong in some way, or by chance not."""
    text = bytearray(chance.choice(lines))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text))
        kind = chance.randrange(9)
        if kind == 0:
            text[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del text[at : at + chance.randrange(1, 20)]
        elif kind == 2:
            text[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 20)))
        elif kind == 3:
            text += chance.choice(lines)
        elif kind == 4:
            text[at:at] = b"[" * chance.choice([10, 40, 60_000])
        elif kind == 5:
            text[at:at] = b'"' + b"x" * chance.choice([100, 70_000]) + b'"'
        elif kind == 6:
            text[at:at] = chance.choice([b"-1", b"1e999", b"99999999999999999999", b"null", b"NaN"])
        elif kind == 7:
            text[at:at] = b"\n" * chance.randrange(1, 50)
        else:
            text = text[: at + 1]
        if not text:
            text = bytearray(b"\n")
    return bytes(text)


def valid_lines(uuid: str) -> list[bytes]:
    """Return one of each request."""
    gpu = {"gpu": uuid}
    return [
        HELLO,
        *(line(id=2, op=op, **gpu) for op in ("lease", "release", "yield", "energy", "conditions")),
        line(id=3, op="set", mhz=900, **gpu),
        line(id=4, op="renew"),
        line(id=5, op="status"),
        line(id=6, op="release_all", **gpu),
    ]


def talk(agent: Agent, chance: random.Random, lines: list[bytes]) -> int:
    """One connection that says broken things; return how many answers were read."""
    connection = agent.connect()
    with connection:
        text = HELLO if chance.random() < 0.8 else b""
        said = [mutated(chance, lines) for _ in range(chance.randrange(1, 30))]
        way = chance.randrange(4)
        try:
            connection.sendall(text + b"".join(said))
            if way == 0:
                return 0  # Gone, with its answers unread.
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # Dropped for too many faults.
        answers = read_lines(connection, 1 << 30)
    for answer in answers:
        assert isinstance(answer["ok"], bool), answer
        if not answer["ok"]:
            assert answer["code"], answer
            assert answer["message"], answer
    return len(answers)


def lease_and_go(agent: Agent, uuid: str) -> None:
    """Do nothing wrong: lease, lock a clock, go; the clock must come back."""
    with agent.connect() as connection:
        gpu = {"gpu": uuid}
        connection.sendall(
            HELLO + line(id=2, op="lease", **gpu) + line(id=3, op="set", mhz=900, **gpu)
        )
        answers = {answer["id"]: answer for answer in read_lines(connection, 3)}
        assert answers[2]["ok"], answers
        assert answers[3]["ok"], answers
        assert answers[3]["mhz"] == 900
        locked = [gpu["locked_mhz"] for gpu in agent.status()["gpus"] if gpu["uuid"] == uuid]
        assert locked == [900], locked
    deadline = time.monotonic() + PATIENCE
    while any(gpu["locked_mhz"] for gpu in agent.status()["gpus"]):
        assert time.monotonic() < deadline, agent.status()


@contextmanager
def never_reading(agent: Agent, count: int) -> Iterator[None]:
    """Connections that ask and never read."""
    open_ones = []
    for _ in range(count):
        connection = agent.connect()
        connection.setblocking(False)
        # The agent stops to read when answers pile up.
        try:
            for _ in range(2000):
                connection.send(HELLO + line(id=5, op="status") * 20)
        except OSError:
            pass
        open_ones.append(connection)
    try:
        yield
    finally:
        for connection in open_ones:
            connection.close()


def run(binary: Path, make_gpus: Path, *, rounds: int, connections: int, seed: int) -> str:
    """Attack a new agent; return what was measured."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(binary, make_gpus, Path(folder))
        try:
            gpus = [gpu["uuid"] for gpu in agent.status()["gpus"]]
            resident = []
            answers = 0
            for _ in range(rounds):
                answers += sum(
                    talk(agent, chance, valid_lines(gpus[0])) for _ in range(connections)
                )
                lease_and_go(agent, gpus[0])
                with never_reading(agent, 5):
                    lease_and_go(agent, gpus[1])
                resident.append(agent.resident_mib())
        finally:
            status = agent.stop()
        assert status == 0, agent.log()
        assert "terminate" not in agent.log()
    grown = resident[-1] - resident[len(resident) // 2]
    return (
        f"{rounds} rounds of {connections} connections, {answers} answers; resident after each: "
        f"{', '.join(f'{mib:.0f}' for mib in resident)} MiB (second half grew {grown:.1f})"
    )


def main() -> int:
    """Run it and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perseus", type=Path, required=True)
    parser.add_argument("--make-gpus", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(
        run(
            arguments.perseus.resolve(),
            arguments.make_gpus.resolve(),
            rounds=arguments.rounds,
            connections=arguments.connections,
            seed=arguments.seed,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
