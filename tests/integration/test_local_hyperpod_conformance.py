"""Nodes of the local HyperPod and their scripts, row by row of docs/concepts/local-cloud.md, in three modes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hyperpod_lab import BUCKET, HyperPodLab, hyperpod_lab, ok
from waiting import eventually

from holdfast.localcloud.nodes import Node

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]

REPORT = """#!/bin/bash
set -u
is() { systemctl is-active "$1"; }
{
    echo "user=$(id -un)"; echo "folder=$PWD"; echo "umask=$(umask)"; echo "home=$HOME"; echo "path=$PATH"
    echo "config=$SAGEMAKER_RESOURCE_CONFIG_PATH"; echo "terminal=$(tty)"; echo "munge=$(is munge)"
    echo "slurmd=$(is slurmd)"; echo "slurmctld=$(is slurmctld)"; echo "fsx=$(findmnt -no TARGET /fsx)"
    echo "docker=$(is docker)"; echo "ssh=$(is ssh)"; echo "containerd=$(is containerd)"
    echo "nvme=$(systemctl show -p ActiveState,ExecMainStatus dlami-nvme | tr '\\n' ' ')"
    echo "ubuntu=$(getent passwd ubuntu | cut -d: -f6)"
    echo "files=$(find . -type f | sort | tr '\\n' ' ')"
} > /root/report
echo "said on standard output"
echo "said on standard error" >&2
echo "written to the log" >> /var/log/provision/provisioning.log
"""
EXTENSION = REPORT + "./utils/helper.sh\n"
CUSTOM = (
    REPORT
    + """set -e
config=$SAGEMAKER_RESOURCE_CONFIG_PATH
head=$(jq -r '.InstanceGroups[] | select(.Name == "head").Instances[0].CustomerIpAddress' "$config")
printf 'SLURMD_OPTIONS="--conf-server %s:6817"\\n' "$head" > /etc/default/slurmd
systemctl enable --now munge slurmd
"""
)
FOLDER = f"/tmp/{BUCKET}/lifecycle/one"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HyperPodLab]:
    """One cluster with every mode: none on the controller and ``plain``, extension on two, custom on ``own``."""
    with hyperpod_lab(tmp_path_factory.mktemp("hyperpod")) as made:
        uri = made.scripts("lifecycle/one", on_init_sh=EXTENSION, utils__helper_sh="#!/bin/sh\ntouch /root/helped\n")
        made.scripts("lifecycle/two", on_create_sh=CUSTOM, provisioning_parameters_txt="mine")
        extension = {"SourceS3Uri": f"{uri}/", "OnInitComplete": "on_init.sh"}
        custom = {"SourceS3Uri": f"s3://{BUCKET}/lifecycle/two", "OnCreate": "on_create.sh"}
        groups = [
            made.group("head", NodeType="Controller"),
            made.group("plain", NodeType="Compute", PartitionNames=["one"]),
            made.group("ready", lifecycle=extension, NodeType="Compute", PartitionNames=["two"]),
            made.group("own", lifecycle=custom, NodeType="Compute", PartitionNames=["two"]),
            {
                **made.group("homes", NodeType="Compute", PartitionNames=["one"]),
                "InstanceStorageConfigs": [made.lustre, made.open_zfs],
            },
            made.group("none", count=0, NodeType="Compute", PartitionNames=["one"]),
            made.group("door", lifecycle=extension, NodeType="Login"),
        ]
        described = made.create("lab", groups)
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        yield made


@pytest.fixture
def plain(lab: HyperPodLab) -> Node:
    return lab.node("lab", "plain")


@pytest.fixture
def ready(lab: HyperPodLab) -> Node:
    return lab.node("lab", "ready")


@pytest.fixture
def own(lab: HyperPodLab) -> Node:
    return lab.node("lab", "own")


def report(node: Node) -> dict[str, str]:
    """What the node's script wrote down when it ran."""
    lines = node.read_file("/root/report").decode().splitlines()
    return {key: value.strip() for key, _, value in (line.partition("=") for line in lines)}


def config(node: Node, name: str) -> Any:
    return json.loads(node.read_file(f"/opt/ml/config/{name}"))


