"""A home is marked, its owner's alone, and loses nothing that the local cloud did not make."""

import os
import re
import stat
import sys
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.localcloud import LocalCloud
from holdfast.localcloud.home import (
    MARKER,
    OURS,
    HomeError,
    claim,
    keys_of,
    made_keys,
    private_bytes,
    recognise,
    release,
    remove_tree,
    write_private,
)

DEPTH = 1500
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of another user")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    claim(tmp_path / "home")
    return tmp_path / "home"


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    """The exit code of a command."""
    monkeypatch.setattr(sys, "argv", ["holdfast", *words])
    try:
        main()
    except SystemExit as ended:
        return ended.code or 0
    return 0


def nested(folder: Path, *, depth: int = DEPTH, name: str = "d") -> None:
    """Folders in folders, deeper than a path can say."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_a_new_home_is_marked_and_its_owners_alone(home: Path) -> None:
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / MARKER).stat().st_mode) == 0o600
    claim(home)


def test_an_empty_folder_becomes_a_home(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    claim(tmp_path)
    recognise(tmp_path)


def test_a_folder_that_holds_something_does_not_become_a_home(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(HomeError, match=r"is not empty and has no \.holdfast-home"):
        claim(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_does_not_become_a_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(HomeError, match="is not a folder"):
        claim(tmp_path / "file")


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_home_that_others_can_write_is_refused(home: Path, mode: int) -> None:
    home.chmod(mode)

    for refused in (claim, recognise, release):
        with pytest.raises(HomeError, match="can be written by others"):
            refused(home)


@root
def test_a_home_of_another_user_is_refused(home: Path) -> None:
    os.chown(home, 65534, 65534)

    for refused in (claim, recognise, release):
        with pytest.raises(HomeError, match="belongs to user 65534, and this is user 0"):
            refused(home)


@root
def test_a_marker_that_another_user_made_marks_nothing(home: Path) -> None:
    os.chown(home / MARKER, 65534, 65534)

    with pytest.raises(HomeError, match="belongs to user 65534"):
        recognise(home)


def test_a_marker_that_is_a_link_marks_nothing(tmp_path: Path) -> None:
    (tmp_path / MARKER).symlink_to("/etc/passwd")

    with pytest.raises(HomeError, match="is no plain file"):
        recognise(tmp_path)


def test_what_is_not_ours_stays_and_is_named(home: Path) -> None:
    for name in ("aws", "fsx", "log", "letters"):
        (home / name / "below").mkdir(parents=True)
    (home / "session.json").touch()

    assert release(home) == ["letters"]
    assert [entry.name for entry in home.iterdir()] == ["letters"]


def test_what_the_local_cloud_makes_in_a_home_is_known() -> None:
    sources = (Path(__file__).parents[4] / "holdfast").rglob("*.py")
    made = {name for path in sources for name in re.findall(r'\bhome / "([^"]+)"', path.read_text())}

    assert made - {".ssh"} - set(OURS) == set()


def test_a_home_with_nothing_else_in_it_goes(home: Path) -> None:
    made_keys(home)

    assert release(home) == []
    assert not home.exists()


def test_a_home_without_its_marker_is_not_touched(home: Path) -> None:
    (home / "aws").mkdir()
    (home / MARKER).unlink()

    with pytest.raises(HomeError, match="it is left unchanged"):
        LocalCloud(home=home).remove()
    assert (home / "aws").is_dir()


@root
def test_down_deletes_nothing_from_a_folder_that_up_did_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))

    assert typed(monkeypatch, "down") == 2
    assert "not a home that holdfast up made" in capsys.readouterr().err
    assert (tmp_path / "log").is_dir()


def test_deep_folders_are_removed(home: Path) -> None:
    nested(home / "fsx" / "fs-1")
    nested(home / "fsx" / "fs-2", depth=40, name="x" * 200)

    assert release(home) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "ours" / "below").mkdir(parents=True)
    (tmp_path / "ours" / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "ours" / "below" / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")

    remove_tree(tmp_path / "ours")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "nothing")

    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["precious", "precious/file"]


def test_names_that_removal_itself_uses_may_be_there(tmp_path: Path) -> None:
    for number in range(3):
        nested(tmp_path / "ours" / f".holdfast-removed-{number}", depth=2, name=".holdfast-removed-0")

    remove_tree(tmp_path / "ours")

    assert list(tmp_path.iterdir()) == []


def test_keys_are_random_kept_and_their_owners_alone(home: Path, tmp_path: Path) -> None:
    keys = made_keys(home)
    claim(tmp_path / "other")

    assert made_keys(home) == keys_of(home) == keys
    assert made_keys(tmp_path / "other") != keys
    assert len(keys.access_key_id) == 20
    assert len(keys.secret_access_key) == 40
    assert keys.secret_access_key not in repr(keys)
    assert stat.S_IMODE((home / "aws" / "credentials.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o622, 0o660])
def test_a_file_that_others_can_write_is_not_read(tmp_path: Path, mode: int) -> None:
    write_private(tmp_path / "file", b"x")
    (tmp_path / "file").chmod(mode)

    with pytest.raises(PermissionError, match="can be written by others"):
        private_bytes(tmp_path / "file")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe", 0o600)
    return tmp_path / "pipe"


def test_a_pipe_is_not_waited_for(pipe: Path) -> None:
    with pytest.raises(PermissionError, match="is no plain file"):
        private_bytes(pipe)


def test_env_prints_what_a_shell_can_read(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("HOLDFAST_PORT", "5999")
    keys = made_keys(home)

    assert typed(monkeypatch, "env") == 0

    printed = capsys.readouterr().out
    assert f"export AWS_ACCESS_KEY_ID={keys.access_key_id}\n" in printed
    assert f"export AWS_SECRET_ACCESS_KEY={keys.secret_access_key}\n" in printed
    assert "export AWS_ENDPOINT_URL=http://localhost:5999\n" in printed


def test_env_prints_nothing_where_nothing_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "none"))

    assert typed(monkeypatch, "env") != 0

    said = capsys.readouterr()
    assert "nothing is up" in said.err
    assert said.out == ""
