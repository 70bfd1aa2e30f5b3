"""An account is asked for what the rules about it need, and what it does not say is not passed."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast.config.reading import read
from holdfast.validation import UNRESOLVED, Deployment, RollingUpdate, ScheduledUpdate, all_rules, judge
from holdfast.validation.from_account import facts
from holdfast.validation.from_environment import check, deployment_in
from holdfast.validation.model import AccountFacts, AccountSecurityGroup, AccountSubnet, MachineImage, TrainingPlan
from holdfast.validation.pages import EXAMPLES

P5, PLAN = "ml.p5.48xlarge", "arn:aws:sagemaker:us-west-2:111122223333:training-plan/frontier"
SUBNET, GROUP, AMI = "subnet-0123456789abcdef0", "sg-0123456789abcdef0", "ami-0123456789abcdef0"

GENEROUS: dict[str, Any] = {
    "cluster_quotas": {P5: 20, "": 100},
    "offered": frozenset([(P5, "us-west-2a"), ("ml.m5.2xlarge", "us-west-2a")]),
    "network_interfaces_left": 5000,
    "vpcs_left": 4,
    "elastic_ips_left": 5,
    "alarms": frozenset(["errors"]),
    "training_plans": {PLAN: TrainingPlan(
        status="Active", instance_type=P5, availability_zones=frozenset(["us-west-2a"]), available_count=17
    )},
    "subnets": {SUBNET: AccountSubnet(availability_zone="us-west-2a", free_addresses=2000)},
    "security_groups": {GROUP: AccountSecurityGroup(from_itself=True, to_itself=True)},
    "images": {AMI: MachineImage(
        owner="111122223333", encrypted=False, volumes=1, created=datetime.date(2026, 3, 1)
    )},
}  # fmt: skip


def deployment(**said: Any) -> Deployment:
    """A cluster that asks an account for everything there is to ask."""
    good = deployment_in(read(EXAMPLES / "slurm.yaml"), folder=EXAMPLES)
    controller, workers = good.cluster.instance_groups
    assert good.cluster.vpc is not None
    vpc = good.cluster.vpc.changed(
        subnets=(good.cluster.vpc.subnets[0].changed(id=SUBNET),),
        security_groups=(good.cluster.vpc.security_groups[0].changed(id=GROUP, ingress=(), egress=()),),
    )
    update = RollingUpdate(path="update", rollback_alarms=("errors",))
    schedule = ScheduledUpdate(path="schedule", schedule_expression="cron(0 3 ? * SUN *)", deployment=update)
    workers = workers.changed(training_plan_arn=PLAN, image_id=AMI, scheduled_update=schedule)
    cluster = good.cluster.changed(vpc=vpc, instance_groups=(controller, workers))
    return good.changed(cluster=cluster, facts=AccountFacts(path="", **{**GENEROUS, **said}))


def found(asked: Deployment) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in judge(asked) if each.code.startswith("HF9")]


def test_a_generous_account_has_no_finding() -> None:
    assert found(deployment()) == []


PLAN_OF = GENEROUS["training_plans"][PLAN]


def plan(**changes: Any) -> dict[str, Any]:
    return {"training_plans": {PLAN: TrainingPlan(**{**vars(PLAN_OF), **changes})}}


def image(**changes: Any) -> dict[str, Any]:
    return {"images": {AMI: MachineImage(**{**vars(GENEROUS["images"][AMI]), **changes})}}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("HF901", {"cluster_quotas": {P5: 16}}),
        ("HF902", {"cluster_quotas": {"": 10}}),
        ("HF903", {"offered": frozenset([("ml.m5.2xlarge", "us-west-2a")])}),
        ("HF904", {"network_interfaces_left": 100}),
        ("HF905", {"vpcs_left": 0}),
        ("HF905", {"elastic_ips_left": 0}),
        ("HF906", {"alarms": frozenset()}),
        ("HF907", {"training_plans": {}}),
        ("HF907", plan(status="Expired")),
        ("HF907", plan(instance_type="ml.p4d.24xlarge")),
        ("HF907", plan(available_count=4)),
        ("HF907", plan(availability_zones=frozenset(["us-west-2b"]))),
        ("HF908", {"subnets": {}}),
        ("HF908", {"subnets": {SUBNET: AccountSubnet(availability_zone="us-west-2a", free_addresses=100)}}),
        ("HF908", {"subnets": {SUBNET: AccountSubnet(availability_zone="us-west-2b", free_addresses=2000)}}),
        ("HF909", {"images": {}}),
        ("HF909", image(encrypted=True)),
        ("HF909", image(volumes=2)),
        ("HF909", image(owner="999999999999", volumes=1)),
        ("HF909", image(created=datetime.date(2025, 6, 1))),
        ("HF910", {"security_groups": {}}),
        ("HF910", {"security_groups": {GROUP: AccountSecurityGroup(from_itself=True, to_itself=False)}}),
    ],
)
def test_rejects_what_the_account_cannot_hold(code: str, said: dict[str, Any]) -> None:
    assert found(deployment(**said)) == [(code, "error")]


def test_every_account_rule_is_tested_here() -> None:
    asked = dict.fromkeys(GENEROUS, UNRESOLVED)

    codes = {code for code in all_rules() if code.startswith("HF9")}
    assert {code for code, _ in found(deployment(**asked))} == {code for code in codes if code < "HF920"}


@pytest.mark.parametrize("name", sorted(GENEROUS))
def test_what_the_account_does_not_say_is_not_checked(name: str) -> None:
    answers = found(deployment(**{name: UNRESOLVED}))

    assert answers
    assert {severity for _, severity in answers} == {"not-checked"}


def test_nothing_is_asked_of_an_account_that_is_not_there(repository: Path) -> None:
    assert [each for each in check(repository / "environments" / "local.yaml").findings if each.code >= "HF9"] == []


def test_without_credentials_each_rule_that_applies_is_not_checked_once(tmp_path: Path) -> None:
    codes = [each.code for each in check(EXAMPLES / "slurm.yaml").findings]

    assert codes == ["HF901", "HF902", "HF903", "HF904", "HF905"]


class Client:
    """A service that gives the answers it was made with; asking for anything else is refused."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.exceptions = type("Exceptions", (), {"ResourceNotFound": KeyError})

    def can_paginate(self, operation: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            if operation not in self._answers:
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)
            answer = self._answers[operation]
            return answer(**arguments) if callable(answer) else answer

        return call


