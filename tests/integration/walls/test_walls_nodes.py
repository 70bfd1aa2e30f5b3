"""What root of a node, and links that it has made, can do to the machine."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.hyperpod.instances import shared_home
from holdfast.localcloud.hyperpod.lifecycle import Script
from holdfast.localcloud.hyperpod.logs import FileTail
from holdfast.localcloud.hyperpod.slurm import SlurmError
from holdfast.localcloud.nodes import Fleet, Mount, Node, NodeSpec

pytestmark = pytest.mark.root

KEPT = 0xE1ACF5FB
"""As capsh(1) reads it: without mknod, dac_read_search, sys_module, sys_rawio, sys_time, syslog, bpf, ..."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Something of the machine that no node has mounted."""
    place = tmp_path_factory.mktemp("machine")
    (place / "secret").write_text("secret\n")
    return place


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shared")
    place.chmod(0o1777)
    return place


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[Node]:
    fleet = Fleet(home=tmp_path_factory.mktemp("home"))
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    try:
        spec = NodeSpec(
            instance_id="i-00000000000000011",
            hostname="ip-10-1-0-11",
            address="10.1.0.11",
            mounts=(Mount(source=shared, target="/fsx"),),
        )
        yield fleet.boot(spec)
    finally:
        fleet.close()


@pytest.fixture
def leads_out(node: Node, machine: Path) -> Iterator[str]:
    """A folder of the node that is a link to a folder of the machine."""
    path = "/opt/leads-out"
    ok(node, "ln", "-sfn", str(machine), path)
    yield path
    assert {each.name: each.read_text() for each in machine.iterdir()} == {"secret": "secret\n"}


def ok(node: Node, *argv: str, user: str | None = None) -> str:
    done = node.run(argv, timeout_s=20, user=user)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()


def refused(node: Node, script: str) -> bool:
    return node.run(["/bin/sh", "-c", script], timeout_s=20).returncode != 0


def of_the_machine() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapBnd"))


def test_no_process_of_a_node_can_have_a_capability_that_nothing_needs(node: Node) -> None:
    lines = ok(node, "grep", "-h", "CapBnd", "/proc/1/status", "/proc/self/status")

    assert {int(line.split()[1], 16) for line in lines.splitlines()} == {KEPT & of_the_machine()}


def test_root_of_a_node_makes_and_opens_no_device(node: Node, shared: Path) -> None:
    device = shared / "device"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # as if it had come some other way: /dev/zero
    try:
        assert refused(node, "head -c 1 /fsx/device")
        assert refused(node, "mknod /fsx/other c 1 5")
        assert refused(node, "mknod /opt/other c 1 5")
        assert ok(node, "head", "-c", "0", "/dev/zero") == ""
    finally:
        device.unlink()


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/panic_on_oom", "/proc/sysrq-trigger"])
def test_settings_of_the_kernel_cannot_be_written_from_a_node(node: Node, path: str) -> None:
    assert refused(node, f": >> {path}")


def test_the_memory_of_the_kernel_is_not_there_to_be_read(node: Node) -> None:
    assert ok(node, "sh", "-c", "cat /proc/kcore /proc/kmsg /proc/keys | wc -c") == "0"
    assert refused(node, "date -s @0")


def test_a_program_that_a_node_has_replaced_runs_with_no_more_than_the_node_has(node: Node) -> None:
    """Root of a node may put anything in place of what the control plane runs there."""
    ok(node, "sh", "-c", "printf '#!/bin/sh\\ngrep CapBnd /proc/self/status\\n' > /usr/local/sbin/scontrol")
    ok(node, "chmod", "755", "/usr/local/sbin/scontrol")

    assert int(ok(node, "scontrol").split()[1], 16) == KEPT & of_the_machine()


def test_files_of_a_node_are_read_and_written_on_the_node_wherever_its_links_lead(node: Node, leads_out: str) -> None:
    with pytest.raises(FileNotFoundError):
        node.read_file(f"{leads_out}/secret")
    with pytest.raises(OSError, match=r"\[Errno"):
        node.write_file(f"{leads_out}/new", b"x")
    ok(node, "ln", "-sfn", "/opt", "/var/opt-too")
    node.write_file("/var/opt-too/new", b"x")

    assert ok(node, "cat", "/opt/new") == "x"


def test_what_a_dead_node_has_left_is_not_read_through_links(node: Node, leads_out: str) -> None:
    ok(node, "ln", "-sfn", f"{leads_out}/secret", "/opt/log")
    ok(node, "mkfifo", "/opt/pipe")

    assert not node.outside("/opt/log").exists()
    for path in ("/opt/log", "/opt/pipe"):
        assert FileTail(path=node.outside(path), group="g", stream="s").read() == []


def test_lifecycle_scripts_are_put_on_the_node_wherever_a_link_in_their_place_leads(
    node: Node, machine: Path, tmp_path: Path, leads_out: str
) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho ran > /opt/ran\n")
    (tmp_path / "run.sh").chmod(0o755)
    ok(node, "mkdir", "-p", "/tmp/bucket/prefix", "/var/log/aws/clusters")
    ok(node, "ln", "-sfn", str(machine / "secret"), "/tmp/bucket/prefix/run.sh")
    ok(node, "ln", "-sfn", str(machine / "secret"), "/var/log/aws/clusters/sagemaker-host-agent.log")

    Script(node=node, bundle=tmp_path, name="run.sh", uri="s3://bucket/prefix").run()

    assert ok(node, "cat", "/opt/ran") == "ran"
    assert leads_out


def test_a_home_on_a_file_system_is_made_with_its_users_rights(node: Node, leads_out: str) -> None:
    assert shared_home(node, mount_path="/fsx") == "/fsx/ubuntu"
    assert ok(node, "stat", "-c", "%U %a", "/fsx/ubuntu/.ssh/id_ed25519") == "ubuntu 600"
    assert shared_home(node, mount_path="/fsx") == "/fsx/ubuntu"

    ok(node, "rm", "-r", "/fsx/ubuntu/.ssh", user="ubuntu")
    ok(node, "ln", "-s", "/root", "/fsx/ubuntu/.ssh", user="ubuntu")
    with pytest.raises(SlurmError, match="/fsx/ubuntu could not be made"):
        shared_home(node, mount_path="/fsx")

    assert refused(node, "ls /root/id_ed25519")
    assert leads_out
