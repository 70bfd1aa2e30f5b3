"""AWS's own lifecycle scripts that take longer, byte for byte, on nodes of the image."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aws_nodes
import pytest
from aws_nodes import CONTROLLER, WORKER, Nodes, ok

pytestmark = [pytest.mark.root, pytest.mark.slurm, pytest.mark.e2e, pytest.mark.timeout(400)]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    aws_nodes.require_cases("extensions")
    with aws_nodes.nodes(tmp_path / "home", orchestrator="slurm") as found:
        yield found


def test_run_extensions_adds_users_and_observability_on_both_kinds_of_nodes(nodes: Nodes):
    case = aws_nodes.require_cases("extensions")
    script = (case / "run_extensions.sh").read_text()
    config = (case / "observability/config.json").read_text()
    changed = {
        "run_extensions.sh": script.replace('ENABLE_OBSERVABILITY="false"', 'ENABLE_OBSERVABILITY="true"'),
        "observability/config.json": config.replace("<region>", aws_nodes.REGION).replace("<workspace-id>", "ws-1"),
        "add-users/shared_users.yaml": (case / "add-users/shared_users_sample.yaml").read_text(),
    }
    controller, worker = nodes.boot(CONTROLLER), nodes.boot(WORKER)
    aws_nodes.start_slurm_as_the_image_does(controller, worker)
    for node in (controller, worker):
        nodes.unpack(node, case, changed=changed)
        done = aws_nodes.run_script(node, "run_extensions.sh", timeout_s=120, **aws_nodes.AWS)
        assert done.returncode == 0, (aws_nodes.provisioning_log(node)[-4000:], done.stderr[-2000:])
        assert done.stdout.splitlines()[-1] == "[stop] run_extensions.sh"

    assert "Node type: controller" in aws_nodes.provisioning_log(controller)
    assert "Node type: compute" in aws_nodes.provisioning_log(worker)
    for node in (controller, worker):
        assert re.match(r"uid=2001\(user1\)", ok(node, "id", "user1"))
        assert ok(node, "sh", "-c", "echo ~user2") == "/fsx/user2"
    assert "user1|root" in ok(controller, "sacctmgr", "-nP", "show", "assoc", "format=user,account")

    assert ok(controller, "srun", "-N1", "hostname", user="user1") == "ip-10-1-0-11"
    wait = "for i in $(seq 100); do sacct -nPX -o user,state | grep -q COMPLETED && break; sleep 0.1; done"
    ok(controller, "sh", "-c", wait)
    assert ok(controller, "sacct", "-nPX", "-a", "-o", "user,state") == "user1|COMPLETED"

    assert {"node-exporter", "otel-collector"} <= running(controller)
    assert {"node-exporter", "otel-collector", "efa-exporter"} <= running(worker)
    assert ok(controller, "systemctl", "is-active", "slurm_exporter") == "active"
    assert 'slurm_nodes{state="idle"} 1' in ok(controller, "curl", "-s", "http://localhost:9341/metrics")


def test_base_config_starts_slurm_with_accounting_users_and_mounts_of_its_own(nodes: Nodes):
    case = aws_nodes.require_cases("slurm-base-config")
    parameters = aws_nodes.provisioning_parameters(fsx_dns_name=aws_nodes.FSX_DNS, fsx_mountname=aws_nodes.FSX_NAME)
    changed = {
        "provisioning_parameters.json": parameters,
        "shared_users.txt": (case / "shared_users_sample.txt").read_text(),
    }
    both = [nodes.boot(address, fsx=False) for address in (CONTROLLER, WORKER)]
    controller, worker = both
    for node in both:
        nodes.unpack(node, case, changed=changed)
        ok(node, "systemctl", "start", "multi-user.target")  # what the image starts at boot, munge among it

    def create(node: aws_nodes.Node) -> None:
        done = aws_nodes.run_script(node, "on_create.sh", timeout_s=300)
        assert done.returncode == 0, aws_nodes.provisioning_log(node)[-6000:]
        assert "[INFO]: Success: All provisioning scripts completed" in aws_nodes.provisioning_log(node)

    with ThreadPoolExecutor() as pool:
        list(pool.map(create, both))

    wait = 'for i in $(seq 200); do [ "$(sinfo -h -o %T)" = idle ] && exit 0; sleep 0.1; done; sinfo; exit 1'
    ok(controller, "sh", "-c", wait)
    for node in both:
        assert ok(node, "mountpoint", "/fsx") == "/fsx is a mountpoint"
        assert ok(node, "systemctl", "is-active", "fsx.automount") == "active"
        assert ok(node, "sh", "-c", "echo ~ubuntu ~user1") == "/fsx/ubuntu /fsx/user1"
    assert {"ubuntu|root", "user1|root"} <= set(
        ok(controller, "sacctmgr", "-nP", "show", "assoc", "format=user,account").splitlines()
    )
    assert ok(controller, "srun", "-N1", "hostname", user="user1") == "ip-10-1-0-11"
    finished = "for i in $(seq 100); do sacct -nPX -o state | grep -q COMPLETED && break; sleep 0.1; done; "
    assert ok(controller, "sh", "-c", finished + "sacct -nPX -a -o user,state") == "user1|COMPLETED"
    ok(worker, "test", "-f", "/etc/enroot/enroot.conf")
    # A service that base-config enabled comes back by itself, as its unit says; Slurm's units say nothing.
    pid = ok(controller, "systemctl", "show", "-p", "MainPID", "--value", "mariadb")
    ok(controller, "kill", "-9", pid)
    again = "systemctl show -p NRestarts --value mariadb"
    back = f'for i in $(seq 200); do [ "$({again})" = 1 ] && exit 0; sleep 0.1; done; exit 1'
    ok(controller, "sh", "-c", back)


def running(node: aws_nodes.Node) -> set[str]:
    return {line.split()[-1] for line in ok(node, "docker", "ps").splitlines()[1:]}
