"""Lookups for rules about EKS in templates: clusters, versions, tags and blocks."""

import ipaddress

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.model import App

ADDONS = "EKS user guide, 'AWS add-ons'"
CLUSTER, ADDON, ENTRY = "AWS::EKS::Cluster", "AWS::EKS::Addon", "AWS::EKS::AccessEntry"
SERVICE_BLOCKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


def cluster_of(app: App, node: Node) -> Resource | None:
    named = node.get("ClusterName")
    found = named.resource(CLUSTER)
    if found is None and isinstance(named.value, str):
        found = next((each for each, own in app.each(CLUSTER) if own.get("Name").value == named.value), None)
    return found


def network_of(value: object) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


def vpcs_of(app: App, subnets: Node) -> list[Resource]:
    """Return the VPCs of a list of subnets, as far as they are of the app."""
    own = [each for entry in subnets.items() or () if (each := entry.resource("AWS::EC2::Subnet")) is not None]
    found = [app.node(each).get("VpcId").resource("AWS::EC2::VPC") for each in own]
    return list(dict.fromkeys(each for each in found if each is not None))