# --- modes


@pytest.mark.documented("HP-01", "HP-02", "HP-08")
def test_groups_of_all_modes_are_in_one_cluster_and_slurm_starts_a_job_on_each(lab: HyperPodLab):
    told = {one["InstanceGroupName"]: one.get("LifeCycleConfig") for one in lab.described("lab")["InstanceGroups"]}
    assert told["plain"] is None
    assert set(told["ready"]) == {"SourceS3Uri", "OnInitComplete"}
    assert set(told["own"]) == {"SourceS3Uri", "OnCreate"}
    assert set(lab.instances("lab").values()) == {"Running"}
    assert len(ok(lab.node("lab", "head"), "srun", "--immediate=5", "-N4", "hostname").split()) == 4


@pytest.mark.documented("HP-03", "HP-04")
def test_without_scripts_slurm_and_what_it_needs_are_started(lab: HyperPodLab, plain: Node):
    head = lab.node("lab", "head")
    assert ok(plain, "systemctl", "is-active", "munge", "slurmd").split() == ["active", "active"]
    assert ok(head, "systemctl", "is-active", "munge", "slurmctld", "slurmdbd", "mariadb").split() == ["active"] * 4
    assert plain.run(["ls", f"/tmp/{BUCKET}", "/opt/ml/config/life_cycle_config.json"], timeout_s=10).stdout == ""
    assert lab.lifecycle_log("lab", "plain", plain.spec.instance_id) == []


@pytest.mark.documented("HP-05", "HP-09", "HP-85")
def test_an_extension_finds_slurm_started_the_file_system_and_the_home_of_ubuntu(ready: Node):
    seen = report(ready)
    assert (seen["munge"], seen["slurmd"], seen["fsx"], seen["ubuntu"]) == ("active", "active", "/fsx", "/fsx/ubuntu")


@pytest.mark.documented("HP-06", "HP-11", "HP-88")
def test_a_custom_script_finds_nothing_started_nothing_mounted_and_a_local_home(own: Node):
    seen = report(own)
    assert (seen["slurmd"], seen["slurmctld"]) == ("inactive", "inactive")
    assert (seen["fsx"], seen["ubuntu"]) == ("", "/home/ubuntu")
    assert own.run(["ls", "/home/ubuntu/.ssh"], timeout_s=10).returncode == 2


@pytest.mark.documented("HP-12")
def test_a_custom_node_mounts_the_file_system_by_its_names(lab: HyperPodLab, plain: Node, own: Node):
    lustre = lab.lustre["FsxLustreConfig"]
    ok(own, "mkdir", "-p", "/fsx")
    ok(own, "mount", "-t", "lustre", "-o", "noatime,flock", f"{lustre['DnsName']}@tcp:/{lustre['MountName']}", "/fsx")
    ok(plain, "touch", "/fsx/seen-by-all")
    assert "seen-by-all" in ok(own, "ls", "/fsx").split()
    ok(own, "umount", "/fsx")


@pytest.mark.documented("HP-10")
def test_openzfs_is_mounted_at_home_and_has_the_home_of_ubuntu(lab: HyperPodLab, plain: Node, own: Node):
    homes = lab.node("lab", "homes")
    assert ok(homes, "sh", "-c", "findmnt -no TARGET /home; findmnt -no TARGET /fsx").split() == ["/home", "/fsx"]
    assert ok(homes, "sh", "-c", "cd; pwd; touch mine; ls .ssh/authorized_keys", user="ubuntu").startswith(
        "/home/ubuntu"
    )
    source = f"{lab.open_zfs['FsxOpenZfsConfig']['DnsName']}:/fsx"
    ok(own, "mount", "-t", "nfs", "-o", "nfsvers=4.1", source, "/mnt")
    assert ok(own, "ls", "/mnt/ubuntu") == "mine"
    ok(own, "umount", "/mnt")
    assert plain.run(["mountpoint", "-q", "/home"], timeout_s=10).returncode == 32


# --- files


