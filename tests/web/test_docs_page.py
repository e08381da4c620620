# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The documentation that the server carries, at /docs, and the same site opened as a file."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browsing import BINARY, Browser, Surfer, WatchedPage, expect
from serving import Server

ROOT = Path(__file__).resolve().parents[2]
WORD = "blocking power"  # Many pages have it.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the site."""
    folder = tmp_path_factory.mktemp("site") / "site"
    subprocess.run([sys.executable, "-B", str(ROOT / "scripts/site"), str(folder)], check=True)
    return folder


@pytest.fixture
def docs_server(site: Path, tmp_path: Path) -> Iterator[Server]:
    """Start a server that carries the site, beside a file that is none of it."""
    (tmp_path / "secret").write_text("classified")
    (tmp_path / "site").mkdir()
    subprocess.run(["cp", "-r", f"{site}/.", str(tmp_path / "site")], check=True)
    (tmp_path / "site/leak.html").symlink_to(tmp_path / "secret")
    (tmp_path / "site/out").symlink_to(tmp_path)
    started = Server(BINARY, tmp_path / "jobs.db", "--docs", str(tmp_path / "site"))
    yield started
    started.stop()


@pytest.fixture
def reader(browser: Browser, docs_server: Server) -> Iterator[Surfer]:
    """Surf on that server; nothing may go wrong unseen."""
    surfing = Surfer(browser, docs_server.url)
    yield surfing
    for context in browser.contexts:
        context.close()
    assert surfing.faults == []


def ask(url: str, target: str, method: str = "GET") -> tuple[int, str, str]:
    """Return status, location and body of a target that is sent as it is."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request(method, target)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Location", ""), answer.read().decode()


def search(page: WatchedPage, word: str) -> Any:
    """Type a word into the search, and return its results."""
    page.locator("input.md-search__input").click()
    page.locator("input.md-search__input").type(word)
    results = page.locator(".md-search-result__item a.md-search-result__link")
    expect(results.first).to_be_visible()
    return results


def test_the_page_leads_to_the_documentation_and_its_search_finds_a_word(reader: Surfer) -> None:
    """One click from the jobs to the pages, and from a word to where it is explained."""
    page = reader.open()
    page.get_by_role("link", name="Documentation").click()
    expect(page.locator("h1")).to_contain_text("Documentation")
    results = search(page, WORD)
    assert results.count() >= 3
    results.first.click()
    expect(page.locator("article")).to_contain_text(WORD)
    assert "/docs/" in page.url


def test_a_picture_and_a_copy_of_the_source_are_there(reader: Surfer) -> None:
    """What pages show and link to is in the site."""
    page = reader.open("docs/how-to/page.html")
    width = page.locator("article img").first.evaluate("image => image.naturalWidth")
    assert width > 300
    assert page.goto(f"{reader.url}/docs/repository/CHANGELOG.html").status == 200


def test_a_reader_may_have_it_dark(reader: Surfer) -> None:
    """As the system asks, and as a click says; the click is remembered."""
    page = reader.open("docs/index.html", color_scheme="dark")
    body = page.locator("body")
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    page.locator("label[title='Light colours']").click()
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    page.goto(f"{reader.url}/docs/how-to/install.html")
    expect(body).to_have_attribute("data-md-color-scheme", "default")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(reader: Surfer, scheme: str) -> None:
    """Contrast, names and landmarks, of a page of links, one of code and one of tables."""
    axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")
    for name in ("index", "how-to/install", "how-to/hooks", "reference/metrics"):
        page = reader.open(f"docs/{name}.html", color_scheme=scheme, reduced_motion="reduce")
        expect(page.locator("article h1")).to_be_visible()
        results = axe_module.Axe().run(page)
        assert results.violations_count == 0, results.generate_report()


def test_the_search_works_in_a_file(browser: Browser, site: Path) -> None:
    """The same site without any server."""
    surfer = Surfer(browser, f"file://{site}")
    page = surfer.open("index.html")
    search(page, WORD).first.click()
    expect(page.locator("article")).to_contain_text(WORD)
    assert surfer.faults == []


def test_links_are_relative_to_the_folder(docs_server: Server) -> None:
    """Without its slash, the folder would be lost; the server may be behind a prefix."""
    assert ask(docs_server.url, "/docs")[:2] == (302, "docs/")
    first = ask(docs_server.url, "/docs/")
    assert first[0] == 200
    assert ask(docs_server.url, "/docs/index.html") == first
    assert ask(docs_server.url, "/docs/adr/")[0] == 200
    assert ask(docs_server.url, "/docs/how-to/none.html")[0] == 404
    assert ask(docs_server.url, "/docs/", "POST")[0] == 405


@pytest.mark.parametrize(
    "target",
    [
        "/docs/../secret",
        "/docs/%2e%2e/secret",
        "/docs/..%2fsecret",
        "/docs/%2e%2e%2fsecret",
        "/docs/..%5csecret",
        "/docs/x/../../secret",
        "/docs/out/secret",
        "/docs/leak.html",
        "/docs//etc/passwd",
        "/docs/%2fetc%2fpasswd",
        "/docs/index.html%00",
        "/docs/" + "a/" * 1000,
        "/docs/site",
        "/docs/.",
    ],
)
def test_no_path_leaves_the_site(docs_server: Server, target: str) -> None:
    """Neither dots nor slashes, however they are written, nor links of the file system."""
    status, _, body = ask(docs_server.url, target)
    assert status in (400, 404), target
    assert "classified" not in body
    assert "root:" not in body


def test_the_policy_allows_only_what_the_server_sends(docs_server: Server) -> None:
    """Nothing inline and nothing from elsewhere, but for icons in the style sheet."""
    connection = http.client.HTTPConnection(urlsplit(docs_server.url).netloc, timeout=60)
    connection.request("GET", "/docs/")
    policy = connection.getresponse().getheader("Content-Security-Policy", "")
    assert "default-src 'self'" in policy
    assert "img-src 'self' data:" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_server_without_the_site_says_where_it_is(server: Server) -> None:
    """In words, for who followed the link."""
    for target in ("/docs", "/docs/", "/docs/how-to/install.html"):
        status, _, body = ask(server.url, target)
        assert status == 404
        assert "perseus serve --docs build/site" in body


@pytest.mark.parametrize("wrong", ["missing", "empty", "file"])
def test_a_folder_that_is_no_site_is_refused(tmp_path: Path, wrong: str) -> None:
    """Before anything is opened, in one sentence, with exit code 2."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    started = subprocess.run(
        [str(BINARY), "serve", "--listen", "127.0.0.1:0", "--docs", str(tmp_path / wrong)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert started.returncode == 2
    assert f"{tmp_path / wrong}: has no index.html" in started.stderr
    assert started.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]
