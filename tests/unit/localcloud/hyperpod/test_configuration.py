"""What HyperPod writes for a node beside resource_config.json, and what it leaves alone in slurm.conf."""

import json

import pytest

from holdfast.localcloud.hyperpod.lifecycle import instance_metadata, life_cycle_config, provisioning_parameters
from holdfast.localcloud.hyperpod.model import Cluster, Group, Instance
from holdfast.localcloud.hyperpod.slurm import MachineSize, accounting_conf, merged, owned_lines, slurm_conf

MACHINE = MachineSize(cpus=2, memory_mib=2000)


def cluster(*, login: bool = True, workers: int = 1) -> Cluster:
    groups = [
        Group(name="head", instance_type="ml.c5.xlarge", slurm_role="Controller"),
        Group(name="one", instance_type="ml.p5.48xlarge", slurm_role="Compute", partitions=("train",)),
        Group(name="two", instance_type="ml.p5.48xlarge", slurm_role="Compute"),
    ]
    if login:
        groups.append(Group(name="door", instance_type="ml.c5.xlarge", slurm_role="Login"))
    instances = [Instance(instance_id="i-head", group="head", address="10.1.0.10")]
    instances += [Instance(instance_id=f"i-{n}", group="one", address=f"10.1.0.{11 + n}") for n in range(workers)]
    arn = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abc"
    return Cluster(arn=arn, name="dev", status="Creating", groups=tuple(groups), instances=tuple(instances))


def test_provisioning_parameters_name_the_groups_by_their_roles() -> None:
    assert json.loads(provisioning_parameters(cluster())) == {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": "head",
        "login_group": "door",
        "worker_groups": [
            {"instance_group_name": "one", "partition_name": "train"},
            {"instance_group_name": "two", "partition_name": "dev"},
        ],
    }


def test_a_missing_login_group_is_null() -> None:
    assert json.loads(provisioning_parameters(cluster(login=False)))["login_group"] is None


@pytest.mark.parametrize(("hook", "field"), [("OnCreate", "on_create"), ("OnInitComplete", "on_init_complete")])
def test_life_cycle_config_names_the_one_script(hook: str, field: str) -> None:
    group = Group(name="one", instance_type="ml.c5.xlarge", lifecycle_uri="s3://sagemaker-x/a", **{field: "run.sh"})
    assert json.loads(life_cycle_config(group)) == {"S3Uri": "s3://sagemaker-x/a", hook: "run.sh"}


def test_instance_metadata_is_of_ec2_and_of_this_instance() -> None:
    made = cluster()
    told = instance_metadata(made, made.instances[1], region="us-west-2", zone="us-west-2b")
    assert told == {
        "instance-id": "i-0",
        "instance-type": "p5.48xlarge",
        "local-hostname": "ip-10-1-0-11",
        "hostname": "ip-10-1-0-11",
        "local-ipv4": "10.1.0.11",
        "placement/region": "us-west-2",
        "placement/availability-zone": "us-west-2b",
    }
    unplaced = instance_metadata(made, made.instances[1], region="us-west-2", zone="")
    assert unplaced["placement/availability-zone"] == "us-west-2a"


# --- slurm.conf


def test_hyperpods_lines_are_five_kinds_and_told_apart_as_slurm_reads_them() -> None:
    others = ["NodeNameX=b", "#NodeName=c", "KillWait=30"]
    assert owned_lines(
        "\n".join(
            [" nodename=a", *others, "PartitionName=p", "SlurmctldHost=h(1)", "ClusterName=d", "TopologyPlugin=t"]
        )
    ) == [" nodename=a", "PartitionName=p", "SlurmctldHost=h(1)", "ClusterName=d", "TopologyPlugin=t"]


def test_an_absent_file_becomes_what_is_wanted() -> None:
    wanted = slurm_conf(cluster(), machine=MACHINE)
    assert merged(present="", desired=wanted) == wanted
    assert merged(present="\n \n", desired=wanted) == wanted


def test_edits_survive_and_hyperpods_lines_are_the_wanted_ones_once() -> None:
    before, after = (slurm_conf(cluster(workers=workers), machine=MACHINE) for workers in (1, 2))
    edited = before.replace("KillWait=30\n", "KillWait=7\n") + "Prolog=/mine.sh\nPartitionName=mine Nodes=ALL"
    result = merged(present=edited, desired=after).splitlines()
    assert {"KillWait=7", "Prolog=/mine.sh", "include accounting.conf"} <= set(result)
    assert "KillWait=30" not in result
    assert owned_lines("\n".join(result)) == owned_lines(after)
    again = merged(present="\n".join(result), desired=after)
    assert again.splitlines() == result


def test_a_last_line_without_an_end_does_not_run_into_the_next() -> None:
    assert merged(present="KillWait=9", desired="ClusterName=a\n") == "KillWait=9\nClusterName=a\n"


def test_accounting_conf_leads_to_the_database_daemon() -> None:
    lines = accounting_conf(host="10.1.0.10").splitlines()
    assert "AccountingStorageType=accounting_storage/slurmdbd" in lines
    assert "AccountingStorageHost=10.1.0.10" in lines
    assert "AccountingStoragePort=6819" in lines
    assert "AccountingStorageTRES=gres/gpu" in lines


@pytest.mark.parametrize(
    ("version", "parameters"),
    [
        ((22, 5), "enable_configless"),
        ((25, 5), "enable_configless"),
        ((25, 11), "enable_configless,enable_expedited_requeue"),
        ((26, 5), "enable_configless,enable_expedited_requeue"),
    ],
)
def test_expedited_requeue_is_allowed_where_slurm_has_it(version: tuple[int, int], parameters: str) -> None:
    conf = slurm_conf(cluster(), machine=MachineSize(cpus=2, memory_mib=2000, slurm=version))
    assert f"SlurmctldParameters={parameters}\n" in conf


def test_a_step_is_unkillable_after_five_message_timeouts_at_least() -> None:
    settings = dict(line.split("=", 1) for line in slurm_conf(cluster(), machine=MACHINE).splitlines() if "=" in line)
    assert int(settings["UnkillableStepTimeout"]) >= 5 * int(settings["MessageTimeout"])
