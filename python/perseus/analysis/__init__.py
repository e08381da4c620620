# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What analysts ask: commands of `perseus` that are answered in Python, not by the program.

They need NumPy, pandas, SciPy, pyarrow and matplotlib, which `pip install
"perseus-energy[analysis]"` brings.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, NamedTuple

from perseus.planner_error import PlannerError
from perseus.program import ProgramError
from perseus.shared_library import LibraryError

if TYPE_CHECKING:
    from collections.abc import Sequence

EXTRA = "perseus-energy[analysis]"
_REFUSED = 2


class Command(NamedTuple):
    """A command: its words, the module whose `main(arguments)` answers it, and one sentence."""

    name: str
    module: str
    sentence: str


# src/cli/command_line.cc has the same names, for the program where it runs alone.
COMMANDS: tuple[Command, ...] = (
    Command(
        "fleet emulate",
        "perseus.analysis.fleet",
        "Simulate a site for some days, under one rule of dividing power after the other.",
    ),
    Command("policy", "perseus.analysis.policy", "Write the plan of another policy, to compare."),
    Command("power", "perseus.analysis.power", "Ramps and swings of an emulated job's power."),
    Command("synth", "perseus.analysis.synth", "Make a modelled profile, without a GPU."),
    Command(
        "trace",
        "perseus.analysis.trace",
        "What stragglers cost a recorded job, and what plans would have saved.",
    ),
)


def find(arguments: Sequence[str]) -> tuple[Command, list[str]] | None:
    """Return the command that arguments begin with, and the rest; None: the program's."""
    for command in COMMANDS:
        words = command.name.split()
        if list(arguments[: len(words)]) == words:
            return command, list(arguments[len(words) :])
    return None


def run(command: Command, arguments: list[str]) -> int:
    """Answer a command; return its exit code: 0, 1 (a fault of ours) or 2 (refused)."""
    try:
        code: int = importlib.import_module(command.module).main(arguments)
        return code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "perseus":
            raise
        sentence = (
            f"{command.name} needs {error.name}: pip install '{EXTRA}', or '.[analysis]' in the "
            "source of Perseus"
        )
    except (PlannerError, ProgramError, LibraryError, OSError) as error:
        sentence = str(error)
    print(f"perseus: {sentence}", file=sys.stderr)
    return _REFUSED


def overview() -> str:
    """Return the lines that the program's own help lacks."""
    width = max((len(command.name) for command in COMMANDS), default=0)
    lines = [f"  {command.name:{width}}  {command.sentence}" for command in COMMANDS]
    return "\n".join(["In the Python package:", *lines]) if lines else ""
