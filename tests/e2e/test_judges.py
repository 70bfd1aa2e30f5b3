"""What CloudFormation's schemas, cfn-lint and cdk-nag say of all resources of all environments."""

from pathlib import Path

import pytest
from judging import NAMES, ROOT, Judgement, judged, table, written

from holdfast.catalog.facts import hyperpod_regions, hyperpod_types
from holdfast.config import load
from holdfast.validation.from_environment import check

pytestmark = pytest.mark.e2e
ELSEWHERE = {"HF032", "HF033", "HF034"}


@pytest.fixture(scope="module")
def judgements() -> list[Judgement]:
    return [judged(name) for name in NAMES]


@pytest.mark.timeout(600)
def test_nothing_is_wrong_and_every_objection_has_a_row(judgements: list[Judgement]) -> None:
    assert [(each.name, each.schema) for each in judgements if each.schema] == []
    assert [(each.name, each.lint) for each in judgements if each.lint] == []
    assert [(each.name, each.unaccepted) for each in judgements if each.unaccepted] == []


@pytest.mark.timeout(600)
def test_the_page_shows_the_table(judgements: list[Judgement]) -> None:
    assert table(judgements) == written(), "run python tests/support/judging.py"


@pytest.mark.timeout(600)
def test_regions_that_a_file_may_not_name_are_refused(judgements: list[Judgement], tmp_path: Path) -> None:
    for each in judgements:
        path = ROOT / "environments" / f"{each.name}.yaml"
        text, own = path.read_text(), load(path).region
        if load(path).cloud != "aws":
            continue
        for region in filter(hyperpod_types, hyperpod_regions()):
            (tmp_path / path.name).write_text(text.replace(own, region))
            found = {finding.code for finding in check(tmp_path / path.name, errors_only=True).findings}
            assert bool(found & ELSEWHERE) == (region not in each.regions), (each.name, region, found)
