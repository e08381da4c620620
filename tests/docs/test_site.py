# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""The site that scripts/site makes of docs/: whole, without a network, the same each time."""

import filecmp
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from pages_of import ROOT


def make_site(folder: Path) -> Path:
    """Make the site in `folder`."""
    made = subprocess.run(
        [sys.executable, "-B", str(ROOT / "scripts/site"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a site that the tests share."""
    return make_site(tmp_path_factory.mktemp("site") / "site")


class Elements(HTMLParser):
    """The elements of a page.

    Parameters
    ----------
    text
        Of the page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.inline_scripts: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        attributes = {name: value or "" for name, value in attrs}
        self.found.append((tag, attributes))
        is_data = attributes.get("type") == "application/json"
        self._in_script = tag == "script" and "src" not in attributes and not is_data

    def handle_data(self, data: str) -> None:
        """Keep the text of a script."""
        if self._in_script:
            self.inline_scripts.append(data)
            self._in_script = False


def html_pages(site: Path) -> list[tuple[Path, Elements]]:
    """All pages of the site, read."""
    return [(page, Elements(page.read_text())) for page in sorted(site.rglob("*.html"))]


def test_every_page_of_docs_is_there_with_the_version(site: Path) -> None:
    """No page is lost, and each says of which version it is."""
    version = subprocess.run(
        ["grep", "-oP", 'VERSION_STRING "\\K[^"]+', str(ROOT / "include/perseus/version.h")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for page in (ROOT / "docs").rglob("*.md"):
        name = "index" if page.stem == "README" else page.stem
        made = site / page.relative_to(ROOT / "docs").parent / f"{name}.html"
        assert f"Perseus {version}" in made.read_text(), page
    assert (site / "page.png").read_bytes() == (ROOT / "docs/page.png").read_bytes()


def test_the_contents_are_those_of_the_first_page(site: Path) -> None:
    """The menu has the headings of docs/README.md, in their order."""
    menu = re.findall(
        r'<span class="md-ellipsis">\s*(.*?)\s*</span>', (site / "index.html").read_text()
    )
    headings = re.findall(r"^\*\*(.+)\*\*$", (ROOT / "docs/README.md").read_text(), re.M)
    places = [menu.index(heading) for heading in headings]
    assert len(places) > 5
    assert places == sorted(places)


def test_each_link_leads_to_a_file_of_the_site(site: Path) -> None:
    """Pages, pictures, scripts and styles; a folder stands for its first page."""
    broken = []
    ids = {page: {a["id"] for _, a in e.found if "id" in a} for page, e in html_pages(site)}
    for page, elements in html_pages(site):
        for _, attributes in elements.found:
            for name in ("href", "src"):
                target = unquote(attributes.get(name, ""))
                path, _, anchor = target.partition("#")
                if re.match(r"[a-z]+:", target) or (not path and not anchor):
                    continue
                file = (page.parent / path).resolve() if path else page
                if file.is_dir():
                    file /= "index.html"
                if not file.is_relative_to(site.resolve()) or not file.is_file():
                    broken.append(f"{page.relative_to(site)}: {target}")
                elif anchor and file in ids and anchor not in ids[file] and anchor != "__skip":
                    broken.append(f"{page.relative_to(site)}: {target}: no such heading")
    assert not broken, "\n".join(broken[:20])


def test_nothing_is_loaded_from_a_network_or_run_inline(site: Path) -> None:
    """An air-gapped machine under a strict policy shows the whole site."""
    for page, elements in html_pages(site):
        assert not elements.inline_scripts, page
        for tag, attributes in elements.found:
            loaded = attributes.get("src", "")
            if tag == "link" and attributes.get("rel") != "canonical":
                loaded += attributes.get("href", "")
            assert not re.match(r"(https?:)?//", loaded), (page, loaded)
            assert tag != "style", page
            assert not [name for name in attributes if re.match(r"style$|on", name)], (page, tag)
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", style.read_text()), style


def test_the_search_knows_what_pages_say(site: Path) -> None:
    """The two forms of the index, for servers and for files, say the same."""
    text = (site / "search/search_index.json").read_text()
    assert (site / "search/search_index.js").read_text() == f"var __index = {text}"
    found = [each["location"] for each in json.loads(text)["docs"] if "straggler" in each["text"]]
    assert any(place.startswith("how-to/stragglers.html") for place in found)


def test_the_same_pages_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    """No time and no place of the making is in the site."""
    again = make_site(tmp_path / "elsewhere")
    names = sorted(str(path.relative_to(site)) for path in site.rglob("*") if path.is_file())
    assert names == sorted(
        str(path.relative_to(again)) for path in again.rglob("*") if path.is_file()
    )
    assert filecmp.cmpfiles(site, again, names, shallow=False)[1:] == ([], [])


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """What the command replaces is a site."""
    (tmp_path / "thesis.tex").write_text("years of work")
    made = subprocess.run(
        [sys.executable, "-B", str(ROOT / "scripts/site"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 2
    assert "is no site; name a new folder" in made.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
