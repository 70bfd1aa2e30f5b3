"""The site builds strictly, without git and without a network, and a browser loads nothing from other hosts."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from build_site import SiteError, build
from holdfast.validation import all_rules

CONFIG = """
[project]
site_name = "small"
docs_dir = "pages"
site_dir = "site"

[project.plugins.mkdocstrings]
"""
BROKEN = {
    "a page": ("[gone](gone.md)", "gone.md"),
    "a heading": ("[gone](index.md#gone)", "gone"),
    "a file": ("[gone](../setup.py)", "allowed: a file that exists"),
    "a table": ("<!-- table: gone -->", "got table 'gone'; allowed: kinds"),
    "a name": ("::: holdfast_runtime.gone", "holdfast_runtime.gone"),
    "a reference to code": ("[`Run`][holdfast_runtime.gone]", "holdfast_runtime.gone"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built where no program and no network can be reached."""
    work = tmp_path_factory.mktemp("site") / "work"
    closed = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PATH": "/nonexistent", **closed}.items():
            patch.setenv(name, value)
        build(work=work)
    return work / "site"


def links(page: str) -> set[str]:
    found = set(re.findall(r'<a [^>]*href="?(?![a-z]+:)([^"#> ]+)', Path(page).read_text()))
    return {os.path.normpath(f"{page}/../{link}") for link in found}


def test_every_page_is_reached_from_the_home_page_in_three_clicks(site: Path) -> None:
    pages = {str(page) for page in site.rglob("*.html") if page.name != "404.html"}
    clicked = reached = {str(site / "index.html")}
    for _ in range(3):
        clicked = {link for page in clicked for link in links(page)} & pages - reached
        reached = reached | clicked

    assert pages - reached == set()


def test_generated_pages_and_public_names_are_on_the_site(site: Path) -> None:
    assert "HF041" in (site / "search.json").read_text()
    assert "Kinds" in (site / "reference" / "events.html").read_text()
    assert 'id="holdfast_constructs.HyperPodCluster"' in (site / "reference" / "api-constructs.html").read_text()
    assert 'id="holdfast_runtime.Run"' in (site / "reference" / "api-runtime.html").read_text()
    assert {path.stem for path in (site / "reference" / "findings").glob("HF*.html")} == set(all_rules())


def test_a_page_loads_nothing_from_other_hosts(site: Path) -> None:
    loaded = r'(<(script|img|iframe)[^>]* src|<link[^>]* rel="(?:stylesheet|preconnect|icon)"[^>]* href)="?https?:'
    pages = {page.relative_to(site): page.read_text() for page in site.rglob("*.html")}

    assert [str(name) for name, text in pages.items() if re.search(loaded, text) or 'class="mermaid"' in text] == []


def small(folder: Path, text: str) -> Mapping[str, Path]:
    docs = folder / "docs"
    docs.mkdir()
    (docs / "zensical.toml").write_text(CONFIG)
    (docs / "index.md").write_text(f"# Small\n\n{text}\n")
    return {"docs": docs, "work": folder / "work"}


def test_a_small_site_builds(tmp_path: Path) -> None:
    build(**small(tmp_path, "[all](index.md#small)\n\n::: holdfast_runtime.Run"), generated={})

    assert 'id="holdfast_runtime.Run"' in (tmp_path / "work" / "site" / "index.html").read_text()


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_ends_the_build(what: str, tmp_path: Path) -> None:
    text, message = BROKEN[what]

    with pytest.raises(SiteError, match=re.escape(message)):
        build(**small(tmp_path, text), generated={})
