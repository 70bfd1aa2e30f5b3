"""Rules about what a team has already: what the file alone tells, and what the account tells."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from holdfast.config.reading import read
from holdfast.validation import UNRESOLVED, Deployment, judge
from holdfast.validation.from_account import existing_facts, facts
from holdfast.validation.from_environment import check, deployment_in
from holdfast.validation.model import AccountFacts, BucketFact, EksFact, ExistingFacts, RoleFact

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
NODES, CONTROLLER = (f"arn:aws:iam::111122223333:role/team/HyperPod{name}" for name in ("Nodes", "Controller"))
GOOD_ROLE = RoleFact(trusted_services=frozenset(["sagemaker.amazonaws.com"]), denied=())
GOOD_EKS = EksFact(
    version="1.34", authentication_mode="API", status="ACTIVE", vpc_id="vpc-1", addons=frozenset(["vpc-cni"])
)
BUCKETS = ("team-datasets", "company-shared", "sagemaker-team-scripts")


def document(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((ENVIRONMENTS / f"{name}.yaml").read_text())
    return data


def codes(tmp_path: Path, data: dict[str, Any]) -> list[tuple[str, str]]:
    path = tmp_path / f"{data['name']}.yaml"
    path.write_text(yaml.safe_dump(data))
    return [(each.code, each.path) for each in check(path).findings if each.severity != "not-checked"]


def asked(name: str, **said: Any) -> list[str]:
    """What is found with an account that says this of the existing things."""
    deployment = deployment_in(read(ENVIRONMENTS / f"{name}.yaml"), folder=ENVIRONMENTS)
    good: dict[str, Any] = {
        "buckets": {bucket: BucketFact(state="own", region="us-west-2") for bucket in BUCKETS},
        "eks_clusters": {"platform": GOOD_EKS},
        "roles": {NODES: GOOD_ROLE, CONTROLLER: GOOD_ROLE},
        "vpc_of_subnets": {"subnet-0123456789abcdef0": "vpc-1"},
    }
    there = ExistingFacts(path="", **{**good, **said})
    names = AccountFacts.__dataclass_fields__.keys() - {"path", "places", "existing"}
    everything = AccountFacts(path="", existing=there, **dict.fromkeys(names, UNRESOLVED))
    found = judge(deployment.changed(facts=everything))
    return [f"{each.severity} {each.code} {each.message}" for each in found if "HF920" <= each.code <= "HF929"]


@pytest.mark.parametrize("name", ["existing-slurm", "existing-eks"])
def test_an_account_where_everything_fits_has_no_finding(name: str) -> None:
    assert asked(name) == []


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        pytest.param(
            "existing-slurm",
            {"buckets": {"team-datasets": BucketFact(state="foreign")}},
            "error HF920 got bucket team-datasets, which is another account's, or closed to who asked; allowed: a "
            "bucket of account 111122223333",
            id="a-bucket-of-another-account",
        ),
        pytest.param(
            "existing-slurm",
            {"buckets": {"company-shared": BucketFact(state="missing")}},
            "error HF920 got bucket company-shared, which does not exist; allowed: a bucket of account 111122223333",
            id="a-bucket-that-is-not-there",
        ),
        pytest.param(
            "existing-slurm",
            {"buckets": {"team-datasets": BucketFact(state="own", region="eu-west-1")}},
            "error HF920 got bucket team-datasets in eu-west-1; allowed: one in us-west-2",
            id="a-bucket-of-another-region",
        ),
        pytest.param(
            "existing-eks",
            {"eks_clusters": {}},
            "error HF921 got platform, which does not exist; allowed: an EKS cluster of account and region",
            id="no-such-control-plane",
        ),
        pytest.param(
            "existing-eks",
            {"vpc_of_subnets": {"subnet-0123456789abcdef0": "vpc-2"}},
            "error HF921 got platform in vpc-1, and nodes in vpc-2; allowed: nodes in the VPC of the EKS cluster",
            id="subnets-of-another-vpc",
        ),
        pytest.param(
            "existing-slurm",
            {"roles": {NODES: GOOD_ROLE}},
            f"error HF922 got {CONTROLLER}, which does not exist; allowed: a role that SageMaker may assume and that "
            "has what nodes need",
            id="no-such-role",
        ),
    ],
)
def test_what_does_not_fit_is_one_finding(name: str, said: dict[str, Any], expected: str) -> None:
    assert asked(name, **said) == [expected]


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ({"version": "1.27"}, "got platform of version 1.27"),
        ({"authentication_mode": "CONFIG_MAP"}, "got platform with authentication mode CONFIG_MAP"),
        ({"status": "FAILED"}, "got platform in state FAILED"),
        ({"addons": frozenset(["aws-fsx-csi-driver"])}, "got platform with add-on aws-fsx-csi-driver"),
    ],
)
def test_a_control_plane_that_hyperpod_does_not_take_is_one_finding(change: dict[str, Any], given: str) -> None:
    (found,) = asked("existing-eks", eks_clusters={"platform": EksFact(**{**vars(GOOD_EKS), **change})})

    assert found.startswith(f"error HF921 {given}; allowed: ")


@pytest.mark.parametrize(
    ("role", "given"),
    [
        (RoleFact(trusted_services=frozenset(["ec2.amazonaws.com"]), denied=()), "does not trust sagemaker"),
        (
            RoleFact(trusted_services=GOOD_ROLE.trusted_services, denied=("ec2:DescribeSubnets",)),
            "may not do ec2:DescribeSubnets",
        ),
    ],
)
def test_a_role_that_lacks_what_nodes_need_is_one_finding(role: RoleFact, given: str) -> None:
    (found,) = asked("existing-slurm", roles={NODES: role, CONTROLLER: GOOD_ROLE})

    assert f"got {NODES}, which {given}" in found


def test_what_the_account_does_not_say_is_not_checked() -> None:
    silent = asked("existing-slurm", buckets=UNRESOLVED, roles=UNRESOLVED)
    mute = RoleFact(trusted_services=GOOD_ROLE.trusted_services, denied=None)

    assert [text[:17] for text in silent] == ["not-checked HF920", "not-checked HF922"]
    assert [text[:17] for text in asked("existing-slurm", roles={NODES: mute, CONTROLLER: mute})] == [
        "not-checked HF922"
    ]


@pytest.mark.parametrize(
    ("place", "value", "code"),
    [
        ("storage.lustre.throughput_mbps_per_tib", 500, "HF080"),
        ("storage.lustre.existing", None, "HF080"),
        ("storage.home.capacity_gib", 64, "HF080"),
        ("storage.lustre.datasets.0.s3_uri", "s3://company-shared/text", "HF080"),
        ("storage.lustre.datasets.0.s3_prefix", None, "HF080"),
        ("network.availability_zone", "us-west-2a", "HF080"),
        ("lifecycle.existing.on_init_complete", None, "HF503"),
        ("lifecycle.users", [{"name": "trainer", "uid": 2000}], "HF080"),
        ("network.existing.route_table_id", "rtb-0123456789abcdef0", None),
        ("network.existing.vpc_id", None, None),
        ("storage.home.existing.dns_name", "fs-0123456789abcdef1.fsx.eu-west-1.amazonaws.com", "HF082"),
        ("cluster.execution_role_arn", "arn:aws:iam::444455556666:role/Nodes", "HF082"),
        ("storage.data.kms_key_arn", "arn:aws:kms:eu-west-1:444455556666:key/1234abcd", "HF035"),
        ("lifecycle.existing.on_create", "on_create.sh", "HF520"),
        ("lifecycle.existing.source_s3_uri", "s3://team-scripts/v1", "HF083"),
        ("cluster.instance_groups.2.lifecycle_mode", "extension", "HF084"),
        ("network.availability_zone_id", "use1-az4", "HF085"),
    ],
)
def test_a_mistake_is_told_at_its_setting(tmp_path: Path, place: str, value: object, code: str | None) -> None:
    data = document("existing-slurm")
    *parts, last = place.split(".")
    section: Any = data
    for part in parts:
        section = section[int(part)] if isinstance(section, list) else section[part]
    if value is None:
        del section[last]
    else:
        section[last] = value

    found = codes(tmp_path, data)

    assert {each for each, _ in found} == ({code} if code is not None else set())
    assert all(path.startswith(place.split(".")[0]) for _, path in found)


def test_what_has_to_be_made_in_a_vpc_asks_for_it(tmp_path: Path) -> None:
    data = document("existing-eks")
    del data["network"]["existing"]["vpc_id"]

    assert codes(tmp_path, data) == [("HF081", "network.existing")]


@pytest.mark.parametrize(
    ("region", "zone"),
    [
        ("us-east-1", "use1-az4"),
        ("us-west-2", "usw2-lax1-az1"),
        ("us-gov-west-1", "usgw1-az1"),
        ("ap-northeast-1", "apne1-az2"),
        ("ap-southeast-2", "apse2-az1"),
        ("eu-central-1", "euc1-az3"),
        ("cn-north-1", "cnn1-az1"),
        ("me-south-1", "mes1-az1"),
    ],
)
def test_the_short_form_of_a_region_is_known(tmp_path: Path, region: str, zone: str) -> None:
    data = document("existing-slurm")
    data["region"], data["network"]["availability_zone_id"] = region, zone

    assert "HF085" not in {code for code, _ in codes(tmp_path, data)}


class Client:
    """A service that gives the answers it was made with, and refuses everything else."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def can_paginate(self, operation: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            answer = self._answers.get(operation, refusal("AccessDenied"))
            found = answer(arguments) if callable(answer) else answer
            if isinstance(found, ClientError):
                raise found
            return found

        return call


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "Anything")


TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": ["sagemaker.amazonaws.com"]}}]}


def simulated(arguments: dict[str, Any]) -> dict[str, Any]:
    denied = {"s3:GetObject", "ec2:DescribeVpcs"}
    results = [
        {"EvalActionName": action, "EvalDecision": "implicitDeny" if action in denied else "allowed"}
        for action in arguments["ActionNames"]
    ]
    return {"EvaluationResults": results}


ANSWERS: dict[str, Any] = {
    "head_bucket": lambda a: (
        refusal("403")
        if a["Bucket"] == "company-shared"
        else refusal("404")
        if a["Bucket"] == "team-datasets"
        else {"BucketRegion": "us-west-2"}
    ),
    "get_role": lambda a: refusal("NoSuchEntity") if a["RoleName"] == "HyperPodNodes" else {
        "Role": {"AssumeRolePolicyDocument": TRUST}
    },
    "simulate_principal_policy": simulated,
    "describe_cluster": {"cluster": {
        "version": "1.33", "status": "ACTIVE", "accessConfig": {"authenticationMode": "API"},
        "resourcesVpcConfig": {"vpcId": "vpc-1"},
    }},
    "list_addons": {"addons": ["vpc-cni"]},
    "describe_subnets": {"Subnets": [{
        "SubnetId": "subnet-0123456789abcdef0", "VpcId": "vpc-1", "AvailabilityZone": "us-west-2a",
        "AvailableIpAddressCount": 2000,
    }]},
}  # fmt: skip


