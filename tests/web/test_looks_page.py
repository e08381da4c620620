# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether everybody can use the page: contrast, keyboard, 400 px, dark, print, forced colours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import await_running, create, register_all
from browsing import Surfer, expect
from serving import Server

axe_module = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="there is no axe-core"
)

SHOWS = [
    pytest.param({"color_scheme": "light"}, id="light"),
    pytest.param({"color_scheme": "dark"}, id="dark"),
    pytest.param({"viewport": {"width": 400, "height": 800}}, id="narrow"),
    pytest.param({"reduced_motion": "reduce", "color_scheme": "dark"}, id="still"),
]
SHARES = (0.2126, 0.7152, 0.0722)  # Of red, green and blue in light.
LEAST_GRAPHIC = 3.0  # WCAG 2.2, 1.4.11.
LEAST_TEXT = 4.5


def channel(value: float) -> float:
    """Return a channel of sRGB (0 to 255) as light."""
    value /= 255
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def contrast(one: list[float], other: list[float]) -> float:
    """Return the contrast of two colours as WCAG defines it."""
    lights = sorted(
        sum(part * channel(value) for part, value in zip(SHARES, colour, strict=True))
        for colour in (one, other)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def colour(page: Any, name: str) -> list[float]:
    """Return a colour of the style sheet, as the page computes it."""
    text = page.evaluate(
        "name => { const e = document.createElement('i'); e.style.color = `var(${name})`;"
        " document.body.append(e); const c = getComputedStyle(e).color; e.remove(); return c; }",
        name,
    )
    return [float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3]]


def job_with_everything(server: Server) -> str:
    """Create a job with a straggler, a trouble and measurements; return its path."""
    path = create(server, name="a job with everything")
    register_all(server, path)
    await_running(server, path)
    reports = [
        {"rank": rank, "iteration": i, "time_s": 0.5, "energy_j": 100, "clocks": "plan"}
        for rank in range(4)
        for i in range(1, 4)
    ]
    clients = [
        {"rank": rank, "client": f"c{rank}", "state": "following", "calls": 3} for rank in range(3)
    ] + [{"rank": 3, "client": "c3", "state": "no_plan", "error": "the agent does not answer"}]
    server.call("POST", path + "/iterations", {"reports": reports, "clients": clients})
    server.call("POST", path + "/stragglers", {"rank": 3, "factor": 1.3})
    return path


def pages(surfer: Surfer, path: str, options: dict[str, Any]) -> list[Any]:
    """Open both pages, with all that folds unfolded."""
    jobs = surfer.open(**options)
    expect(jobs.locator("tbody tr")).to_have_count(1)
    job = surfer.open(f"#/job/{path.rsplit('/', 1)[1]}", **options)
    expect(job.locator(".lanes").first).to_be_visible()
    expect(job.locator("[data-key=frontier-table]")).to_be_visible()
    job.locator(".cell").last.click()
    expect(job.locator("#rank-panel table")).to_be_visible()
    for summary in job.locator("summary").all():
        summary.click()
    return [jobs, job]


@pytest.mark.parametrize("options", SHOWS)
def test_axe_finds_nothing(surfer: Surfer, server: Server, options: dict[str, Any]) -> None:
    """axe-core has no finding, on either page."""
    path = job_with_everything(server)
    axe = axe_module.Axe()
    for page in pages(surfer, path, options):
        results = axe.run(page)
        assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart(surfer: Surfer, scheme: str) -> None:
    """Contrast is measured, of text and of what charts are made of."""
    page = surfer.open(color_scheme=scheme)
    panel = colour(page, "--panel")
    for name in ("--bound", "--saved", "--warn", "--accent", "--ink", "--soft"):
        assert contrast(colour(page, name), panel) >= LEAST_TEXT, name
        assert contrast(colour(page, name), colour(page, "--page")) >= LEAST_TEXT, name
    for i in range(5):
        clock = colour(page, f"--clock-{i}")
        for ground in ("--panel", "--wait"):
            assert contrast(clock, colour(page, ground)) >= LEAST_GRAPHIC, (i, ground)
        assert max(contrast(clock, [17] * 3), contrast(clock, [255] * 3)) >= LEAST_TEXT, i
    for i in range(4):
        text = "--on-late-3" if i == 3 else "--on-late"
        assert contrast(colour(page, f"--late-{i}"), colour(page, text)) >= LEAST_TEXT, i


def test_nothing_is_wider_than_a_phone(surfer: Surfer, server: Server) -> None:
    """At 400 px only what scrolls by itself is wider."""
    path = job_with_everything(server)
    for page in pages(surfer, path, {"viewport": {"width": 400, "height": 800}}):
        width = page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= 400, page.url


def test_the_keyboard_reaches_all(surfer: Surfer, server: Server) -> None:
    """Tab gets to the content, the heads and the jobs."""
    create(server, name="one")
    page = surfer.open()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"
    seen = set()
    for _ in range(16):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("() => document.activeElement.textContent.trim().slice(0, 8)"))
    assert {"Job", "Saved", "one"} <= {text.split("j-")[0] for text in seen}
    page.locator("tbody a").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#job-name")).to_have_text("one")


def test_what_has_the_focus_keeps_it_while_figures_change(surfer: Surfer, server: Server) -> None:
    """A cell that is drawn anew keeps the focus."""
    path = job_with_everything(server)
    page = pages(surfer, path, {})[1]
    cell = page.locator(".cell").first
    cell.focus()
    server.call("DELETE", path + "/stragglers")
    expect(page.locator('[data-figure="Stragglers"] .value')).to_have_text("0")
    reports = [{"rank": rank, "iteration": 9, "time_s": 0.7, "clocks": "plan"} for rank in range(4)]
    clients = [{"rank": 0, "client": "c0", "state": "following", "refused": 2}]
    server.call("POST", path + "/iterations", {"reports": reports, "clients": clients})
    expect(page.locator(".cell").first).to_contain_text("!")
    assert page.evaluate("() => document.activeElement.dataset.key") == "cell-0-0"


def test_print_and_forced_colours(surfer: Surfer, server: Server) -> None:
    """Paper is white, and has no controls."""
    path = job_with_everything(server)
    page = pages(surfer, path, {"color_scheme": "dark", "forced_colors": "active"})[1]
    expect(page.locator(".cell").first).to_be_visible()
    page.emulate_media(media="print", forced_colors="none")
    assert colour(page, "--page") == [255, 255, 255]
    expect(page.locator(".choice")).to_be_hidden()
    expect(page.locator(".lanes").first).to_be_visible()


def test_behind_each_chart_is_a_table(surfer: Surfer, server: Server) -> None:
    """A chart has a summary in words, and its figures as a table."""
    path = job_with_everything(server)
    page = pages(surfer, path, {})[1]
    for plot in page.locator("svg.plot").all():
        assert plot.get_attribute("role") == "img"
        assert len(plot.get_attribute("aria-label")) > 20
    for key in ("frontier-table", "timeline-table"):
        assert page.locator(f"[data-key={key}] tbody tr").count() > 1
