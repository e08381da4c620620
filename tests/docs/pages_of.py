# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests need to know of a page in Markdown: links, headings, commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# Folders that hold no page of ours.
_FOREIGN = {"build", "node_modules", "corpus"}


class Block(NamedTuple):
    """A block of code, and the line that it begins at."""

    language: str  # "" if the fence names none, "indented" for an indented block
    line: int
    text: str


def pages() -> list[Path]:
    """All pages of the repository."""
    return sorted(
        path
        for path in ROOT.rglob("*.md")
        if not any(
            part in _FOREIGN or part.startswith(".") for part in path.relative_to(ROOT).parts[:-1]
        )
    )


def split(text: str) -> tuple[list[tuple[int, str]], list[Block]]:
    """Divides a page into its lines of prose, with their numbers, and its blocks of code."""
    prose: list[tuple[int, str]] = []
    blocks: list[Block] = []
    fence = ""
    before_is_blank = True
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r" *(```+)(.*)", line)
        if fence:
            if mark and mark[1] == fence and not mark[2].strip():
                fence = ""
            else:
                last = blocks[-1]
                blocks[-1] = last._replace(text=last.text + line + "\n")
        elif mark:
            fence = mark[1]
            blocks.append(Block(mark[2].strip(), number, ""))
        elif line.startswith("    ") and (before_is_blank or _goes_on(blocks, number)):
            if not _goes_on(blocks, number):
                blocks.append(Block("indented", number, ""))
            last = blocks[-1]
            blocks[-1] = last._replace(text=last.text + line[4:] + "\n")
        else:
            prose.append((number, line))
        before_is_blank = not line.strip()
    return prose, blocks


def _goes_on(blocks: list[Block], number: int) -> bool:
    if not blocks or blocks[-1].language != "indented":
        return False
    return blocks[-1].line + blocks[-1].text.count("\n") == number


def links(text: str) -> Iterator[tuple[int, str]]:
    """The targets of a page's links, with their lines."""
    for number, line in split(text)[0]:
        without_code = re.sub(r"`[^`]*`", "", line)
        for link in re.finditer(r"\]\(([^()\s]+)\)", without_code):
            yield number, link[1]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    found: set[str] = set()
    for _, line in split(text)[0]:
        heading = re.match(r"#{1,6} +(.*)", line)
        if not heading:
            continue
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        copies = 0
        while (anchor := f"{name}-{copies}" if copies else name) in found:
            copies += 1
        found.add(anchor)
    return found


def commands(text: str) -> Iterator[tuple[int, str]]:
    """The command lines of `perseus` in a page: of shell blocks, and in the prose."""
    prose, blocks = split(text)
    for block in blocks:
        if block.language not in ("sh", "indented"):
            continue
        joined = re.sub(r"\\\n\s*", " ", block.text)
        for line in joined.splitlines():
            for part in re.split(r"[|;&]+|\$\(|\s#\s", re.sub(r"(?:^|\s)#.*", "", line)):
                words = re.sub(r"^(?:sudo|env|exec)\s+", "", part.strip())
                if words.startswith("perseus "):
                    yield block.line, words
    for number, line in prose:
        for code in re.findall(r"`([^`]+)`", line):
            if re.match(r"(?:sudo )?perseus [a-z]", code):
                yield number, re.split(r"\s[|#;]", code.removeprefix("sudo "))[0]
