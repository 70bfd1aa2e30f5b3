"""Environments as a user writes them with the pages beside him: no finding, error or warning, in the first check."""

from pathlib import Path

import pytest

from holdfast.validation.from_environment import check

FILES = sorted((Path(__file__).parents[2] / "cases/from_docs").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_environment_written_from_the_pages_is_clean(file: Path) -> None:
    assert [str(each) for each in check(file).findings if each.severity != "not-checked"] == []
