"""
Configurations that others published are imported as they are, or stop at questions that are honestly open.

Their text is no part of this repository. To have it, name a folder in HOLDFAST_PUBLIC_CONFIGURATIONS and fill it: for
each file of tests/cases/import/public.yaml ``git -C CLONE show COMMIT:PATH > FOLDER/OWNER+NAME/COMMIT/PATH``.
"""

from pathlib import Path

import pytest
from public_configurations import FOLDER, PublicConfiguration, fetched, public_configurations

from holdfast.importing import Draft, from_samples, render
from holdfast.importing.files import NotUsableError, cluster_of
from holdfast.validation.from_environment import check

ROWS = public_configurations()


@pytest.fixture(params=ROWS, ids=lambda row: row.id)
def row(request: pytest.FixtureRequest) -> PublicConfiguration:
    found: PublicConfiguration = request.param
    return found


def imported(row: PublicConfiguration, folder: Path) -> Draft:
    paths = fetched(row, folder)
    if paths is None:
        pytest.skip(f"{FOLDER} names no folder with the files of {row.repository}")
    given = cluster_of(files=paths, name=row.name)
    return from_samples(given.request, given.provisioning, region=row.region or given.region, account=given.account)


def test_the_list_has_enough_of_them_each_once() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) >= 15
    assert len({row.repository for row in ROWS}) >= 10
    assert any(row.questions for row in ROWS)
    assert any(not row.questions and row.refused is None for row in ROWS)


def test_a_public_configuration_is_imported_or_asks_what_is_open(row: PublicConfiguration, tmp_path: Path) -> None:
    if row.refused is not None:
        with pytest.raises(NotUsableError, match=row.refused):
            imported(row, tmp_path)
        return
    found = imported(row, tmp_path)
    asked = {note.path: "" for note in found.notes if note.decide}
    for note in found.notes:
        asked[note.path] = asked.get(note.path, "") + note.text

    assert {note.path for note in found.notes if note.decide} == set(row.questions)
    assert [path for path, words in row.questions.items() if words not in asked[path]] == []

    path = tmp_path / "imported.yaml"
    path.write_text(render(found, origin=row.id))
    errors = {finding.code for finding in check(path).findings if finding.severity == "error"}
    assert errors == set(row.errors) | ({"HF013"} if row.questions else set())
