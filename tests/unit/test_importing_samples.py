"""The files that AWS's samples make a cluster of, as an environment file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.config import load
from holdfast.importing import from_samples, render

CASES = Path(__file__).parents[1] / "cases" / "import"
CONFIG: dict[str, Any] = json.loads((CASES / "cluster-config.json").read_text())
PROVISIONING: dict[str, Any] = json.loads((CASES / "provisioning_parameters.json").read_text())


def test_both_files_become_one_environment() -> None:
    imported = from_samples(CONFIG, PROVISIONING)

    assert imported.document == {
        "name": "ml-cluster",
        "account": "444455556666",
        "region": "us-east-2",
        "network": {"cidr": "10.1.0.0/16", "availability_zone": "us-east-2a"},
        "cluster": {
            "node_recovery": "Automatic",
            "tags": {"team": "research"},
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
        "storage": {"on_delete": "Retain", "lustre": {"capacity_gib": 1200, "throughput_mbps_per_tib": 125}},
        "lifecycle": {"mode": "custom"},
    }


def test_what_has_to_be_decided_is_listed() -> None:
    decisions = [note for note in from_samples(CONFIG, PROVISIONING).notes if note.decide]

    assert [str(note) for note in decisions] == [
        "network: DECIDE: the configuration names subnets subnet-0123456789abcdef0 and groups sg-0123456789abcdef0; "
        "a new one is made, or name the one to use in network.existing",
        "cluster.instance_groups.worker-group-2: DECIDE: what Slurm makes of the group is not known; "
        "say slurm.node_type",
        "storage.lustre: DECIDE: size and throughput of fs-0123456789abcdef0 are not known; say them",
        "lifecycle: DECIDE: on_create.sh of s3://sagemaker-lifecycle-abc/src is not read: put what it does beside "
        "creating users into lifecycle.scripts",
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
    ],
)
def test_nothing_of_them_is_dropped_silently(words: str) -> None:
    text = render(from_samples(CONFIG, PROVISIONING), origin="the test")

    assert words in " ".join(line.strip(" #") for line in text.splitlines())


def test_the_file_can_be_read_and_says_its_comments_where_they_belong(tmp_path: Path) -> None:
    imported = from_samples(CONFIG, PROVISIONING)
    text = render(imported, origin="cluster-config.json")
    lines = text.splitlines()
    (tmp_path / "imported.yaml").write_text(text)

    assert yaml.safe_load(text) == imported.document
    assert load(tmp_path / "imported.yaml").cluster_name == "ml-cluster"
    assert lines[0] == "# yaml-language-server: $schema=../docs/environment.schema.json"
    assert lines[2] == "# Imported from cluster-config.json. Comments say what could not be carried over."
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
        "cluster.instance_groups.a",
    }
    assert imported.document["name"] == "c-2nd-cluster"
    assert imported.document["cluster"]["name"] == "2nd Cluster"
