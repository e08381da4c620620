# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The measured iteration on a job's page, in Chromium."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import await_running, create, register_all, report_timed
from browsing import Surfer, expect
from serving import Server


def running_job(server: Server) -> str:
    """Create a job that has its last plan; return its path."""
    path = create(server, name="a job")
    register_all(server, path)
    await_running(server, path)
    return path


def open_job(surfer: Surfer, path: str, query: str = "", **options: Any) -> Any:
    """Open the job's page, and wait until plans are drawn."""
    page = surfer.open(f"#/job/{path.rsplit('/', 1)[1]}{query}", **options)
    expect(page.locator(".lanes").first).to_be_visible()
    return page


def differing(page: Any, one: int, other: int) -> float:
    """Return the share of pixels in which two pictures differ."""
    share: float = page.locator(".lanes").evaluate_all(
        """(all, [a, b]) => {
        const pixels = (each) => {
            const copy = new OffscreenCanvas(each.width, each.height)
                .getContext('2d', {willReadFrequently: true});
            copy.drawImage(each, 0, 0);
            return copy.getImageData(0, 0, each.width, each.height).data;
        };
        const [one, other] = [pixels(all[a]), pixels(all[b])];
        if (one.length !== other.length) return 1;
        let count = 0;
        for (let i = 0; i < one.length; i += 4) {
            if (Math.abs(one[i] - other[i]) + Math.abs(one[i + 1] - other[i + 1]) > 40) ++count;
        }
        return count / (one.length / 4);
        }""",
        [one, other],
    )
    return share


def test_it_is_drawn_as_the_plan_is(surfer: Surfer, server: Server) -> None:
    """Same scale and colours: as planned it is the same picture, and slower it is longer."""
    path = running_job(server)
    report_timed(server, path, 10)
    page = open_job(surfer, path)
    expect(page.locator(".lanes")).to_have_count(3)
    page.wait_for_timeout(300)  # Pictures are drawn with the next frame.
    assert differing(page, 1, 2) < 0.01
    assert differing(page, 0, 1) > 0.01
    words = page.locator("#measured-words")
    version = server.call("GET", path)[1]["plan"]["version"]
    expect(words).to_contain_text(f"Iteration 10 of pipeline 0 with plan {version},")
    expect(words).to_contain_text("lined up")
    expect(page.get_by_role("heading", name="As measured")).to_contain_text(", as planned")
    page.get_by_text("The measured iteration as a table").click()
    expect(page.locator("table", has_text="as measured").locator("tbody tr")).to_have_count(2)

    report_timed(server, path, 20, slow=1.2)
    expect(page.get_by_role("heading", name="As measured")).to_contain_text("20.0 % more than")
    page.wait_for_timeout(300)
    assert differing(page, 1, 2) > 0.01


def test_a_new_one_comes_without_a_reload(surfer: Surfer, server: Server) -> None:
    """Also the first one; each is asked for once, and a reader's place in the picture stays."""
    path = running_job(server)
    page = open_job(surfer, path, viewport={"width": 400, "height": 800})
    expect(page.locator("#measured-empty")).to_contain_text("every tenth")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    report_timed(server, path, 10)
    expect(page.locator("#measured-words")).to_contain_text("Iteration 10 ")
    expect(page.locator("#measured-empty")).to_have_count(0)
    chart = page.locator('[data-key="measured"]')
    chart.focus()
    page.keyboard.press("+")
    looked = page.locator(".controls output").text_content()
    page.get_by_text("The measured iteration as a table").click()
    chart.focus()
    report_timed(server, path, 20, slow=1.01)
    expect(page.locator("#measured-words")).to_contain_text("Iteration 20 ")
    assert page.locator(".controls output").text_content() == looked
    expect(chart).to_be_focused()
    expect(page.locator("table", has_text="as measured")).to_be_visible()
    times = [url for url in asked if url.endswith("/timeline")]
    assert len(times) == 2, times


def test_it_says_what_it_is_not_sure_of(surfer: Surfer, server: Server) -> None:
    """An older plan, and another pipeline."""
    path = running_job(server)
    version = server.call("GET", path)[1]["plan"]["version"]
    report_timed(server, path, 10)
    assert server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})[0] == 201
    await_running(server, path)
    page = open_job(surfer, path)
    expect(page.locator("#measured-words")).to_contain_text(
        f"plan {version}, which is not in force now"
    )
    page.select_option("#pipeline", "1")
    expect(page.get_by_text("Only the iterations of pipeline 0")).to_be_visible()
    expect(page.locator(".lanes")).to_have_count(2)


def test_ranks_that_cannot_be_lined_up_are_named(surfer: Surfer, server: Server) -> None:
    """The answer is made up: no schedule that can be planned has such ranks."""
    path = running_job(server)
    report_timed(server, path, 10)
    timeline = server.call("GET", path + "/timeline")[1]
    timeline["error_s"] = timeline["ranks"][1]["offset_s"] = None
    timeline["ranks"][1]["offset_error_s"] = None
    surfer_page = surfer.open("#/jobs")
    surfer_page.route("**/timeline", lambda route: route.fulfill(json=timeline))
    surfer_page.evaluate(f"location.hash = '#/job/{path.rsplit('/', 1)[1]}'")
    expect(surfer_page.locator("#measured-words")).to_contain_text("stage 1 may be shifted")


@pytest.mark.parametrize("following", [None, 0, 4])
def test_without_one_it_says_what_to_do(
    surfer: Surfer, server: Server, following: int | None
) -> None:
    """Whether ranks follow decides what is missing."""
    path = running_job(server)
    if following is not None:
        state = "following" if following else "released"
        clients = [{"rank": rank, "client": f"c{rank}", "state": state} for rank in range(4)]
        assert server.call("POST", path + "/iterations", {"clients": clients})[0] == 202
    page = open_job(surfer, path)
    wanted = "4 ranks follow the plan" if following else "No rank is known to follow"
    expect(page.locator("#measured-empty")).to_contain_text(wanted)
    expect(page.locator("#measured-empty code")).to_contain_text("perseus job show j-")


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 400, "height": 800}}]
)
def test_everybody_can_use_it(surfer: Surfer, server: Server, options: dict[str, Any]) -> None:
    """axe-core has no finding; only what scrolls is wider than a phone; Tab gets to the picture."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="there is no axe-core"
    )
    path = running_job(server)
    report_timed(server, path, 10)
    page = open_job(surfer, path, **options)
    chart = page.locator('[data-key="measured"]')
    expect(chart).to_be_visible()
    page.get_by_text("The measured iteration as a table").click()
    results = axe.Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= page.viewport_size["width"]
    page.locator('[data-key="timeline-table-summary"]').focus()
    for _ in range(3):
        page.keyboard.press("Tab")
        if chart.evaluate("each => each === document.activeElement"):
            break
    expect(chart).to_be_focused()
    assert "computations on 2 ranks" in (chart.get_attribute("aria-label") or "")
