# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The page of one job, in Chromium: point, plan, stragglers, ranks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import await_running, create, register_all
from browsing import Surfer, expect
from serving import Server


def running_job(server: Server) -> str:
    """Create a job whose ranks have joined and that has its last plan; return its path."""
    path = create(server, name="a job")
    register_all(server, path)
    await_running(server, path)
    return path


def open_job(surfer: Surfer, path: str, query: str = "") -> Any:
    """Open the job's page, and wait until it is drawn."""
    page = surfer.open(f"#/job/{path.rsplit('/', 1)[1]}{query}")
    expect(page.locator(".lanes").first).to_be_visible()
    expect(page.locator(".cell").first).to_be_visible()
    return page


def figure(page: Any, name: str) -> Any:
    """Return the figure of this name."""
    return page.locator(f'[data-figure="{name}"]')


def test_a_point_is_looked_at_before_it_is_chosen(surfer: Surfer, server: Server) -> None:
    """Nothing changes until Apply; then the plan does."""
    path = running_job(server)
    page = open_job(surfer, path)
    before = server.call("GET", path)[1]
    expect(page.locator("#apply")).to_be_disabled()
    page.locator("#point").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    preview = page.locator("#preview")
    expect(preview).to_contain_text("saves")
    expect(preview).to_contain_text("W")
    expect(preview).to_contain_text("against maximum clocks")
    assert server.call("GET", path)[1]["at"] == before["at"]
    page.click("#apply")
    expect(page.locator("#outcome")).to_contain_text("The target is")
    after = server.call("GET", path)[1]
    assert after["at"] != before["at"]
    assert after["plan"]["version"] > before["plan"]["version"]
    # Its version may be a newer one by now: that plan is refined.
    expect(figure(page, "Plan")).to_contain_text(f"target {after['at']}")
    expect(page.locator(".events li", has_text="plan").first).to_be_visible()


def test_dragging_in_the_chart_moves_the_slider(surfer: Surfer, server: Server) -> None:
    """The chart takes a pointer, and the plan is one press away."""
    path = running_job(server)
    page = open_job(surfer, path)
    box = page.locator("section .plot").first.bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"], steps=4)
    page.mouse.up()
    frontier = server.call("GET", path)[1]["frontier"]
    share = (float(page.locator("#point").input_value()) - frontier["fastest_s"]) / (
        frontier["tstar_s"] - frontier["fastest_s"]
    )
    assert 0.6 < share < 0.8
    expect(page.locator("#apply")).to_be_enabled()
    page.get_by_role("button", name="Back to the plan").click()
    expect(page.locator("#apply")).to_be_disabled()


def test_a_straggler_arrives_and_goes(surfer: Surfer, server: Server) -> None:
    """Figures, plan and timeline follow a straggler."""
    path = running_job(server)
    page = open_job(surfer, path)
    expect(figure(page, "Stragglers").locator(".value")).to_have_text("0")
    status, _ = server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})
    assert status == 201
    expect(figure(page, "Stragglers").locator(".value")).to_have_text("1")
    expect(figure(page, "Plan")).to_contain_text("allows for a straggler")
    expect(page.locator("#pipeline")).to_contain_text("1 (its own plan)")
    page.select_option("#pipeline", "1")
    assert "pipeline=1" in page.url
    server.call("DELETE", path + "/stragglers")
    expect(figure(page, "Stragglers").locator(".value")).to_have_text("0")


def test_a_tab_that_was_hidden_gets_the_events_that_it_missed(
    surfer: Surfer, server: Server
) -> None:
    """It lets its connection go, and goes on after the last event that it saw."""
    path = running_job(server)
    page = open_job(surfer, path)
    server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})
    kinds = page.locator(".events .kind")
    expect(kinds.filter(has_text="straggler")).to_have_count(1)
    hide = (
        "value => { Object.defineProperty(document, 'hidden', {value, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    page.evaluate(hide, True)
    server.call("DELETE", path + "/stragglers")
    server.call("POST", path + "/stragglers", {"pipeline": 0, "factor": 1.2})
    page.evaluate(hide, False)
    expect(kinds.filter(has_text="straggler")).to_have_count(3)  # One tells what is over.
    expect(page.locator(".events")).to_contain_text("straggler 1 is over")


def test_the_grid_shows_ranks_by_mouse_and_by_keyboard(surfer: Surfer, server: Server) -> None:
    """A press or Enter shows the ranks of a place, and the link names it."""
    path = running_job(server)
    page = open_job(surfer, path)
    expect(page.locator(".cell")).to_have_count(4)
    page.locator(".cell").first.click()
    expect(page.locator("#rank-panel")).to_contain_text("Pipeline 0, stage 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#rank-panel")).to_contain_text("Pipeline 1, stage 1")
    expect(page.locator("#rank-panel")).to_contain_text("n1")
    # The link names the place.
    copy = surfer.open(page.url[len(surfer.url) + 1 :])
    expect(copy.locator("#rank-panel")).to_contain_text("Pipeline 1, stage 1")


