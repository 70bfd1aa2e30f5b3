"""Whether instances of a subnet get to where they must, and Lustre's servers to each other."""

from typing import Any

import pytest

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.footing import SubnetRoutes
from holdfast.localcloud.aws.fsx import check_lnet

SUBNET = {"SubnetId": "subnet-1", "VpcId": "vpc-1", "CidrBlock": "10.1.0.0/24"}
OWN = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}
EVERYWHERE = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


class Network:
    """EC2, as far as it is asked."""

    def __init__(self, *, routes: list[Any], endpoints: list[Any], ingress: list[Any], egress: list[Any]) -> None:
        tie = {"SubnetId": "subnet-1"}
        self._tables = [
            {"RouteTableId": "rtb-main", "Associations": [{"Main": True}], "Routes": []},
            {"RouteTableId": "rtb-1", "Associations": [tie], "Routes": routes},
        ]
        self._endpoints = endpoints
        self._group = {"GroupId": "sg-1", "IpPermissions": ingress, "IpPermissionsEgress": egress}

    def describe_subnets(self, **_: Any) -> dict[str, Any]:
        return {"Subnets": [SUBNET]}

    def describe_security_groups(self, **_: Any) -> dict[str, Any]:
        return {"SecurityGroups": [self._group]}

    def describe_route_tables(self, **_: Any) -> dict[str, Any]:
        return {"RouteTables": self._tables}

    def describe_vpc_endpoints(self, **_: Any) -> dict[str, Any]:
        return {"VpcEndpoints": self._endpoints}


def ways(
    *, routes: Any = (), endpoints: Any = (), ingress: Any = (OWN,), egress: Any = (OWN, EVERYWHERE)
) -> SubnetRoutes:
    network = Network(routes=list(routes), endpoints=list(endpoints), ingress=list(ingress), egress=list(egress))
    return SubnetRoutes(client=lambda _service: network, subnets=["subnet-1"], groups=["sg-1"])


def default(**target: str) -> dict[str, str]:
    return {"DestinationCidrBlock": "0.0.0.0/0", **target}


def endpoint(service: str, **more: Any) -> dict[str, Any]:
    return {"ServiceName": f"com.amazonaws.us-west-2.{service}", "VpcEndpointType": "Gateway", **more}


@pytest.mark.parametrize(
    ("network", "reached"),
    [
        ({"routes": [default(NatGatewayId="nat-1")]}, True),
        ({"routes": [default(GatewayId="igw-1")]}, False),
        ({"routes": []}, False),
        ({"endpoints": [endpoint("s3", RouteTableIds=["rtb-1"])]}, True),
        ({"endpoints": [endpoint("s3", RouteTableIds=["rtb-main"])]}, False),
        ({"endpoints": [endpoint("s3", VpcEndpointType="Interface")]}, True),
        ({"endpoints": [endpoint("ssm", VpcEndpointType="Interface")]}, False),
        ({"routes": [default(NatGatewayId="nat-1")], "egress": []}, False),
    ],
)
def test_s3_is_reached_through_a_nat_gateway_or_an_endpoint_and_where_https_may_leave(network, reached):
    assert (ways(**network).no_way_to_s3() == "") is reached


def test_another_service_is_reached_through_its_own_endpoint_only():
    network = ways(endpoints=[endpoint("ecr", VpcEndpointType="Interface")])

    assert network.no_way_to_aws("ecr") == ""
    assert "no endpoint for eks" in network.no_way_to_aws("eks")


@pytest.mark.parametrize(
    ("ingress", "egress", "apart"),
    [([OWN], [OWN], ""), ([OWN], [EVERYWHERE], "sg-1"), ([], [OWN], "sg-1"), ([EVERYWHERE], [OWN], "sg-1")],
)
def test_efa_needs_rules_that_name_the_group_itself(ingress, egress, apart):
    assert ways(ingress=ingress, egress=egress).not_among_themselves() == apart


LNET = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 1023, "UserIdGroupPairs": [{"GroupId": "sg-1"}]}


@pytest.mark.parametrize(
    ("ingress", "egress", "lets"),
    [
        ([OWN], [EVERYWHERE], True),
        ([LNET], [LNET], True),
        ([{**EVERYWHERE, "IpRanges": [{"CidrIp": "10.1.0.0/16"}]}], [EVERYWHERE], True),
        ([{**EVERYWHERE, "IpRanges": [{"CidrIp": "10.2.0.0/16"}]}], [EVERYWHERE], False),
        ([], [EVERYWHERE], False),
        ([OWN], [], False),
        ([{**LNET, "FromPort": 1018}], [EVERYWHERE], False),
    ],
)
def test_fsx_wants_port_988_open_both_ways(ingress, egress, lets):
    group = {"GroupId": "sg-1", "IpPermissions": ingress, "IpPermissionsEgress": egress}

    if lets:
        check_lnet([group], subnet="10.1.0.0/24")
        return
    with pytest.raises(ServiceError, match="port 988"):
        check_lnet([group], subnet="10.1.0.0/24")
