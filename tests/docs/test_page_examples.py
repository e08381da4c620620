# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the shell blocks of README.md and of the tutorials, as a reader would."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages_of import ROOT, split

BINARY = Path(os.environ.get("PERSEUS_BINARY", ROOT / "build/release/src/cli/perseus"))

# Commands that other checks run: .ci/run the first two, tests/demo the third.
ELSEWHERE = {"./quickstart", "./run-tests", "perseus demo"}
# Commands that run until they are stopped, in a terminal of their own.
SERVICES = ("perseus agent run", "perseus serve")


class Shell:
    """Runs a page's blocks in a folder of their own that looks like the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        for name in ("examples", "python", "build"):
            (folder / name).symlink_to(ROOT / name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.server = f"127.0.0.1:{probe.getsockname()[1]}"
        self.environment = os.environ | {
            "PATH": f"{BINARY.parent}:{os.environ['PATH']}",
            "PERSEUS_SERVER": f"http://{self.server}",
            "PYTHONPATH": str(ROOT / "python"),
            "PERSEUS_CLIENT_LIBRARY": str(
                BINARY.parents[1] / "training/client/libperseus_client.so"
            ),
        }
        self.services: list[subprocess.Popen[bytes]] = []

    def adapted(self, text: str) -> str:
        """The text with this test's folders, address and job in place of the page's."""
        text = text.replace("/tmp/", f"{self.temporary}/").replace("127.0.0.1:7787", self.server)
        if re.search(r"\bj-[0-9a-f]{16}\b", text):
            jobs = self.run("perseus job list --json").stdout
            identity = json.loads(jobs)["jobs"][0]["id"]
            text = re.sub(r"\bj-[0-9a-f]{16}\b", identity, text)
        return text

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a script to its end."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def serve(self, script: str) -> None:
        """Starts a service, and waits until it answers."""
        if script.startswith("perseus serve"):
            script = f"{script.rstrip()} --listen {self.server}"
        self.services.append(
            subprocess.Popen(
                ["bash", "-c", f"exec {script}"], cwd=self.folder, env=self.environment
            )
        )
        ask = "perseus job list"
        if "--socket" in script:
            ask = f"perseus agent status --socket {script.split('--socket ')[1].split()[0]}"
        while self.run(ask).returncode != 0:
            assert self.services[-1].poll() is None, f"it ended: {script}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Ends the services."""
        for service in self.services:
            service.send_signal(signal.SIGTERM)
            service.wait(timeout=60)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell for one page."""
    shell = Shell(tmp_path)
    yield shell
    shell.stop()


def files_of(text: str) -> dict[str, str]:
    """The files that a page tells its reader to save: "... as `train.py`", and then a block."""
    return {
        match[1]: match[2]
        for match in re.finditer(
            r"ave (?:it|this|them) as\s+`([\w.]+)`[^`]*(?:`[^`]*`[^`]*)*?```\w+\n(.*?)```",
            text,
            re.S,
        )
    }


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *sorted(f"docs/tutorial/{path.name}" for path in (ROOT / "docs/tutorial").iterdir()),
    ],
)
def test_the_commands_of_a_page_work(page: str, shell: Shell) -> None:
    """Each shell block of a page ends with exit code 0."""
    text = (ROOT / page).read_text()
    if page == "README.md":
        text = text.split("## Try it without a GPU")[1].split("\n## ")[0]
    for name, content in files_of(text).items():
        (shell.folder / name).write_text(shell.adapted(content))
    for block in split(text)[1]:
        if block.language != "sh":
            continue
        lines = [
            line
            for line in block.text.splitlines()
            if re.sub(r"\s*#.*", "", line).strip() not in ELSEWHERE
        ]
        script = shell.adapted("\n".join(lines))
        if script.startswith(SERVICES):
            shell.serve(script)
            continue
        done = shell.run(script)
        assert done.returncode == 0, f"{page}:{block.line}\n{script}\n{done.stdout}{done.stderr}"
