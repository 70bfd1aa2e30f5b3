"""Nodes for AWS's lifecycle scripts: booted from the image, with what HyperPod gives them."""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from holdfast.localcloud.forwarding import Forwarder
from holdfast.localcloud.image import NodeImage, build
from holdfast.localcloud.nodes import FileSpec, Fleet, Mount, Node, NodeSpec, python_mounts

_SETTINGS = ("HOLDFAST_PYTHON_SLURM", "HOLDFAST_PYTHON_EKS")
PYTHONS = {name: os.environ[name] for name in _SETTINGS if name in os.environ}
"""The AMIs' interpreters, if somebody named them; read before the tests' clean environment hides them."""
CASES = Path(__file__).parents[3] / "shared/cases/lifecycle"
"""``SOURCE.md`` there says where they come from, and which settings may be changed."""
GATEWAY, NETWORK = "10.1.255.254", "10.1.0.0/16"
CONTROLLER, WORKER = "10.1.0.10", "10.1.0.11"
REGION = "us-west-2"
ARN = f"arn:aws:sagemaker:{REGION}:123456789012:cluster/abcdefghijkl"
FSX_DNS, FSX_NAME = f"fs-0123456789abcdef0.fsx.{REGION}.amazonaws.com", "abcdefgh"
PLACE = "/tmp/sagemaker-bucket/lifecycle"
"""/tmp/<bucket>/<prefix>, where HyperPod unpacks scripts and starts them."""
AWS = {
    "AWS_ENDPOINT_URL": f"http://{GATEWAY}:5000",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
}
SLURM_CONF = f"""\
ClusterName=aws-scripts
SlurmctldHost={{host}}({CONTROLLER})
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SlurmctldParameters=enable_configless
ReturnToService=2
include accounting.conf
NodeName=ip-10-1-0-11 NodeAddr={WORKER} CPUs=2 RealMemory=1024
PartitionName=dev Nodes=ALL Default=YES MaxTime=INFINITE
"""


def require_cases(name: str) -> Path:
    """A folder of AWS's scripts, or the test is skipped."""
    if not (CASES / name).is_dir():
        pytest.skip(f"AWS's scripts are not at {CASES / name}")
    return CASES / name


@dataclass(kw_only=True)
class Nodes:
    """A controller and a worker, or as many as a test boots."""

    fleet: Fleet
    image: NodeImage
    shared: Path
    key: bytes = field(default_factory=lambda: secrets.token_bytes(64))

    def boot(self, address: str, *, disk: Path | None = None, fsx: bool = True) -> Node:
        host = "ip-" + address.replace(".", "-")
        lustre = f"/run/holdfast/lustre/{FSX_DNS}/{FSX_NAME}"
        mounts = [*python_mounts(at="/opt/holdfast/env"), *self.image.mounts, Mount(source=self.shared, target=lustre)]
        mounts += [Mount(source=self.shared, target="/fsx")] if fsx else []
        mounts += [Mount(source=disk, target="/opt/sagemaker")] if disk else []
        hosts = f"127.0.0.1 localhost\n{CONTROLLER} ip-10-1-0-10\n{WORKER} ip-10-1-0-11\n"
        files = {
            "/etc/hosts": FileSpec(content=hosts.encode()),
            "/etc/munge/munge.key": FileSpec(content=self.key, mode=0o400, owner="munge:munge"),
            "/opt/ml/config/resource_config.json": FileSpec(content=resource_config().encode()),
            "/opt/ml/config/provisioning_parameters.json": FileSpec(content=provisioning_parameters().encode()),
            "/etc/holdfast/aws": FileSpec(content="".join(f"{k}={v}\n" for k, v in AWS.items()).encode()),
        }
        if address == CONTROLLER:
            files["/opt/slurm/etc/slurm.conf"] = FileSpec(content=SLURM_CONF.format(host=host).encode())
        name = f"i-{int(address.rpartition('.')[2]):017x}"
        spec = NodeSpec(
            instance_id=name, hostname=host, address=address, mounts=tuple(mounts), files=files, image=self.image.path
        )
        return self.fleet.boot(spec)

    def unpack(self, node: Node, case: Path, *, changed: dict[str, str] | None = None) -> None:
        """AWS's scripts as they are; ``changed`` holds what their users configure by design."""
        for path in case.rglob("*"):
            if path.is_file():
                name = str(path.relative_to(case))
                node.write_file(f"{PLACE}/{name}", path.read_bytes())
        for name, text in (changed or {}).items():
            node.write_file(f"{PLACE}/{name}", text.encode())


