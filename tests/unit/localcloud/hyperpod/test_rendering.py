"""What is written onto nodes, and what is read from API answers and from Slurm."""

import json
import subprocess
from dataclasses import replace

import pytest

from holdfast.localcloud.hyperpod.lifecycle import hosts, job_variables, resource_config
from holdfast.localcloud.hyperpod.model import Cluster, Group, Instance, parse_association, parse_cluster
from holdfast.localcloud.hyperpod.slurm import MachineSize, gres_conf, mark_of, node_names, slurm_conf
from holdfast_common import slurm_answers

MACHINE = MachineSize(cpus=2, memory_mib=2000)
DESCRIBED = {
    "ClusterArn": "arn:aws:sagemaker:us-west-2:123456789012:cluster/abc",
    "ClusterName": "dev",
    "ClusterStatus": "InService",
    "NodeRecovery": "None",
    "VpcConfig": {"Subnets": ["subnet-1"]},
    "InstanceGroups": [
        {"InstanceGroupName": "controller", "InstanceType": "ml.m5.xlarge", "SlurmConfig": {"NodeType": "Controller"}},
        {
            "InstanceGroupName": "workers",
            "InstanceType": "ml.p5.48xlarge",
            "SlurmConfig": {"NodeType": "Compute", "PartitionNames": ["train"]},
            "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-x/lifecycle/abc", "OnCreate": "on_create.sh"},
            "InstanceStorageConfigs": [
                {"EbsVolumeConfig": {"VolumeSizeInGB": 500}},
                {"FsxLustreConfig": {"DnsName": "fs-1.fsx", "MountName": "abcd", "MountPath": "/fsx"}},
            ],
        },
        {"InstanceGroupName": "empty", "InstanceType": "ml.p5.48xlarge", "SlurmConfig": {"NodeType": "Compute"}},
    ],
}


def cluster() -> Cluster:
    nodes = [("i-c", "controller", "10.1.0.10"), ("i-b", "workers", "10.1.0.12"), ("i-a", "workers", "10.1.0.11")]
    return parse_cluster(
        DESCRIBED,
        nodes=[
            ({"InstanceId": name, "InstanceGroupName": group, "InstanceStatus": {"Status": "Running"}}, address)
            for name, group, address in nodes
        ],
    )


def test_a_described_cluster_is_parsed() -> None:
    parsed = cluster()
    workers = parsed.group("workers")
    assert (parsed.cluster_id, parsed.node_recovery, parsed.subnets) == ("abc", "None", ("subnet-1",))
    assert (workers.slurm_role, workers.partitions, workers.on_create) == ("Compute", ("train",), "on_create.sh")
    assert [(mount.dns_name, mount.mount_path) for mount in workers.mounts] == [("fs-1.fsx", "/fsx")]


@pytest.mark.documented("HP-13")
def test_file_systems_without_a_mount_path_are_at_fsx_and_home() -> None:
    storage = [
        {"FsxLustreConfig": {"DnsName": "fs-1.fsx", "MountName": "abcd"}},
        {"FsxOpenZfsConfig": {"DnsName": "fs-2.fsx"}},
        {"EbsVolumeConfig": {"VolumeSizeInGB": 500}},
    ]
    group = {"InstanceGroupName": "workers", "InstanceStorageConfigs": storage}
    parsed = parse_cluster({**DESCRIBED, "InstanceGroups": [group]}, nodes=[])
    assert [(mount.mount_path, mount.mount_name) for mount in parsed.group("workers").mounts] == [
        ("/fsx", "abcd"),
        ("/home", "fsx"),
    ]


