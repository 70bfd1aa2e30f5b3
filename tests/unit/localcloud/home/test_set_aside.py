"""State of the embedded AWS that could not be used, and the directories of its file systems."""

from pathlib import Path

import pytest

from holdfast.localcloud.home import set_aside, spared
from holdfast.localcloud.hyperpod.fsx import remove_others


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "aws" / "state").mkdir(parents=True)
    (tmp_path / "fsx" / "fs-old").mkdir(parents=True)
    (tmp_path / "fsx" / "fs-old" / "checkpoint").write_text("kept")
    return tmp_path


def test_file_systems_of_a_state_that_was_set_aside_are_spared(home: Path) -> None:
    set_aside(home)
    (home / "fsx" / "fs-new").mkdir()
    (home / "fsx" / "fs-gone").mkdir()

    remove_others(home, keep=frozenset({"fs-new"}))

    assert sorted(path.name for path in (home / "fsx").iterdir()) == ["fs-new", "fs-old"]
    assert (home / "fsx" / "fs-old" / "checkpoint").read_text() == "kept"


def test_they_go_when_the_state_that_was_set_aside_is_removed(home: Path) -> None:
    aside = set_aside(home)
    (aside / "file-systems").unlink()
    aside.rmdir()

    remove_others(home, keep=frozenset())

    assert not list((home / "fsx").iterdir())


def test_a_file_system_is_spared_by_the_first_state_that_was_set_aside_alone(home: Path) -> None:
    first = set_aside(home)
    (home / "fsx" / "fs-new").mkdir()
    second = set_aside(home)

    assert (first / "file-systems").read_text() == "fs-old\n"
    assert (second / "file-systems").read_text() == "fs-new\n"
    assert spared(home) == {"fs-old", "fs-new"}


def test_state_that_was_put_back_spares_nothing(home: Path) -> None:
    aside = set_aside(home)
    (home / "aws" / "state").rmdir()
    aside.rename(home / "aws" / "state")

    assert spared(home) == set()
