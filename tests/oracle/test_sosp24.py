# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""evaluation/sosp24.py: cells of the paper's tables, as they always were."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from . import binary

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = binary.REPOSITORY / "evaluation/sosp24.py"
# With an effort of 0.02: one cell of Table 6 and its rows of Figures 7 and 8, EnvPipe, the real
# jobs of Table 3, and the published plans that are replayed.
CELLS = """\
| gpt3-175b | a100_sxm | 12 | 8192 | 28.1800 | 28.3651 | 15.201604 | T is below T_min | - | - |
| gpt3-175b | a100_sxm | 12 | 28.3651 | 15.201604 | 16.49 (above the bound) | 15.96 | 16.06 \
| -0.10 | +0.76 | -0.53 |
| gpt3-175b | a100_sxm | 12 | 24.889609 | 24.803326 | 1.13 | 25.83 | 1.20 | 27.26 | 27.16 | 27.20 \
| +2.36 | 27.24 | 27.29 |
| gpt3-175b | a100_sxm | 12 | 13.389815 | 13.319550 | 13.56 | 27.16 |
| gpt3-175b | a100_sxm | 12 | 1.05 | 21.65 | 21.65 | 21.96 | 22.03 | +0.31 | 14.07 |
| gpt3-175b | a100_sxm | 12 | 1.50 | 23.10 | 24.30 | 26.85 | 26.85 | +3.74 | 12.64 |
| gpt3-175b | a100_sxm | 12 | 28.3650 | 28.3651 | 503608 | 503608 | 14.08 | 14.08 | 0.00 |
| A100 | gpt3-xl | dp1+pp4+tp1 | 128 | 13.15 | 0.10 | - | - | 13.42 | 13.42 | +0.27 | - | - | - |
| A100 | bert-huge-uncased | dp1+pp4+tp1 | 32 | 12.86 | 0.48 | 8.04 | 0.00 | 14.45 | 14.47 | +1.60 \
| 13.25 | 0.33 | +1.20 |
| A40 | bloom-3b | dp1+pp8+tp1 | 128 | 22.39 | 0.00 | - | - | 25.03 | 25.05 | +2.64 | - | - | - |
| A100 | bert-huge-uncased | 28 | -6.15 | -6.48 | -2.29 | -2.54 |
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program."""
    return subprocess.run(
        [sys.executable, "-B", str(PROGRAM), *map(str, arguments)],
        env=binary.package_environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_cells(sosp24: Path, tmp_path: Path) -> None:
    """One emulated job, and all real ones."""
    data = sosp24 / "sosp24_data"
    folder = tmp_path / "data/emulation"
    case = "iteration_time_energy/a100_sxm/gpt3-175b_bf16_mb12.csv"
    (folder / case).parent.mkdir(parents=True)
    for name in (case, "stage_profile", "envpipe_result.csv"):
        (folder / name).symlink_to(data / "emulation" / name)
    for name in ("envpipe", "perseus", "workloads", "zeus"):
        (tmp_path / "data" / name).symlink_to(data / name)
    beside = ("--derived", sosp24 / "derived", "--measured", sosp24 / "measured")
    done = run(tmp_path / "data", *beside, "--effort", "0.02", "--no-times", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.replace("\u2212", "-").replace("\u2013", "-").splitlines()
    assert [cells for cells in CELLS.splitlines() if cells not in lines] == []
    for name in ("evaluation.md", "evaluation.json", "evaluation.svg"):
        assert (tmp_path / "out" / name).stat().st_size > 1000


def test_what_is_no_artifact_is_refused(tmp_path: Path) -> None:
    """With a sentence; a file that is not the paper's, with its name."""
    assert "holds nothing of the paper's artifact" in run(tmp_path).stderr
    folder = tmp_path / "zeus/csv/A100"
    folder.mkdir(parents=True)
    (tmp_path / "workloads/dp1+pp4+tp1").mkdir(parents=True)
    models = tmp_path / "workloads/dp1+pp4+tp1/models_A100.csv"
    models.write_text("model,dp\nx,1\n", encoding="utf-8")
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{models}: the header has no column 'partition_method'" in done.stderr
