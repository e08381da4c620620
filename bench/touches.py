# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Counts the files without tests that name one field, flag, metric and so on.

python bench/touches.py [COMMIT...] > docs/evidence/changes.md

Who adds one more of its kind has to change about as many. Without a COMMIT: the commit that issue
22 began with. The working tree is always the last column.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FIRST = "773427d"
FOLDERS = ("src", "include", "python", "evaluation")
MOST = 8

# A change, an example that is there already, and all spellings of it.
CHANGES = [
    ("a job field", "`work_tokens`", "work_tokens|work-tokens"),
    ("a flag", "`--no-reuse` of `job create`", "no_reuse|no-reuse"),
    ("a schedule", "`zbv`", "zbv|ZBV|Zbv|kZbv"),
    ("an endpoint", "`DELETE .../reprofile`", "cancelReprofile|CancelReprofile|CancelSweep"),
    ("a metric", "`perseus_job_waiting`", "perseus_job_waiting"),
    ("a report column", "`Gap`", '"Gap"'),
    ("an event", "`trouble`", "trouble|kTrouble"),
    ("a stored column", "`starts_at`", "starts_at"),
    (
        "a plan figure",
        "`iteration_time_spread_s`",
        "iteration_time_spread_s|iteration_time_spread_seconds",
    ),
    ("a plan figure", "`distinct_knobs`", "distinct_knobs"),
]
# Lists of names: what, the file, and how a name stands in it.
LISTS = [
    ("job fields", "src/planner/job/job_fields.cc", r'^    \{"(\w+)", &JobFile::'),
    ("plan figures", "src/planner/model/plan_figures.cc", r'^    \{"(\w+)", k'),
    ("metrics", "src/server/ops/metrics.cc", r'"(perseus_\w+)"'),
]

INTRODUCTION = f"""# Files that a change touches

`python bench/touches.py > docs/evidence/changes.md` writes this page. For each kind of change it
takes an example, and counts the files in {", ".join(FOLDERS)} that name it in any spelling
(`git grep -lw`). Tests and prose are not counted. A new one needs about as many files as its
example; the target is at most {MOST}.
"""
OF_LISTS = """
The same for all names of three lists of today, each in one spelling. Some keys are common words
(`profile`, `stages`), and some figures share a name (`energy_j`), so these are upper limits.
"""


def files_with(pattern: str, commit: str | None) -> list[str]:
    """Return the files of a commit (None: of the working tree) that name something."""
    words = [] if pattern.startswith('"') else ["-w"]
    command = ["git", "grep", "-lE", *words, pattern, *([commit] if commit else []), "--", *FOLDERS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode in (0, 1), done.stderr
    return [line.partition(":")[2] if commit else line for line in done.stdout.splitlines()]


def main() -> None:
    """Print the page."""
    commits = sys.argv[1:] or [FIRST]
    print(INTRODUCTION)
    print("| change | example | " + " | ".join(commits) + " | now |")
    print("|---" * 2 + "|--:" * (len(commits) + 1) + "|")
    above: list[tuple[str, list[str]]] = []
    for change, example, pattern in CHANGES:
        now = files_with(pattern, None)
        counts = [str(len(files_with(pattern, commit))) for commit in commits]
        print(f"| {change} | {example} | " + " | ".join([*counts, str(len(now))]) + " |")
        if len(now) > MOST:
            above.append((example, now))
    print(OF_LISTS)
    print("| list | names | " + " | ".join(f"{c}: median" for c in [*commits, "now"]) + " |")
    print("|---|--:" + "|--:" * (len(commits) + 1) + "|")
    for what, file, pattern in LISTS:
        names = re.findall(pattern, (REPOSITORY / file).read_text(), re.MULTILINE)
        medians = [
            statistics.median(len(files_with(name, commit)) for name in names)
            for commit in [*commits, None]
        ]
        print(f"| {what} | {len(names)} | " + " | ".join(f"{m:g}" for m in medians) + " |")
    if above:
        print(f"\n## More than {MOST}\n")
    for example, now in above:
        print(f"- {example}: {', '.join(f'`{file}`' for file in now)}")


if __name__ == "__main__":
    main()
