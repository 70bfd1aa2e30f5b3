"""Nodes that run containers: cgroups of their own, and what of the kernel they may and may not change."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import eventually

from holdfast.localcloud.nodes import Fleet, Node, NodeSpec

pytestmark = pytest.mark.root

CGROUPS = Path("/sys/fs/cgroup")
SETTING = Path("/proc/sys/vm/overcommit_memory")

VERSION = 2 if (CGROUPS / "cgroup.controllers").is_file() else 1
MEMORY = "/sys/fs/cgroup" if VERSION == 2 else "/sys/fs/cgroup/memory"
"""Where the memory controller is, on a node."""
LIMIT = "memory.max" if VERSION == 2 else "memory.limit_in_bytes"

if VERSION == 1 and not (CGROUPS / "memory" / "cgroup.procs").exists():
    pytest.skip("needs a memory controller", allow_module_level=True)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    fleet = Fleet(home=tmp_path_factory.mktemp("home"))
    fleet.open(network="10.1.0.0/16", gateway="10.1.0.1")
    yield fleet
    fleet.close()


@pytest.fixture(scope="module")
def node(fleet: Fleet) -> Node:
    return fleet.boot(
        NodeSpec(
            instance_id="i-1",
            hostname="ip-10-1-0-5",
            address="10.1.0.5",
            runs_containers=True,
            kernel_files={str(SETTING): b"7\n"},
        )
    )


def said(node: Node, script: str) -> str:
    done = node.run(["/bin/sh", "-c", script], timeout_s=20)
    return (done.stdout + done.stderr).strip()


def cgroups_of(fleet: Fleet) -> list[Path]:
    """Cgroups that belong to the nodes of this home."""
    inside = {int(line) for node in fleet.nodes() if node.alive() for line in (str(node.pid),)}
    tops = [path for top in (CGROUPS, *CGROUPS.iterdir()) for path in top.glob("holdfast-*")]
    return [top for top in tops for procs in top.rglob("cgroup.procs") if inside & _members(procs)]


def _members(procs: Path) -> set[int]:
    return {int(line) for line in procs.read_text().split()}


def test_a_node_is_the_root_of_its_own_cgroups(node: Node):
    told = said(node, "cat /proc/self/cgroup")
    if VERSION == 2:
        assert told == "0::/node"
    else:
        assert ":memory:/\n" in told
        assert ":devices:/\n" in told


def test_a_container_runtime_can_make_cgroups_in_it(node: Node):
    assert said(node, f"mkdir {MEMORY}/pods && rmdir {MEMORY}/pods && echo made") == "made"


def test_a_program_over_the_memory_limit_of_its_cgroup_is_killed_alone(node: Node):
    greedy = f"echo $$ > {MEMORY}/greedy/cgroup.procs; x=0123456789abcdef; while :; do x=$x$x; done"
    made = f"mkdir {MEMORY}/greedy && echo 32M > {MEMORY}/greedy/{LIMIT}"
    told = said(node, f"{made} && sh -c '{greedy}'; echo code $?; rmdir {MEMORY}/greedy")
    assert "code 137" in told
    assert node.alive()


def test_what_is_run_on_it_belongs_to_it(node: Node):
    lines = said(node, f"sleep 60 > /dev/null 2>&1 & cat {MEMORY}{'/node' * (VERSION == 2)}/cgroup.procs").split()
    assert len(lines) >= 3, "PID 1 and the shell among them"


def test_its_kernel_files_are_its_own_to_read_and_write(node: Node):
    before = SETTING.read_text()
    assert said(node, f"cat {SETTING}; echo 1 > {SETTING}; cat {SETTING}") == "7\n1"
    assert SETTING.read_text() == before


def test_it_changes_its_networks_settings_and_no_others(node: Node):
    assert said(node, "echo 1 > /proc/sys/net/ipv4/ip_forward && cat /proc/sys/net/ipv4/ip_forward") == "1"
    assert "Read-only file system" in said(node, "echo 9 > /proc/sys/kernel/panic")


def test_it_makes_device_nodes_and_opens_no_disk_of_the_machine(node: Node):
    disk = next(Path("/sys/class/block").iterdir())
    major, minor = (disk / "dev").read_text().strip().split(":")
    told = said(node, f"mknod /dev/disk b {major} {minor} && echo made; head -c 1 /dev/disk")
    assert told.startswith("made")
    assert "Operation not permitted" in told


def test_other_nodes_can_make_no_device_nodes(fleet: Fleet):
    plain = fleet.boot(NodeSpec(instance_id="i-2", hostname="ip-10-1-0-6", address="10.1.0.6"))
    assert "Operation not permitted" in said(plain, "mknod /dev/null2 c 1 3")
    assert "Read-only file system" in said(plain, "echo 1 > /proc/sys/net/ipv4/ip_forward")
    plain.remove()


def test_freezing_stops_containers_too(fleet: Fleet):
    node = fleet.boot(NodeSpec(instance_id="i-3", hostname="ip-10-1-0-7", address="10.1.0.7", runs_containers=True))
    count = "while :; do date +%s%N > /run/next; mv /run/next /run/now; sleep 0.02; done"
    counter = f"unshare --fork --pid --mount-proc sh -c '{count}'"
    node.run(["/bin/sh", "-c", f"{counter} > /dev/null 2>&1 &"], timeout_s=10)
    eventually(lambda: node.inside("/run/now").exists(), "no count")
    node.freeze()
    before = node.inside("/run/now").read_bytes()
    time.sleep(0.2)
    assert before
    assert node.inside("/run/now").read_bytes() == before
    node.thaw()
    eventually(lambda: node.inside("/run/now").read_bytes() != before, "it did not go on")
    node.remove()


def test_nothing_of_its_cgroups_is_left_when_it_ends(fleet: Fleet):
    node = fleet.boot(NodeSpec(instance_id="i-4", hostname="ip-10-1-0-8", address="10.1.0.8", runs_containers=True))
    said(node, f"mkdir -p {MEMORY}/pods/one; sleep 60 > /dev/null 2>&1 &")
    assert cgroups_of(fleet)
    node.destroy()
    assert not [*CGROUPS.glob("*/holdfast-*/i-4"), *CGROUPS.glob("holdfast-*/i-4")]
    node.remove()


CLOSE = (
    "import sys, pathlib; from holdfast.localcloud.nodes import Fleet; Fleet(home=pathlib.Path(sys.argv[1])).close()"
)


def test_another_machine_of_this_kernel_with_a_home_of_the_same_path_leaves_them_alone(
    fleet: Fleet, node: Node, tmp_path: Path
) -> None:
    # As in a chroot or a container: the path leads to another folder there.
    said(node, f"mkdir {MEMORY}/empty")
    script = f'mount --bind {tmp_path} {fleet.home} && exec {sys.executable} -c "$1" {fleet.home}'

    subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", CLOSE],
        check=True,
        timeout=60,
    )

    assert said(node, f"rmdir {MEMORY}/empty && echo removed") == "removed"


def test_a_socket_listens_in_the_nodes_own_network(fleet: Fleet, node: Node):
    with node.listen("127.0.0.1", 7070):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 7070), 1)
        assert "7070" in said(node, "cat /proc/net/tcp | grep -i 0100007F:1B9E && echo 7070")
    assert fleet.is_open()


def test_a_socket_of_the_nodes_network_reaches_a_node(fleet: Fleet, node: Node):
    with node.listen(node.spec.address, 7071), fleet.stream() as stream:
        stream.settimeout(5)
        stream.connect((node.spec.address, 7071))


def test_the_machines_settings_are_as_before(node: Node):
    assert node.alive()
    told = subprocess.run(["cat", str(SETTING)], check=True, capture_output=True, text=True)
    assert told.stdout != "7\n"
