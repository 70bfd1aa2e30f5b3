"""Every rule has an example that breaks it and nothing else, and the good files beside the examples break none."""

import copy
import json
from pathlib import Path

import pytest

from holdfast.config.reading import read
from holdfast.validation import Deployment, Finding, Image, Lifecycle, Script, all_rules, judge
from holdfast.validation.from_environment import deployment_in
from holdfast.validation.pages import EXAMPLES, Example, example, findings_of

WITHOUT_FILE = {"HF417", "HF806", "HF022"}
"""No file can show these: scripts of the legacy mode, and images of another app. They have tests below."""

TOGETHER = {"HF008": {"HF104"}, "HF340": {"HF326"}}
"""A suppression that is not granted leaves what it was for; an example has no archives."""

LINTED = 40
"""One of so many examples of a hundred codes is also judged by cfn-lint in `make test`, and all in `make e2e`."""

GOOD = ("slurm.yaml", "eks.yaml", "slurm.template.json", "eks.template.json")


@pytest.fixture
def good() -> Deployment:
    return deployment_in(read(EXAMPLES / "slurm.yaml"), folder=EXAMPLES)


def told(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity != "not-checked"]


@pytest.mark.parametrize("base", GOOD)
def test_nothing_is_found_in_the_good_files(base: str, tmp_path: Path) -> None:
    assert told(findings_of(Example(base=base, changes={}), folder=tmp_path)) == []


@pytest.mark.parametrize("base", GOOD[:2])
def test_everything_is_checked_in_the_good_environments_but_the_account(base: str, tmp_path: Path) -> None:
    assert findings_of(Example(base=base, changes={}), folder=tmp_path) == []


@pytest.mark.parametrize("linted", [LINTED, pytest.param(1, marks=pytest.mark.e2e)])
@pytest.mark.parametrize("hundred", sorted({code[:3] for code in all_rules()}))
def test_an_example_breaks_its_rule_and_no_other(hundred: str, linted: int, tmp_path: Path) -> None:
    for number, code in enumerate(code for code in all_rules() if code.startswith(hundred)):
        if (shown := example(code)) is None:
            continue
        (tmp_path / code).mkdir()

        found = told(findings_of(shown, folder=tmp_path / code, linted=number % linted == 0))

        assert {finding.code for finding in found} == {code} | TOGETHER.get(code, set())
        assert all(finding.severity == all_rules()[finding.code].severity for finding in found), code
        assert all(finding.message and finding.fix for finding in found), code


def test_every_rule_that_needs_no_account_has_an_example() -> None:
    missing = {code for code in all_rules() if not code.startswith("HF9") and example(code) is None}

    assert missing == WITHOUT_FILE


def test_every_example_is_that_of_a_rule() -> None:
    assert {path.stem for path in EXAMPLES.glob("HF*.yaml")} <= set(all_rules())


def test_eight_defects_that_synthesise_in_silence_are_all_named(tmp_path: Path) -> None:
    cluster, groups = "Resources.Cluster.Properties", "Resources.Cluster.Properties.InstanceGroups"
    template = json.loads((EXAMPLES / "slurm.template.json").read_text())
    third, fourth = copy.deepcopy(template["Resources"]["Cluster"]["Properties"]["InstanceGroups"])
    changes = {
        f"{cluster}.NodeProvisioningMode": "Continuous",  # with a strategy
        f"{groups}.0.SlurmConfig.PartitionNames": ["dev"],
        f"{groups}.1.SlurmConfig.PartitionNames": [],
        f"{groups}.1.MinInstanceCount": 20,
        f"{groups}.1.InstanceRequirements": {"InstanceTypes": ["ml.p5.48xlarge"]},
        f"{groups}.1.LifeCycleConfig.SourceS3Uri": "s3://example-scripts/lifecycle/3f2a9c41",
        f"{groups}.2": {**third, "InstanceGroupName": "second-controller"},
        f"{groups}.3": fourth,  # workers again
    }

    found = told(findings_of(Example(base="slurm.template.json", changes=changes), folder=tmp_path))

    assert {(finding.code, finding.path.partition("InstanceGroups")[2]) for finding in found} == {
        ("HF403", ".2.SlurmConfig.NodeType"),
        ("HF104", ".3.InstanceGroupName"),
        ("HF407", ".0.SlurmConfig.PartitionNames"),
        ("HF406", ".1.SlurmConfig.PartitionNames"),
        ("HF110", ".1.MinInstanceCount"),
        ("HF107", ".1.InstanceType"),
        ("HF412", ""),
        ("HF502", ".1.LifeCycleConfig.SourceS3Uri"),
    }
    assert all(finding.fix for finding in found)


