# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m perseus`: the program `perseus`, whichever environment is active."""

from __future__ import annotations

import os
import sys

from perseus.program import ProgramError, find


def main() -> None:
    """Become the program."""
    try:
        program = find()
        os.execv(program, ["perseus", *sys.argv[1:]])
    except (ProgramError, OSError) as error:
        sys.exit(f"perseus: {error}")


if __name__ == "__main__":
    main()
