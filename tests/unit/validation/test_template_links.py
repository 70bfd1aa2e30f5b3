"""How network and roles are put together from resources that name each other."""

from typing import Any

import pytest

from holdfast.validation import UNRESOLVED, Role, SecurityGroup, Subnet
from holdfast.validation.cloudformation import Graph, Template, Values
from holdfast.validation.readers import NetworkReader, RoleReader

GROUP = {"Fn::GetAtt": ["Group", "GroupId"]}
MANAGED = {
    "Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"]]
}


def values(region: str | None = None, **resources: Any) -> Values:
    return Values(Graph([Template(body={"Resources": resources}, region=region)]))


def security_group(**resources: Any) -> SecurityGroup:
    holder = {"Type": "Test::Holder", "Properties": {"Groups": [GROUP], "Subnets": []}}
    found = values(Holder=holder, **resources)
    node = found.properties(next(found.graph.of_type("Test::Holder")))
    (group,) = (
        NetworkReader(found)
        .vpc_config(node, subnets=node.get("Subnets"), security_groups=node.get("Groups"))
        .security_groups
    )
    return group


def subnet(**resources: Any) -> Subnet:
    holder = {"Type": "Test::Holder", "Properties": {"Groups": [], "Subnets": [{"Ref": "Subnet"}]}}
    found = values(Holder=holder, Subnet={"Type": "AWS::EC2::Subnet", "Properties": {}}, **resources)
    node = found.properties(next(found.graph.of_type("Test::Holder")))
    (read,) = (
        NetworkReader(found).vpc_config(node, subnets=node.get("Subnets"), security_groups=node.get("Groups")).subnets
    )
    return read


def role(*, region: str | None = None, policies: dict[str, Any] | None = None, **properties: Any) -> Role:
    body = {"Type": "AWS::IAM::Role", "Properties": properties}
    holder = {"Type": "Test::Holder", "Properties": {"Role": {"Fn::GetAtt": ["Role", "Arn"]}}}
    found = values(region, Holder=holder, Role=body, **(policies or {}))
    read = RoleReader(found).role(found.properties(next(found.graph.of_type("Test::Holder"))).get("Role"))
    assert read is not None
    return read


def attribute(item: object, name: str) -> Any:
    """An attribute also when it is UNRESOLVED."""
    return vars(item)[name]


def test_a_security_group_has_its_own_rules_and_those_of_separate_resources() -> None:
    group = security_group(
        Group={
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {
                "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"}]
            },
        },
        Self={
            "Type": "AWS::EC2::SecurityGroupIngress",
            "Properties": {"GroupId": {"Ref": "Group"}, "IpProtocol": -1, "SourceSecurityGroupId": GROUP},
        },
        Elsewhere={
            "Type": "AWS::EC2::SecurityGroupIngress",
            "Properties": {"GroupId": "sg-1", "IpProtocol": "-1", "CidrIp": "0.0.0.0/0"},
        },
    )

    assert [(rule.protocol, rule.from_port, rule.to_port, rule.peer) for rule in group.ingress] == [
        ("tcp", 22, 22, "10.0.0.0/8"),
        ("-1", None, None, "Group"),
    ]


def test_a_group_without_egress_of_its_own_may_go_anywhere() -> None:
    group = security_group(Group={"Type": "AWS::EC2::SecurityGroup", "Properties": {}})

    assert [(rule.protocol, rule.peer) for rule in group.egress] == [("-1", "0.0.0.0/0")]


def routes(**route: Any) -> dict[str, Any]:
    return {
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {}},
        "Internet": {"Type": "AWS::EC2::InternetGateway"},
        "Association": {
            "Type": "AWS::EC2::SubnetRouteTableAssociation",
            "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}},
        },
        "Route": {"Type": "AWS::EC2::Route", "Properties": {"RouteTableId": {"Ref": "Table"}, **route}},
    }


