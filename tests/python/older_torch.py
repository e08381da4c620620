# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the hooks on the pipelining of each PyTorch from 2.4 on, and prints a table.

    PERSEUS_BINARY=build/release/src/cli/perseus build/venv/bin/python tests/python/older_torch.py

`torch.distributed.pipelining` is Python alone. So this takes that folder of each version from its
wheel on PyPI (1 to 2 MB of each are fetched), and runs it on the PyTorch of build/zeus-venv. The
rest of PyTorch is the installed version's. Exit code 1: a hook saw something else than the plan.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from test_torch_trainers import ITERATIONS, SCHEDULES
from trainers_testing import BINARY, HERE, TORCH, environment, flat, planned

VERSIONS = [
    "2.4.0",
    "2.5.1",
    "2.6.0",
    "2.7.1",
    "2.8.0",
    "2.9.1",
    "2.10.0",
    "2.11.0",
    "2.12.0",
    "2.13.0",
]
INDEX = "https://pypi.org/simple/torch/"
FOLDER = "torch/distributed/pipelining/"
SECONDS = 300
GOOD = "as planned"
WITHOUT = "fails here, also without hooks"


class Ranges(io.RawIOBase):
    """A file behind a URL, of which only what is read is fetched."""

    def __init__(self, url: str) -> None:
        self._url = url
        head = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(head, timeout=60) as answer:
            self._size = int(answer.headers["Content-Length"])
        self._place = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to another place."""
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fetch from the place on."""
        size = min(len(buffer), self._size - self._place)
        if size <= 0:
            return 0
        last = self._place + size - 1
        asked = urllib.request.Request(
            self._url, headers={"Range": f"bytes={self._place}-{last}", "User-Agent": "perseus"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            data = answer.read()
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


def links() -> dict[str, str]:
    """Return the URLs of all wheels by their names."""
    with urllib.request.urlopen(INDEX, timeout=60) as answer:
        text = answer.read().decode()
    found = re.findall(r'href="([^"#]*/([^"/#]*\.whl))', text)
    return {urllib.parse.unquote(name): urllib.parse.urljoin(INDEX, url) for url, name in found}


def fetch(version: str, wheels: dict[str, str], folder: Path) -> None:
    """Write the pipelining of a version to a folder. The smallest wheels are those of macOS."""
    url = next(u for n, u in wheels.items() if re.match(rf"torch-{version}-.*cp311.*macosx", n))
    with zipfile.ZipFile(io.BufferedReader(Ranges(url), 1 << 16)) as wheel:
        for name in wheel.namelist():
            if name.startswith(FOLDER) and name.endswith(".py"):
                (folder / Path(name).name).write_bytes(wheel.read(name))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run hooks_worker.py on the pipelining in `folder`."""
    return subprocess.run(
        [TORCH, "-B", str(HERE / "older_torch_runner.py"), str(folder), "torch", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def verdict(folder: Path, name: str) -> str:
    """Run a schedule on two ranks, and say whether the hooks saw it."""
    ours, virtual, counts = SCHEDULES[name]
    case = f"2 {name} {counts[0]} {virtual}"
    try:
        done = run(folder, "orders", case)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode != 0:
        if run(folder, "plain", case).returncode != 0:
            return WITHOUT
        return f"fails ({done.stderr.strip().splitlines()[-1][:80]})"
    seen = json.loads(done.stdout.splitlines()[-1])[case]
    if not all(one["same"] for one in seen):
        return "other losses"
    schedule = {"schedule": ours, "virtual_stages": virtual}
    rows = planned(schedule, 2 * virtual, counts[0])
    if all(one["begins"] == one["ends"] for one in seen):
        orders = [one["begins"] for one in seen]
        if orders == [flat(row) * ITERATIONS for row in rows]:
            return GOOD
        told = [flat(one["order"]) * ITERATIONS for one in seen]
        return "as the schedule says, not as planned" if orders == told else "another order"
    return "other computations"


def main() -> int:
    """Print a row for each version."""
    if not BINARY:
        sys.exit("PERSEUS_BINARY must name the program.")
    wheels = links()
    good = True
    print("| PyTorch | " + " | ".join(name.removeprefix("Schedule") for name in SCHEDULES) + " |")
    print("|---" * (len(SCHEDULES) + 1) + "|", flush=True)
    for version in sys.argv[1:] or VERSIONS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fetch(version, wheels, folder)
            source = (folder / "schedules.py").read_text()
            cells = [
                verdict(folder, each) if f"class {each}(" in source else "" for each in SCHEDULES
            ]
        good = good and all(cell in ("", GOOD, WITHOUT) for cell in cells)
        print(f"| {version} | " + " | ".join(cells) + " |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
