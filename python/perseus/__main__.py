# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`perseus` of the package: commands of `perseus.analysis`, and the program for all others."""

from __future__ import annotations

import os
import subprocess
import sys

from perseus import analysis
from perseus.program import ProgramError, find


def main() -> None:
    """Answer a command of the package, or become the program."""
    arguments = sys.argv[1:]
    command = analysis.find(arguments)
    if command is not None:
        sys.exit(analysis.run(*command))
    try:
        program = find()
        if arguments in ([], ["--help"], ["-h"], ["help"]) and analysis.COMMANDS:
            code = subprocess.run([program, *arguments], check=False).returncode
            print(f"\n{analysis.overview()}")
            sys.exit(code)
        os.execv(program, ["perseus", *arguments])
    except (ProgramError, OSError) as error:
        sys.exit(f"perseus: {error}")


if __name__ == "__main__":
    main()
