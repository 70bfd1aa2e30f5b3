"""What the name of an environment stands for, the same for every command and for the CDK app."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.environments import FOLDER, NoSuchEnvironmentError, environment_file


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the environment ``local``; the working folder has a file and a folder of that name, too."""
    folder, here = tmp_path / "environments", tmp_path / "here"
    for each in (folder, here, here / "folder"):
        each.mkdir()
    for file in (folder / "local.yaml", here / "local", here / "mine.yaml"):
        file.write_text("name: local\n")
    monkeypatch.chdir(here)
    return folder


def test_a_name_means_the_same_in_every_working_folder(known: Path) -> None:
    assert environment_file("local", folder=known) == known / "local.yaml"


@pytest.mark.parametrize("name", ["./local", "mine.yaml", "../here/mine.yaml", "../environments/local.yaml"])
def test_whatever_is_no_name_is_a_path_from_here(name: str, known: Path) -> None:
    assert environment_file(name, folder=known) == Path(name).resolve()


@pytest.mark.parametrize("name", ["lcoal", "./environments/local", "folder", "", "../environments/local", "\0"])
def test_what_is_neither_is_refused_with_the_names_that_there_are(name: str, known: Path) -> None:
    with pytest.raises(NoSuchEnvironmentError, match=re.escape(f"there is no environment {name!r}; allowed: a")) as no:
        environment_file(name, folder=known)

    assert no.value.known == ("local",)


def test_the_environments_are_those_of_the_repository(repository: Path) -> None:
    assert repository / "environments" == FOLDER


def test_finding_a_file_loads_nothing_that_reads_it(repository: Path) -> None:
    code = (
        "import sys, holdfast.environments; "
        "assert not {'pydantic', 'yaml', 'typer', 'holdfast.config'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