@contextmanager
def nodes(home: Path, *, orchestrator: str) -> Iterator[Nodes]:
    """An open fleet with its image and an endpoint of AWS; nothing is left at the end."""
    fleet = Fleet(home=home)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    try:
        fleet.open(network=NETWORK, gateway=GATEWAY)
        shared = home / "fsx"
        shared.mkdir(parents=True)
        shared.chmod(0o755)
        server.start()
        host, port = server.get_host_and_port()
        forwarder = Forwarder(listener=fleet.listen(GATEWAY, 5000), host=host, port=port)
        forwarder.start()
        os.environ.update(PYTHONS)
        try:
            yield Nodes(fleet=fleet, image=build(fleet.directory / "images", orchestrator=orchestrator), shared=shared)
        finally:
            forwarder.stop()
    finally:
        server.stop()
        fleet.close()


def run_script(node: Node, name: str, *, timeout_s: float, **more: str) -> "subprocess.CompletedProcess[str]":
    """As HyperPod starts it: root, the folder it unpacked, the path of resource_config.json in the environment."""
    environment = {"SAGEMAKER_RESOURCE_CONFIG_PATH": "/opt/ml/config/resource_config.json", **more}
    return node.run(["bash", f"./{name}"], timeout_s=timeout_s, cwd=PLACE, env=environment)


def ok(node: Node, *argv: str, user: str | None = None, timeout_s: float = 30) -> str:
    done = node.run(argv, timeout_s=timeout_s, user=user)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()


def provisioning_log(node: Node) -> str:
    return node.read_file("/var/log/provision/provisioning.log").decode(errors="replace")


def resource_config() -> str:
    def group(name: str, address: str) -> dict[str, object]:
        instance = {
            "InstanceName": f"{name}-1",
            "AgentIpAddress": address,
            "CustomerIpAddress": address,
            "InstanceId": f"i-{int(address.rpartition('.')[2]):017x}",
        }
        return {"Name": name, "InstanceType": "ml.c5.xlarge", "Instances": [instance]}

    groups = [group("controller-machine", CONTROLLER), group("worker-group-1", WORKER)]
    cluster = {"ClusterArn": ARN, "ClusterName": "aws-scripts"}
    return json.dumps({"ClusterConfig": cluster, "InstanceGroups": groups})


def provisioning_parameters(**more: str) -> str:
    return json.dumps(
        {
            "version": "1.0.0",
            "workload_manager": "slurm",
            "controller_group": "controller-machine",
            "login_group": "",
            "worker_groups": [{"instance_group_name": "worker-group-1", "partition_name": "dev"}],
            **more,
        }
    )


def start_slurm_as_the_image_does(controller: Node, worker: Node) -> None:
    """What AMI-based configuration has done before an extension runs: daemons and accounting."""
    ok(controller, "systemctl", "start", "munge", "docker", "mariadb")
    sql = "create database slurm_acct_db; grant all on slurm_acct_db.* to 'slurm'@'localhost' identified by 'x'"
    ok(controller, "mysql", "-u", "root", "-e", sql)
    fill = "SLURM_DB_USER=slurm SLURM_DB_PASSWORD=x envsubst < slurmdbd.conf.template > slurmdbd.conf"
    secure = "chown slurm:slurm slurmdbd.conf && chmod 600 slurmdbd.conf"
    account = "AccountingStorageType=accounting_storage/slurmdbd\\nAccountingStorageHost=ip-10-1-0-10\\n"
    gather = "JobAcctGatherType=jobacct_gather/linux\\n"
    ok(
        controller,
        "sh",
        "-c",
        f"cd /opt/slurm/etc && {fill} && {secure} && printf '{account}{gather}' > accounting.conf",
    )
    ok(controller, "systemctl", "start", "slurmdbd")
    wait = "for i in $(seq 100); do sacctmgr -n show cluster > /dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"
    ok(controller, "sh", "-c", wait)
    ok(controller, "systemctl", "start", "slurmctld")
    worker.write_file("/etc/default/slurmd", f"SLURMD_OPTIONS=--conf-server {CONTROLLER}\n".encode())
    ok(worker, "systemctl", "start", "munge", "docker", "slurmd")
    wait = 'for i in $(seq 100); do [ "$(sinfo -h -o %T)" = idle ] && exit 0; sleep 0.1; done; sinfo; exit 1'
    ok(controller, "sh", "-c", wait)
