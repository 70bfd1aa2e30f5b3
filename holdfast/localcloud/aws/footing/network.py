"""
Network access of instances in a subnet.

Source: SageMaker developer guide, sagemaker-hyperpod-prerequisites ("Setting up SageMaker HyperPod with a custom Amazon
VPC"): a route to Amazon S3, and for EFA all traffic among the members of the security group. Instances have no public
addresses, so an internet gateway is no way out.
"""

from collections.abc import Iterable
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory

ANYWHERE = ("0.0.0.0/0", "::/0")
TARGETS = ("NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId", "VpcPeeringConnectionId")
EVERYTHING = "-1"
HTTPS = 443


class SubnetRoutes:
    def __init__(self, *, client: ClientFactory, subnets: Iterable[str], groups: Iterable[str]) -> None:
        ec2 = client("ec2")
        self._ec2 = ec2
        self._subnets = ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]
        self._groups = ec2.describe_security_groups(GroupIds=list(groups))["SecurityGroups"]

    def no_way_to_s3(self) -> str:
        """Return why a subnet does not reach S3, or ""."""
        return self._no_way("s3", "has neither a route out of the VPC nor an endpoint for Amazon S3.")

    def no_way_to_aws(self, service: str) -> str:
        """Return why a subnet reaches neither the internet nor an endpoint of a service, or ""."""
        return self._no_way(service, f"has no route out, and there is no endpoint for {service}.")

    def _no_way(self, service: str, words: str) -> str:
        for subnet in self._subnets:
            table = self._table(subnet)
            if not (_leads_out(table) or self._endpoint(service, subnet, table)):
                return f"The route table of {subnet['SubnetId']} {words}"
        return "" if self._lets_out() else f"No rule of {self._names()} lets HTTPS out."

    def not_among_themselves(self) -> str:
        """Return the group whose members cannot exchange all traffic, or ""."""
        for group in self._groups:
            for side in ("IpPermissions", "IpPermissionsEgress"):
                if not any(
                    rule["IpProtocol"] == EVERYTHING
                    and any(pair["GroupId"] == group["GroupId"] for pair in rule.get("UserIdGroupPairs", ()))
                    for rule in group[side]
                ):
                    return str(group["GroupId"])
        return ""

    def _table(self, subnet: dict[str, Any]) -> dict[str, Any]:
        listed = self._ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}])
        tables: list[dict[str, Any]] = listed["RouteTables"]
        own = [table for table in tables if any(one.get("SubnetId") == subnet["SubnetId"] for one in _ties(table))]
        return next(iter(own or [table for table in tables if any(one.get("Main") for one in _ties(table))]), {})

    def _endpoint(self, service: str, subnet: dict[str, Any], table: dict[str, Any]) -> bool:
        listed = self._ec2.describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}])
        return any(
            found.get("VpcEndpointType") == "Interface" or table.get("RouteTableId") in found.get("RouteTableIds", ())
            for found in listed["VpcEndpoints"]
            if found["ServiceName"].rsplit(".", 1)[-1] == service
        )

    def _lets_out(self) -> bool:
        """Return True if HTTPS may leave; rules for a network, list or group may all be for AWS."""
        return any(
            rule["IpProtocol"] == EVERYTHING or rule.get("FromPort", 0) <= HTTPS <= rule.get("ToPort", 65535)
            for group in self._groups
            for rule in group["IpPermissionsEgress"]
            if rule["IpProtocol"] in (EVERYTHING, "tcp", "6")
            and any(rule.get(kind) for kind in ("IpRanges", "Ipv6Ranges", "PrefixListIds", "UserIdGroupPairs"))
        )

    def _names(self) -> str:
        return ", ".join(group["GroupId"] for group in self._groups)


def _ties(table: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.get("Associations", [])
    return found


def _leads_out(table: dict[str, Any]) -> bool:
    return any(
        (route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock")) in ANYWHERE
        and any(route.get(target) for target in TARGETS)
        for route in table.get("Routes", ())
    )
