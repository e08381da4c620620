# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Independent checks of the planner: they share no code with it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "python"))  # perseus.analysis, which is checked.
