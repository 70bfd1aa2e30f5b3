"""AWS's own scripts that take seconds, byte for byte, on nodes of the image; the longer ones are in tests/e2e."""

from collections.abc import Iterator
from pathlib import Path

import aws_nodes
import pytest
from aws_nodes import CONTROLLER, WORKER, Nodes, ok

pytestmark = pytest.mark.root


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    aws_nodes.require_cases("extensions")
    with aws_nodes.nodes(tmp_path / "home", orchestrator="slurm") as found:
        yield found


@pytest.mark.timeout(300)
def test_a_user_of_add_users_reaches_the_other_node_over_ssh(nodes: Nodes):
    case = aws_nodes.require_cases("extensions")
    controller, worker = nodes.boot(CONTROLLER), nodes.boot(WORKER)
    for node in (worker, controller):
        nodes.unpack(node, case, changed={"add-users/shared_users.txt": "user1,2001,/fsx/user1\n"})
        ok(node, "bash", f"{aws_nodes.PLACE}/detect-node/detect_node.sh")
    ok(controller, "sed", "-i", "s/controller/compute/", "/opt/ml/config/nodeinfo.json")  # no accounting in this test
    for node in (controller, worker):
        ok(node, "bash", f"{aws_nodes.PLACE}/add-users/add_users.sh", timeout_s=120)
        ok(node, "systemctl", "start", "ssh")
    options = ["-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"]
    assert ok(controller, "ssh", *options, "ip-10-1-0-11", "hostname", user="user1").endswith("ip-10-1-0-11")


def test_on_create_of_eks_moves_kubelet_to_the_second_disk(tmp_path: Path):
    case = aws_nodes.require_cases("eks-base-config")
    disk = tmp_path / "disk"
    disk.mkdir()
    with aws_nodes.nodes(tmp_path / "home", orchestrator="eks") as nodes:
        node = nodes.boot(WORKER, disk=disk)
        nodes.unpack(node, case)
        done = aws_nodes.run_script(node, "on_create.sh", timeout_s=60)
        log = aws_nodes.provisioning_log(node)
        assert done.returncode == 0, log
        assert done.stdout.splitlines()[-1] == "[stop] on_create.sh"
        assert "Amazon Linux 2023 detected" in log
        assert "[INFO] EFA not available on this instance, skipping" in log
        assert "[INFO] LNet network initialized" in log
        assert ok(node, "readlink", "/var/lib/kubelet") == "/opt/sagemaker/kubelet"
        assert 'CONTAINERD_CONFIG="' not in ok(node, "systemctl", "show", "-p", "Environment", "containerd")
        assert "CONTAINERD_CONFIG=/opt/sagemaker/containerd/config.toml" in ok(node, "systemctl", "show", "containerd")


def test_on_create_of_eks_goes_on_without_a_second_disk_after_its_own_wait(tmp_path: Path):
    """The script gives a disk 60 s; its sleep answers at once here, since nothing of ours is in that time."""
    case = aws_nodes.require_cases("eks-base-config")
    with aws_nodes.nodes(tmp_path / "home", orchestrator="eks") as nodes:
        node = nodes.boot(WORKER)
        nodes.unpack(node, case)
        node.write_file("/usr/local/sbin/sleep", b"#!/bin/sh\nexit 0\n", mode=0o755)
        done = aws_nodes.run_script(node, "on_create.sh", timeout_s=60)
        assert done.returncode == 0
        assert "/opt/sagemaker not mounted. Skipping containerd configuration" in aws_nodes.provisioning_log(node)
