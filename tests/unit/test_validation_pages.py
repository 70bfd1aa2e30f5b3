"""docs/reference/findings says what the rules say."""

import re
from pathlib import Path

import pytest

from holdfast.validation import all_rules
from holdfast.validation.pages import PAGES, pages, write

CODES = sorted(all_rules())


def test_every_code_has_a_page_and_a_row() -> None:
    assert set(pages()) == {"README.md", *(f"{code}.md" for code in all_rules())}
    assert all(f"[{code}]({code}.md)" in pages()["README.md"] for code in all_rules())


@pytest.mark.parametrize("name", ["README.md", *(f"{code}.md" for code in CODES)])
def test_a_page_is_as_it_would_be_written_now(name: str) -> None:
    assert (PAGES / name).read_text() == pages()[name], "run: python -m holdfast.validation"


def test_no_page_is_left_of_a_code_that_is_gone() -> None:
    assert {path.name for path in PAGES.glob("*.md")} == set(pages())


def test_links_of_pages_lead_somewhere() -> None:
    for name, text in pages().items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (PAGES / target).exists(), f"{name}: {target}"


def test_pages_of_codes_that_are_gone_are_taken_away(tmp_path: Path) -> None:
    (tmp_path / "HF000.md").write_text("old")

    write(tmp_path)

    assert not (tmp_path / "HF000.md").exists()
    assert (tmp_path / "README.md").read_text() == pages()["README.md"]
