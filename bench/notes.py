# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Gives Perseus nonsense at each of its doors, and prints what each door says of it.

python bench/notes.py > docs/evidence/notes.md

A mistake in a profile or a job is written into a job file, a call of Python and a request to a
server. Exits with 1 if a door says nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure  # noqa: F401 (finds the folder of the oracle)
from oracle.binary import REPOSITORY, perseus_binary
from oracle.output_doors import page_text

sys.path += [str(REPOSITORY / "tests/server"), str(REPOSITORY / "python")]
os.environ.setdefault(
    "PERSEUS_PLANNER_LIBRARY",
    str(perseus_binary().parents[1] / "training/planner_c/libperseus_planner.so"),
)

import perseus
from serving import Server

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[float, float, float, float]  # Clock, seconds, joules, spread of the seconds.
SOUND: list[Row] = [
    (1400, 0.1, 25, 0),
    (1200, 0.115, 24, 0),
    (1000, 0.135, 23, 0),
    (800, 0.165, 22, 0),
]
SETTINGS = {"schedule": "1f1b", "microbatches": 4, "blocking_power": 20, "effort": 0.01}


def each(change: Callable[[Row], Row]) -> list[Row]:
    """Change every row."""
    return [change(row) for row in SOUND]


def highest(factor: float) -> list[Row]:
    """Let the highest clock take `factor` times as long."""
    clock, seconds, joules, spread = SOUND[0]
    return [(clock, seconds * factor, joules * factor, spread), *SOUND[1:]]


# What is wrong, the profile, and what the job has besides.
NONSENSE: list[tuple[str, list[Row], dict[str, Any]]] = [
    ("times in milliseconds", each(lambda r: (r[0], r[1] * 1e3, *r[2:])), {}),
    ("energies in millijoules", each(lambda r: (*r[:2], r[2] * 1e3, r[3])), {}),
    ("energies of 16 GPUs together", each(lambda r: (*r[:2], r[2] * 16, r[3])), {}),
    ("clocks in GHz", each(lambda r: (r[0] / 1e3, *r[1:])), {}),
    ("clocks in kHz", each(lambda r: (r[0] * 1e3, *r[1:])), {}),
    ("highest clock 1.3 times as slow", highest(1.3), {}),
    ("highest clock 4 times as slow", highest(4), {}),
    ("spreads above the times", each(lambda r: (*r[:3], 1.0)), {}),
    ("one clock", SOUND[:1], {}),
    ("a flat curve", each(lambda r: (r[0], 0.1, 25, 0)), {}),
    ("a time below 0", each(lambda r: (r[0], -r[1], *r[2:])), {}),
    ("no blocking power", SOUND, {"blocking_power": 0}),
    ("blocking power above computing", SOUND, {"blocking_power": 140}),
    ("transfers of 10^6 s", SOUND, {"comm_delay": 1e6}),
    ("a time margin of 100 %", SOUND, {"time_margin": "100%"}),
    ("a dwell of 20 s", SOUND, {"min_dwell": 20}),
    ("a target of 1.05 without a unit", SOUND, {"at": 1.05}),
]
DOORS = (
    *("check", "plan", "--json", "plan.json", "report", "Python"),
    *("job create", "job show", "API"),
)
REFUSED = "refused"
INTRODUCTION = """# What is said of wrong input

`build/venv/bin/python bench/notes.py > docs/evidence/notes.md` writes this page. It gives each
mistake to each door of Perseus (commands, files, Python and a server), and fails if one of them
says nothing. "WARNING", "warning" and "note" are how a door marks the sentence; a banner is at the
top of the report. Who uses Python finds notes in `plan.notes`.
"""


def csv_of(rows: list[Row]) -> str:
    """Return a profile of one stage."""
    lines = ["stage,instruction,frequency,time,energy,time_std"]
    for instruction in ("forward", "backward"):
        lines += [f"0,{instruction}," + ",".join(f"{x:.9g}" for x in row) for row in rows]
    return "\n".join(lines) + "\n"


