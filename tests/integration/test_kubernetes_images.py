"""Images on a node with the real containerd and runc: what containers have, what they have not, and what stays."""

import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small_image import add_small_image

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.kubernetes import images
from holdfast.localcloud.nodes import REACHABLE, FileSpec, Fleet, Mount, Node, NodeSpec, python_mounts

pytestmark = [pytest.mark.root, pytest.mark.kubernetes]

GATEWAY, ADDRESS = "10.1.255.254", "10.1.0.11"
CONTAINERD = """\
version = 2
root = "/run/containers"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
"""
SECRETS = ("/etc/kubernetes/secret", "/var/lib/kubelet/secret", "/root/secret", "/run/secret", "/tmp/secret")
NODE, SMALL = "holdfast.local/node:1", "docker.io/library/small:1"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node with containerd, and what its images come from."""

    node: Node
    store: ImageStore
    callers: list[str]
    """Addresses that the registry was asked about."""
    _pause: threading.Event = field(default_factory=threading.Event)

    def ctr(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        path = {"PATH": "/tools:/usr/sbin:/usr/bin:/sbin:/bin"}
        return self.node.run(["ctr", "--namespace", "k8s.io", *arguments], env=path, timeout_s=30)

    def pull(self, image: str) -> "subprocess.CompletedProcess[str]":
        return self.ctr("images", "pull", "--hosts-dir", images.REGISTRIES, image)

    def run(self, image: str, command: str, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run a shell command in a container of an image that is pulled first."""
        pulled = self.pull(image)
        assert pulled.returncode == 0, pulled.stderr
        name = f"c{time.monotonic_ns()}"
        how = ["--rm", "--runc-binary", images.RUNTIME, *options]
        return self.ctr("run", *how, image, name, "sh", "-c", command)

    def eventually(self, holds: Callable[[], bool]) -> bool:
        """Whether something holds within 5 s."""
        return any(holds() or self._pause.wait(0.05) for _ in range(100))

    def mounts(self) -> list[str]:
        return self.node.run(["cat", "/proc/mounts"], timeout_s=10).stdout.splitlines()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, binaries: Any) -> Iterator[Machine]:
    home = tmp_path_factory.mktemp("images") / "home"
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway=GATEWAY)
    store, callers = ImageStore(home=home), []

    def is_node(address: str) -> bool:
        callers.append(address)
        return address == ADDRESS

    environment = python_mounts(at="/opt/holdfast/env")
    root = images.NodeRoot(environment=tuple(mount.target for mount in environment))
    listener = fleet.listen(GATEWAY, images.PORT)
    registry = images.Registry(listener=listener, store=store, stand_ins=images.stand_ins(), root=root, is_node=is_node)
    registry.start()
    tools = home / "tools"
    tools.mkdir()
    for name in ("containerd", "containerd_shim", "ctr", "runc"):
        source: Path = getattr(binaries, name)
        (tools / {"containerd_shim": "containerd-shim-runc-v2"}.get(name, name)).write_bytes(source.read_bytes())
    for path in tools.iterdir():
        path.chmod(0o755)
    files = images.node_files(registry=f"{GATEWAY}:{images.PORT}", runc="/tools/runc", root=root)
    files["/etc/containerd/config.toml"] = FileSpec(content=CONTAINERD.encode())
    mounts = (Mount(source=tools, target="/tools", read_only=True), *images.node_mounts(store), *environment)
    try:
        node = fleet.boot(
            NodeSpec(
                instance_id="i-1", hostname="n1", address=ADDRESS, runs_containers=True, files=files, mounts=mounts
            )
        )
        assert _ready(node), node.run(["cat", "/run/containerd.log"], timeout_s=5).stdout
        yield Machine(node=node, store=store, callers=callers)
    finally:
        registry.stop()
        fleet.close()


def _ready(node: Node) -> bool:
    """containerd is started, and secrets lie about."""
    for path in SECRETS:
        node.run(["sh", "-c", f"mkdir -p $(dirname {path}) && echo of-the-node > {path}"], timeout_s=5)
    start = "PATH=/tools:$PATH setsid containerd --config /etc/containerd/config.toml > /run/containerd.log 2>&1 &"
    node.run(["sh", "-c", start], timeout_s=10)
    for _ in range(100):
        if node.run(["test", "-S", "/run/containerd/containerd.sock"], timeout_s=5).returncode == 0:
            return True
        threading.Event().wait(0.05)
    return False


def _file(node: Node, path: str) -> str:
    return node.run(["cat", path], timeout_s=5).stdout


def test_the_image_of_sandboxes_is_there(machine: Machine) -> None:
    image = f"{images.SANDBOX_IMAGE}:latest"

    pulled = machine.pull(image)

    # The end of a pull may break off what ctr asks for its progress, which it logs (containerd: ShowProgress of ctr).
    assert pulled.returncode == 0, pulled.stderr
    assert image in machine.ctr("images", "ls", "--quiet").stdout.splitlines()


def test_a_stand_in_has_the_nodes_programs_and_none_of_its_secrets(machine: Machine) -> None:
    done = machine.run(
        NODE, f"python -c 'import numpy; print(numpy.__name__)'; cat {shlex.join(SECRETS)}; ls -A / /run"
    )

    assert done.stdout.splitlines()[0] == "numpy"
    assert "of-the-node" not in done.stdout
    assert done.stderr.count("No such file or directory") == len(SECRETS)


