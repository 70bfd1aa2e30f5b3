"""Files in a directory that somebody else writes to: nothing in it leads out."""

import errno
import os
from pathlib import Path

import pytest

from holdfast.localcloud.confined import Inside, Links


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What the machine has beside the directory."""
    place = tmp_path / "machine"
    (place / "etc").mkdir(parents=True)
    (place / "etc/shadow").write_text("secret")
    return place


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    place = tmp_path / "node"
    (place / "etc").mkdir(parents=True)
    (place / "etc/shadow").write_text("the node's")
    (place / "absolute").symlink_to("/etc")
    (place / "up").symlink_to("../machine/etc")
    (place / "file").symlink_to(outside / "etc/shadow")
    return place


@pytest.mark.parametrize("path", ["../machine/etc/shadow", "/../machine/etc/shadow", "up/shadow", "file"])
def test_no_path_and_no_link_leads_out_where_links_are_refused(root: Path, path: str) -> None:
    inside = Inside(root=root, path=path, links=Links.REFUSED)

    for use in (inside.read_bytes, lambda: inside.open("ab"), inside.stat):
        with pytest.raises(OSError, match=r"\[Errno") as refused:
            use()
        assert refused.value.errno in (errno.ELOOP, errno.EXDEV)


def test_a_link_that_stays_inside_is_refused_too_where_links_are(root: Path) -> None:
    (root / "near").symlink_to("etc")

    with pytest.raises(OSError, match="symbolic links"):
        Inside(root=root, path="near/shadow", links=Links.REFUSED).read_bytes()


def test_links_lead_where_they_lead_for_who_has_the_directory_as_its_root(root: Path) -> None:
    assert Inside(root=root, path="absolute/shadow").read_bytes() == b"the node's"
    assert Inside(root=root, path="/../../etc/shadow").read_bytes() == b"the node's"
    assert not Inside(root=root, path="up/shadow").exists()
    assert not Inside(root=root, path="file").exists()


def test_a_file_is_replaced_and_not_what_it_points_at(root: Path, outside: Path) -> None:
    with Inside(root=root, path="file").fresh(make=0o755) as file:
        file.write(b"new")

    assert (outside / "etc/shadow").read_text() == "secret"
    assert (root / "file").read_bytes() == b"new"
    assert not (root / "file").is_symlink()


def test_directories_are_made_inside_with_their_mode_whatever_the_umask(root: Path, outside: Path) -> None:
    before = os.umask(0o077)
    try:
        Inside(root=root, path="absolute/new/deep/log").append(b"line\n")
    finally:
        os.umask(before)

    assert (root / "etc/new/deep/log").read_bytes() == b"line\n"
    assert (root / "etc/new/deep").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in (outside / "etc").iterdir()] == ["shadow"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(root: Path) -> None:
    def write_half() -> None:
        with Inside(root=root, path="etc/shadow").fresh(make=0o755) as file:
            file.write(b"half")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        write_half()

    assert [path.name for path in (root / "etc").iterdir()] == ["shadow"]
    assert (root / "etc/shadow").read_text() == "the node's"


def test_a_pipe_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(OSError, match="not a regular file"):
        Inside(root=root, path="pipe").open("rb")


def test_a_link_is_removed_and_not_what_it_points_at(root: Path, outside: Path) -> None:
    Inside(root=root, path="file", links=Links.REFUSED).unlink()
    Inside(root=root, path="file", links=Links.REFUSED).unlink()

    assert not (root / "file").is_symlink()
    assert (outside / "etc/shadow").exists()