def run(*words: str) -> tuple[int, str]:
    """Run perseus; return the exit code and what it says, as one line."""
    done = subprocess.run(
        [str(perseus_binary()), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 2), done.stderr
    return done.returncode, done.stdout or done.stderr.removeprefix("perseus: ")


def severities(notes: list[dict[str, Any]]) -> str:
    """Return the worst severity of notes; empty: there are none."""
    return str(notes[0]["severity"]) if notes else ""


def mark(text: str, sentence: str) -> str:
    """Return how a text for people marks a sentence: WARNING or note."""
    words = " ".join(text.split())
    before = words.partition(sentence)
    if not before[1]:
        return ""
    marks = {m: before[0].lower().rfind(m) for m in ("warning", "note")}
    found = max(marks, key=lambda m: marks[m])
    return {"warning": "WARNING", "note": "note"}[found] if marks[found] >= 0 else ""


def python_door(path: Path, settings: dict[str, Any], sentence: str) -> str:
    """Plan with the Python package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            plan = perseus.plan(path, **settings)
        except (perseus.PlannerError, TypeError, ValueError):
            return REFUSED
    if any(sentence in str(warning.message) for warning in caught):
        return "warning"
    return "plan.notes" if any(sentence in note.text for note in plan.notes) else ""


def ask_all(
    folder: Path, server: Server, number: int, rows: list[Row], more: dict[str, Any]
) -> tuple[str, list[str]]:
    """Return the sentence on a mistake, and what each door makes of it."""
    settings = SETTINGS | more
    profile, job = folder / "profile.csv", folder / "job.toml"
    profile.write_text(csv_of(rows))
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
    job.write_text("".join(['profile = "profile.csv"\n', *lines]))
    code, text = run("check", str(job), "--json")
    notes = json.loads(text)["notes"]
    sentence = str(notes[0]["text"]) if notes else ""
    place = f"line {notes[0]['line']}: " if notes and notes[0].get("line") else ""
    if severities(notes) == "impossible":
        says = [REFUSED if code == 2 else ""]
    else:
        says = [f"{severities(notes)}, exit {code}" if notes else ""]

    out = folder / f"out{number}"
    code, text = run("plan", str(job), "-o", str(out))
    if code == 2:
        says += [REFUSED, REFUSED if run("plan", str(job), "--json")[0] == 2 else ""]
        says += [
            REFUSED if not (out / file).exists() else "" for file in ("plan.json", "report.html")
        ]
    else:
        printed = json.loads(run("plan", str(job), "--json")[1])["notes"]
        written = json.loads((out / "plan.json").read_text())["notes"]
        page = (out / "report.html").read_text()
        says += [mark(text, sentence), severities(printed), severities(written)]
        banner = f"warning {severities(written)}"
        says.append("banner" if banner in page and sentence in page_text(page) else "")
    says.append(python_door(profile, settings, sentence))

    at = ("--server", server.url)
    key = f"nonsense-{number}"
    code, text = run("job", "create", str(job), "--client-key", key, *at)
    says.append(REFUSED if code == 2 else mark(text, sentence))
    code, text = run("job", "show", key, *at)
    says.append(REFUSED if code == 2 else mark(text, sentence))
    status, answer = server.call(
        "POST", "/api/v1/jobs", {"job": settings, "profile_csv": csv_of(rows)}
    )
    if status in (400, 422):
        says.append(REFUSED)
    else:
        texts = [note["text"] for note in answer["notes"]]
        says.append(severities(answer["notes"]) if sentence in texts else "")
    return place + sentence, says


def ask_alone(folder: Path, server: Server) -> list[tuple[str, str]]:
    """Return nonsense that only one command can be given, and what it answers."""
    (folder / "profile.csv").write_text(csv_of(SOUND))
    job = folder / "job.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in SETTINGS.items()]
    job.write_text("".join(['profile = "profile.csv"\n', *lines]))
    other = folder / "other.toml"
    other.write_text(job.read_text().replace("microbatches = 4", "microbatches = 6"))
    at = ("--server", server.url)
    run("job", "create", str(job), "--client-key", "one", *at)
    commands: list[tuple[str, ...]] = [
        ("plan", str(job), "--at", "1.05"),
        *(
            ("emulate", str(job), "--iterations", "2", "--straggler", limit)
            for limit in ("clock=5000", "clock=1", "power=0.3", "power=5000")
        ),
        ("job", "create", str(other), "--client-key", "one", *at),
        ("job", "point", "one", "1.05", *at),
    ]
    answers = []
    for command in commands:
        code, text = run(*command)
        shown = " ".join(word for word in command if word not in at)
        for name, short in ((str(folder) + "/", ""), (server.url, "URL")):
            shown, text = shown.replace(name, short), text.replace(name, short)
        text = re.sub(r"\bj-[0-9a-f]{16}\b", "j-...", text)
        answers.append((f"perseus {shown}", f"exit {code}: " + " ".join(text.split())))
    return answers


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return text.replace("|", "\\|") if text else "**nothing**"


def main() -> None:
    """Print the page."""
    print(INTRODUCTION)
    print("| the mistake | " + " | ".join(DOORS) + " |")
    print("|---" * (1 + len(DOORS)) + "|")
    sentences = []
    silent = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Server(perseus_binary(), folder / "jobs.db")
        for number, (what, rows, more) in enumerate(NONSENSE):
            sentence, says = ask_all(folder, server, number, rows, more)
            silent += says.count("")
            sentences.append((what, sentence))
            print(f"| {what} | " + " | ".join(map(cell, says)) + " |")
        alone = ask_alone(folder, server)
        server.stop()
    print("\nThe first sentence that `perseus check` says of each:\n")
    print("| the mistake | sentence |\n|---|---|")
    for what, sentence in sentences:
        print(f"| {what} | {cell(sentence)} |")
    print("\nWhat only one command can be given:\n")
    print("| command | answer |\n|---|---|")
    for command, answer in alone:
        silent += not answer.startswith("exit 2")
        print(f"| `{command}` | {cell(answer)} |")
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main()