def test_slurm_conf_names_the_controller_the_nodes_and_the_partitions() -> None:
    conf = slurm_conf(cluster(), machine=MACHINE)
    lines = conf.splitlines()
    assert "SlurmctldHost=ip-10-1-0-10(10.1.0.10)" in lines
    assert [line.split()[:2] for line in lines if line.startswith("NodeName=")] == [
        ["NodeName=ip-10-1-0-11", "NodeAddr=10.1.0.11"],
        ["NodeName=ip-10-1-0-12", "NodeAddr=10.1.0.12"],
    ]
    assert "GresTypes=gpu" in lines
    both = "Nodes=ip-10-1-0-11,ip-10-1-0-12"
    assert lines[-2] == f"PartitionName=dev {both} Default=YES MaxTime=INFINITE State=UP"
    assert lines[-1] == f"PartitionName=train {both} Default=NO MaxTime=INFINITE State=UP"
    assert node_names(conf) == {"ip-10-1-0-11", "ip-10-1-0-12"}


@pytest.mark.parametrize(
    ("instance_type", "threads", "size"),
    [
        (
            "ml.p5.48xlarge",
            1,
            "CPUs=96 Sockets=2 CoresPerSocket=48 ThreadsPerCore=1 RealMemory=2097152 Gres=gpu:8",
        ),
        (
            "ml.p5.48xlarge",
            2,
            "CPUs=192 Sockets=2 CoresPerSocket=48 ThreadsPerCore=2 RealMemory=2097152 Gres=gpu:8",
        ),
        ("ml.c7g.4xlarge", 1, "CPUs=16 Sockets=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=32768"),
        ("ml.m5.xlarge", 1, "CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=16384"),
        ("ml.unheard.of", 2, "CPUs=2 RealMemory=2000"),
    ],
)
def test_slurm_conf_gives_a_node_what_its_instance_type_has(instance_type: str, threads: int, size: str) -> None:
    of_group = {"instance_type": instance_type, "threads_per_core": threads}
    groups = tuple(replace(one, **of_group) if one.slurm_role == "Compute" else one for one in cluster().groups)
    lines = slurm_conf(replace(cluster(), groups=groups), machine=MACHINE).splitlines()
    assert f"NodeName=ip-10-1-0-11 NodeAddr=10.1.0.11 {size} State=UNKNOWN" in lines


def test_gres_conf_gives_each_gpu_of_the_instance_type_a_device_file_as_slurm_demands() -> None:
    assert gres_conf(cluster()).splitlines() == [
        "NodeName=ip-10-1-0-11 Name=gpu File=/opt/holdfast/devices/gpu[0-7]",
        "NodeName=ip-10-1-0-12 Name=gpu File=/opt/holdfast/devices/gpu[0-7]",
    ]


@pytest.mark.parametrize("instance_type", ["ml.c5.xlarge", "ml.trn1.32xlarge", "ml.unheard.of"])
def test_a_type_without_gpus_has_no_gres(instance_type: str) -> None:
    groups = tuple(replace(one, instance_type=instance_type) for one in cluster().groups)
    without = replace(cluster(), groups=groups)
    assert gres_conf(without) == ""
    assert "Gres=" not in slurm_conf(without, machine=MACHINE)


def test_slurm_conf_leaves_out_instances_that_are_being_deleted() -> None:
    assert node_names(slurm_conf(cluster(), machine=MACHINE, without=["i-b"])) == {"ip-10-1-0-11"}


def test_rejects_a_cluster_without_a_controller() -> None:
    alone = Cluster(arn="arn:x/abc", name="dev", status="InService")
    with pytest.raises(ValueError, match="cluster dev has 0 Slurm controller instances; exactly 1 is allowed"):
        slurm_conf(alone, machine=MACHINE)


def test_resource_config_is_hyperpods() -> None:
    config = json.loads(resource_config(cluster()))
    assert config["ClusterConfig"]["ClusterName"] == "dev"
    workers, empty = config["InstanceGroups"][1:]
    assert workers["Instances"][0] == {
        "InstanceName": "workers-1",
        "AgentIpAddress": "10.1.0.11",
        "CustomerIpAddress": "10.1.0.11",
        "InstanceId": "i-a",
    }
    assert empty["Instances"] is None


