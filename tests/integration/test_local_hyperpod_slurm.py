"""Slurm of the local HyperPod, row by row of docs/concepts/local-cloud.md, by Slurm's commands and the nodes' files."""

import json
from collections.abc import Iterator

import pytest
from hyperpod_lab import HyperPodLab, hyperpod_lab, ok
from waiting import eventually

from holdfast.localcloud.nodes import Node

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]

EXTENSION = """#!/bin/bash
scontrol --oneliner show node "$(hostname)" | tr ' ' '\\n' | grep ^State= > /root/seen || true
echo run >> /root/runs
"""
CUSTOM_CONTROLLER = """#!/bin/bash
set -eu
tries=0
until grep -q "^SlurmctldHost=$(hostname)(" /opt/slurm/etc/slurm.conf 2>/dev/null; do
    tries=$((tries + 1)); [ $tries -lt 120 ]; sleep 0.25
done
cp /opt/slurm/etc/accounting.conf /root/accounting.conf
systemctl is-active slurmctld slurmdbd mariadb > /root/units || true
systemctl enable --now slurmctld
"""
CUSTOM_WORKER = """#!/bin/bash
set -eu
config=$SAGEMAKER_RESOURCE_CONFIG_PATH
head=$(jq -r '.InstanceGroups[] | select(.Name == "head").Instances[0].CustomerIpAddress' "$config")
printf 'SLURMD_OPTIONS="--conf-server %s:6817"\\n' "$head" > /etc/default/slurmd
systemctl enable --now slurmd
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HyperPodLab]:
    """Cluster ``lab`` with extensions on its workers, and ``own`` whose scripts do everything."""
    with hyperpod_lab(tmp_path_factory.mktemp("hyperpod")) as made:
        made.scripts("extension", run_sh=EXTENSION)
        made.scripts("head", run_sh=CUSTOM_CONTROLLER)
        made.scripts("worker", run_sh=CUSTOM_WORKER)
        described = made.create("lab", groups(made, workers=2))
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        yield made


def uri(prefix: str) -> str:
    return f"s3://sagemaker-lab/{prefix}"


def groups(lab: HyperPodLab, *, workers: int) -> list[object]:
    extension = {"SourceS3Uri": uri("extension"), "OnInitComplete": "run.sh"}
    return [
        lab.group("head", NodeType="Controller"),
        lab.group("workers", count=workers, lifecycle=extension, NodeType="Compute", PartitionNames=["train"]),
        lab.group("more", lifecycle=extension, NodeType="Compute", PartitionNames=["eval"]),
        lab.group("door", lifecycle=extension, NodeType="Login"),
    ]


@pytest.fixture
def head(lab: HyperPodLab) -> Node:
    return lab.node("lab", "head")


@pytest.fixture
def worker(lab: HyperPodLab) -> Node:
    return lab.node("lab", "workers")


def conf(head: Node) -> list[str]:
    return head.read_file("/opt/slurm/etc/slurm.conf").decode().splitlines()


# --- configuration


@pytest.mark.documented("HP-63", "HP-64")
def test_slurm_is_where_scripts_of_aws_look_for_it(head: Node, worker: Node):
    for name in ("slurm.conf", "accounting.conf", "slurmdbd.conf.template", "cgroup.conf", "plugstack.conf"):
        ok(head, "test", "-e", f"/opt/slurm/etc/{name}")
    assert ok(head, "readlink", "/etc/slurm") == "/opt/slurm/etc"
    assert ok(worker, "/opt/slurm/bin/scontrol", "ping").startswith("Slurmctld(primary) at ip-10-1-0-10 is UP")
    for name in ("slurmctld", "slurmd", "slurmdbd"):
        assert "ExecStart=/opt/slurm/sbin/" in ok(worker, "cat", f"/etc/systemd/system/{name}.service")
    assert "$SLURMD_OPTIONS" in ok(worker, "cat", "/etc/systemd/system/slurmd.service")


@pytest.mark.documented("HP-66", "HP-67", "HP-79", "HP-68")
def test_settings_that_aws_names_are_set(head: Node):
    lines = conf(head)
    assert f"SlurmctldHost={head.spec.hostname}({head.spec.address})" in lines
    assert "TaskPlugin=task/none" in lines
    (scheduler,) = [line for line in lines if line.startswith("SchedulerParameters=")]
    assert "permit_job_expansion" in scheduler.partition("=")[2].split(",")
    assert [line for line in lines if line.lower().startswith("include ")] == ["include accounting.conf"]
    assert "SlurmUser=slurm" in lines
    shown = ok(head, "scontrol", "show", "config")
    assert any(f"TaskPlugin              = {plugin}\n" in shown for plugin in ("task/none", "(null)"))
    assert "AccountingStorageType   = accounting_storage/slurmdbd" in shown


@pytest.mark.documented("HP-69", "HP-70", "HP-71")
def test_nodes_have_the_names_of_their_addresses_and_are_in_dev_and_their_own_partition(lab: HyperPodLab, head: Node):
    nodes = {group: [lab.fleet.node(one) for one in lab.instances("lab", group)] for group in ("workers", "more")}
    for node in (*nodes["workers"], *nodes["more"]):
        assert node.spec.hostname == "ip-" + node.spec.address.replace(".", "-")
        assert ok(node, "hostname") == node.spec.hostname
    names = {group: sorted(node.spec.hostname for node in found) for group, found in nodes.items()}
    listed = [line.split() for line in ok(head, "sinfo", "-h", "-N", "-o", "%P %N").splitlines()]
    partitions = {name: sorted(node for at, node in listed if at == name) for name, _ in listed}
    every = sorted(names["workers"] + names["more"])
    assert partitions == {"dev*": every, "train": names["workers"], "eval": names["more"]}


@pytest.mark.documented("HP-73")
def test_compute_nodes_fetch_the_configuration_from_the_controller(head: Node, worker: Node):
    assert worker.run(["test", "-e", "/opt/slurm/etc/slurm.conf"], timeout_s=10).returncode == 1
    assert f"--conf-server {head.spec.address}:6817" in ok(
        worker, "sh", "-c", "tr '\\0' ' ' < /proc/$(pgrep -x slurmd)/cmdline"
    )
    assert worker.read_file("/var/spool/slurmd/conf-cache/slurm.conf").decode().splitlines() == conf(head)


@pytest.mark.documented("HP-72")
def test_controller_and_login_run_no_slurmd_and_are_no_nodes_of_slurm(lab: HyperPodLab, head: Node):
    door = lab.node("lab", "door")
    for node in (head, door):
        assert node.run(["pgrep", "-x", "slurmd"], timeout_s=10).returncode == 1
        assert f"NodeName={node.spec.hostname} " not in "\n".join(conf(head))
    assert ok(door, "srun", "-N1", "hostname", user="ubuntu", timeout_s=30).startswith("ip-10-1-0-")


@pytest.mark.documented("HP-76")
def test_every_node_has_the_same_munge_key_which_nobody_else_reads(lab: HyperPodLab):
    nodes = [lab.fleet.node(one) for one in lab.instances("lab")]
    keys = {node.read_file("/etc/munge/munge.key") for node in nodes}
    assert (len(nodes), len(keys)) == (5, 1)
    assert {ok(node, "stat", "-c", "%U %a", "/etc/munge/munge.key") for node in nodes} == {"munge 400"}


@pytest.mark.documented("HP-82", "HP-83")
def test_logs_are_rotated_and_state_is_on_the_controller(head: Node):
    rotation = head.read_file("/etc/logrotate.d/sagemaker-hyperpod-slurm").decode()
    assert "/var/log/slurm/*.log" in rotation
    assert "rotate 2" in rotation
    assert "copytruncate" in rotation
    assert {"slurmctld.log", "slurmdbd.log"} <= set(ok(head, "ls", "/var/log/slurm").split())
    assert "StateSaveLocation       = /var/spool/slurmctld" in ok(head, "scontrol", "show", "config")
    assert ok(head, "stat", "-c", "%U", "/var/spool/slurmctld") == "slurm"
    ok(head, "test", "-e", "/var/spool/slurmctld/clustername")


# --- accounting


@pytest.mark.documented("HP-77", "HP-78")
def test_accounting_is_on_the_controller_and_knows_a_finished_job(head: Node, worker: Node):
    assert ok(head, "stat", "-c", "%U %a", "/opt/slurm/etc/slurmdbd.conf") == "slurm 600"
    job = ok(head, "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 3", user="ubuntu")
    query = ("sacct", "-X", "-n", "-P", "-j", job, "-o", "state,exitcode,uid,jobname")
    # slurmctld tells who a job belongs to every five seconds, which may be after its end.
    assert eventually(lambda: ok(worker, *query) == "FAILED|3:0|1000|wrap")
    tables = ok(head, "mysql", "-u", "root", "-Ne", "show tables", "slurm_acct_db").split()
    assert {"user_table", "lab_job_table"} <= set(tables)


# --- changes


@pytest.mark.documented("HP-75", "HP-38", "HP-39")
def test_a_new_node_gets_its_line_after_its_script_and_the_others_run_none(lab: HyperPodLab, head: Node):
    before = lab.instances("lab", "workers")
    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=groups(lab, workers=3))
    assert lab.settled("lab").get("FailureMessage") is None
    (new,) = lab.instances("lab", "workers").keys() - before.keys()
    node = lab.fleet.node(new)
    assert node.read_file("/root/seen") == b""
    assert f"NodeName={node.spec.hostname} " in "\n".join(conf(head))
    old = lab.fleet.node(next(iter(before)))
    assert old.read_file("/root/seen").startswith(b"State=")
    assert (old.read_file("/root/runs"), node.read_file("/root/runs")) == (b"run\n", b"run\n")


@pytest.mark.documented("HP-65", "HP-21")
def test_lines_of_others_survive_a_change_and_the_owned_ones_are_hyperpods(lab: HyperPodLab, head: Node):
    text = head.read_file("/opt/slurm/etc/slurm.conf").decode().replace("KillWait=30\n", "KillWait=3\n")
    partition = "PartitionName=mine Nodes=ALL State=UP\n"
    head.write_file("/opt/slurm/etc/slurm.conf", (text + "MaxJobCount=7777\n" + partition).encode())
    workers = 2 if len(lab.instances("lab", "workers")) == 3 else 3
    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=groups(lab, workers=workers))
    assert lab.settled("lab").get("FailureMessage") is None
    lines = conf(head)
    assert {"KillWait=3", "MaxJobCount=7777"} <= set(lines)
    assert "PartitionName=mine Nodes=ALL State=UP" not in lines
    assert len([line for line in lines if line.startswith("NodeName=")]) == workers + 1
    assert "MaxJobCount             = 7777" in ok(head, "scontrol", "show", "config")
    told = json.loads(head.read_file("/opt/ml/config/resource_config.json"))["InstanceGroups"]
    listed = next(one["Instances"] for one in told if one["Name"] == "workers")
    assert {one["InstanceId"] for one in listed} == set(lab.instances("lab", "workers"))


@pytest.mark.documented("HP-74", "HP-80")
def test_a_custom_controller_gets_its_slurm_conf_and_starts_slurmctld_itself(lab: HyperPodLab):
    custom = [
        lab.group("head", lifecycle={"SourceS3Uri": uri("head"), "OnCreate": "run.sh"}, NodeType="Controller"),
        lab.group(
            "workers",
            lifecycle={"SourceS3Uri": uri("worker"), "OnCreate": "run.sh"},
            NodeType="Compute",
            PartitionNames=["dev"],
        ),
    ]
    try:
        described = lab.create("own", custom)
        head = lab.node("own", "head")
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        assert head.read_file("/root/units").decode().split() == ["inactive"] * 3
        assert head.read_file("/root/accounting.conf").startswith(b"# ")
        assert ok(head, "sinfo", "-h", "-o", "%P %D") == "dev* 1"
        assert ok(head, "srun", "hostname") == lab.node("own", "workers").spec.hostname
    finally:
        lab.delete("own")
