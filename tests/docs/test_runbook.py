# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/how-to/runbook.md against a real server, agent and relay.

`sudo`, `systemctl` and `journalctl` are stand-ins: they run the command as it is, start and stop
the services' real programs, and show their real logs. All other programs are the machine's own.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_of import ROOT, split

BINARY = Path(os.environ.get("PERSEUS_BINARY", ROOT / "build/release/src/cli/perseus"))
PAGE = ROOT / "docs/how-to/runbook.md"

PROGRAMS = ("sudo", "perseus", "systemctl", "journalctl", "curl", "cd")
# Why a command is not run here.
ELSEWHERE = {
    "sudo nvidia-smi -rgc": "needs a GPU of NVIDIA's",
    "perseus store copy": "only its name; tests/server/test_store_copy.py runs it",
}
# The state that each heading's commands need before, or show after, has a test below.
TOKENS = {"operate": "o" * 40, "train": "t" * 40}

STAND_INS = {
    "sudo": 'exec "$@"',
    "journalctl": """
        while getopts "u:n:" option; do
          case $option in u) unit=$OPTARG ;; n) lines=$OPTARG ;; esac
        done
        tail -n "${lines:-100000}" "$UNITS/$unit.log"
        """,
    "systemctl": """
        unit=$UNITS/$2
        is_alive() { [[ -e /proc/$1 ]] && ! grep -q ') Z' "/proc/$1/stat"; }
        stop() {
          [[ -e $unit.pid ]] || return 0
          pid=$(<"$unit.pid")
          kill "$pid" && while is_alive "$pid"; do sleep 0.05; done
          rm "$unit.pid"
        }
        start() {
          if [[ -e $unit.pid ]] && is_alive "$(<"$unit.pid")"; then return 0; fi
          bash "$unit.start" >>"$unit.log" 2>&1 </dev/null &
          echo $! >"$unit.pid"
          until bash "$unit.ready" >/dev/null 2>&1; do
            is_alive $! || exit 1
            sleep 0.1
          done
        }
        case $1 in
          start | stop) "$1" ;;
          restart) stop && start ;;
          status) is_alive "$(<"$unit.pid")" ;;
          *) exit 1 ;;
        esac
        """,
}


def commands() -> list[tuple[str, str]]:
    """Return heading and text of each command of the page: lines of blocks, and in the prose."""
    found: list[tuple[str, str]] = []
    text = PAGE.read_text()
    prose, blocks = split(text)
    headings = [(line, words[3:]) for line, words in prose if words.startswith("## ")]

    def heading_of(line: int) -> str:
        return next((words for at, words in reversed(headings) if at < line), "")

    for block in blocks:
        for line in block.text.splitlines():
            command = re.sub(r"\s+#.*", "", line).strip()
            found.append((heading_of(block.line), command))
    joined = "\n".join(words for _, words in prose)
    numbers = [line for line, words in prose for _ in range(len(words) + 1)]
    for code in re.finditer(r"`([^`]+)`", joined):
        command = " ".join(code[1].split())
        if command.startswith(PROGRAMS) and " " in command:
            found.append((heading_of(numbers[code.start()]), command))
    return found


def is_under(heading: str, beginning: str) -> bool:
    """Whether a heading is the one that is meant by its beginning; "": the page's own."""
    return heading.startswith(beginning) if beginning else heading == ""


