"""The page of first changes names files that are there, and counts them rightly."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "learn" / "first-change.md").read_text()
COUNTED = re.findall(r"^\| \[([^]]+)\]\(#[\w-]+\) \| (\d+) \|$", PAGE, re.MULTILINE)
NO_SOURCE = ("tests/", "docs/", "holdfast/validation/examples/", "environments/", "examples/")


def chapter(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def files(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", chapter(title), re.MULTILINE)


def ways() -> list[str]:
    rows = re.findall(r"^\| [^|]+\? \| (.+) \|$", chapter("Where is it?"), re.MULTILINE)
    return ["/".join(re.findall(r"`([^`]+)`", row)) for row in rows]


def test_at_least_ten_changes_and_ten_questions_are_told() -> None:
    assert len(COUNTED) >= 10
    assert len(ways()) >= 10


def test_every_chapter_of_a_change_is_counted() -> None:
    assert [title for title, _ in COUNTED] == re.findall(r"^## (.+)$", PAGE, re.MULTILINE)[:-2]


def test_the_count_of_a_change_is_that_of_its_list() -> None:
    listed = {title: len([name for name in files(title) if not name.startswith(NO_SOURCE)]) for title, _ in COUNTED}

    assert {title: int(count) for title, count in COUNTED} == listed


def test_a_file_of_a_change_and_of_an_answer_is_there() -> None:
    paths = {*(name for title, _ in COUNTED for name in files(title)), *ways()}

    assert sorted(path for path in paths if not (ROOT / path).exists()) == []
