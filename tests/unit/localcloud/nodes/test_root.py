"""What a node's root holds, decided from texts of the machine."""

from pathlib import Path

import pytest

from holdfast.localcloud.nodes import (
    Accounts,
    FileSpec,
    Mount,
    NodeError,
    NodeSpec,
    add_accounts,
    disk_mounts,
    emptied_directories,
    gshadow_for,
    hidden_names,
    name_services,
    python_mounts,
    root_contents,
    shadow_for,
    strip_accounts,
)
from holdfast.localcloud.nodes import hosts as root_hosts

PASSWD = """\
root:x:0:0:root:/root:/bin/bash
munge:x:102:105::/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin
alice:x:1000:1000:Alice:/home/alice:/bin/bash
directory-user:x:59999:100:::/bin/sh
"""
GROUP = """\
root:x:0:
sudo:x:27:alice
adm:x:4:syslog,alice
munge:x:105:
slurm:x:64030:
alice:x:1000:
nogroup:x:65534:
"""


def test_people_of_the_machine_are_stripped_and_system_accounts_stay():
    passwd, _ = strip_accounts(passwd=PASSWD, group=GROUP)
    assert [line.split(":")[0] for line in passwd.splitlines()] == ["root", "munge", "nobody", "slurm", "ubuntu"]


def test_ubuntu_has_uid_1000_whoever_had_it_on_the_machine():
    passwd, group = strip_accounts(passwd=PASSWD + "ubuntu:x:1001:1001::/home/u:/bin/sh\n", group=GROUP)
    assert [line for line in passwd.splitlines() if line.startswith("ubuntu")] == [
        "ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash"
    ]
    assert "ubuntu:x:1000:" in group.splitlines()


def test_stripped_people_leave_their_groups():
    _, group = strip_accounts(passwd=PASSWD, group=GROUP)
    assert (
        group
        == "root:x:0:\nsudo:x:27:\nadm:x:4:syslog\nmunge:x:105:\nslurm:x:64030:\nnogroup:x:65534:\nubuntu:x:1000:\n"
    )


def test_an_image_brings_accounts_that_the_machine_lacks():
    asked = (
        '# no\ng docker 998\nu mysql 897 "MySQL Server" /nonexistent /bin/false\nu munge 5 "" / /x\nm ubuntu docker\n'
    )
    passwd, group = strip_accounts(passwd=PASSWD, group=GROUP)
    passwd, group = add_accounts(asked, passwd=passwd, group=group)
    assert "mysql:x:897:897:MySQL Server:/nonexistent:/bin/false" in passwd.splitlines()
    assert [line for line in passwd.splitlines() if line.startswith("munge")] == [PASSWD.splitlines()[1]]
    assert {"docker:x:998:ubuntu", "mysql:x:897:"} <= set(group.splitlines())


def test_nobody_has_a_password():
    passwd, group = strip_accounts(passwd=PASSWD, group=GROUP)
    assert {line.split(":")[1] for line in shadow_for(passwd).splitlines()} == {"*"}
    assert {line.split(":")[1] for line in gshadow_for(group).splitlines()} == {"*"}


def test_hosts_hold_the_node_and_loopback():
    assert root_hosts(hostname="ip-10-1-0-12", address="10.1.0.12") == (
        "127.0.0.1 localhost\n::1 localhost ip6-localhost\n10.1.0.12 ip-10-1-0-12\n"
    )


def test_names_are_looked_up_in_files_only():
    text = name_services("passwd: files systemd\nhosts:  files dns\n# note\nservices: db files\n")
    assert "hosts: files\n" in text
    assert "dns" not in text
    assert "systemd" not in text
    assert "services: db files\n" in text


MOUNTINFO = r"""
22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / / rw - ext4 /dev/vda rw
30 27 254:1 / /usr ro - ext4 /dev/vdb ro
31 27 254:2 / /var rw shared:3 - xfs /dev/vdc rw
32 31 254:3 / /var/lib/my\040data rw - ext4 /dev/vdd rw
33 31 0:40 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw
34 27 254:4 / /home rw - ext4 /dev/vde rw
35 27 0:41 / /opt/ram rw - tmpfs tmpfs rw
36 31 254:5 / /var/log rw - ext4 /dev/vdf rw
37 27 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro
38 27 0:42 / /opt/remote rw - fuse.sshfs host: rw
""".strip()


