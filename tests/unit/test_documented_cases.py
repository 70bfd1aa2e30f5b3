"""The set of mistakes and clean cases from AWS's documentation: each has its page and changes its base."""

import pytest
from documented import Case, base, cases, patched

FORMS = ("environment", "template", "app")


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_forty_mistakes_and_ten_clean_cases_with_pages(form: str) -> None:
    mistakes, clean = cases(form, "mistakes"), cases(form, "clean")
    assert (len(mistakes), len(clean)) == (40, 10)
    assert all(case.at for case in mistakes) and not any(case.at for case in clean)
    assert all(case.page.endswith(".html") or ".html#" in case.page for case in (*mistakes, *clean))


@pytest.mark.parametrize(
    "case", [*cases("environment", "mistakes"), *cases("template", "mistakes")], ids=lambda c: c.name
)
def test_a_mistake_changes_its_base(case: Case) -> None:
    assert patched(case, base(case)) != base(case)