class Site:
    """A server with TLS and tokens, a node with agent and relay, and the page's commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bin", "units", "etc/perseus", "var/lib/perseus-server", "var/backups"):
            (folder / name).mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"https://127.0.0.1:{probe.getsockname()[1]}"
        for name, script in STAND_INS.items():
            path = folder / "bin" / name
            path.write_text("#!/bin/bash\n" + textwrap.dedent(script))
            path.chmod(0o755)
        self.etc = folder / "etc/perseus"
        self.agent_socket = folder / "agent.sock"
        self.environment = os.environ | {
            "PATH": f"{folder}/bin:{BINARY.resolve().parent}:{os.environ['PATH']}",
            "UNITS": str(folder / "units"),
            "CURL_CA_BUNDLE": str(folder / "ca.pem"),
            "PERSEUS_SERVER": self.url,
            "PERSEUS_CA_FILE": str(folder / "ca.pem"),
            "PERSEUS_TOKEN_FILE": str(folder / "token"),
            "PYTHONPATH": str(ROOT / "python"),
            "PERSEUS_CLIENT_LIBRARY": os.environ.get(
                "PERSEUS_CLIENT_LIBRARY",
                str(BINARY.resolve().parents[1] / "training/client/libperseus_client.so"),
            ),
        }
        self.job = ""

    def start(self) -> None:
        """Make certificates, tokens, GPUs and a job, and start all services."""
        self.make_certificate(self.etc, "")
        (self.folder / "ca.pem").write_text((self.etc / "cert.pem").read_text())
        lines = [f"{role} {token} {role}-er" for role, token in TOKENS.items()]
        self.secret("etc/perseus/tokens", "\n".join(lines) + "\n")
        self.secret("etc/perseus/relay-token", TOKENS["train"] + "\n")
        self.secret("token", TOKENS["operate"] + "\n")
        self.run(f"{sys.executable} -m perseus.simulate create {self.folder}/gpus --gpus 2")
        self.unit(
            "perseus-server",
            f"perseus serve --listen {self.url.removeprefix('https://')} "
            f"--store sqlite:{self.folder}/var/lib/perseus-server/perseus.db "
            f"--token-file {self.etc}/tokens --tls-cert {self.etc}/cert.pem "
            f"--tls-key {self.etc}/key.pem",
            f"curl -sfk {self.url}/readyz",
        )
        self.unit(
            "perseus-agent",
            f"perseus agent run --driver simulated:{self.folder}/gpus "
            f"--socket {self.agent_socket} --journal {self.folder}/journal",
            f"perseus agent status --socket {self.agent_socket}",
        )
        self.unit(
            "perseus-relay",
            f"perseus agent relay --server {self.url} --socket {self.folder}/relay.sock "
            f"--token-file {self.etc}/relay-token --ca-file {self.folder}/ca.pem",
            f"curl -sf --unix-socket {self.folder}/relay.sock http://relay/readyz",
        )
        for unit in ("perseus-server", "perseus-agent", "perseus-relay"):
            self.run(f"systemctl start {unit}")
        example = ROOT / "examples/gpt3-1.3b-a100-sxm.toml"
        made = self.run(f"perseus job create {example} --name nightly --json")
        self.job = json.loads(made)["id"]

    def secret(self, name: str, text: str) -> None:
        """Write a file that its owner alone may read."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)

    def make_certificate(self, folder: Path, prefix: str) -> None:
        """Make a certificate for the server's address, signed by itself."""
        self.run(
            f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 "
            f"-keyout {folder}/{prefix}key.pem -out {folder}/{prefix}cert.pem "
            f"-subj /CN={prefix}perseus -addext subjectAltName=IP:127.0.0.1"
        )
        (folder / f"{prefix}key.pem").chmod(0o600)

    def unit(self, name: str, start: str, ready: str) -> None:
        """Say how a service is started, and how one sees that it is ready."""
        units = self.folder / "units"
        (units / f"{name}.start").write_text(f"exec {start}\n")
        (units / f"{name}.ready").write_text(ready + "\n")

    def stop(self) -> None:
        """End all services."""
        for unit in ("perseus-relay", "perseus-agent", "perseus-server"):
            self.run(f"systemctl stop {unit}")

    def adapted(self, command: str) -> str:
        """The command with this test's places in place of the page's."""
        command = re.sub(r"/(etc/perseus|var/lib|var/backups)\b", rf"{self.folder}/\1", command)
        command = command.replace("https://perseus.example:7787", self.url)
        command = re.sub(r"\bURL\b", self.url, command)
        command = re.sub(r"\bJOB\b", self.job, command)
        command = re.sub(r"\bNAME\b", "operate-er", command)
        return re.sub(
            r"(perseus agent (?:status|release))", rf"\1 --socket {self.agent_socket}", command
        )

    def run(self, command: str) -> str:
        """Run a command; it must succeed. Return what it prints."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        log = "".join(path.read_text() for path in (self.folder / "units").glob("*.log"))
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}\n{log[-3000:]}"
        return done.stdout

    def run_page(self, heading: str) -> str:
        """Run all commands under a heading, in one shell; return what they print."""
        script = [text for under, text in commands() if is_under(under, heading)]
        assert script, f"no commands under {heading}"
        script = [text for text in script if text not in ELSEWHERE]
        return self.run("\n".join(map(self.adapted, script)))

    def call(self, path: str) -> Any:
        """Ask the server for JSON."""
        token = TOKENS["operate"]
        return json.loads(self.run(f"curl -sf -H 'Authorization: Bearer {token}' {self.url}{path}"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Start a site for a test."""
    for program in ("openssl", "curl", "sqlite3"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    site = Site(tmp_path)
    site.start()
    yield site
    site.stop()


def test_each_command_is_run_or_has_a_reason() -> None:
    """A new command of the page needs a test here, or a reason."""
    source = Path(__file__).read_text()
    tested = set(re.findall(r'run_page\("([^"]*)"\)', source))
    known = [
        heading
        for heading, command in commands()
        if command not in ELSEWHERE and not any(is_under(heading, each) for each in tested)
    ]
    assert known == []
    assert set(ELSEWHERE) <= {command for _, command in commands()}
    assert len(commands()) >= 25


def test_a_server_that_does_not_answer(site: Site) -> None:
    """Status, log and health of one that does."""
    said = site.run_page("The server does not answer")
    assert '"status":"ok"' in said.replace(" ", "")
    assert " ready url=" in said
    assert "This server is well" in site.run_page("")
    assert "takes writes" in site.run_page("The store is behind")


def test_a_store_that_takes_no_writes(site: Site) -> None:
    """The log has the reason, where the store was away: here its file was deleted."""
    (site.folder / "var/lib/perseus-server/perseus.db").rename(site.folder / "gone")
    refused = f"perseus job point {site.job} 1.05x || true"
    script = f"until grep -q store_away {site.folder}/units/perseus-server.log; do {refused}; done"
    site.run(script)
    assert " store_away " in site.run_page("The store takes no writes")


def test_a_certificate_that_expires(site: Site) -> None:
    """The server has the new one after the commands."""
    site.make_certificate(site.folder, "new-")
    with (site.folder / "ca.pem").open("a") as bundle:
        bundle.write((site.folder / "new-cert.pem").read_text())
    site.run_page("The certificate expires")
    address = site.url.removeprefix("https://")
    shown = site.run(
        f"openssl s_client -connect {address} </dev/null 2>/dev/null | openssl x509 -noout -subject"
    )
    assert "new-perseus" in shown
    assert site.call("/api/v1/jobs")["jobs"][0]["id"] == site.job


def test_a_token_that_has_leaked(site: Site) -> None:
    """The old one is refused after the commands, and the log says who did what."""
    tokens = (site.etc / "tokens").read_text().replace(TOKENS["train"], "n" * 40)
    site.secret("etc/perseus/tokens", tokens)
    site.secret("etc/perseus/relay-token", "n" * 40)
    site.run(f"perseus job point {site.job} 1.02x")
    said = site.run_page("A token has leaked")
    assert "token=operate-er" in said
    for token, status in ((TOKENS["train"], "401"), ("n" * 40, "200")):
        got = site.run(
            f"curl -s -o answer -w '%{{http_code}}' -H 'Authorization: Bearer {token}' "
            f"{site.url}/api/v1/jobs"
        )
        assert got == status


def test_a_clock_that_is_stuck(site: Site) -> None:
    """The agent says who has what, and gives all back; it is started where it was not."""
    site.run("systemctl stop perseus-agent")
    site.run("systemctl start perseus-agent")
    said = site.run_page("A clock is stuck")
    assert re.search(r"^\d clocks? given back\.$", said, re.M)
    assert '"restore_pending":false' in said.replace(" ", "")


def test_jobs_that_complain_straggle_or_save_less(site: Site) -> None:
    """What the page says of them can be asked of a real job."""
    site.run(f"perseus job straggler set {site.job} --pipeline 0 --factor 1.2")
    assert "nightly" in site.run_page("A rank has no plan")
    site.run_page("A job saves less than predicted")
    assert "1.0x" in json.dumps(site.call(f"/api/v1/jobs/{site.job}"))
    site.run_page("A node was replaced")
    assert site.call(f"/api/v1/jobs/{site.job}/stragglers")["stragglers"] == []


def test_backup_and_restore(site: Site) -> None:
    """A job that was deleted after the backup is there again."""
    page = [text for under, text in commands() if is_under(under, "Backup and restore")]
    site.run(site.adapted(page[0]))
    site.run(f"perseus job delete {site.job} --yes")
    assert site.call("/api/v1/jobs")["jobs"] == []
    # The page's restore, without a backup of the store as it is now.
    site.run("\n".join(map(site.adapted, page[1:])))
    assert site.call("/api/v1/jobs")["jobs"][0]["id"] == site.job
    # And all of it, one after the other, loses nothing.
    site.run_page("Backup and restore")
    assert site.call("/api/v1/jobs")["jobs"][0]["id"] == site.job
