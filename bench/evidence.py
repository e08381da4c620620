# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs the comparisons and puts what they print into docs/evidence/evidence.md.

Usage: python bench/evidence.py [SECTION ...] [--paste SECTION=FILE ...]

Without arguments all sections are run; --paste takes what was printed before from a file. Needs the
measured data (PERSEUS_SHARED_DATA) and what bench/requirements.txt lists; PERSEUS_BINARY names the
binary.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from measure import print_header
from oracle.binary import REPOSITORY, perseus_binary, shared_data

DOCUMENT = REPOSITORY / "docs/evidence/evidence.md"
BENCH = REPOSITORY / "bench"
DATA = shared_data() / "sosp24"

# In the order of the document.
SECTIONS: dict[str, list[str]] = {
    "gaps": [sys.executable, "-u", str(BENCH / "gaps.py")],
    "published": [sys.executable, "-u", str(BENCH / "published.py"), str(DATA)],
    "lowtime": [sys.executable, "-u", str(BENCH / "compare_lowtime.py")],
}

# The rows of long tables that the document keeps, and always those that show a fault; all others
# stand in what the command prints.
ROWS = {
    "gaps": r"-mb96 \| 1\.0x |-mb24 \| 1\.05x ",
    "published": r" (a100_sxm|a40) \| (12|96) \|",
}


def run(command: list[str]) -> str:
    """Run a section, showing what it prints, and return that."""
    lines = []
    with subprocess.Popen(
        command, cwd=REPOSITORY / "tests", stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode != 0:
        print(f"(exit {process.returncode})", file=sys.stderr)
    return "".join(lines)


def as_markdown(printed: str) -> str:
    """Return what a section printed as it stands in the document: no path of this machine."""
    text = printed.replace(str(DATA), "$DATA").replace(f"{BENCH}/", "bench/")
    text = re.sub(r"\A(\$ .*\n(?:[^\n]+\n)*)", r"```\n\1```\n", text.strip() + "\n")
    # A table begins after a blank line.
    return re.sub(r"([^\n|])\n(\|)", r"\1\n\n\2", text).strip()


def shortened(name: str, text: str) -> str:
    """Return a section with the rows that the document keeps, and how many those are."""
    if name not in ROWS:
        return text

    def shorter(table: re.Match[str]) -> str:
        rows = table[2].splitlines(keepends=True)
        kept = [row for row in rows if re.search(ROWS[name], row.rstrip())]
        return f"{table[1]}{''.join(kept)}\n({len(kept)} of {len(rows)} rows)\n"

    return re.sub(r"(\|.*\n\|---.*\n)((?:\|.*\n)*)", shorter, text + "\n").strip()


def insert(name: str, printed: str) -> None:
    """Replace one section of the document."""
    document = DOCUMENT.read_text(encoding="utf-8")
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    head, _, rest = document.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"{DOCUMENT} has no place for {name}")
    section = shortened(name, as_markdown(printed))
    DOCUMENT.write_text(f"{head}{begin}\n{section}\n\n{end}{tail}", encoding="utf-8")


def main() -> None:
    """Run or paste sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--paste", nargs="*", default=[], metavar="SECTION=FILE")
    arguments = parser.parse_args()
    names = arguments.sections or ([] if arguments.paste else list(SECTIONS))
    pasted = [entry.partition("=") for entry in arguments.paste]
    unknown = {*names, *(name for name, _, _ in pasted)} - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    for name, _, path in pasted:
        insert(name, Path(path).read_text(encoding="utf-8"))
    if names:
        print_header([], perseus_binary())
    for name in names:
        insert(name, run(SECTIONS[name]))


if __name__ == "__main__":
    main()