@pytest.mark.documented("HP-16", "HP-17", "HP-18")
def test_resource_config_names_the_cluster_its_groups_and_instances(lab: HyperPodLab, ready: Node):
    told = config(ready, "resource_config.json")
    assert told["ClusterConfig"] == {"ClusterArn": lab.described("lab")["ClusterArn"], "ClusterName": "lab"}
    groups = {one["Name"]: one for one in told["InstanceGroups"]}
    assert list(groups) == ["head", "plain", "ready", "own", "homes", "none", "door"]
    (instance,) = groups["ready"]["Instances"]
    assert groups["ready"]["InstanceType"] == "ml.c5.xlarge"
    assert set(instance) == {"InstanceName", "AgentIpAddress", "CustomerIpAddress", "InstanceId"}
    assert (instance["InstanceName"], instance["InstanceId"]) == ("ready-1", ready.spec.instance_id)
    assert instance["CustomerIpAddress"] in ok(ready, "ip", "-4", "-o", "address")
    assert report(ready)["config"] == "/opt/ml/config/resource_config.json"


@pytest.mark.documented("HP-19")
def test_a_group_without_instances_has_null(ready: Node):
    groups = {one["Name"]: one["Instances"] for one in config(ready, "resource_config.json")["InstanceGroups"]}
    assert groups["none"] is None


@pytest.mark.documented("HP-22", "HP-23")
def test_provisioning_parameters_are_made_of_slurm_config_without_file_systems(plain: Node, ready: Node, own: Node):
    told = config(ready, "provisioning_parameters.json")
    assert (told["workload_manager"], told["controller_group"], told["login_group"]) == ("slurm", "head", "door")
    assert [one["instance_group_name"] for one in told["worker_groups"]] == ["plain", "ready", "own", "homes", "none"]
    assert not [key for key in told if key.startswith("fsx")]
    assert config(plain, "provisioning_parameters.json") == config(own, "provisioning_parameters.json") == told


@pytest.mark.documented("HP-24")
def test_provisioning_parameters_are_in_the_working_folder_too(ready: Node):
    assert "./provisioning_parameters.json" in report(ready)["files"].split()
    assert json.loads(ready.read_file(f"{FOLDER}/provisioning_parameters.json")) == config(
        ready, "provisioning_parameters.json"
    )


# --- the script's run


@pytest.mark.documented("HP-26", "HP-27", "HP-28")
def test_a_script_runs_as_root_in_the_folder_of_its_bucket_with_all_of_its_prefix(ready: Node):
    seen = report(ready)
    assert (seen["user"], seen["folder"]) == ("root", FOLDER)
    assert {"./on_init.sh", "./utils/helper.sh"} <= set(seen["files"].split())
    assert ok(ready, "ls", "/root/helped")


@pytest.mark.documented("HP-33", "HP-34")
def test_only_provisioning_log_reaches_cloudwatch(lab: HyperPodLab, ready: Node, own: Node):
    for group, node in (("ready", ready), ("own", own)):
        name = node.spec.instance_id
        eventually(lambda group=group, name=name: "succeeded" in str(lab.lifecycle_log("lab", group, name)))
        lines = lab.lifecycle_log("lab", group, name)
        assert "written to the log" in lines
        assert not [line for line in lines if "said on standard" in line]
    instances = {(group, one) for group in ("ready", "own", "door") for one in lab.instances("lab", group)}
    expected = {f"LifecycleConfig/{group}/{one}" for group, one in instances}

    def names() -> set[str]:
        streams = lab.logs.describe_log_streams(logGroupName=lab.log_group("lab"))["logStreams"]
        return {stream["logStreamName"] for stream in streams}

    eventually(lambda: names() >= expected)
    assert names() == expected


# --- instance metadata


def imds(node: Node, path: str, *headers: str, method: str = "GET") -> tuple[str, str]:
    """Status and body, by the machine's own curl."""
    options = [word for header in headers for word in ("-H", header)]
    url = f"http://169.254.169.254/latest/{path}"
    told = ok(node, "curl", "-sS", "--max-time", "5", "-X", method, "-w", "\n%{http_code}", *options, url)
    body, _, status = told.rpartition("\n")
    return status, body.strip()


@pytest.fixture
def token(ready: Node) -> str:
    status, token = imds(ready, "api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", method="PUT")
    assert status == "200"
    return f"X-aws-ec2-metadata-token: {token}"


