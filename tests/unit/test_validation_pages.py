"""The pages of findings follow from the rules."""

import re
from collections.abc import Mapping

import pytest

from holdfast.validation import all_rules
from holdfast.validation.pages import pages


@pytest.fixture(scope="module")
def written() -> Mapping[str, str]:
    return pages()


def test_every_code_has_a_page_and_a_row(written: Mapping[str, str]) -> None:
    assert {name for name in written if name.endswith(".md")} == {"index.md", *(f"{code}.md" for code in all_rules())}
    assert all(f"[{code}]({code}.md)" in written["index.md"] for code in all_rules())


def test_links_of_pages_lead_to_pages(written: Mapping[str, str]) -> None:
    links = {target for text in written.values() for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text)}

    assert links - written.keys() == set()
