"""
The mistakes and clean cases of tests/cases/documented, from AWS's documentation: what check finds of them.

A sample of the apps is checked here, for each starts a synthesis; ``python tests/support/documented.py`` checks all.
"""

from pathlib import Path

import pytest
from documented import Case, cases, findings

FORMS = ("environment", "template", "app")
EVERY = {"environment": 1, "template": 1, "app": 8}
"""One of so many is checked here."""


def sample(kind: str) -> list[Case]:
    return [case for form in FORMS for case in cases(form, kind)[:: EVERY[form]]]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_at_least_forty_mistakes_and_ten_clean_cases_with_pages(form: str) -> None:
    mistakes, clean = cases(form, "mistakes"), cases(form, "clean")
    assert len(mistakes) >= 40
    assert len(clean) >= 10
    assert all(case.at for case in mistakes)
    assert not any(case.at for case in clean)
    assert all(".html" in case.page for case in (*mistakes, *clean))


@pytest.mark.parametrize("case", sample("mistakes"), ids=lambda case: f"{case.form}-{case.name}")
def test_a_mistake_is_found_where_it_is(case: Case, tmp_path: Path) -> None:
    own, whole = tmp_path / "own", tmp_path / "whole"
    own.mkdir()
    found = findings(case, own, linted=False)
    if not any(case.named_by(finding) for finding in found):  # some are found by cfn-lint alone
        whole.mkdir()
        found = findings(case, whole)

    assert any(case.named_by(finding) for finding in found), found
    assert all(finding["fix"] or not finding["code"].startswith("HF") for finding in found)


@pytest.mark.parametrize("case", sample("clean"), ids=lambda case: f"{case.form}-{case.name}")
def test_a_clean_case_has_no_finding(case: Case, tmp_path: Path) -> None:
    assert findings(case, tmp_path) == []
