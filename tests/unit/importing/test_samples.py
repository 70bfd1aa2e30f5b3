"""The files that AWS's samples make a cluster of, as an environment file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.config import load
from holdfast.importing import Draft, from_samples, render

CASES = Path(__file__).parents[2] / "cases" / "import"
CONFIG: dict[str, Any] = json.loads((CASES / "cluster-config.json").read_text())
PROVISIONING: dict[str, Any] = json.loads((CASES / "provisioning_parameters.json").read_text())


ROLE = "arn:aws:iam::444455556666:role/sagemaker-role"


def test_both_files_become_one_environment() -> None:
    imported = from_samples(CONFIG, PROVISIONING)

    assert imported.document == {
        "name": "ml-cluster",
        "account": "444455556666",
        "region": "us-east-2",
        "network": {"existing": {"subnet_id": "subnet-0123456789abcdef0", "security_group_id": "sg-0123456789abcdef0"}},
        "cluster": {
            "node_recovery": "Automatic",
            "tags": {"team": "research"},
            "execution_role_arn": ROLE,
            "instance_groups": [
                {
                    "name": "controller-machine",
                    "instance_type": "ml.m5.12xlarge",
                    "instance_count": 1,
                    "volume_gib": 500,
                    "slurm": {"node_type": "Controller"},
                },
                {
                    "name": "login-group",
                    "instance_type": "ml.m5.4xlarge",
                    "instance_count": 1,
                    "threads_per_core": 2,
                    "slurm": {"node_type": "Login"},
                },
                {
                    "name": "worker-group-1",
                    "instance_type": "ml.p5.48xlarge",
                    "instance_count": 4,
                    "training_plan_arn": "arn:aws:sagemaker:us-east-2:444455556666:training-plan/p5",
                    "volume_gib": 500,
                    "deep_health_checks": ["InstanceStress"],
                    "slurm": {"node_type": "Compute", "partition": "ml-p5-48xlarge"},
                },
                {"name": "worker-group-2", "instance_type": "ml.g5.48xlarge", "instance_count": 2},
            ],
        },
        "slurm": {"config_strategy": "Merge"},
        "storage": {
            "on_delete": "Retain",
            "lustre": {"existing": {"file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdefgh"}},
        },
        "lifecycle": {"existing": {"source_s3_uri": "s3://sagemaker-lifecycle-abc/src", "on_create": "on_create.sh"}},
    }


def test_both_files_make_everything_anew_where_it_is_asked_for() -> None:
    document = from_samples(CONFIG, PROVISIONING, create={"network", "roles", "scripts", "storage"}).document

    assert document["network"] == {"cidr": "10.1.0.0/16", "availability_zone": "us-east-2a"}
    assert document["storage"]["lustre"] == {"capacity_gib": 1200, "throughput_mbps_per_tib": 125}
    assert document["lifecycle"] == {"mode": "custom"}
    assert "execution_role_arn" not in document["cluster"]


def test_what_has_to_be_decided_is_listed() -> None:
    decisions = [note for note in from_samples(CONFIG, PROVISIONING).notes if note.decide]

    assert [(note.path, note.text.split(":")[0][:60]) for note in decisions] == [
        ("slurm", "slurm_configurations of provisioning_parameters.json has no "),
        ("cluster.instance_groups.worker-group-2", "provisioning_parameters.json does not name this group"),
        ("cluster.instance_groups.worker-group-1", "a second extra volume of 200 GiB is left out"),
        ("cluster.instance_groups.worker-group-2", "SomethingNew is left out, the file has no setting for it"),
        ("cluster.instance_groups.worker-group-2", "what Slurm makes of the group is not known; say slurm.node_t"),
        ("lifecycle.existing.source_s3_uri", "HyperPod refuses a cluster whose groups say slurm here while"),
    ]


@pytest.mark.parametrize(
    "words",
    [
        "slurm_configurations of provisioning_parameters.json has no equivalent",
        "provisioning_parameters.json names group worker-group-3, which the cluster has not",
        "was ml.p5.48xlarge, which the API does not accept as a partition",
        "a second extra volume of 200 GiB is left out",
        "its scripts start Slurm, and so do Holdfast's in mode custom; take it out to have HyperPod start it",
        "SomethingNew is left out, the file has no setting for it",
        "on_create.sh of s3://sagemaker-lifecycle-abc/src is not read",
    ],
)
def test_nothing_of_them_is_dropped_silently(words: str) -> None:
    text = render(from_samples(CONFIG, PROVISIONING, create={"scripts"}), origin="the test")

    assert words in " ".join(line.strip(" #") for line in text.splitlines())


def test_the_file_can_be_read_and_says_its_comments_where_they_belong(tmp_path: Path) -> None:
    imported = from_samples(CONFIG, PROVISIONING)
    text = render(imported, origin="cluster-config.json")
    lines = text.splitlines()
    (tmp_path / "imported.yaml").write_text(text)

    assert yaml.safe_load(text) == imported.document
    assert load(tmp_path / "imported.yaml").cluster_name == "ml-cluster"
    assert lines[0] == "# Imported from cluster-config.json. Comments say what could not be carried over."
    above = lines[lines.index("        partition: ml-p5-48xlarge") - 1]
    assert above.startswith("        # was ml.p5.48xlarge")
    assert max(map(len, lines)) <= 120


def test_a_check_that_cloudformation_refuses_is_left_out_and_said() -> None:
    group = {
        **CONFIG["InstanceGroups"][-1],
        "OnStartDeepHealthChecks": ["InstanceStress", "MultiNodeTrainingValidation"],
    }
    imported = from_samples({**CONFIG, "InstanceGroups": [*CONFIG["InstanceGroups"][:-1], group]}, PROVISIONING)
    text = render(imported, origin="the test")

    assert imported.document["cluster"]["instance_groups"][-1]["deep_health_checks"] == ["InstanceStress"]
    assert "MultiNodeTrainingValidation is left out" in " ".join(line.strip(" #") for line in text.splitlines())


def test_without_roles_and_file_systems_account_and_region_are_decided_by_a_person() -> None:
    bare = {"ClusterName": "2nd Cluster", "InstanceGroups": [{"InstanceGroupName": "a", "InstanceCount": 1}]}

    imported = from_samples(bare)

    assert {note.path for note in imported.notes if note.decide} == {
        "account",
        "region",
        "network",
        "cluster.name",  # with a space
        "cluster.instance_groups.a",
    }
    assert imported.document["name"] == "c-2nd-cluster"
    assert imported.document["cluster"]["name"] == "2nd Cluster"


ARNS: dict[str, Any] = {
    "Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:eu-west-1:111122223333:cluster/x"}},
    "TrainingPlanArn": "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/x",
    "VolumeKmsKeyId": "arn:aws:kms:eu-west-1:111122223333:key/x",
    "SecretArn": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:x",
    "DnsName": "fs-0123456789abcdef0.fsx.eu-west-1.amazonaws.com",
    "Endpoint": "slurm.cluster-abc.eu-west-1.rds.amazonaws.com",
    "TargetAvailabilityZoneId": "euw1-az2",
    "SourceS3Uri": "s3://sagemaker-eu-west-1-111122223333/src",
}


def sample(**more: Any) -> dict[str, Any]:
    group = {"InstanceGroupName": "a", "InstanceCount": 1, "ExecutionRole": "arn:aws:iam::111122223333:role/x"}
    return {"ClusterName": "a", "InstanceGroups": [group], **more}


def questions(imported: Draft, path: str) -> list[str]:
    return [note.text for note in imported.notes if note.decide and note.path == path]


@pytest.mark.parametrize("key", ARNS)
def test_the_region_comes_from_every_name_that_says_one(key: str) -> None:
    imported = from_samples(sample(Something={key: ARNS[key]}))

    assert imported.document["region"] == "eu-west-1"
    assert questions(imported, "region") == []


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("use1-az4", "us-east-1"),
        ("apne1-az1", "ap-northeast-1"),
        ("aps1-az1", "ap-south-1"),
        ("usgw1-az1", "us-gov-west-1"),
        ("euc2-az3", "eu-central-2"),
    ],
)
def test_the_id_of_a_zone_says_its_region(zone: str, region: str) -> None:
    assert from_samples(sample(Zone=zone)).document["region"] == region


def test_two_regions_are_a_question() -> None:
    imported = from_samples(
        sample(Endpoint=ARNS["Endpoint"], Plan=ARNS["TrainingPlanArn"].replace("eu-west-1", "us-east-1"))
    )

    assert questions(imported, "region") == ["not one region: Endpoint is in eu-west-1, Plan is in us-east-1; set it"]


def test_another_region_than_was_asked_for_is_a_question() -> None:
    imported = from_samples(sample(Endpoint=ARNS["Endpoint"]), region="us-east-1")

    assert imported.document["region"] == "us-east-1"
    assert questions(imported, "region") == ["us-east-1 was requested, but Endpoint is in eu-west-1"]


def test_without_any_name_the_region_is_that_of_the_aws_settings() -> None:
    imported = from_samples(sample(), likely_region="eu-north-1")

    assert imported.document["region"] == "eu-north-1"
    assert questions(imported, "region") == []


def test_execution_roles_of_two_accounts_are_a_question() -> None:
    first = sample()["InstanceGroups"][0]
    other = {**first, "InstanceGroupName": "b", "ExecutionRole": "arn:aws:iam::999988887777:role/x"}

    imported = from_samples(sample(InstanceGroups=[first, other]))

    assert len(questions(imported, "account")) == 1


def test_a_key_of_another_account_is_no_question() -> None:
    imported = from_samples(sample(VolumeKmsKeyId=ARNS["VolumeKmsKeyId"].replace("1111", "9999")))

    assert imported.document["account"] == "111122223333"
    assert questions(imported, "account") == []


def test_a_file_system_in_another_region_keeps_its_name() -> None:
    config = {"DnsName": ARNS["DnsName"], "MountName": "abcdefgh"}
    group = {**sample()["InstanceGroups"][0], "InstanceStorageConfigs": [{"FsxLustreConfig": config}]}

    existing = from_samples(sample(InstanceGroups=[group]), region="us-east-1").document["storage"]["lustre"][
        "existing"
    ]

    assert existing["dns_name"] == ARNS["DnsName"]


def test_the_role_of_the_cluster_and_its_orchestrator_are_kept() -> None:
    role = "arn:aws:iam::111122223333:role/HyperPodClusterRole"
    document = from_samples(sample(Orchestrator=ARNS["Orchestrator"], ClusterRole=role)).document

    assert document["cluster"]["cluster_role_arn"] == role
    assert document["eks"] == {"existing": {"cluster": "arn:aws:eks:eu-west-1:111122223333:cluster/x"}}


def test_a_request_without_a_network_is_a_question() -> None:
    [question] = questions(from_samples(sample()), "network")

    assert question.startswith("the configuration names no network")


def test_a_remark_in_a_sample_is_no_question() -> None:
    imported = from_samples(sample(_comment="made by a script"))

    assert questions(imported, "cluster") == []
    assert any("_comment is left out" in note.text for note in imported.notes)