def test_what_a_real_deployment_hit_after_a_clean_synthesis_is_named(tmp_path: Path) -> None:
    changes = {
        "Resources.Role.Properties.Policies": [],
        "Resources.Cluster.Properties.InstanceGroups.0.SlurmConfig.NodeType": "Login",
        "Resources.ToNodes": None,
        "Resources.FileSystem.DependsOn": ["FromNodes"],
        "Resources.Cluster.DependsOn": ["FromNodes", "NodesRoute", "NodesRoutesOfSubnet", "S3"],
    }

    found = told(findings_of(Example(base="slurm.template.json", changes=changes), folder=tmp_path))

    assert {finding.code for finding in found} == {"HF205", "HF403", "HF512", "HF513", "HF544"}


@pytest.mark.parametrize(
    ("peer", "codes"),
    [
        ("10.0.0.0/8", []),
        ("10.1.0.0/17", []),
        ("0.0.0.0/0", ["HF207"]),
        ("10.1.0.0/24", ["HF615"]),
        ("pl-1", ["HF615"]),
    ],
)
def test_a_block_that_holds_the_nodes_lets_them_through(peer: str, codes: list[str], tmp_path: Path) -> None:
    everything = [{"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535, "CidrIp": peer}]
    group = {"GroupDescription": "file system", "VpcId": {"Ref": "Vpc"}, "SecurityGroupIngress": everything}
    changes = {
        "Resources.Storage": {"Type": "AWS::EC2::SecurityGroup", "Properties": group},
        "Resources.FileSystem.Properties.SecurityGroupIds": [{"Fn::GetAtt": ["Storage", "GroupId"]}],
        "Resources.Nodes.Properties.SecurityGroupIngress": [
            {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 1023, "CidrIp": "10.1.0.0/16"}
        ],
    }

    found = told(findings_of(Example(base="slurm.template.json", changes=changes), folder=tmp_path))

    assert [finding.code for finding in found] == codes


def legacy(deployment: Deployment, text: str) -> Deployment:
    """The deployment in the legacy mode, with a provisioning_parameters.json."""
    scripts = (
        Script(path="on_create.sh", name="on_create.sh", text="#!/bin/sh\n"),
        Script(path="provisioning_parameters.json", name="provisioning_parameters.json", text=text),
    )
    lifecycle = Lifecycle(
        path="lifecycle", source_s3_uri="s3://sagemaker-x/v1", on_create="on_create.sh", scripts=scripts
    )
    groups = tuple(
        group.changed(lifecycle=lifecycle, node_type=None, partitions=())
        for group in deployment.cluster.instance_groups
    )
    return deployment.changed(cluster=deployment.cluster.changed(instance_groups=groups, slurm=None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[]", "got what is not a JSON object; allowed: one", id="no-object"),
        pytest.param("{", "got what is not a JSON object; allowed: one", id="no-json"),
        pytest.param(
            '{"version": "2", "workload_manager": "slurm", "controller_group": "controller"}',
            'got version "2"; allowed: "1.0.0"',
            id="version",
        ),
        pytest.param(
            '{"version": "1.0.0", "workload_manager": "slurm", "controller_group": "controller", '
            '"worker_groups": [{"instance_group_name": "gpu"}]}',
            'got the group "gpu"; allowed: one of controller, workers',
            id="unknown-group",
        ),
    ],
)
def test_rejects_a_legacy_file_that_does_not_describe_the_groups(text: str, message: str, good: Deployment) -> None:
    found = [finding for finding in judge(legacy(good, text)) if finding.code == "HF417"]

    assert [finding.message for finding in found] == [message]


def test_accepts_a_legacy_file_that_describes_the_groups(good: Deployment) -> None:
    text = (
        '{"version": "1.0.0", "workload_manager": "slurm", "controller_group": "controller", '
        '"worker_groups": [{"instance_group_name": "workers", "partition_name": "dev"}]}'
    )

    assert [finding.code for finding in judge(legacy(good, text))] == []


@pytest.mark.parametrize(("digest", "codes"), [(None, ["HF806"]), ("sha256:" + "0" * 64, [])])
def test_an_image_of_another_app_is_referred_to_by_digest(
    digest: str | None, codes: list[str], good: Deployment
) -> None:
    image = Image(path="Resources.Task", repository="training", digest=digest, tag="latest")

    assert [finding.code for finding in judge(good.changed(file=None, images=(image,)))] == codes
