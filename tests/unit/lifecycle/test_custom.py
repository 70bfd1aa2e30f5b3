"""Custom mode on Slurm: HyperPod has started nothing, so the steps mount, start and configure what is missing."""

import json
import os
from pathlib import Path

import pytest
from scratch_node import ADDRESS, CONTROLLER_ADDRESS, ScratchNode

from holdfast_lifecycle import LifecycleError, plan
from holdfast_lifecycle.model import Mount
from holdfast_lifecycle.model import mounts as mounts_of
from holdfast_lifecycle.steps import STEPS, mounts
from holdfast_lifecycle.steps.slurm import answers, daemon

LUSTRE = Mount(kind="lustre", dns_name="fs-1.fsx.us-west-2.amazonaws.com", mount_name="abcdefgh", path="/fsx")
ZFS = Mount(kind="openzfs", dns_name="fs-2.fsx.us-west-2.amazonaws.com", mount_name="", path="/shared")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchNode:
    return ScratchNode(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("role", "hook", "names"),
    [
        (
            "Kubernetes",
            "OnCreate",
            "volume lustre_efa users fsx user_homes clock job_environment agent burn_in scripts",
        ),
        (
            "Compute",
            "OnInitComplete",
            "users fsx user_homes clock job_environment agent burn_in slurm_daemon slurm scripts",
        ),
        (
            "Controller",
            "OnInitComplete",
            "users fsx user_homes clock preload job_environment agent witness slurm_state accounting"
            " slurm_daemon slurm scripts",
        ),
        (
            "Compute",
            "OnCreate",
            "users mounts fsx user_homes clock job_environment agent burn_in munge slurm_daemon"
            " ubuntu_home slurm scripts",
        ),
        (
            "Controller",
            "OnCreate",
            "users mounts fsx user_homes clock preload job_environment agent witness munge slurm_state accounting"
            " slurm_daemon ubuntu_home slurm scripts",
        ),
    ],
)
def test_each_mode_has_its_steps(role: str, hook: str, names: str) -> None:
    assert [step.name for step in plan(STEPS, role=role, hook=hook)] == names.split()


def mounting(node: ScratchNode, *, after: int = 1) -> None:
    """A mount that succeeds at the given attempt and is seen then."""
    info = node.root / "proc/self/mountinfo"
    node.program(
        "mount",
        f"#!/bin/bash\ncount=$(cat {info}.count 2>/dev/null || echo 0)\necho $((count + 1)) >{info}.count\n"
        f'if [ $((count + 1)) -lt {after} ]; then echo "mount: bad address" >&2; exit 32; fi\n'
        f'echo "60 40 0:52 / ${{@: -1}} rw - $2 $5 rw" >>{info}\n',
    )


def test_lustre_and_openzfs_are_mounted_now_and_at_every_boot(node: ScratchNode) -> None:
    node.write("proc/self/mountinfo", "")
    node.write("etc/fstab", "LABEL=root / ext4 defaults 0 1\n")
    mounting(node)

    assert node.has(mounts=(LUSTRE, ZFS)).step("mounts").outcome == "done"

    assert node.calls("mount") == [
        f"mount -t lustre -o noatime,flock {LUSTRE.dns_name}@tcp:/abcdefgh /fsx",
        f"mount -t nfs -o nfsvers=4.1,noatime {ZFS.dns_name}:/fsx /shared",
    ]
    lines = node.read("etc/fstab").splitlines()
    assert lines[0] == "LABEL=root / ext4 defaults 0 1"
    assert lines[2].startswith(f"{LUSTRE.dns_name}@tcp:/abcdefgh /fsx lustre noatime,flock,_netdev,")
    assert (node.root / "shared").is_dir()


def test_a_second_run_mounts_and_writes_nothing(node: ScratchNode) -> None:
    node.write("proc/self/mountinfo", "")
    mounting(node)
    node.has(mounts=(LUSTRE,)).step("mounts")
    before = node.read("etc/fstab")
    node.forget()

    assert node.step("mounts").outcome == "satisfied"
    assert (node.calls("mount"), node.read("etc/fstab")) == ([], before)