def test_what_a_container_writes_is_in_no_other_and_not_on_the_node(machine: Machine) -> None:
    machine.run(NODE, "echo mine > /etc/mine; echo mine > /usr/mine")

    assert machine.run(NODE, "cat /etc/mine /usr/mine").returncode != 0
    assert machine.node.run(["ls", "/etc/mine", "/usr/mine"], timeout_s=5).stdout == ""


def test_a_stand_in_that_sleeps_says_so_and_ends_when_it_is_told_to(machine: Machine) -> None:
    image, log = "1.dkr.ecr.us-west-2.amazonaws.com/hyperpod-health-monitoring-agent:1", "/run/asleep.log"
    assert machine.pull(image).returncode == 0
    how = ["--detach", "--log-uri", f"file://{log}", "--runc-binary", images.RUNTIME]
    assert machine.ctr("run", *how, image, "asleep").returncode == 0
    assert machine.eventually(lambda: "stand-in that does nothing" in _file(machine.node, log))

    machine.ctr("tasks", "kill", "--signal", "SIGTERM", "asleep")

    assert machine.eventually(lambda: "STOPPED" in machine.ctr("tasks", "list").stdout)
    machine.ctr("tasks", "delete", "asleep")
    machine.ctr("containers", "delete", "asleep")


def test_a_driver_of_file_systems_sees_them_and_others_who_take_its_image_do_not(machine: Machine) -> None:
    driver, folder = "public.ecr.aws/fsx-csi-driver/aws-fsx-csi-driver:v1", f"{REACHABLE}/fs-1/mount"
    machine.node.run(["sh", "-c", f"mkdir -p {folder} && mount -t tmpfs tmpfs {folder}"], timeout_s=5)
    seen = f"grep -c {folder} /proc/mounts"  # ctr mounts another /run over it, which the kubelet's containers lack

    assert machine.run(driver, seen, "--privileged").stdout == "1\n"
    assert machine.run(driver, seen).stdout == "0\n"
    assert machine.run(NODE, seen, "--privileged").stdout == "0\n"


def test_an_image_of_the_store_runs_as_it_is_and_stays_as_it_is(machine: Machine) -> None:
    stored = add_small_image(machine.store, name="small:1", Env=["COLOUR=red", "PATH=/bin"], WorkingDir="/work")
    folder = machine.store.folder(stored) / "rootfs"

    done = machine.run(SMALL, "cat /etc/of-the-image; echo $COLOUR; pwd; echo changed > /etc/of-the-image")

    assert done.stdout.split() == ["small", "red", "/work"]
    assert (folder / "etc/of-the-image").read_text() == "small\n"
    assert machine.run(SMALL, "cat /etc/of-the-image; ls /usr/share || true").stdout.split() == ["small"]


def test_users_of_an_image_are_known_by_name(machine: Machine) -> None:
    add_small_image(machine.store, name="named:1", Env=["PATH=/bin"], User="node")

    assert machine.run("docker.io/library/named:1", "id -u").stdout.strip() == "1000"


def test_a_container_whose_image_was_removed_says_so(machine: Machine) -> None:
    add_small_image(machine.store, name="gone:1", Env=["PATH=/bin"])
    assert machine.pull("docker.io/library/gone:1").returncode == 0
    machine.store.remove("gone:1")

    done = machine.ctr("run", "--rm", "--runc-binary", images.RUNTIME, "docker.io/library/gone:1", "gone", "sh")

    assert "not on this machine any more: sha256-" in done.stderr


def test_what_is_in_neither_store_nor_table_is_not_found(machine: Machine) -> None:
    assert "docker.io/library/nginx:1: not found" in machine.pull("docker.io/library/nginx:1").stderr


def test_a_container_may_do_what_containerd_says_and_no_more(machine: Machine) -> None:
    status = "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status"

    usual = machine.run(NODE, status).stdout.split()
    privileged = machine.run(NODE, status, "--privileged").stdout.split()
    of_the_node = machine.node.run(["grep", "CapBnd", "/proc/self/status"], timeout_s=5).stdout.split()

    assert usual[1] == usual[3] == "00000000a80425fb"
    assert int(privileged[1], 16) & ~int(of_the_node[1], 16) == 0


def test_a_read_only_root_is_read_only_for_both_kinds(machine: Machine) -> None:
    add_small_image(machine.store, name="small:1", Env=["PATH=/bin"])

    for image in (NODE, SMALL):
        assert "Read-only file system" in machine.run(image, "touch /x", "--read-only").stderr


def test_nothing_stays_mounted_after_containers(machine: Machine) -> None:
    add_small_image(machine.store, name="small:1", Env=["PATH=/bin"])
    before = machine.mounts()

    for image in (NODE, SMALL):
        assert machine.run(image, "true").returncode == 0

    assert machine.mounts() == before
    assert machine.node.run(["ls", "/run/containerd/io.containerd.runtime.v2.task/k8s.io"], timeout_s=5).stdout == ""


def test_the_registry_is_asked_by_the_nodes_address_alone(machine: Machine) -> None:
    machine.pull(NODE)

    assert set(machine.callers) == {ADDRESS}
