# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What the page must not do, and whom it asks for a token."""

from __future__ import annotations

import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from api_calls import await_running, create, register_all
from browsing import BINARY, Browser, Surfer, expect
from serving import Server

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
READ = "read-0123456789abcdef"
OPERATE = "operate-0123456789abcdef"
MOST_BYTES = 300 << 10


def fetch(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers (with small letters) and body."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=names)) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def test_the_files_are_few_bounded_and_guarded(server: Server) -> None:
    """Size, tags and headers of all that a browser loads."""
    size = 0
    for name in ("", "page/page.js", "page/page.css", "page/icon.svg"):
        status, headers, body = fetch(f"{server.url}/{name}")
        assert status == 200, name
        size += len(body)
        policy = headers["content-security-policy"].split("; ")
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        tag = headers["etag"]
        assert fetch(f"{server.url}/{name}", If_None_Match=f'"other", W/{tag}')[0] == 304
        assert fetch(f"{server.url}/{name}", If_None_Match='"other"')[0] == 200
    assert size < MOST_BYTES
    assert fetch(f"{server.url}/page/none.js")[0] == 404
    html = fetch(server.url + "/")[2].decode()
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", html)


def test_a_hostile_name_is_text(surfer: Surfer, server: Server) -> None:
    """Markup in names is shown, not obeyed."""
    path = create(server, name=HOSTILE)
    status, _ = server.call(
        "POST", path + "/ranks", {"rank": 0, "dp_rank": 0, "pp_rank": 0, "node": HOSTILE}
    )
    assert status == 200
    page = surfer.open()
    link = page.locator("tbody th a")
    expect(link).to_have_text(HOSTILE)
    link.click()
    expect(page.locator("#job-name")).to_have_text(HOSTILE)
    page.locator(".cell").first.click()
    expect(page.locator("#rank-panel")).to_contain_text(HOSTILE)
    assert page.locator("main img, main script").count() == 0
    assert "owned" not in page.title().replace(HOSTILE, "")


def test_the_policy_stops_what_is_written_into_the_page(surfer: Surfer) -> None:
    """Even a script that got into the page does not run."""
    surfer.allowed = re.compile("Content Security Policy")
    page = surfer.open()
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.owned = 1';"
        " document.body.append(s); }"
    )
    assert page.evaluate("() => window.owned === undefined")


def test_another_site_cannot_frame_the_page(browser: Browser, server: Server) -> None:
    """A frame elsewhere stays empty."""
    page = browser.new_context().new_page()
    page.route(
        "http://evil.example/",
        lambda route: route.fulfill(
            content_type="text/html", body=f"<iframe src='{server.url}/'></iframe>"
        ),
    )
    page.goto("http://evil.example/")
    frame = page.frames[-1]
    assert not frame.url.startswith(server.url) or frame.locator("#main").count() == 0


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Server]:
    """Start a server with tokens that has a job."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {READ} reader\noperate {OPERATE} operator\n")
    tokens.chmod(0o600)
    started = Server(BINARY, tmp_path / "guarded.db", "--token-file", str(tokens))
    yield started
    started.stop()


def make_job(server: Server) -> str:
    """Create a running job with the token of an operator."""
    opener = urllib.request.build_opener()
    opener.addheaders = [("Authorization", f"Bearer {OPERATE}")]
    urllib.request.install_opener(opener)
    try:
        path = create(server, name="guarded")
        register_all(server, path)
        await_running(server, path)
    finally:
        urllib.request.install_opener(urllib.request.build_opener())
    return path


def test_tokens_and_roles(browser: Browser, guarded: Server) -> None:
    """A token is asked for, held in memory, and bounds what one may do."""
    path = make_job(guarded)
    surfer = Surfer(browser, guarded.url)
    surfer.allowed = re.compile("401|403")
    page = surfer.open()
    expect(page.locator("h1")).to_have_text("Sign in")
    assert page.locator("tbody").count() == 0
    page.fill("#token", "wrong-0123456789abcdef")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nobody has this token")
    page.fill("#token", READ)
    page.keyboard.press("Enter")
    expect(page.locator("tbody th a")).to_have_text("guarded")
    # A reader sees what a point would come to, and is told why it stays.
    page.click("tbody th a")
    expect(page.locator("#point")).to_be_visible()
    page.locator("#point").focus()
    page.keyboard.press("End")
    page.click("#apply")
    expect(page.locator("#outcome")).to_contain_text("role operate")
    assert READ not in page.url
    assert page.evaluate("() => localStorage.length + sessionStorage.length") == 0
    assert page.context.cookies() == []
    # It is forgotten when the page is loaded again, unless one asked to keep it.
    page.reload()
    expect(page.locator("h1")).to_have_text("Sign in")
    page.fill("#token", OPERATE)
    page.check("#keep")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#job-name")).to_have_text("guarded")
    page.reload()
    expect(page.locator("#job-name")).to_have_text("guarded")
    page.locator("#point").focus()
    page.keyboard.press("End")
    page.click("#apply")
    expect(page.locator("#outcome")).to_contain_text("The target is")
    page.click("#sign-out")
    expect(page.locator("h1")).to_have_text("Sign in")
    assert page.evaluate("() => sessionStorage.length") == 0
    assert surfer.faults == []
    assert path