def test_what_hyperpod_has_mounted_already_is_left_alone(node: ScratchNode) -> None:
    assert node.has(mounts=(LUSTRE,)).step("mounts").outcome == "done"
    assert node.calls("mount") == []
    assert LUSTRE.dns_name in node.read("etc/fstab")


def test_a_mount_is_tried_again_while_the_network_settles(node: ScratchNode) -> None:
    node.write("proc/self/mountinfo", "")
    mounting(node, after=3)
    assert node.has(mounts=(LUSTRE,)).step("mounts").outcome == "done"
    assert len(node.calls("mount")) == 3


def test_a_file_system_that_cannot_be_mounted_is_named(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_WAIT_S", 0.05)
    node.write("proc/self/mountinfo", "")
    mounting(node, after=10**6)
    result = node.has(mounts=(LUSTRE,)).step("mounts")
    assert result.expected.startswith(f"{LUSTRE.dns_name}@tcp:/abcdefgh is mounted at /fsx")
    assert "mount: bad address" in result.seen
    assert "988" in result.action


def test_a_changed_mount_replaces_our_lines_and_no_others(node: ScratchNode) -> None:
    node.write("etc/fstab", "LABEL=root / ext4 defaults 0 1\n")
    node.has(mounts=(LUSTRE,)).step("mounts")
    with (node.root / "etc/fstab").open("a") as file:
        file.write("/dev/sdb /data ext4 defaults 0 2\n")
    other = Mount(kind="lustre", dns_name="fs-9", mount_name="zzz", path="/fsx")
    node.has(mounts=(other,)).step("mounts")
    text = node.read("etc/fstab")
    assert (LUSTRE.dns_name in text, "fs-9@tcp:/zzz" in text) == (False, True)
    assert "LABEL=root" in text
    assert "/dev/sdb /data" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not a list of objects"),
        ("[1]", "not a list of objects"),
        ("[{}]", "lacks or misspells 'instance_group'"),
        ('[{"instance_group": "workers", "type": "lustre", "mount_path": "/fsx"}]', "'dns_name'"),
        ('[{"instance_group": "workers", "type": "nfs", "mount_path": "/fsx"}]', "allowed: lustre, openzfs"),
        ('[{"instance_group": "workers", "type": "lustre", "mount_path": "fsx"}]', "an absolute path"),
        ('[{"instance_group": "workers", "type": "lustre", "mount_path": "/a/../etc"}]', "an absolute path"),
        ('[{"instance_group": "workers", "type": "lustre", "mount_path": "/a b"}]', "an absolute path"),
        ("[", "cannot read"),
    ],
)
def test_mounts_that_are_none_end_the_lifecycle(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mounts.json").write_text(content)
    with pytest.raises(LifecycleError, match=rf"{message}.*deploy the lifecycle bundle again"):
        mounts_of(tmp_path, instance_group="workers")


def test_mounts_of_other_groups_are_none_of_this_node(tmp_path: Path) -> None:
    item = {"instance_group": "workers", "type": "openzfs", "dns_name": "fs-2", "mount_path": "/shared"}
    (tmp_path / "mounts.json").write_text(json.dumps([item, item | {"instance_group": "others", "mount_path": "/o"}]))
    expected = Mount(kind="openzfs", dns_name="fs-2", mount_name="", path="/shared")
    assert mounts_of(tmp_path, instance_group="workers") == (expected,)
    assert mounts_of(tmp_path / "nowhere", instance_group="workers") == ()


def test_munge_is_started_where_hyperpod_has_put_its_key(node: ScratchNode) -> None:
    assert node.step("munge").outcome == "done"
    assert node.running() == {"munge"}
    assert node.step("munge").outcome == "satisfied"


def test_a_missing_munge_key_is_told(node: ScratchNode) -> None:
    (node.root / "etc/munge/munge.key").unlink()
    assert node.step("munge").seen == "it is not"


def test_the_controller_starts_slurmctld_and_keeps_slurmd_from_starting(node: ScratchNode) -> None:
    node.runs("slurmd")
    assert node.step("slurm_daemon").outcome == "done"
    assert node.running() == {"slurmctld"}
    assert "ConditionPathExists=/run/holdfast/start-slurmd" in node.read(
        "etc/systemd/system/slurmd.service.d/holdfast.conf"
    )
    assert node.step("slurm_daemon").outcome == "satisfied"


def test_slurmctld_waits_for_the_configuration_that_hyperpod_writes(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast_lifecycle.node.slurm.CONFIGURATION_S", 0.05)
    (node.root / "opt/slurm/etc/slurm.conf").unlink()
    result = node.step("slurm_daemon")
    assert result.expected == "HyperPod writes SlurmctldHost into /opt/slurm/etc/slurm.conf"
    assert node.calls("systemctl enable") == []


def test_a_worker_starts_slurmd_with_the_controllers_configuration(node: ScratchNode) -> None:
    assert node.worker().step("slurm_daemon").remark == "slurmd runs"
    assert node.running() == {"slurmd"}
    added = node.read("etc/systemd/system/slurmd.service.d/holdfast.conf").splitlines()
    assert f'Environment="SLURMD_OPTIONS=--conf-server {CONTROLLER_ADDRESS}"' in added
    assert "Restart=on-failure" in added
    assert "systemctl daemon-reload" in node.calls()
    node.forget()
    assert node.step("slurm_daemon").outcome == "satisfied"
    assert [call for call in node.calls() if "is-active" not in call] == []


def test_a_slurmd_that_runs_with_other_options_is_started_again(node: ScratchNode) -> None:
    node.worker().runs("slurmd")
    node.step("slurm_daemon")
    assert "systemctl restart slurmd" in node.calls()


def test_slurmd_that_cannot_stay_up_yet_fails_no_node(node: ScratchNode) -> None:
    node.breaks("slurmd")
    result = node.worker().step("slurm_daemon")
    assert (result.outcome, result.remark) == ("done", "slurmd restarts until the controller has this node")


def test_slurmctld_that_does_not_start_fails_the_controller(node: ScratchNode) -> None:
    node.breaks("slurmctld")
    result = node.step("slurm_daemon")
    assert (result.expected, "Job for slurmctld.service failed" in result.seen) == (
        "the service slurmctld starts",
        True,
    )


def test_a_worker_without_a_controller_is_told_so(node: ScratchNode) -> None:
    result = node.worker().has(controller_address="").step("slurm_daemon")
    assert result.seen == "the group of the controller has no instance"


def test_extension_mode_starts_no_daemon_but_a_slurmctld_that_was_stopped(node: ScratchNode) -> None:
    node.has(hook="OnInitComplete")
    assert node.step("slurm_daemon").outcome == "done"
    assert node.step("slurm_daemon").outcome == "satisfied"
    assert node.worker().step("slurm_daemon").remark == "HyperPod started it"
    assert not (node.root / "etc/systemd").exists()


def slurm_says(node: ScratchNode, *, ping: str, sinfo: str = "", code: int = 0) -> None:
    node.program("scontrol", f"#!/bin/sh\necho '{ping}'\nexit {code}\n")
    node.program("sinfo", f"#!/bin/sh\necho '{ping if code else sinfo}'\nexit {code}\n")


@pytest.mark.parametrize("hook", ["OnCreate", "OnInitComplete"])
def test_a_worker_whose_line_comes_minutes_later_is_not_failed(
    node: ScratchNode, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_UNKNOWN_WAIT_S", 0.1)
    slurm_says(node, ping="Slurmctld(primary) at ip-10-1-0-4 is UP")
    result = node.worker().has(hook=hook).step("slurm")
    assert result.outcome == "done"
    assert "joins after HyperPod adds its line" in result.remark


def test_a_worker_without_configuration_is_not_failed_while_the_controller_listens(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setattr(answers, "_UNKNOWN_WAIT_S", 0.1)
    monkeypatch.setattr(answers, "_WAIT_S", 0.1)
    slurm_says(node, ping="scontrol: fatal: Could not establish a configuration source", code=1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setattr(answers, "_PORT", listener.getsockname()[1])
        node.worker().has(controller_address="127.0.0.1")
        for hook in ("OnCreate", "OnInitComplete"):
            assert node.has(hook=hook).step("slurm").outcome == "done"
    assert node.has(hook="OnCreate").step("slurm").outcome == "failed"


def test_a_worker_that_slurm_sees_down_is_failed(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_WAIT_S", 0.1)
    slurm_says(node, ping="Slurmctld(primary) at ip-10-1-0-4 is UP", sinfo="down")
    assert f"the controller sees {os.uname().nodename} as down" in node.worker().step("slurm").seen


def ubuntu(node: ScratchNode, home: str = "/home/ubuntu") -> None:
    passwd = node.root / "etc/passwd"
    passwd.write_text(passwd.read_text() + f"ubuntu:x:{node.owner[0]}:{node.owner[1]}::{home}:/bin/bash\n")
    node.program("usermod", f"#!/bin/sh\nsed -i 's#/home/ubuntu#/fsx/ubuntu#' {passwd}\n")


def test_ubuntu_gets_its_home_and_one_key_on_the_shared_file_system(node: ScratchNode) -> None:
    ubuntu(node)
    assert node.step("ubuntu_home").outcome == "done"
    keys = node.root / "fsx/ubuntu/.ssh"
    key = (keys / "id_ed25519").read_text()
    assert (keys / "id_ed25519").stat().st_mode & 0o777 == 0o600
    assert (keys / "authorized_keys").read_text() == (keys / "id_ed25519.pub").read_text()
    assert ":/fsx/ubuntu:" in node.read("etc/passwd")
    assert sorted(path.name for path in keys.iterdir()) == ["authorized_keys", "id_ed25519", "id_ed25519.pub"]

    assert node.step("ubuntu_home").outcome == "satisfied"
    node.write("etc/passwd", node.read("etc/passwd").replace("/fsx/ubuntu", "/home/ubuntu"))
    assert node.has(instance_id="i-7").step("ubuntu_home").outcome == "done"
    assert (keys / "id_ed25519").read_text() == key, "a second node uses the key that is there"


def test_keys_of_others_stay_authorised(node: ScratchNode) -> None:
    ubuntu(node)
    node.write("fsx/ubuntu/.ssh/authorized_keys", "ssh-ed25519 AAAA me@laptop")
    node.step("ubuntu_home")
    assert len(node.read("fsx/ubuntu/.ssh/authorized_keys").splitlines()) == 2
    assert "me@laptop" in node.read("fsx/ubuntu/.ssh/authorized_keys")


def test_a_home_that_leads_elsewhere_is_refused(node: ScratchNode) -> None:
    ubuntu(node)
    (node.root / "fsx/ubuntu").symlink_to("/etc")
    assert "it is a link" in node.step("ubuntu_home").seen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_what_the_account_has_put_into_its_folder_of_keys_leads_root_nowhere(node: ScratchNode) -> None:
    ubuntu(node)
    (node.root / "etc/passwd").write_text(node.read("etc/passwd").replace(f":{node.owner[0]}:", ":1000:"))
    keys = node.root / "fsx/ubuntu/.ssh"
    keys.mkdir(parents=True)
    target = node.root / "etc/cron.d"
    target.mkdir()
    (keys / "authorized_keys").symlink_to(target / "job")
    for path in (keys.parent, keys):
        os.chown(path, 1000, 1000)

    node.step("ubuntu_home")

    assert [*target.iterdir()] == []


@pytest.mark.parametrize("missing", ["account", "file system"])
def test_ubuntu_stays_as_it_is_where_something_is_missing(node: ScratchNode, missing: str) -> None:
    if missing == "file system":
        ubuntu(node)
        node.has(fsx_mount_path="")
    assert node.step("ubuntu_home").outcome == "satisfied"


def test_conditions_name_the_daemon_and_the_role(node: ScratchNode) -> None:
    added = daemon._drop_ins(node.worker().has(address=ADDRESS).context)
    assert "no place on a Compute node" in added["slurmctld"]