def test_disks_mounted_below_the_root_are_found_parents_first():
    assert disk_mounts(MOUNTINFO) == ["/usr", "/var", "/var/lib/my data"]


def test_only_system_directories_are_shared(tmp_path: Path):
    for name in ("usr", "etc", "home", "data", "farm"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "srv").symlink_to("/data")
    assert hidden_names(tmp_path) == ["data", "farm", "srv"]


def test_a_home_inside_a_shared_directory_is_emptied():
    assert "/var/lib" in emptied_directories(Path("/var/lib"))
    assert "/tmp" in emptied_directories(Path("/elsewhere"))


def test_a_directory_that_the_image_replaces_by_a_link_is_not_emptied(tmp_path: Path):
    (tmp_path / "var").mkdir()
    (tmp_path / "var/tmp").symlink_to("/tmp")
    assert "/var/tmp" in emptied_directories(Path("/elsewhere"))
    assert "/var/tmp" not in emptied_directories(Path("/elsewhere"), image=tmp_path)


@pytest.mark.parametrize(
    ("owner", "expected"),
    [("munge:munge", (102, 105)), ("munge", (102, 105)), ("ubuntu:root", (1000, 0)), ("7:8", (7, 8)), ("7", (7, 7))],
)
def test_owners_are_names_or_numbers(owner: str, expected: tuple[int, int]):
    passwd, group = strip_accounts(passwd=PASSWD, group=GROUP)
    assert Accounts(passwd=passwd, group=group).ids(owner) == expected


def test_rejects_an_unknown_owner_with_the_known_ones():
    passwd, group = strip_accounts(passwd="root:x:0:0:::\n", group="root:x:0:\n")
    with pytest.raises(NodeError, match="no user 'alice' on the node; use one of root, ubuntu or a number"):
        Accounts(passwd=passwd, group=group).ids("alice")


def test_files_of_the_spec_replace_ours_and_any_bytes_survive():
    content = bytes(range(256))
    spec = NodeSpec(
        instance_id="i-1",
        hostname="n1",
        address="10.1.0.5",
        files={"/etc/hosts": FileSpec(content=content, mode=0o600, owner="ubuntu")},
    )
    _, files = root_contents(spec, kept=None)
    (hosts,) = [file for file in files if file["path"] == "/etc/hosts"]
    assert hosts["content"] == content
    assert (hosts["mode"], hosts["uid"], hosts["gid"]) == (0o600, 1000, 1000)


def test_a_kept_root_gets_only_the_files_of_the_spec_and_what_a_boot_forgets(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:::\ntrainer:x:2000:2000:::\n")
    (tmp_path / "etc/group").write_text("root:x:0:\ntrainer:x:2000:\n")
    files = {"/x": FileSpec(content=b"", owner="trainer")}
    spec = NodeSpec(instance_id="i-1", hostname="n1", address="10.1.0.5", files=files)
    _, written = root_contents(spec, kept=tmp_path)
    assert [(file["path"], file["uid"]) for file in written] == [
        ("/run/holdfast/shipping.lock", 0),
        ("/run/holdfast/shipping-jobs.lock", 0),
        ("/x", 2000),
    ]


def test_an_interpreter_outside_the_shared_directories_is_mounted_where_its_environment_expects_it(tmp_path: Path):
    base = tmp_path / "python-3.11.7"
    base.mkdir()
    link = tmp_path / "python-3.11"
    link.symlink_to(base)
    mounts = python_mounts(at="/opt/holdfast/env", prefix=tmp_path, base=link)
    assert mounts == (
        Mount(source=tmp_path, target="/opt/holdfast/env", read_only=True),
        Mount(source=base, target=str(link), read_only=True),
        Mount(source=base, target=str(base), read_only=True),
    )


def test_the_machines_own_python_needs_one_mount():
    assert len(python_mounts(at="/opt/holdfast/env", prefix=Path("/usr"), base=Path("/usr"))) == 1
