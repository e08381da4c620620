# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes, in Chromium."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import create, register_all
from browsing import Surfer, expect
from serving import Server

CONFLICT = "its power is capped at 300 W (default 400 W), so that high clocks may not be reached"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
SHOWS = [
    pytest.param({"color_scheme": "light"}, id="light"),
    pytest.param({"color_scheme": "dark"}, id="dark"),
    pytest.param({"viewport": {"width": 400, "height": 800}}, id="narrow"),
]


def job_on_two_nodes(server: Server) -> str:
    """Create a job; all is well on n1, and much is wrong on n0."""
    path = create(server, name="two nodes")
    register_all(server, path)
    well = {
        "state": "following",
        "version": "0.1.0",
        "agent": {"version": "0.1.0", "clock_conflicts": []},
    }
    clients: list[dict[str, Any]] = [
        {"rank": rank, "client": f"c{rank}", "process": f"pid {rank}", **well} for rank in range(4)
    ]
    clients[0] |= {"refused": 3, "agent": {"version": "0.0.9", "clock_conflicts": [CONFLICT]}}
    clients[1] |= {"state": "released", "error": "the agent does not answer", "agent": None}
    body = {"reports": [], "clients": clients}
    assert server.call("POST", path + "/iterations", body)[0] == 202
    return path


def test_without_nodes_it_says_what_to_do(surfer: Surfer) -> None:
    """The page is one press away from the jobs."""
    page = surfer.open()
    page.get_by_role("link", name="Nodes").click()
    expect(page.locator("h1")).to_have_text("Nodes")
    expect(page.locator(".empty code")).to_have_text("perseus doctor")


def test_a_row_says_what_a_node_has(surfer: Surfer, server: Server) -> None:
    """Versions, refusals and clock conflicts; a press shows GPUs and why."""
    path = job_on_two_nodes(server)
    page = surfer.open("#/nodes")
    expect(page.locator("tbody tr")).to_have_count(2)
    bad, well = page.locator("tbody tr").all()
    assert bad.locator("td").all_inner_texts()[:8] == [
        *("2", "1", "two nodes", "0.0.9, none", "none", "3", "1", "1")
    ]
    assert well.locator("td").all_inner_texts()[:8] == [
        *("2", "2", "two nodes", "0.1.0", "none", "0", "0", "0")
    ]
    assert well.locator(".bad").count() == 0
    bad.get_by_role("button", name="n0").click()
    panel = page.locator("#node-panel")
    expect(panel).to_contain_text(CONFLICT)
    expect(panel).to_contain_text("the agent does not answer")
    expect(panel).to_contain_text("pid 0")
    expect(panel.locator("tbody tr")).to_have_count(2)
    panel.get_by_role("link", name="two nodes").first.click()
    expect(page.locator("#job-name")).to_have_text("two nodes")
    assert page.url.endswith(path.rpartition("/")[2])


def test_what_was_not_told_is_not_zero(surfer: Surfer, server: Server) -> None:
    """Ranks that joined and said nothing."""
    register_all(server, create(server, name="silent"))
    page = surfer.open("#/nodes")
    texts = page.locator("tbody tr").first.locator("td")
    expect(texts.nth(3)).to_have_text("n/a")
    expect(texts.nth(8)).to_have_text("n/a")


def test_it_follows_what_happens(surfer: Surfer, server: Server) -> None:
    """A refusal shows without a reload, and the button keeps the focus."""
    path = job_on_two_nodes(server)
    page = surfer.open("#/nodes?node=n1")
    expect(page.locator("#node-panel h2")).to_have_text("GPUs of n1")
    page.get_by_role("button", name="n1").focus()
    client = {"rank": 3, "client": "c3", "state": "following", "refused": 7}
    server.call("POST", path + "/iterations", {"reports": [], "clients": [client]})
    expect(page.locator("tbody tr").nth(1).locator(".bad")).to_have_text("7")
    assert page.evaluate("() => document.activeElement.dataset.key") == "node-n1"


def test_a_link_carries_filter_and_node(surfer: Surfer, server: Server) -> None:
    """Who gets the link sees the same."""
    job_on_two_nodes(server)
    page = surfer.open("#/nodes")
    page.check("#troubled")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="n0").click()
    expect(page.locator("#node-panel")).to_contain_text(CONFLICT)
    copy = surfer.open(page.url[len(surfer.url) + 1 :])
    expect(copy.locator("#node-panel")).to_contain_text(CONFLICT)
    expect(copy.locator("#troubled")).to_be_checked()
    copy.fill("#search", "nowhere")
    expect(copy.locator("main")).to_contain_text("No such node.")


def test_pages_of_many_nodes(surfer: Surfer, server: Server) -> None:
    """Fifty a page, forth and back."""
    for i in range(30):
        path = create(server, client_key=f"k{i}")
        for rank in range(2):
            body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "node": f"n{2 * i + rank:02}"}
            assert server.call("POST", path + "/ranks", body)[0] == 200
    page = surfer.open("#/nodes")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("tbody tr")).to_have_count(10)
    expect(page.locator("tbody tr").first).to_contain_text("n50")
    page.get_by_role("button", name="Before").click()
    expect(page.locator("tbody tr").first).to_contain_text("n00")


def test_a_hostile_node_is_text(surfer: Surfer, server: Server) -> None:
    """Markup in what nodes say is shown, not obeyed."""
    path = create(server, name=HOSTILE)
    body = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "node": HOSTILE}
    assert server.call("POST", path + "/ranks", body)[0] == 200
    client = {"rank": 0, "client": "c", "error": HOSTILE, "agent": {"clock_conflicts": [HOSTILE]}}
    server.call("POST", path + "/iterations", {"reports": [], "clients": [client]})
    page = surfer.open("#/nodes")
    page.locator("tbody button").click()
    expect(page.locator("#node-panel ul")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0
    assert page.title() == "Nodes \u2013 Perseus"


@pytest.mark.parametrize("options", SHOWS)
def test_everybody_can_use_it(surfer: Surfer, server: Server, options: dict[str, Any]) -> None:
    """axe-core has no finding, and nothing is wider than a phone."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="there is no axe-core"
    )
    job_on_two_nodes(server)
    page = surfer.open("#/nodes?node=n0", **options)
    expect(page.locator("#node-panel")).to_contain_text(CONFLICT)
    results = axe.Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    width = page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]