def test_hosts_names_every_instance() -> None:
    assert "10.1.0.12 ip-10-1-0-12\n" in hosts(cluster())


def test_addresses_are_ordered_as_numbers() -> None:
    group = Group(name="g", instance_type="ml.p5.48xlarge", slurm_role="Compute")
    instances = tuple(Instance(instance_id=f"i-{n}", group="g", address=f"10.1.0.{n}") for n in (100, 11, 9))
    made = Cluster(arn="a/b", name="c", status="Creating", groups=(group,), instances=instances)
    assert [one.instance_id for one in made.with_role("Compute")] == ["i-9", "i-11", "i-100"]


def test_variables_of_jobs_are_lines_that_a_shell_reads() -> None:
    lines = job_variables({"HOLDFAST_CLUSTER": "dev", "NOTE": "it's two words"})
    command = ["sh", "-c", f'{lines}printf \'%s|%s\' "$HOLDFAST_CLUSTER" "$NOTE"']
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "dev|it's two words"


@pytest.mark.parametrize(
    ("state", "reason", "mark"),
    [
        ("IDLE", "", ""),
        ("IDLE+FAIL", "Action:Replace", "replace"),
        ("IDLE+DRAIN", "Action:Reboot", "reboot"),
        ("DOWN", "Action:Replace", "replace"),
        ("MIXED+FAIL", "Action:Replace", ""),
        ("IDLE+COMPLETING+FAIL", "Action:Replace", ""),
        ("IDLE+FAIL", "Action:Replacement", ""),
        ("DOWN+FAIL+NOT_RESPONDING", "Action:Replace : Not responding", "replace"),
        ("IDLE+FAIL", "Not responding : Action:Replace", ""),
        ("DOWN+NOT_RESPONDING", "Kill task failed : Not responding", ""),
        ("DOWN+NOT_RESPONDING", "Not responding", "unresponsive"),
        ("DOWN*", "Not responding", "unresponsive"),
    ],
)
def test_slurm_states_say_what_is_asked_for(state: str, reason: str, mark: str) -> None:
    line = f"NodeName=n1 Arch=x86_64 OS=Linux #1 SMP State={state} BootTime=2026-11-20T21:39:19 AllocTRES="
    if reason:
        line += f" Reason={reason} [root@2026-11-20T21:39:22]"
    (node,) = slurm_answers.parse_nodes(line)
    assert mark_of(node) == mark


def test_a_node_that_did_not_register_is_not_usable() -> None:
    text = "\n".join(
        f"NodeName={name} State={state} BootTime={boot}"
        for name, state, boot in [
            ("a", "IDLE", "2026-11-20T21:39:19"),
            ("b", "IDLE+DRAIN", "2026-11-20T21:39:19"),
            ("c", "IDLE+NOT_RESPONDING", "None"),
            ("d", "DOWN+DRAIN", "2026-11-20T21:39:19"),
        ]
    )
    nodes = slurm_answers.parse_nodes(text)
    assert [node.name for node in nodes if node.registered] == ["a", "b"]
    assert [node.name for node in nodes if node.usable] == ["a"]


def test_an_association_in_use_is_parsed_and_another_is_not() -> None:
    described = {
        "AssociationId": "dra-1",
        "FileSystemId": "fs-1",
        "Lifecycle": "AVAILABLE",
        "FileSystemPath": "/data",
        "DataRepositoryPath": "s3://bucket/data",
        "S3": {"AutoImportPolicy": {"Events": ["NEW"]}},
    }
    parsed = parse_association(described)
    assert parsed is not None
    assert (parsed.bucket, parsed.prefix, parsed.imports, parsed.exports) == ("bucket", "data/", {"NEW"}, frozenset())
    assert parse_association({**described, "Lifecycle": "DELETING"}) is None
