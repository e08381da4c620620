# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""How profiles, frontiers and plans show themselves in a notebook."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

# Of a table in a notebook; the rest is counted.
_MOST_ROWS = 20


def optional(package: str, what: str) -> Any:
    """Return a package that only some methods need."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ImportError(f"{what} needs {name}; `pip install {name}`") from None


def axes_of(axes: Any) -> Any:
    """Return the axes of Matplotlib to draw on: new ones where none are given."""
    return axes if axes is not None else optional("matplotlib.pyplot", "plot()").subplots()[1]


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table, cut where it is long."""
    every = list(rows)
    body = "".join(_row("td", row) for row in every[:_MOST_ROWS])
    more = len(every) - _MOST_ROWS
    if more > 0:
        body += f'<tr><td colspan="{len(head)}">... {more} more</td></tr>'
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead>{_row('th', head)}</thead><tbody>{body}</tbody></table>"
    )


def _row(tag: str, cells: Sequence[object]) -> str:
    texts = (f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in cells)
    return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts) + "</tr>"
