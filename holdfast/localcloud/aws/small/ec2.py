"""
EC2 requests that require an attached gateway; moto does the rest.

Source: CloudFormation template reference, "DependsOn attribute"; VPC user guide, nat-gateway-troubleshooting ("NAT
gateway creation fails"). Words about routes: public issues such as aws/aws-cdk 1140. Assumed: EC2 rejects at once.
"""
# ruff: noqa: N803 - arguments bear the names of the API members

from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import NotOurs, ServiceError


class Gateways:
    """Checks of gateways; moto has the rest of EC2."""

    def __init__(self, *, client: ClientFactory, **_: Any) -> None:
        self._client = client

    def create_route(self, *, RouteTableId: str, GatewayId: str = "", **_: Any) -> None:
        if GatewayId.startswith("igw-"):
            tables = self._client("ec2").describe_route_tables(RouteTableIds=[RouteTableId])["RouteTables"]
            if tables and tables[0]["VpcId"] not in self._attached(GatewayId):
                raise ServiceError(
                    "InvalidParameterValue",
                    f"route table {RouteTableId} and network gateway {GatewayId} belong to different networks",
                )
        raise NotOurs

    def create_nat_gateway(self, *, SubnetId: str, ConnectivityType: str = "public", **_: Any) -> None:
        if ConnectivityType == "public":
            ec2 = self._client("ec2")
            vpc = ec2.describe_subnets(SubnetIds=[SubnetId])["Subnets"][0]["VpcId"]
            there = ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc]}])
            if not there["InternetGateways"]:
                raise ServiceError("Gateway.NotAttached", f"Network {vpc} has no Internet gateway attached")
        raise NotOurs

    def _attached(self, gateway: str) -> set[str]:
        found = self._client("ec2").describe_internet_gateways(InternetGatewayIds=[gateway])["InternetGateways"]
        return {one["VpcId"] for each in found for one in each["Attachments"]}