def test_the_timeline_is_the_servers_plan(surfer: Surfer, server: Server) -> None:
    """There is a block for each computation of plan.json."""
    path = running_job(server)
    page = open_job(surfer, path)
    plan = server.call("GET", path + "/plan.json")[1]
    blocks = sum(len(rank["computations"]) for rank in plan["ranks"])
    expect(page.locator(".lanes")).to_have_count(2)
    expect(page.locator("#measured-empty")).to_contain_text("perseus job show")
    expect(page.locator(".lanes").nth(1)).to_have_attribute(
        "aria-label", re.compile(f" {blocks} computations on 2 ranks")
    )
    expect(page.locator("h3").nth(0)).to_contain_text(
        f"{plan['baseline']['iteration_time_s']:.4g}"[:5]
    )
    first = plan["ranks"][0]["computations"][0]
    page.locator(".lanes").nth(1).focus()
    page.keyboard.press("n")
    expect(page.locator(".tip")).to_contain_text(f"{first['knob']} MHz")


def test_a_late_answer_does_not_replace_a_newer_one(surfer: Surfer, server: Server) -> None:
    """The plan that is shown is that of the pipeline that was chosen last."""
    path = running_job(server)
    server.call("POST", path + "/stragglers", {"pipeline": 1, "factor": 1.3})
    page = open_job(surfer, path)
    expect(page.locator(".lanes")).to_have_count(2)
    expect(page.locator("#measured-empty")).to_contain_text("perseus job show")
    expect(page.locator("#pipeline")).to_contain_text("1 (its own plan)")
    titles = page.locator("h3")
    plan = server.call("GET", path + "/plan.json?pipeline=0")[1]
    of_first = f"{plan['iteration_time_s']:.2f} s"
    expect(titles.nth(1)).to_contain_text(of_first)
    held: list[Any] = []
    page.route("**/plan.json?pipeline=1", lambda route: held.append(route))
    page.select_option("#pipeline", "1")
    page.wait_for_timeout(200)
    assert held
    with page.expect_response("**/plan.json?pipeline=0"):
        page.select_option("#pipeline", "0")
    with page.expect_response("**/plan.json?pipeline=1"):
        held[0].continue_()
    page.wait_for_timeout(500)
    assert of_first in titles.nth(1).text_content()


def test_ranks_in_trouble_stand_first(surfer: Surfer, server: Server) -> None:
    """In the banner: how many, and each kind of trouble once."""
    path = running_job(server)
    page = open_job(surfer, path)
    banner = page.locator(".banner")
    expect(banner).to_be_hidden()
    clients = [
        {"rank": rank, "client": f"c{rank}", "state": "following", "error": "no agent answers"}
        for rank in (1, 2)
    ]
    server.call("POST", path + "/iterations", {"reports": [], "clients": clients})
    expect(banner).to_contain_text("2 ranks in trouble: no agent answers.")


def test_a_saving_names_the_older_plan_that_it_is_of(surfer: Surfer, server: Server) -> None:
    """And does not, where it is the plan's that is predicted beside it."""
    path = running_job(server)
    job = server.call("GET", path)[1]
    version = job["plan"]["version"]
    saving = {"mean": 12.0, "least": 11.0, "most": 13.0}

    def with_saving_of(plan_version: int) -> str:
        return json.dumps(job | {"measured_saving": saving | {"plan_version": plan_version}})

    shown = with_saving_of(version)
    page = surfer.open("#/jobs")
    page.route(
        f"**{path}", lambda route: route.fulfill(body=shown, content_type="application/json")
    )
    page.goto(page.url.replace("#/jobs", f"#/job/{job['id']}"))
    expect(figure(page, "Saved")).to_contain_text("12.")
    expect(figure(page, "Saved")).not_to_contain_text("older")
    shown = with_saving_of(version - 1)
    expect(figure(page, "Saved")).to_contain_text(f"of plan {version - 1}, an older one")


