# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of jobs, live, in Chromium."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import await_running, create, register_all
from browsing import BINARY, Surfer, expect
from serving import Server


def rows(page: Any) -> list[str]:
    """Return the names of the jobs that are shown, from top to bottom."""
    return [str(text) for text in page.locator("tbody th > a").all_inner_texts()]


def test_an_empty_server_says_the_next_command(surfer: Surfer) -> None:
    """Without jobs there is a command to copy, with this address."""
    page = surfer.open()
    expect(page.locator(".empty code").first).to_contain_text("perseus job create")
    expect(page.locator(".empty code").first).to_contain_text(surfer.url)
    expect(page.locator("table")).to_be_hidden()


def test_jobs_come_and_go_without_a_reload(surfer: Surfer, server: Server) -> None:
    """Events change the table."""
    page = surfer.open()
    expect(page.locator(".empty")).to_be_visible()
    path = create(server, name="first")
    row = page.locator("tbody tr", has_text="first")
    expect(row).to_contain_text("0 of 4")
    register_all(server, path)
    await_running(server, path)
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("refined")
    server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.5})
    expect(row.locator("td").nth(6)).to_have_text("1")
    server.call("DELETE", path)
    expect(page.locator(".empty")).to_be_visible()


def test_figures_say_what_was_measured_and_what_is_predicted(
    surfer: Surfer, server: Server
) -> None:
    """Both stand in one cell, and say which is which."""
    path = create(server, name="measured")
    register_all(server, path)
    job = await_running(server, path)
    page = surfer.open()
    row = page.locator("tbody tr")
    expect(row.locator("td").nth(3)).to_contain_text("n/a")
    reports = [
        {
            "rank": rank,
            "iteration": 1,
            "time_s": 0.5 + 0.1 * rank,
            "energy_j": 100,
            "clocks": "plan",
        }
        for rank in range(4)
    ]
    status, _ = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202
    expect(row.locator("td").nth(3)).to_contain_text("0.8000 s")
    expect(row.locator("td").nth(3)).to_contain_text("predicted")
    expect(row.locator("td").nth(4)).to_contain_text("500 W")
    expect(row.locator("td").nth(5)).to_contain_text(
        f"predicted {job['plan']['whole_job']['saving_percent']:.1f} %"
    )


def test_a_link_carries_filter_order_and_page(surfer: Surfer, server: Server) -> None:
    """Who gets the link sees the same."""
    for i in range(120):
        create(server, name=f"job {i:03}", client_key=f"key-{i}")
    page = surfer.open("#/jobs?q=job&sort=name&page=2")
    expect(page.locator("tbody tr")).to_have_count(20)
    assert rows(page)[0] == "job 100"
    expect(page.locator("#tally")).to_have_text("120 jobs")
    page.fill("#search", "job 11")
    expect(page.locator("tbody tr")).to_have_count(10)
    assert "q=job+11" in page.url
    page.get_by_role("button", name="Job", exact=False).first.click()
    expect(page.locator("thead th").first).to_have_attribute("aria-sort", "descending")
    assert rows(page)[0] == "job 119"
    # The address alone brings all of it back.
    copy = surfer.open(page.url[len(surfer.url) + 1 :])
    expect(copy.locator("tbody tr")).to_have_count(10)
    assert rows(copy)[0] == "job 119"
    copy.select_option("#state", "failed")
    expect(copy.locator("#tally")).to_have_text("0 of 120 jobs")


def test_the_page_of_a_link_stays_while_jobs_are_being_read(surfer: Surfer, server: Server) -> None:
    """Events name jobs one by one, and may be here before the list of them."""
    page = surfer.open("#/jobs/none")
    held: list[Any] = []
    page.route("**/api/v1/jobs?*", lambda route: held.append(route))
    page.goto(f"{surfer.url}/#/jobs?q=job&sort=name&page=2")
    for i in range(101):
        create(server, name=f"job {i:03}", client_key=f"held-{i}")
    expect(page.locator("tbody tr")).not_to_have_count(0)  # Of the stream: the list is held.
    assert held
    page.unroute("**/api/v1/jobs?*")  # Held requests go on.
    expect(page.locator("#tally")).to_have_text("101 jobs")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_the_list_is_read_once_at_a_time(surfer: Surfer, server: Server) -> None:
    """Many events while it is read do not begin a second round of looks beside the first."""
    page = surfer.open("#/jobs/none")
    held: list[Any] = []
    page.route("**/api/v1/jobs?*", lambda route: held.append(route))
    page.goto(f"{surfer.url}/#/jobs")
    for i in range(20):  # More than are read one by one.
        create(server, name=f"job {i:02}", client_key=f"once-{i}")
    expect(page.locator("tbody tr")).to_have_count(20)
    page.wait_for_timeout(1000)  # Longer than the page gathers events.
    assert len(held) == 1
    page.unroute("**/api/v1/jobs?*")  # Held requests go on.
    expect(page.locator("#tally")).to_have_text("20 jobs")


def test_a_lost_connection_is_shown_with_its_age(
    surfer: Surfer, server: Server, tmp_path: Path
) -> None:
    """A killed server is noticed, and so is its return."""
    surfer.allowed = re.compile(
        "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY|ERR_CONNECTION_RESET"
    )
    create(server, name="stays")
    page = surfer.open()
    line = page.locator("#connection")
    expect(line).to_have_text("Live")
    server.kill()
    expect(line).to_contain_text(re.compile("No (connection|events) for"))
    expect(line).to_contain_text("old.")
    # The last known list stays to be read.
    assert rows(page) == ["stays"]
    again = Server(BINARY, tmp_path / "jobs.db", listen=surfer.url.removeprefix("http://"))
    expect(line).to_have_text("Live")
    again.stop()


def test_labels_are_chips_that_filter(surfer: Surfer, server: Server) -> None:
    """A chip leads to the jobs that have its label; the link carries it; a change is seen."""
    path = create(server, name="one", labels={"team": "vision", "project": "x"})
    create(server, name="two", labels={"team": "vision"})
    create(server, name="three", labels={"team": "vision2"})
    page = surfer.open("#/jobs?label=team:vision&sort=name")
    expect(page.locator("#label")).to_have_value("team:vision")
    expect(page.locator("tbody tr")).to_have_count(2)
    assert rows(page) == ["one", "two"]
    page.locator(".chip", has_text="project=x").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("#label")).to_have_value("project:x")
    assert "label=project%3Ax" in page.url
    # As it is written elsewhere; without a value, any will do.
    page.locator("#label").fill("team=vision2")
    expect(page.locator("tbody th")).to_contain_text(["three"])
    page.locator("#label").fill("team")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.locator("#label").fill("cost")
    expect(page.locator("tbody tr")).to_have_count(0)
    assert server.call("PUT", path + "/labels", {"labels": {"cost": "1"}})[0] == 200
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody th a").first.click()
    expect(page.locator("#job-name")).to_have_text("one")
    expect(page.locator(".chips .chip")).to_have_text(["cost=1", "project=x", "team=vision"])
    page.locator(".chip", has_text="team=vision").click()
    expect(page.locator("tbody tr")).to_have_count(2)
