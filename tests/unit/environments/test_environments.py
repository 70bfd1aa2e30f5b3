"""What the name of an environment stands for, the same for every command and for the CDK app."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.environments import EXAMPLES, NoSuchEnvironmentError, environment_file, repository_of


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


def test_the_nearest_name_is_offered(known: Path) -> None:
    with pytest.raises(NoSuchEnvironmentError, match=r"no environment 'lokal'; did you mean local\? allowed: a path"):
        environment_file("lokal", folder=known)


@pytest.mark.parametrize("name", ["x", "./environments/local", "folder", "", "../environments/local", "\0"])
def test_what_is_neither_is_refused_with_the_names_that_there_are(name: str, known: Path) -> None:
    with pytest.raises(NoSuchEnvironmentError, match=re.escape(f"there is no environment {name!r}; allowed: a")) as no:
        environment_file(name, folder=known)

    assert no.value.known == ("local",)


def test_the_examples_are_those_of_the_checkout(repository: Path) -> None:
    assert repository / "environments" == EXAMPLES


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A repository of a user."""
    (tmp_path / "own/environments").mkdir(parents=True)
    (tmp_path / "own/cdk.json").write_text("{}")
    for name in ("local", "lab"):
        (tmp_path / f"own/environments/{name}.yaml").write_text(f"name: {name}\n")
    return tmp_path / "own"


@pytest.mark.parametrize("inside", [".", "environments", "jobs/train"])
def test_names_are_those_of_the_repository_around_the_working_folder_before_the_examples(
    inside: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / inside).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(own / inside)

    assert environment_file("local") == own / "environments/local.yaml"
    assert environment_file("minimal") == EXAMPLES / "minimal.yaml"
    with pytest.raises(NoSuchEnvironmentError) as no:
        environment_file("labb")
    assert {"lab", "local", "minimal"} <= set(no.value.known)


def test_without_cdk_json_a_folder_environments_is_not_a_repository(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own / "cdk.json").unlink()
    monkeypatch.chdir(own)

    assert environment_file("local") == EXAMPLES / "local.yaml"
    assert repository_of(own / "environments/local.yaml") is None


def test_an_environment_file_belongs_to_the_repository_that_it_stands_in(own: Path) -> None:
    assert repository_of(own / "environments/local.yaml") == own
    assert repository_of(own / "local.yaml") is None


def test_names_of_examples_work_in_a_removed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert environment_file("local") == EXAMPLES / "local.yaml"


def test_finding_a_file_loads_nothing_that_reads_it(repository: Path) -> None:
    code = (
        "import sys, holdfast.environments; "
        "assert not {'pydantic', 'yaml', 'typer', 'holdfast.config'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
