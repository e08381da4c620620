# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Gives Perseus nonsense at each of its doors, and prints what each door says of it.

python bench/notes.py [--before OLD] > docs/evidence/notes.md

A mistake in a profile or a job is written into a job file, a call of Python and a request to a
server. Exits with 1 if a door says nothing, or marks it as it should not. OLD, the program of an
earlier commit, is asked the same for comparison; it may say nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure  # noqa: F401 (finds the folder of the oracle)
from oracle.binary import REPOSITORY, perseus_binary
from oracle.output_doors import page_text

sys.path.append(str(REPOSITORY / "tests/server"))
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
    (
        "times in milliseconds, energies in millijoules",
        each(lambda r: (r[0], r[1] * 1e3, r[2] * 1e3, r[3])),
        {},
    ),
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
    ("a target of 1.05 without a unit", SOUND, {"at": 1.05}),
]
REFUSED = "refused"
# What each door but `perseus check` makes of a note: in a text for people, in JSON, in Python.
DOORS = (
    *("plan", "--json", "plan.json", "report", "Python"),
    *("job create", "job show", "API"),
)
EXPECTED = {
    REFUSED: [REFUSED] * len(DOORS),
    "implausible": [*[REFUSED] * 4, "warning", *[REFUSED] * 3],
    "odd": ["note", "odd", "odd", "banner", "plan.notes", "note", "note", "odd"],
}
NOTHING = "**nothing**"
INTRODUCTION = """# What is said of wrong input

`build/venv/bin/python bench/notes.py --before OLD > docs/evidence/notes.md` writes this page. It
gives each mistake to each door of Perseus: `perseus check`, `plan`, its `--json`, `plan.json`, the
report, Python, `job create`, `job show` and the API. What is implausible is refused; Python warns.
The command fails if a door says nothing, or marks the mistake in another way than it should: "note"
in texts, the severity in JSON, a banner in the report, a warning or `plan.notes` in Python.

OLD is `build/release/src/cli/perseus` of commit 773427d, with its libperseus_planner. It had no
`perseus check`; its column counts the other eight doors that said something.
"""
PYTHON_DOOR = """
import json, sys, warnings
import perseus
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        plan = perseus.plan(sys.argv[1], **json.loads(sys.argv[2]))
    except (perseus.PlannerError, TypeError, ValueError):
        print(json.dumps(None))
        sys.exit()
notes = [note.text for note in getattr(plan, "notes", [])]
print(json.dumps({"warnings": [str(warning.message) for warning in caught], "notes": notes}))
"""
Answer = tuple[str, str]  # What was given to one command, and what it answered.


def csv_of(rows: list[Row]) -> str:
    """Return a profile of one stage."""
    lines = ["stage,instruction,frequency,time,energy,time_std"]
    for instruction in ("forward", "backward"):
        lines += [f"0,{instruction}," + ",".join(f"{x:.9g}" for x in row) for row in rows]
    return "\n".join(lines) + "\n"


