"""What is there already, made on an embedded AWS and asked through its API: HF920 to HF922 hear what AWS would say."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import ROOT, Cloud, document

from holdfast.config.reading import read
from holdfast.localcloud.aws import serve
from holdfast.validation import UNRESOLVED, judge
from holdfast.validation.from_account import existing_facts
from holdfast.validation.from_environment import deployment_in
from holdfast.validation.model import AccountFacts

pytestmark = pytest.mark.timeout(600)  # for something that hangs, however busy the machine is

VERSION = {"Version": "2012-10-17"}
OTHERS = AccountFacts.__dataclass_fields__.keys() - {"path", "places", "existing"}


@dataclass(frozen=True)
class Team:
    """An environment among what it names, and what is found about that."""

    cloud: Cloud
    data: dict[str, Any]
    path: Path

    def findings(self) -> list[str]:
        self.path.write_text(yaml.safe_dump(self.data))
        deployment = deployment_in(read(self.path), folder=ROOT / "environments")
        there = existing_facts(deployment, clients=self.cloud.of)
        told = AccountFacts(path="", existing=there, **dict.fromkeys(OTHERS, UNRESOLVED))
        return [
            f"{each.severity} {each.code} {each.message}"
            for each in judge(deployment.changed(facts=told))
            if "HF920" <= each.code <= "HF929"
        ]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated", skip_waits=True) as aws:
        made = Cloud(aws.client_arguments)
        yield made
        made.close()


@pytest.fixture(scope="module")
def on_slurm(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(cloud, document("existing-slurm", cloud, stack="ts"), tmp_path_factory.mktemp("slurm") / "ts.yaml")


@pytest.fixture(scope="module")
def on_eks(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(cloud, document("existing-eks", cloud, stack="te"), tmp_path_factory.mktemp("eks") / "te.yaml")


def test_what_fits_has_no_finding(on_slurm: Team, on_eks: Team) -> None:
    assert on_slurm.findings() == []
    assert on_eks.findings() == []


def test_a_bucket_that_is_gone_is_missed(on_slurm: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(on_slurm.data["storage"]["data"], "bucket_name", "nobody-has-this-one")

    (found,) = on_slurm.findings()

    assert "error HF920 got bucket nobody-has-this-one, which does not exist" in found


def test_a_bucket_of_another_region_is_told(on_slurm: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    on_slurm.cloud.at("eu-west-1").of("s3").create_bucket(
        Bucket="team-in-ireland", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    monkeypatch.setitem(on_slurm.data["storage"]["data"], "bucket_name", "team-in-ireland")

    (found,) = on_slurm.findings()

    assert "error HF920 got bucket team-in-ireland in eu-west-1" in found


@pytest.mark.parametrize("effect", ["Deny", "nothing"])
def test_a_role_that_may_not_look_for_subnets_is_told(effect: str, on_slurm: Team) -> None:
    iam, role = on_slurm.cloud.of("iam"), on_slurm.data["cluster"]["execution_role_arn"].rpartition("/")[2]
    if effect == "Deny":
        statement = {"Effect": "Deny", "Action": "ec2:DescribeSubnets", "Resource": "*"}
        iam.put_role_policy(
            RoleName=role, PolicyName="less", PolicyDocument=json.dumps({**VERSION, "Statement": [statement]})
        )
    else:
        limit = {**VERSION, "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        arn = iam.create_policy(PolicyName="limit", PolicyDocument=json.dumps(limit))["Policy"]["Arn"]
        iam.put_role_permissions_boundary(RoleName=role, PermissionsBoundary=arn)
    try:
        (found,) = on_slurm.findings()
    finally:
        if effect == "Deny":
            iam.delete_role_policy(RoleName=role, PolicyName="less")
        else:
            iam.delete_role_permissions_boundary(RoleName=role)

    assert found.startswith("error HF922 got ")
    assert "which may not do" in found
    assert "ec2:DescribeSubnets" in found
    assert on_slurm.findings() == []


def test_an_eks_cluster_that_is_not_there_is_missed(on_eks: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(on_eks.data["eks"]["existing"], "cluster", "nobodys")

    (found,) = on_eks.findings()

    assert "error HF921 got nobodys, which does not exist" in found


def test_nodes_in_another_vpc_than_the_eks_cluster_are_told(on_eks: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = on_eks.cloud.network()["subnet_id"]
    monkeypatch.setitem(on_eks.data["network"]["existing"], "subnet_id", elsewhere)

    (found,) = on_eks.findings()

    assert "error HF921 got " in found
    assert "and nodes in vpc-" in found