def deployment(name: str) -> Deployment:
    return deployment_in(read(ENVIRONMENTS / f"{name}.yaml"), folder=ENVIRONMENTS)


def said(name: str, answers: dict[str, Any]) -> ExistingFacts:
    found = existing_facts(deployment(name), clients=lambda service: Client(answers))
    assert found is not None
    return found


def test_the_driver_puts_down_what_the_services_say() -> None:
    slurm, eks = said("existing-slurm", ANSWERS), said("existing-eks", ANSWERS)

    assert {name: fact.state for name, fact in slurm.buckets.items()} == {
        "team-datasets": "missing",
        "company-shared": "foreign",
        "sagemaker-team-scripts": "own",
    }
    assert list(slurm.roles) == [CONTROLLER]
    assert slurm.roles[CONTROLLER].denied == (
        "ec2:DescribeVpcs",
        "s3:GetObject on arn:aws:s3:::sagemaker-team-scripts/lifecycle",
    )
    assert eks.eks_clusters["platform"] == EksFact(
        version="1.33", authentication_mode="API", status="ACTIVE", vpc_id="vpc-1", addons=frozenset(["vpc-cni"])
    )
    assert eks.vpc_of_subnets == {"subnet-0123456789abcdef0": "vpc-1"}


def test_what_the_driver_may_not_ask_is_not_known() -> None:
    silent = said("existing-slurm", {})

    assert not silent.is_known("buckets")
    assert not silent.is_known("roles")


def test_an_account_is_asked_for_all_of_it() -> None:
    found = facts(deployment("existing-slurm"), clients=lambda service: Client(ANSWERS))

    assert found.existing is not None
    assert list(found.existing.roles) == [CONTROLLER]