@pytest.mark.documented("HP-91")
def test_instance_metadata_wants_a_token_of_this_instance(plain: Node, ready: Node, token: str):
    assert imds(ready, "meta-data/instance-id", token)[0] == "200"
    assert imds(ready, "meta-data/instance-id")[0] == "401"
    assert imds(plain, "meta-data/instance-id", token)[0] == "401"
    assert imds(ready, "api/token", method="PUT")[0] == "400"
    assert imds(ready, "api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21601", method="PUT")[0] == "400"


@pytest.mark.documented("HP-92")
def test_instance_metadata_tells_what_scripts_of_aws_ask_for(ready: Node, token: str):
    answers = {
        path: imds(ready, f"meta-data/{path}", token)[1]
        for path in ("instance-id", "instance-type", "local-ipv4", "placement/availability-zone", "placement/region")
    }
    assert answers == {
        "instance-id": ready.spec.instance_id,
        "instance-type": "c5.xlarge",
        "local-ipv4": ready.spec.address,
        "placement/availability-zone": "us-west-2a",
        "placement/region": "us-west-2",
    }


@pytest.mark.documented("HP-92")
def test_the_credentials_of_an_instance_are_of_its_execution_role(lab: HyperPodLab, ready: Node, token: str):
    name = lab.role.rpartition("/")[2]
    assert imds(ready, "meta-data/iam/security-credentials/", token) == ("200", name)

    told = json.loads(imds(ready, f"meta-data/iam/security-credentials/{name}", token)[1])
    assert (told["Code"], told["Type"]) == ("Success", "AWS-HMAC")
    arn = ok(ready, "aws", "sts", "get-caller-identity", "--query", "Arn", "--output", "text", user="nobody")
    assert arn == f"arn:aws:sts::123456789012:assumed-role/{name}/SageMaker"


# --- users and keys


@pytest.mark.documented("HP-85", "HP-86", "HP-87")
def test_ubuntu_reaches_another_node_without_a_password(lab: HyperPodLab, plain: Node, ready: Node):
    options = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
    for source, target in ((plain, ready), (lab.node("lab", "head"), plain)):
        told = ok(source, "ssh", *options, target.spec.hostname, "hostname; pwd", user="ubuntu")
        assert told.splitlines()[-2:] == [target.spec.hostname, "/fsx/ubuntu"]


def test_a_job_does_not_become_root_of_its_node_and_reaches_no_node_where_it_would(lab: HyperPodLab, plain: Node):
    """An operator does, with ``holdfast ssh``; what a job of ubuntu could do as root, it could do to the machine."""
    become = "grep -E 'NoNewPrivs|CapEff' /proc/self/status; sudo -n id -u || echo refused"
    options = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    ssh = f'ssh {options} {plain.spec.hostname} "{become}"'
    head = lab.node("lab", "head")

    for command in (become, ssh):
        told = ok(head, "srun", "--nodes=1", "/bin/sh", "-c", command, user="ubuntu").split()
        assert told == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "refused"]
    assert ok(plain, "sudo", "-n", "id", "-u", user="ubuntu") == "0"


# --- the system


@pytest.mark.documented("HP-93")
def test_the_system_says_that_it_is_ubuntu(ready: Node):
    assert ok(ready, "sh", "-c", '. /etc/os-release; echo "$ID $VERSION_ID"') == "ubuntu 22.04"


@pytest.mark.documented("HP-07")
def test_what_the_image_has_enabled_runs_before_a_script_does_in_every_mode(ready: Node, own: Node):
    for node in (ready, own):
        seen = report(node)
        assert [seen[unit] for unit in ("munge", "ssh", "docker", "containerd")] == ["active"] * 4
        assert seen["nvme"] == "ActiveState=active ExecMainStatus=0"
        assert ok(node, "sh", "-c", "munge -n | unmunge | grep ^STATUS").split()[1] == "Success"


@pytest.mark.documented("HP-96")
def test_places_of_the_disks_are_there(ready: Node):
    ok(ready, "test", "-d", "/opt/sagemaker")
    ok(ready, "test", "-d", "/opt/dlami/nvme")
