"""The glossary's word is the only word: what it says is never used occurs in no page and in no source file."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SOURCES = ("holdfast", "constructs", "stacks", "containers", "lifecycle", "environments", "examples")


def rows() -> list[list[str]]:
    """Term, meaning, what is never said, source."""
    lines = (ROOT / "docs" / "reference" / "glossary.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0] != "term" and not row[0].startswith("---")]


def never() -> list[str]:
    return [word.strip() for row in rows() for word in row[2].split(",") if word.strip()]


def texts() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    yield from (path for path in (ROOT / "docs").glob("**/*.md") if path.parent.name != "adr")
    for folder in SOURCES:
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".yaml", ".md"))


def test_every_term_is_there_once_and_is_said_in_one_line() -> None:
    terms = [row[0] for row in rows()]

    assert len(terms) == len(set(terms)) >= 40
    assert all(len(row) == 4 and row[1] for row in rows())


@pytest.fixture(scope="module")
def used() -> list[str]:
    gap = r"\s+"  # a phrase may be broken over two lines
    words = {word: re.compile(rf"(?<![\w-]){gap.join(word.lower().split())}s?(?![\w-])") for word in never()}
    found = []
    for path in texts():
        text = path.read_text(errors="replace").lower() if path.name != "glossary.md" else ""
        for word, pattern in words.items():
            if word.split()[-1].lower() in text:
                lines = (text.count("\n", 0, match.start()) + 1 for match in pattern.finditer(text))
                found += [f"{path.relative_to(ROOT)}:{line}: {word}" for line in lines]
    return found


def test_what_the_glossary_says_is_never_used_is_not(used: list[str]) -> None:
    assert used == []
