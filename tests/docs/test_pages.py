# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Links, the list of pages, the size of README.md, and the options that pages name."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from pages_of import ROOT, anchors, commands, links, pages, split

sys.path.insert(0, str(ROOT / "python"))

from perseus import analysis

BINARY = os.environ.get("PERSEUS_BINARY", str(ROOT / "build/release/src/cli/perseus"))

# Options in pages that belong to programs of others and to scripts.
FOREIGN = re.compile(r"--(prefix|pid|gpus|rdzv-id|timing-log-level|rampup-batch-size)\b")


def name_of(page: Path) -> str:
    """Where a page is in the repository."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_each_link_leads_somewhere(page: Path) -> None:
    """The file that a link names exists, and has the heading that it names."""
    broken = []
    for line, target in links(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            broken.append(f"{name_of(page)}:{line}: {target}: no such file")
        elif anchor and anchor not in anchors(file.read_text()):
            broken.append(f"{name_of(page)}:{line}: {target}: no such heading")
    assert not broken, "\n".join(broken)


def test_the_list_of_pages_is_complete() -> None:
    """docs/README.md lists every page."""
    index = ROOT / "docs/README.md"
    listed = {
        (index.parent / target.partition("#")[0]).resolve()
        for _, target in links(index.read_text())
    }
    every = set((ROOT / "docs").rglob("*.md")) - {index}
    assert sorted(name_of(page) for page in every - listed) == []


def test_readme_is_short_and_narrow() -> None:
    """README.md fits a terminal."""
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 100] == []


@functools.cache
def help_of(words: tuple[str, ...]) -> str | None:
    """The help of a command, or None if there is no such command."""
    in_package = analysis.find(words) is not None
    program = [sys.executable, "-m", "perseus"] if in_package else [BINARY]
    done = subprocess.run(
        [*program, *words, *([] if "--help-all" in words else ["--help"])],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "--help-all" in done.stdout and "--help-all" not in words:
        return help_of((*words, "--help-all"))
    return done.stdout if done.returncode == 0 else None


def fault_of(command: str) -> str | None:
    """What is wrong with a command line of `perseus`, by its names of commands and options."""
    words = command.split()[1:]
    if not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return None if words[0].startswith(("-", "COMMAND")) else f"no command {words[0]}"
    path = [words[0]]
    if help_of(tuple(path)) is None:
        return f"no command {words[0]}"
    for word in words[1:]:  # Actions of a command: `job straggler set`.
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        if f"perseus {' '.join([*path, word])}" not in (help_of((*path, word)) or ""):
            break
        path.append(word)
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", help_of(tuple(path)) or ""))
    for option in re.findall(r"(?<=\s)(--?[a-zA-Z][\w-]*)", command):
        if option not in known:
            return f"perseus {' '.join(path)} has no option {option}"
    return None


# The changelog also names what went.
@pytest.mark.parametrize(
    "page", [page for page in pages() if page.name != "CHANGELOG.md"], ids=name_of
)
def test_each_command_line_parses(page: Path) -> None:
    """Commands, their actions and their options exist."""
    faults = [
        f"{name_of(page)}:{line}: {command}: {fault}"
        for line, command in commands(page.read_text())
        if (fault := fault_of(command))
    ]
    assert not faults, "\n".join(faults)


def test_each_option_in_the_prose_exists() -> None:
    """What a page calls an option is one, of some program of ours."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BINARY, "man", "-o", folder], capture_output=True, check=True)
        every = "".join(man.read_text() for man in Path(folder).iterdir())
    known = set(re.findall(r"--[a-z][\w-]*", every.replace("\\-", "-")))
    folders = ("scripts", "bench", "evaluation", "tests/hostile", "tests/server/simulation")
    for script in (*folders, "python/perseus/analysis"):
        for file in (ROOT / script).iterdir():
            if file.is_file() and file.suffix in ("", ".py", ".cc", ".sh"):
                known |= set(re.findall(r"--[a-z][\w-]*", file.read_text(errors="replace")))
    unknown = [
        f"{name_of(page)}:{line}: {option}"
        for page in (ROOT / "docs").rglob("*.md")
        for line, text in split(page.read_text())[0]
        for code in re.findall(r"`(--[^`]+)`", text)
        for option in re.findall(r"--[a-z][\w-]*", code)
        if option not in known and not FOREIGN.match(option)
    ]
    assert not unknown, "\n".join(unknown)


def test_the_page_of_metrics_names_each_metric() -> None:
    """docs/reference/metrics.md has the metrics of server, agent and relay, and no other."""
    files = ("server/ops/metrics", "cli/node/agent", "cli/node/relay")
    source = "".join((ROOT / f"src/{file}.cc").read_text() for file in files)
    ours = set(re.findall(r'"(perseus_[a-z_]+)"', source))
    page = (ROOT / "docs/reference/metrics.md").read_text()
    assert set(re.findall(r"perseus_[a-z_]+", page)) == ours


def test_the_page_of_events_names_each_event() -> None:
    """docs/reference/http.md has the events of the OpenAPI document, and no other."""
    done = subprocess.run(
        [BINARY, "serve", "--openapi"], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)["paths"]["/api/v1/events"]["get"]["responses"]["200"]
    page = (ROOT / "docs/reference/http.md").read_text().partition("## Events")[2]
    events = answer["content"]["text/event-stream"]["x-perseus-events"]
    assert sorted(re.findall(r"^\| `([a-z]+)`", page, re.M)) == sorted(events)
