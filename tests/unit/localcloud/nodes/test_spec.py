"""Specifications of nodes, their records on disk, and the locks between processes."""

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.localcloud.nodes import FileSpec, Mount, NodeError, NodeRecord, NodeSpec, link_name, locked, mac_of
from holdfast.localcloud.nodes.kernel import boot, proc


def test_a_record_survives_the_disk_without_the_files():
    mounts = (Mount(source=Path("/a b"), target="/fsx", read_only=True),)
    files = {"/x": FileSpec(content=b"1")}
    spec = NodeSpec(instance_id="i-1", hostname="n1", address="10.1.0.5", mounts=mounts, files=files)
    record = NodeRecord(spec=spec, pid=12, start_ticks=34, link="v1", layers=("/", "/var"))
    back = NodeRecord.from_json(record.to_json())
    assert back.spec.files == {}
    assert (back.spec.mounts, back.pid, back.start_ticks, back.link, back.layers) == (
        mounts,
        12,
        34,
        "v1",
        ("/", "/var"),
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("instance_id", "../x", "instance id must match .* got '../x'"),
        ("hostname", "Node_1", "host name must match .* got 'Node_1'"),
        ("address", "10.1.0.256", "address must be an IPv4 address, got '10.1.0.256'"),
    ],
)
def test_rejects_a_spec_that_names_no_machine(field: str, value: str, message: str):
    good = {"instance_id": "i-1", "hostname": "n1", "address": "10.1.0.5"}
    with pytest.raises(NodeError, match=message):
        NodeSpec(**{**good, field: value})


def test_rejects_paths_that_leave_the_root():
    with pytest.raises(NodeError, match="absolute path without"):
        Mount(source=Path("/a"), target="/fsx/../etc")
    with pytest.raises(NodeError, match="absolute without"):
        NodeSpec(instance_id="i-1", hostname="n1", address="10.1.0.5", files={"etc/x": FileSpec(content=b"")})


def test_a_recycled_pid_is_not_the_old_process():
    ticks = proc.start_ticks(os.getpid())
    assert ticks is not None
    assert proc.alive(pid=os.getpid(), ticks=ticks)
    assert not proc.alive(pid=os.getpid(), ticks=ticks - 1)
    with proc.pidfd(pid=os.getpid(), ticks=ticks - 1) as fd:
        assert fd is None


def test_kill_waits_for_the_end_and_leaves_strangers_alone():
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        ticks = proc.start_ticks(sleeper.pid)
        assert ticks is not None
        assert proc.kill(pid=sleeper.pid, ticks=ticks - 1, timeout_s=5)
        assert sleeper.poll() is None
        assert proc.kill(pid=sleeper.pid, ticks=ticks, timeout_s=5)
        assert sleeper.wait() == -9


def test_names_of_cables_fit_the_kernel_and_differ():
    names = {link_name(f"i-{number:017x}") for number in range(300)}
    assert len(names) == 300
    assert max(map(len, names)) <= 15


def test_an_address_fixes_the_mac():
    assert mac_of("10.1.0.12") == "02:00:0a:01:00:0c"


def test_overlay_options_survive_odd_paths():
    options = boot.overlay_options(lowers=["/i:1", "/"], upper="/a:b/u", work="/a,b/w")
    assert options == "lowerdir=/i\\:1:/,upperdir=/a\\:b/u,workdir=/a\\,b/w,index=off,redirect_dir=on"


def test_shared_locks_admit_each_other_and_keep_an_exclusive_one_out(tmp_path: Path):
    path = tmp_path / "lock"
    with (
        locked(path, exclusive=False, timeout_s=1),
        locked(path, exclusive=False, timeout_s=1),
        pytest.raises(NodeError, match="is held by another process"),
        locked(path, exclusive=True, timeout_s=0.05),
    ):
        pytest.fail("the exclusive lock was granted")
    with locked(path, exclusive=True, timeout_s=1):
        path.unlink()
    assert not path.exists()


def test_a_child_that_inherits_a_lock_keeps_it(tmp_path: Path):
    path = tmp_path / "lock"
    with locked(path, exclusive=False, timeout_s=1) as fd:
        child = subprocess.Popen(["sleep", "60"], pass_fds=(fd,))
    with child:
        with (
            pytest.raises(NodeError),
            locked(path, exclusive=True, timeout_s=0.05),
        ):
            pytest.fail("the child no longer holds the lock")
        child.kill()
    with locked(path, exclusive=True, timeout_s=1):
        pass