def run(*words: str, program: Path | None = None) -> tuple[int, str]:
    """Run perseus; return the exit code and what it says, as one line."""
    done = subprocess.run(
        [str(program or perseus_binary()), *words], capture_output=True, text=True, check=False
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


def python_door(program: Path, path: Path, settings: dict[str, Any], sentence: str) -> str:
    """Plan with the Python package of a program's commit."""
    libraries = sorted(program.parents[1].rglob("libperseus_planner.so"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", PYTHON_DOOR, str(path), json.dumps(settings)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ
        | {
            "PYTHONPATH": str(program.parents[4] / "python"),
            "PERSEUS_PLANNER_LIBRARY": str(libraries[0]),
        },
    )
    said = json.loads(done.stdout)
    if said is None:
        return REFUSED
    if any(sentence in warning for warning in said["warnings"]):
        return "warning"
    return "plan.notes" if any(sentence in note for note in said["notes"]) else ""


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
    says.append(python_door(perseus_binary(), profile, settings, sentence))

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


def ask_before(program: Path, folder: Path, server: Server, number: int) -> str:
    """Return how many doors of an earlier program said something of the files of `ask_all`."""
    profile, job = folder / "profile.csv", folder / "job.toml"
    settings = SETTINGS | NONSENSE[number][2]
    out = folder / f"before{number}"
    code, text = run("plan", str(job), "-o", str(out), program=program)
    if code == 2:
        sentence, printed = " ".join(text.split()), ""
    else:
        printed = run("plan", str(job), "-o", str(out), "--json", program=program)[1]
        notes = json.loads(printed)["notes"]
        sentence = str(notes[0]) if notes else ""
    request = {"job": settings, "profile_csv": profile.read_text()}
    status, answer = server.call("POST", "/api/v1/jobs", request)
    at = ("--server", server.url)
    create = run("job", "create", str(job), "--client-key", f"n{number}", *at, program=program)
    show = run("job", "show", f"n{number}", *at, program=program) if create[0] == 0 else create
    says = {
        "plan": (code, text),
        "--json": (code, json.dumps(json.loads(printed), ensure_ascii=False) if printed else ""),
        "plan.json": (code, (out / "plan.json").read_text() if code == 0 else ""),
        "report": (code, page_text((out / "report.html").read_text()) if code == 0 else ""),
        "job create": create,
        "job show": show,
        "API": (0 if status == 201 else 2, json.dumps(answer, ensure_ascii=False)),
    }
    by_python = python_door(program, profile, settings, sentence)
    refuse = [door for door, (code, _) in says.items() if code == 2]
    if len(refuse) == len(says):
        return REFUSED
    said = [
        door for door, (_, text) in says.items() if sentence and sentence in " ".join(text.split())
    ]
    said += ["Python"] if by_python and sentence else []
    return f"{len(said)} of {len(DOORS)}" if said else NOTHING


def ask_trace(program: Path, folder: Path) -> list[Answer]:
    """Return what each door of a trace makes of times in microseconds."""
    page = (REPOSITORY / "docs/explanation/traces.md").read_text()
    sound = re.search(r"(?:^    \S+,.*\n)+", page, re.MULTILINE)
    assert sound
    rows = list(csv.reader(line.strip() for line in sound[0].splitlines()))
    times = [rows[0].index(name) for name in ("start_ts", "duration")]
    for row in rows[1:]:
        for column in times:
            row[column] = f"{1e6 * float(row[column]):.0f}"
    path = folder / "trace.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    out = folder / f"answer{len(list(folder.iterdir()))}"
    code, text = run("trace", str(path), "-o", str(out), program=program)
    if code == 2:
        said = " ".join(text.replace(str(folder) + "/", "").split())
        json_code = run("trace", str(path), "--json", program=program)[0]
        answers = [
            ("`perseus trace`", f"exit {code}: {said}"),
            ("`--json`", f"exit {json_code}"),
            ("`trace.html`", NOTHING if (out / "trace.html").exists() else REFUSED),
        ]
    else:
        notes = json.loads(run("trace", str(path), "--json", program=program)[1]).get("notes", [])
        sentence = notes[0]["text"] if notes else "microseconds?"
        shown = page_text((out / "trace.html").read_text())
        answers = [
            ("`perseus trace`", f"{mark(text, sentence) or NOTHING}, exit {code}"),
            ("`--json`", severities(notes) or NOTHING),
            ("`trace.html`", "banner" if sentence in shown else NOTHING),
        ]
    strict, refusal = run("trace", str(path), "--strict", program=program)
    refusal = refusal.replace(str(folder) + "/", "")
    return [*answers, ("`--strict`", f"exit {strict}: " + " ".join(refusal.split()))]


def ask_alone(program: Path, folder: Path, server: Server) -> list[Answer]:
    """Return nonsense that only one command can be given, and what it answers."""
    (folder / "profile.csv").write_text(csv_of(SOUND))
    job = folder / "job.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in SETTINGS.items()]
    job.write_text("".join(['profile = "profile.csv"\n', *lines]))
    other = folder / "other.toml"
    other.write_text(job.read_text().replace("microbatches = 4", "microbatches = 6"))
    at = ("--server", server.url)
    run("job", "create", str(job), "--client-key", "one", *at, program=program)
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
        done = subprocess.run([str(program), *command], capture_output=True, text=True, check=False)
        # Of a job that was there before, the first line of what is printed says so.
        printed = done.stdout.partition("\n")[0] if command[:2] == ("job", "create") else "taken"
        said = " ".join(done.stderr.split()).removeprefix("perseus: ") or printed
        shown = " ".join(word for word in command if word not in at)
        for name, short in ((str(folder) + "/", ""), (server.url, "URL")):
            shown, said = shown.replace(name, short), said.replace(name, short)
        said = re.sub(r"\bj-[0-9a-f]{16}\b", "j-...", said)
        answers.append((f"perseus {shown}", f"exit {done.returncode}: {said}"))
    return answers


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return text.replace("|", "\\|") if text else NOTHING


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table and an empty line."""
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def summary(says: list[str]) -> str:
    """Return how `perseus check` judges a mistake, and each door that does not follow it."""
    expected = EXPECTED.get(says[0].partition(",")[0], [])
    wrong = [
        f"{door}: {cell(says_it)}"
        for door, says_it, should in zip(DOORS, says[1:], expected, strict=False)
        if says_it != should
    ]
    return "; ".join([says[0] or NOTHING, *wrong])


def beside(now: list[Answer], before: list[Answer]) -> list[list[str]]:
    """Return rows of what was given, the answer now, and the one before."""
    earlier = [[cell(answer)] for _, answer in before] or [[] for _ in now]
    return [[what, cell(answer), *old] for (what, answer), old in zip(now, earlier, strict=True)]


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, metavar="OLD", help="the program of 773427d")
    old: Path | None = parser.parse_args().before
    old = old.resolve() if old else None
    column = ["773427d"] if old else []
    mistakes: list[list[str]] = []
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Server(perseus_binary(), folder / "jobs.db")
        earlier = Server(old, folder / "before.db") if old else None
        for number, (what, rows, more) in enumerate(NONSENSE):
            sentence, says = ask_all(folder, server, number, rows, more)
            wrong += says[1:] != EXPECTED.get(says[0].partition(",")[0])
            mistakes.append([what, summary(says), cell(sentence)])
            if old and earlier:
                mistakes[-1].append(ask_before(old, folder, earlier, number))
        trace, trace_before = ask_trace(perseus_binary(), folder), []
        wrong += sum(answer.startswith(NOTHING) for _, answer in trace)
        alone, alone_before = ask_alone(perseus_binary(), folder, server), []
        wrong += sum(not answer.startswith("exit 2") for _, answer in alone)
        server.stop()
        if old and earlier:
            trace_before = ask_trace(old, folder)
            alone_before = ask_alone(old, folder, earlier)
            earlier.stop()
    print(INTRODUCTION)
    print_table(["the mistake", "judged", "the first sentence", *column], mistakes)
    print("A trace whose times are in microseconds, and are read as seconds:\n")
    print_table(["the door", "says", *column], beside(trace, trace_before))
    print("What only one command can be given:\n")
    alone = [(f"`{command}`", answer) for command, answer in alone]
    print_table(["command", "answer", *column], beside(alone, alone_before))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
