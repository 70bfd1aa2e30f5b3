"""Queries for the 9xx rules; responses are stored without judgement."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from holdfast.catalog import limits
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_account.existing import asked, existing_facts
from holdfast.validation.model import (
    AccountFacts,
    AccountSecurityGroup,
    AccountSubnet,
    Deployment,
    Group,
    InstanceGroup,
    Item,
    MachineImage,
    RollingUpdate,
    SecurityGroup,
    Subnet,
    TrainingPlan,
)

Clients = Callable[[str], Any]
"""A boto3 client by the name of its service."""

ALL_CLUSTERS = "Total number of instances allowed across SageMaker HyperPod clusters"
I = TypeVar("I", bound=Item)  # noqa: E741 - the one letter that an item begins with


def with_facts(deployment: Deployment) -> Deployment:
    """Add the account's facts to a deployment, with boto3's default credentials."""
    import boto3

    if not deployment.is_known("region"):
        return deployment.changed(facts=UNRESOLVED)
    session = boto3.session.Session(region_name=deployment.region)
    return deployment.changed(facts=facts(deployment, clients=session.client))


def facts(deployment: Deployment, *, clients: Clients) -> AccountFacts:
    """Facts of an account; UNRESOLVED where access is denied."""
    parts = list(deployment.walk())
    types = sorted(
        {name for group in _each(parts, Group, "instance_type") if _has_types(group) for name in group.types}
    )
    return AccountFacts(
        path="",
        cluster_quotas=asked(lambda: _cluster_quotas(clients("service-quotas"))),
        offered=asked(lambda: _offered(clients("ec2"), types)),
        network_interfaces_left=asked(
            lambda: _left(clients, "vpc", "network_interfaces", "describe_network_interfaces", "NetworkInterfaces")
        ),
        vpcs_left=asked(lambda: _left(clients, "vpc", "vpcs", "describe_vpcs", "Vpcs")),
        elastic_ips_left=asked(lambda: _left(clients, "ec2", "elastic_ips", "describe_addresses", "Addresses")),
        alarms=asked(lambda: _alarms(clients("cloudwatch"), parts)),
        training_plans=asked(lambda: _training_plans(clients("sagemaker"), parts)),
        subnets=asked(lambda: _subnets(clients("ec2"), parts)),
        security_groups=asked(lambda: _security_groups(clients("ec2"), parts)),
        images=asked(lambda: _images(clients("ec2"), parts)),
        existing=existing_facts(deployment, clients=clients),
    )


def _pages(client: Any, operation: str, result: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    if not client.can_paginate(operation):
        yield from getattr(client, operation)(**arguments)[result]
        return
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page[result]


def _each(parts: list[Any], kind: type[I], known: str) -> Iterator[I]:
    for part in parts:
        if isinstance(part, kind) and part.is_known(known):
            yield part


def _has_types(group: Group) -> bool:
    return not isinstance(group, InstanceGroup) or group.is_known("instance_types")


def _cluster_quotas(client: Any) -> Mapping[str, float]:
    quotas, suffix = {}, " for cluster usage"
    for quota in _pages(client, "list_service_quotas", "Quotas", ServiceCode="sagemaker"):
        name = quota["QuotaName"]
        if name.endswith(suffix):
            quotas[name.removesuffix(suffix)] = quota["Value"]
        if name == ALL_CLUSTERS:
            quotas[""] = quota["Value"]
    return quotas


def _offered(client: Any, types: list[str]) -> frozenset[tuple[str, str]]:
    names = [name.removeprefix("ml.") for name in types]
    filters = [{"Name": "instance-type", "Values": names}]
    rows = _pages(
        client,
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=filters,
    )
    return frozenset((f"ml.{row['InstanceType']}", row["Location"]) for row in rows)


def _left(clients: Clients, service: str, quota: str, operation: str, result: str) -> float:
    code = limits("quotas")[quota]
    allowed = clients("service-quotas").get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
    return float(allowed) - sum(1 for _ in _pages(clients("ec2"), operation, result))


def _alarms(client: Any, parts: list[Any]) -> frozenset[str]:
    names = sorted(
        {name for update in _each(parts, RollingUpdate, "rollback_alarms") for name in update.rollback_alarms}
    )
    if not names:
        return frozenset()
    answer = client.describe_alarms(AlarmNames=names[:100], AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    found = [*answer.get("MetricAlarms", ()), *answer.get("CompositeAlarms", ())]
    return frozenset(alarm["AlarmName"] for alarm in found)


def _training_plans(client: Any, parts: list[Any]) -> Mapping[str, TrainingPlan]:
    plans = {}
    for arn in {group.training_plan_arn for group in _each(parts, Group, "training_plan_arn")} - {None}:
        assert arn is not None
        try:
            plan = client.describe_training_plan(TrainingPlanName=arn.rpartition("/")[2])
        except client.exceptions.ResourceNotFound:
            continue
        reserved = plan.get("ReservedCapacitySummaries", ())
        plans[arn] = TrainingPlan(
            status=plan["Status"],
            instance_type=reserved[0]["InstanceType"] if reserved else "",
            availability_zones=frozenset(each["AvailabilityZone"] for each in reserved if "AvailabilityZone" in each),
            available_count=plan.get("AvailableInstanceCount", 0),
        )
    return plans


def _subnets(client: Any, parts: list[Any]) -> Mapping[str, AccountSubnet]:
    ids = sorted({each.id for each in _each(parts, Subnet, "id") if each.id.startswith("subnet-")})
    if not ids:
        return {}
    filters = [{"Name": "subnet-id", "Values": ids}]
    return {
        row["SubnetId"]: AccountSubnet(
            availability_zone=row["AvailabilityZone"], free_addresses=row["AvailableIpAddressCount"]
        )
        for row in _pages(client, "describe_subnets", "Subnets", Filters=filters)
    }


def _security_groups(client: Any, parts: list[Any]) -> Mapping[str, AccountSecurityGroup]:
    ids = sorted({each.id for each in _each(parts, SecurityGroup, "id") if each.id.startswith("sg-")})
    if not ids:
        return {}
    filters = [{"Name": "group-id", "Values": ids}]
    return {
        row["GroupId"]: AccountSecurityGroup(
            from_itself=_names_itself(row["IpPermissions"], row["GroupId"]),
            to_itself=_names_itself(row["IpPermissionsEgress"], row["GroupId"]),
        )
        for row in _pages(client, "describe_security_groups", "SecurityGroups", Filters=filters)
    }


def _names_itself(permissions: list[dict[str, Any]], group: str) -> bool:
    return any(
        each["IpProtocol"] == "-1" and any(pair["GroupId"] == group for pair in each.get("UserIdGroupPairs", ()))
        for each in permissions
    )


def _images(client: Any, parts: list[Any]) -> Mapping[str, MachineImage]:
    ids = sorted({str(group.image_id) for group in _each(parts, InstanceGroup, "image_id")} - {"None", "default"})
    if not ids:
        return {}
    found = {}
    for row in client.describe_images(Filters=[{"Name": "image-id", "Values": ids}])["Images"]:
        disks = [disk["Ebs"] for disk in row.get("BlockDeviceMappings", ()) if "Ebs" in disk]
        found[row["ImageId"]] = MachineImage(
            owner=row.get("ImageOwnerAlias", row["OwnerId"]),
            encrypted=any(disk.get("Encrypted", False) for disk in disks),
            volumes=len(disks),
            created=datetime.date.fromisoformat(row["CreationDate"][:10]),
        )
    return found
