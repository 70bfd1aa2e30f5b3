"""The network of a cluster: its shape, the rules that EFA needs, and the ways out of it."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs

from holdfast.catalog import ENDPOINTS, Orchestrator
from holdfast_constructs import HyperPodNetwork


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


def network(stack: cdk.Stack, **settings: Any) -> HyperPodNetwork:
    shape: Any = {"cidr": "10.1.0.0/16", "availability_zone": "us-west-2a", **settings}
    return HyperPodNetwork(stack, "Network", **shape)


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: resource["Properties"] for name, resource in resources.items() if resource["Type"] == kind}


def synthesised(**settings: Any) -> dict[str, Any]:
    stack = new_stack()
    network(stack, **settings)
    return dict(assertions.Template.from_stack(stack).to_json()["Resources"])


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    return synthesised()


@pytest.fixture(scope="module", params=["slurm", "eks"])
def orchestrator(request: pytest.FixtureRequest) -> Orchestrator:
    found: Orchestrator = request.param
    return found


@pytest.fixture(scope="module")
def closed(orchestrator: Orchestrator) -> dict[str, Any]:
    stack = new_stack()
    made = network(stack, egress="none", orchestrator=orchestrator, second_availability_zone="us-west-2b")
    made.add_interface_endpoint("secretsmanager")
    made.add_interface_endpoint("logs")
    made.add_interface_endpoint("mlflow")
    return dict(assertions.Template.from_stack(stack).to_json()["Resources"])


def test_the_security_group_lets_its_members_talk_by_reference_in_and_out(resources: dict[str, Any]) -> None:
    ((name, group),) = of_type(resources, "AWS::EC2::SecurityGroup").items()
    itself = {"Fn::GetAtt": [name, "GroupId"]}
    ingress = of_type(resources, "AWS::EC2::SecurityGroupIngress").values()
    egress = of_type(resources, "AWS::EC2::SecurityGroupEgress").values()

    assert [(rule["IpProtocol"], rule["SourceSecurityGroupId"]) for rule in ingress] == [("-1", itself)]
    assert [(rule["IpProtocol"], rule["DestinationSecurityGroupId"]) for rule in egress] == [("-1", itself)]
    assert [(rule["IpProtocol"], rule["CidrIp"]) for rule in group["SecurityGroupEgress"]] == [("-1", "0.0.0.0/0")]


def test_the_nodes_subnet_is_private_and_the_first_half_of_the_network(resources: dict[str, Any]) -> None:
    subnets = of_type(resources, "AWS::EC2::Subnet").values()

    assert [(subnet["CidrBlock"], subnet["MapPublicIpOnLaunch"]) for subnet in subnets] == [
        ("10.1.0.0/17", False),
        ("10.1.128.0/28", False),
    ]
    assert {subnet["AvailabilityZone"] for subnet in subnets} == {"us-west-2a"}


def test_s3_is_reached_through_a_gateway_endpoint_on_the_nodes_route_table(resources: dict[str, Any]) -> None:
    (endpoint,) = of_type(resources, "AWS::EC2::VPCEndpoint").values()

    assert endpoint["VpcEndpointType"] == "Gateway"
    assert {"Ref": "NetworkNodesSubnet1RouteTableC38D3044"} in endpoint["RouteTableIds"]


def test_a_closed_network_leads_to_services_of_aws_only(closed: dict[str, Any], orchestrator: Orchestrator) -> None:
    endpoints = of_type(closed, "AWS::EC2::VPCEndpoint").values()
    interfaces = [endpoint for endpoint in endpoints if endpoint["VpcEndpointType"] == "Interface"]
    services = [endpoint["ServiceName"] for endpoint in interfaces]
    (group,) = (name for name in of_type(closed, "AWS::EC2::SecurityGroup") if "Endpoints" in name)

    for kind in ("NatGateway", "InternetGateway", "EIP", "Route"):
        assert of_type(closed, f"AWS::EC2::{kind}") == {}
    assert sorted(services) == sorted(
        [
            *(f"com.amazonaws.us-west-2.{name}" for name in (*ENDPOINTS[orchestrator], "secretsmanager")),
            "aws.sagemaker.us-west-2.mlflow",
        ]
    )
    assert all(endpoint["PrivateDnsEnabled"] for endpoint in interfaces)
    assert {json.dumps(endpoint["SecurityGroupIds"]) for endpoint in interfaces} == {
        json.dumps([{"Fn::GetAtt": [group, "GroupId"]}])
    }


def test_endpoints_take_https_from_nodes_and_from_nobody_else(closed: dict[str, Any]) -> None:
    groups = of_type(closed, "AWS::EC2::SecurityGroup")
    (endpoints,) = (name for name in groups if "Endpoints" in name)
    (nodes,) = (name for name in groups if name != endpoints)
    rules = [
        rule
        for rule in of_type(closed, "AWS::EC2::SecurityGroupIngress").values()
        if rule["GroupId"] == {"Fn::GetAtt": [endpoints, "GroupId"]}
    ]

    assert "SecurityGroupIngress" not in groups[endpoints]
    assert [(rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in rules] == [("tcp", 443, 443)]
    assert rules[0]["SourceSecurityGroupId"] == {"Fn::GetAtt": [nodes, "GroupId"]}


def test_nodes_of_a_closed_network_reach_s3_through_its_gateway(closed: dict[str, Any]) -> None:
    """Its addresses are public: a group that lets nothing out but to the VPC would cut the scripts off."""
    (nodes,) = (item for name, item in of_type(closed, "AWS::EC2::SecurityGroup").items() if "Endpoints" not in name)
    rules = [(rule["IpProtocol"], rule.get("ToPort"), rule["CidrIp"]) for rule in nodes["SecurityGroupEgress"]]

    assert rules == [("-1", None, "10.1.0.0/16"), ("tcp", 443, "0.0.0.0/0")]


def test_what_wants_two_zones_gets_two_small_private_subnets_at_the_end_of_the_block() -> None:
    stack = new_stack()
    made = network(
        stack, second_availability_zone="us-west-2b", removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
    )
    template = assertions.Template.from_stack(stack).to_json()["Resources"]
    subnets = of_type(template, "AWS::EC2::Subnet")
    own = {name: item for name, item in subnets.items() if "ControlPlane" in name}

    assert [(item["CidrBlock"], item["AvailabilityZone"]) for item in own.values()] == [
        ("10.1.255.240/28", "us-west-2a"),
        ("10.1.255.224/28", "us-west-2b"),
    ]
    assert len(made.control_plane_subnets) == 2
    assert not any(item.get("MapPublicIpOnLaunch") for item in subnets.values())
    assert {template[name]["DeletionPolicy"] for name in own} == {"RetainExceptOnCreate"}
    assert next(iter(subnets.values()))["AvailabilityZone"] == "us-west-2a", "nodes stay in one zone"


def test_flow_logs_go_where_they_are_sent() -> None:
    stack = new_stack()
    network(stack, flow_logs=logs.LogGroup(stack, "Traffic"))
    template = assertions.Template.from_stack(stack)

    template.has_resource_properties(
        "AWS::EC2::FlowLog", {"TrafficType": "ALL", "LogDestinationType": "cloud-watch-logs", "ResourceType": "VPC"}
    )
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    assert "*" not in json.dumps(policy["Properties"]["PolicyDocument"]["Statement"])


def test_an_existing_network_is_referred_to_and_left_alone() -> None:
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"])
    subnet = ec2.Subnet.from_subnet_attributes(
        stack,
        "Subnet",
        subnet_id="subnet-0123456789abcdef0",
        availability_zone="us-west-2a",
        route_table_id="rtb-0123456789abcdef0",
    )
    group = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0", mutable=False)
    made = HyperPodNetwork.from_attributes(
        stack, "Network", vpc=vpc, subnet=subnet, security_group=group, s3_gateway_endpoint=True
    )
    made.add_interface_endpoint("secretsmanager")

    template = assertions.Template.from_stack(stack).to_json()
    (endpoint,) = template["Resources"].values()
    assert endpoint["Properties"]["RouteTableIds"] == ["rtb-0123456789abcdef0"]
    assert endpoint["Properties"]["VpcEndpointType"] == "Gateway"
    assert made.control_plane_subnets == ()
