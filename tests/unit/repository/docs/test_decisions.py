"""Decisions have one form and are listed, and a number that a page or a source file mentions is one of them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "docs" / "adr"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
FORM = re.compile(
    r"# (?P<number>\d+)\. (?P<title>[^\n]+)\n\nStatus: \w+\n\nDate: \d{4}-\d\d-\d\d\n\n"
    r"## Context\n.+\n## Decision\n.+\n## Alternatives\n.+\n## Consequences\n.+",
    re.DOTALL,
)
SOURCES = ("constructs", "containers", "holdfast", "lifecycle", "stacks")


def in_file_name(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-")


def test_a_decision_has_status_date_and_four_parts_and_its_file_has_its_title() -> None:
    forms = {page.stem: FORM.fullmatch(page.read_text()) for page in PAGES}

    assert [name for name, form in forms.items() if form is None] == []
    named = {name: f"{int(form['number']):04}-{in_file_name(form['title'])}" for name, form in forms.items() if form}
    assert {name: right for name, right in named.items() if name != right} == {}


def test_the_index_lists_each_decision_once_by_its_title() -> None:
    listed = re.findall(r"^\| \[(.+)\]\((.+)\) \| (\d+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    titles = {page.name: page.read_text().partition("\n")[0] for page in PAGES}

    assert len(listed) == len(PAGES)
    assert {name: f"# {number}. {title}" for title, name, number in listed} == titles


def test_each_decision_that_is_mentioned_exists() -> None:
    numbers = {int(page.name[:4]) for page in PAGES}
    sources = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    pages = (path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in ("findings", "examples"))
    mentions = re.compile(r"(?:ADR |adr/)0*([1-9]\d*)")
    missing = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in [*sources, *pages, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "pyproject.toml"]
        for number in mentions.findall(path.read_text())
        if int(number) not in numbers
    }

    assert missing == set()
