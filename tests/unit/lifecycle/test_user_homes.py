"""Users of the environment file: accounts, groups, homes and keys, as AWS's add_users.sh leaves them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scratch_node import ScratchNode

from holdfast_lifecycle.model import User

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes accounts"),
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen"),
]
UID = 2001


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScratchNode]:
    # Not tmp_path, which pytest closes to other users.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = ScratchNode(Path(folder), monkeypatch)
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin:/sbin")
        made.write("etc/group", "root:x:0:\nsudo:x:27:\ndocker:x:998:\n")
        for name in ("shadow", "gshadow"):
            made.write(f"etc/{name}", "")
        made.write("etc/skel/.profile", "umask 027\n")
        yield made


def with_user(node: ScratchNode, **more: Any) -> ScratchNode:
    return node.has(users=(User(name="alice", uid=UID, **more),))


def run(node: ScratchNode) -> dict[str, Any]:
    results = node.lifecycle("users", "user_homes")
    assert [results[name].outcome for name in ("users", "user_homes")] == ["done", "done"], results
    return results


def test_a_user_has_a_home_and_one_key_pair_on_the_shared_file_system(node: ScratchNode) -> None:
    run(with_user(node))
    home = node.root / "fsx/alice"
    assert f"alice:x:{UID}:{UID}::/fsx/alice:/bin/bash" in node.read("etc/passwd")
    assert (home.stat().st_uid, home.stat().st_gid, home.stat().st_mode & 0o7777) == (UID, UID, 0o750)
    assert (home / ".profile").stat().st_uid == UID
    keys = home / ".ssh"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (keys, *keys.iterdir())}
    assert modes == {".ssh": 0o700, "id_ed25519": 0o600, "id_ed25519.pub": 0o644, "authorized_keys": 0o600}
    assert {path.stat().st_uid for path in (keys, *keys.iterdir())} == {UID}
    assert (keys / "authorized_keys").read_text() == (keys / "id_ed25519.pub").read_text()
    assert [path.name for path in (node.root / "fsx").iterdir()] == ["alice"]
    assert {result.outcome for result in node.lifecycle("users", "user_homes").values()} == {"satisfied"}


def test_a_second_node_uses_the_home_and_the_key_that_are_there(node: ScratchNode) -> None:
    run(with_user(node))
    key = node.read("fsx/alice/.ssh/id_ed25519")
    (node.root / "fsx/alice/.ssh/authorized_keys").write_text("ssh-ed25519 AAAA alice@laptop\n")
    node.write("etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    node.write("etc/group", "root:x:0:\n")
    run(node.worker())
    assert node.read("fsx/alice/.ssh/id_ed25519") == key
    assert len(node.read("fsx/alice/.ssh/authorized_keys").splitlines()) == 2


def test_keys_are_added_to_a_folder_that_the_user_has_made(node: ScratchNode) -> None:
    with_user(node)
    for folder in ("fsx/alice", "fsx/alice/.ssh"):
        (node.root / folder).mkdir()
        os.chown(node.root / folder, UID, UID)
    run(node)
    assert node.read("fsx/alice/.ssh/authorized_keys") == node.read("fsx/alice/.ssh/id_ed25519.pub")


def test_homes_are_on_the_file_system_of_homes_and_data_beside_it(node: ScratchNode) -> None:
    node.mount("/home", "nfs4")
    run(with_user(node).has(home_mount_path="/home"))
    assert (node.root / "home/alice/.ssh/id_ed25519").is_file()
    assert (node.root / "fsx/alice").stat().st_uid == UID
    assert not (node.root / "fsx/alice/.ssh").exists()


def test_a_user_chooses_home_and_groups(node: ScratchNode) -> None:
    run(with_user(node, home="/fsx/people/alice", groups=("sudo", "docker")))
    assert (node.root / "fsx/people/alice/.ssh/id_ed25519").is_file()
    assert "sudo:x:27:alice" in node.read("etc/group")
    assert "docker:x:998:alice" in node.read("etc/group")


def test_a_home_on_the_nodes_own_disk_has_no_key(node: ScratchNode) -> None:
    run(with_user(node).has(fsx_mount_path=""))
    assert [path.name for path in (node.root / "home/alice").iterdir()] == [".profile"]


def a_file(path: Path) -> None:
    path.write_text("")


def a_link(path: Path) -> None:
    path.symlink_to("/etc")


def somebody_elses(path: Path) -> None:
    path.mkdir()
    os.chown(path, 2002, 2002)


def roots(path: Path) -> None:
    (path / "data").mkdir(parents=True)


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (a_file, "it is a link or a file"),
        (a_link, "it is a link or a file"),
        (somebody_elses, "it belongs to uid 2002"),
        (roots, "it belongs to root and is not empty"),
    ],
)
def test_a_home_that_is_something_else_is_refused_and_left_alone(node: ScratchNode, there: Any, words: str) -> None:
    path = node.root / "fsx/alice"
    there(path)
    before = path.lstat()
    result = with_user(node).lifecycle("users", "user_homes")["user_homes"]
    assert (result.outcome, result.seen) == ("failed", words)
    assert (path.lstat().st_uid, path.lstat().st_mode) == (before.st_uid, before.st_mode)


def test_a_home_that_cannot_be_made_is_one_clear_line(node: ScratchNode) -> None:
    (node.root / "fsx/people").write_text("a file")
    result = with_user(node, home="/fsx/people/alice").lifecycle("users", "user_homes")["user_homes"]
    assert result.outcome == "failed"
    assert result.seen.startswith("cannot create it: ")


def test_homes_wait_for_no_file_system_that_is_not_mounted(node: ScratchNode) -> None:
    result = with_user(node).has(home_mount_path="/home").lifecycle("users", "user_homes")["user_homes"]
    assert (result.outcome, result.seen) == ("failed", "no file system is mounted there")


def test_a_group_that_the_image_lacks_is_named(node: ScratchNode) -> None:
    result = with_user(node, groups=("sudo", "hpc")).lifecycle("users")["users"]
    assert (result.outcome, result.seen) == ("failed", "no group hpc")
