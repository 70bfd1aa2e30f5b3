"""Lookups for rules about networks in templates: routes, groups and traffic."""

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.model import App

ENDPOINT, VPC, SUBNET, GROUP = "AWS::EC2::VPCEndpoint", "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup"
ANYWHERE = ("0.0.0.0/0", "::/0")


def node_subnets(app: App) -> list[Resource]:
    entries: list[Node] = []
    for _cluster, node in app.each("AWS::SageMaker::Cluster"):
        entries += node.get("VpcConfig", "Subnets").items() or ()
        for kind in ("InstanceGroups", "RestrictedInstanceGroups"):
            for group in node.get(kind).items() or ():
                entries += group.get("OverrideVpcConfig", "Subnets").items() or ()
    for _group, node in app.each("AWS::EKS::Nodegroup"):
        entries += node.get("Subnets").items() or ()
    found = [entry.resource(SUBNET) for entry in entries]
    return list(dict.fromkeys(each for each in found if each is not None))


def vpc_of(app: App, resource: Resource) -> Resource | None:
    return app.node(resource).get("VpcId").resource(VPC)
