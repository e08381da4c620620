# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""What the benchmarks share: measuring CPU time, saying what was run."""

from __future__ import annotations

import platform
import resource
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

# The oracle's reading of profiles, schedules and programs lives with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_header(packages: Sequence[str], binary: Path) -> None:
    """Print the command line, the versions and the machine."""
    version = subprocess.run(
        [str(binary), "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in packages]
    print(f"$ {shlex.join(['python', *sys.argv])}")
    print(f"{version or binary.name}; {', '.join(versions)}")
    print(f"{_processor()}, {platform.system()} {platform.machine()}\n", flush=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def cpu_seconds(command: Sequence[str | Path], repeat: int = 1) -> tuple[float, str]:
    """Run a command and return its least CPU time (user + system) and its output.

    Parameters
    ----------
    command
        Program and arguments.
    repeat
        How many times to run it.
    """
    best = float("inf")
    output = ""
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise SystemExit(f"{shlex.join(map(str, command))}: {done.stderr.strip()}")
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        best = min(best, spent)
        output = done.stdout
    return best, output