def itself(group: str) -> list[dict[str, Any]]:
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]


ANSWERS: dict[str, Any] = {
    "list_service_quotas": {"Quotas": [
        {"QuotaName": f"{P5} for cluster usage", "Value": 20.0},
        {"QuotaName": f"{P5} for training job usage", "Value": 1.0},
        {"QuotaName": "Total number of instances allowed across SageMaker HyperPod clusters", "Value": 100.0},
    ]},
    "get_service_quota": {"Quota": {"Value": 5.0}},
    "describe_instance_type_offerings": {"InstanceTypeOfferings": [
        {"InstanceType": "p5.48xlarge", "Location": "us-west-2a"}
    ]},
    "describe_network_interfaces": {"NetworkInterfaces": [{}, {}]},
    "describe_vpcs": {"Vpcs": [{}]},
    "describe_addresses": {"Addresses": []},
    "describe_alarms": {"MetricAlarms": [{"AlarmName": "errors"}]},
    "describe_training_plan": {"Status": "Active", "AvailableInstanceCount": 17, "ReservedCapacitySummaries": [
        {"InstanceType": P5, "AvailabilityZone": "us-west-2a"}
    ]},
    "describe_subnets": {"Subnets": [
        {"SubnetId": SUBNET, "AvailabilityZone": "us-west-2a", "AvailableIpAddressCount": 2000}
    ]},
    "describe_security_groups": {"SecurityGroups": [
        {"GroupId": GROUP, "IpPermissions": itself(GROUP), "IpPermissionsEgress": itself(GROUP)}
    ]},
    "describe_images": {"Images": [{
        "ImageId": AMI, "OwnerId": "111122223333", "CreationDate": "2026-03-01T10:00:00.000Z",
        "BlockDeviceMappings": [{"Ebs": {"Encrypted": False}}, {"VirtualName": "ephemeral0"}],
    }]},
}  # fmt: skip


def test_the_driver_puts_down_what_the_services_say() -> None:
    said = facts(deployment(), clients=lambda service: Client(ANSWERS))

    assert said.cluster_quotas == {P5: 20.0, "": 100.0}
    assert said.offered == {(P5, "us-west-2a")}
    assert (said.network_interfaces_left, said.vpcs_left, said.elastic_ips_left) == (3.0, 4.0, 5.0)
    assert said.alarms == {"errors"}
    assert said.training_plans == {PLAN: PLAN_OF}
    assert said.subnets == GENEROUS["subnets"]
    assert said.security_groups == GENEROUS["security_groups"]
    assert said.images == GENEROUS["images"]


@pytest.mark.parametrize("operation", sorted(ANSWERS))
def test_what_the_driver_may_not_ask_is_not_known(operation: str) -> None:
    answers = {name: answer for name, answer in ANSWERS.items() if name != operation}

    said = facts(deployment(), clients=lambda service: Client(answers))

    assert not all(said.is_known(name) for name in GENEROUS)


def test_a_plan_that_does_not_exist_is_left_out() -> None:
    def missing(**_: Any) -> Any:
        raise KeyError

    said = facts(deployment(), clients=lambda service: Client({**ANSWERS, "describe_training_plan": missing}))

    assert said.training_plans == {}