@pytest.mark.parametrize(
    ("route", "public"),
    [
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": {"Ref": "Internet"}}, True),
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-0123"}, True),
        ({"DestinationIpv6CidrBlock": "::/0", "GatewayId": {"Ref": "Internet"}}, True),
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "vgw-0123"}, False),
        ({"DestinationCidrBlock": "192.168.0.0/16", "GatewayId": {"Ref": "Internet"}}, False),
        ({"DestinationCidrBlock": "0.0.0.0/0", "TransitGatewayId": {"Ref": "Parameter"}}, False),
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": {"Ref": "Parameter"}}, UNRESOLVED),
        ({"DestinationCidrBlock": {"Ref": "Parameter"}, "GatewayId": {"Ref": "Internet"}}, UNRESOLVED),
    ],
)
def test_a_subnet_is_public_when_it_routes_to_an_internet_gateway(route: dict[str, Any], public: object) -> None:
    assert attribute(subnet(**routes(**route)), "public") is public


def test_a_subnet_without_a_route_table_of_its_own_is_private() -> None:
    assert subnet().public is False


def test_a_role_has_the_statements_of_all_its_policies() -> None:
    def document(action: str) -> dict[str, Any]:
        return {"Statement": {"Effect": "Allow", "Action": action, "Resource": {"Fn::GetAtt": ["Data", "Arn"]}}}

    read = role(
        Policies=[{"PolicyDocument": document("a:A")}],
        ManagedPolicyArns=[{"Ref": "Managed"}, MANAGED],
        policies={
            "Data": {"Type": "AWS::S3::Bucket"},
            "Policy": {
                "Type": "AWS::IAM::Policy",
                "Properties": {"Roles": [{"Ref": "Role"}], "PolicyDocument": document("b:B")},
            },
            "Managed": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document("c:C")}},
            "Attached": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {"Roles": [{"Ref": "Role"}], "PolicyDocument": document("d:D")},
            },
            "Other": {
                "Type": "AWS::IAM::RolePolicy",
                "Properties": {"RoleName": {"Ref": "Role"}, "PolicyDocument": document("e:E")},
            },
            "Somebody": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": ["x"], "PolicyDocument": document("f:F")}},
        },
    )

    assert sorted(statement.actions for statement in read.statements) == [
        ("a:A",),
        ("b:B",),
        ("c:C",),
        ("d:D",),
        ("e:E",),
    ]
    assert {statement.resources for statement in read.statements} == {("arn:aws:s3:::${Data}",)}
    assert read.managed_policies == {"AmazonSageMakerClusterInstanceRolePolicy"}


@pytest.mark.parametrize(
    ("service", "trusted"),
    [
        ("sagemaker.amazonaws.com", {"sagemaker.amazonaws.com"}),
        (["a.amazonaws.com", "b.amazonaws.com"], {"a.amazonaws.com", "b.amazonaws.com"}),
        ({"Fn::Join": ["", ["sagemaker.", {"Ref": "AWS::URLSuffix"}]]}, {"sagemaker.amazonaws.com"}),
        ({"Ref": "Parameter"}, UNRESOLVED),
    ],
)
def test_a_role_names_the_services_that_may_take_it(service: Any, trusted: object) -> None:
    document = {"Statement": [{"Effect": "Allow", "Principal": {"Service": service}}]}

    assert attribute(role(AssumeRolePolicyDocument=document), "trusted_services") == trusted


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::111122223333:policy/mine",
        "arn:aws:iam::aws:policy/AdministratorAccess",
        {"Ref": "Parameter"},
    ],
)
def test_a_policy_that_is_not_here_may_allow_anything(arn: Any) -> None:
    (statement,) = role(ManagedPolicyArns=[arn]).statements

    assert not statement.is_known("actions")


def test_what_all_but_some_actions_are_is_not_known() -> None:
    document = {"Statement": [{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}]}
    (statement,) = role(Policies=[{"PolicyDocument": document}]).statements

    assert not statement.is_known("actions")