def test_what_is_measured_is_marked_as_measured(surfer: Surfer, server: Server) -> None:
    """What was not measured is n/a; what was says so."""
    path = running_job(server)
    page = open_job(surfer, path)
    expect(figure(page, "Iteration time now")).to_contain_text("n/a")
    expect(figure(page, "Iteration time planned")).to_contain_text("predicted")
    reports = [
        {"rank": rank, "iteration": 3, "time_s": 1.25, "energy_j": 250, "clocks": "plan"}
        for rank in range(4)
    ]
    server.call("POST", path + "/iterations", {"reports": reports})
    expect(figure(page, "Iteration time now")).to_contain_text("1.250 s")
    expect(figure(page, "Iteration time now")).to_contain_text("measured")
    expect(figure(page, "Power now")).to_contain_text("800 W")
    # An ended phase is not shown as now.
    assert server.call("POST", path + "/finish")[0] == 200
    for name, last in (("Iteration time now", "1.250 s"), ("Power now", "800 W")):
        expect(figure(page, name).locator(".value")).to_have_text("n/a")
        expect(figure(page, name)).to_contain_text(f"the job has ended; at last {last}")


def test_several_slow_ranks_are_one_slow_pipeline(surfer: Surfer, server: Server) -> None:
    """The count is of pipelines; the table has each report."""
    path = running_job(server)
    page = open_job(surfer, path)
    for rank in (2, 3):
        server.call("POST", path + "/stragglers", {"rank": rank, "factor": 1.3})
    expect(figure(page, "Stragglers")).to_contain_text("reported 2 times")
    expect(figure(page, "Stragglers").locator(".value")).to_have_text("1")


def test_where_nothing_is_a_page_says_so(surfer: Surfer, server: Server) -> None:
    """A server that was built from source has no documentation at /docs."""
    surfer.allowed = re.compile("404")
    page = surfer.open()
    page.goto(server.url + "/docs")
    expect(page.locator("h1")).to_have_text("Not Found")
    expect(page.locator("p")).to_contain_text("perseus serve --docs build/site")


def test_a_job_that_is_not_there_is_said_to_be_missing(surfer: Surfer, server: Server) -> None:
    """A wrong id leads back to the jobs."""
    surfer.allowed = re.compile("404")
    page = surfer.open("#/job/j-0000")
    expect(page.locator("h1")).to_have_text("No such job")
    page.get_by_role("link", name="All jobs").click()
    expect(page.locator("h1")).to_have_text("Jobs")


def test_ranks_by_place_and_a_thinned_frontier(server: Server) -> None:
    """What the page asks of the API is bounded."""
    path = running_job(server)
    grid = server.call("GET", path + "/grid")[1]
    assert [len(row["cells"]) for row in grid["rows"]] == [2, 2]
    assert grid["pipelines_each"] == 1
    ranks = server.call("GET", path + "/ranks?pipeline=1&stage=0")[1]["ranks"]
    assert [rank["rank"] for rank in ranks] == [2]
    whole = server.call("GET", path + "/frontier")[1].splitlines()
    thin = server.call("GET", path + "/frontier?points=3")[1].splitlines()
    assert (thin[0], thin[1], thin[-1]) == (whole[0], whole[1], whole[-1])
    assert len(thin) == min(len(whole), 4)
    assert json.dumps(server.call("GET", path + "/frontier?points=1000000")[1]) == json.dumps(
        "\n".join(whole) + "\n"
    )


def test_the_history_is_drawn_by_hour_and_day(surfer: Surfer, server: Server) -> None:
    """Iteration time, power and savings; what was not measured is said to be so."""
    path = running_job(server)
    page = open_job(surfer, path)
    history = page.locator("#history")
    expect(history).to_contain_text("No rank reported an iteration in this time.")
    # The others wait for rank 3.
    reports = [
        {"rank": rank, "iteration": n, "time_s": (rank + 1) / 8, "energy_j": 100}
        for n in range(20)
        for rank in range(4)
    ]
    status, _ = server.call("POST", path + "/iterations", {"reports": reports})
    assert status == 202
    while not server.call("GET", path + "/history")[1]["rows"]:
        page.wait_for_timeout(50)
    # Nothing was there: the page looks again soon, not only after half a minute.
    expect(history.locator(".plot")).to_have_count(3, timeout=20_000)
    page.select_option("#history-span", "day")
    assert "span=day" in page.url
    expect(history.locator(".plot")).to_have_count(3)
    expect(history.locator(".plot").first).to_have_attribute(
        "aria-label", re.compile("Iteration time.*slowest rank.*0.5000 s to 0.5000 s")
    )
    expect(history).to_contain_text("Power of all GPUs")
    expect(history).to_contain_text("measured, where plans were compared): n/a")
    expect(history).to_contain_text("20 iterations. The energy of 100.0 % of them")
    history.locator("summary").click()
    expect(history.locator("tbody tr").first).to_contain_text("800 W")
    page.reload()
    expect(page.locator("#history-span")).to_have_value("day")
    expect(page.locator("#history .plot").first).to_be_visible()
