"""
Reader of EKS control planes: version, endpoints, access, and installed software.

Reads ``AWS::EKS::*``, the charts of Holdfast's constructs, and those of the CDK's own EKS modules.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.catalog import ACCESS_ENTRY, EKS_ADDON, EKS_CLUSTER
from holdfast.validation.cloudformation import UNRESOLVED, Node, Order, Resource, Values, required
from holdfast.validation.model import AccessEntry, Addon, Eks, EksControlPlane, HelmRelease
from holdfast.validation.readers.network import NetworkReader
from holdfast.validation.readers.properties import read_item

CDK_EKS_CLUSTER = "Custom::AWSCDK-EKS-Cluster"
_RELEASES = ("Custom::HoldfastHelmRelease", "Custom::AWSCDK-EKS-HelmChart")
_SERVICE_ACCOUNTS = {
    "amazon-cloudwatch-observability": "cloudwatch-agent",
    "amazon-sagemaker-hyperpod-observability": "hyperpod-observability-operator-otel-collector",
    "amazon-sagemaker-hyperpod-training-operator": "hp-training-operator-controller-manager",
    "aws-fsx-csi-driver": "fsx-csi-controller-sa",
    "vpc-cni": "aws-node",
}
"""The service account of an add-on that a pod identity association of its own names."""


class EksReader:
    def __init__(self, values: Values, network: NetworkReader, order: Order) -> None:
        self._values = values
        self._network = network
        self._order = order

    def eks(self, node: Node, hyperpod: Resource) -> Eks:
        arn = node.get("ClusterArn")
        resource = self._cluster_of(arn)
        return Eks(
            path=node.path,
            places={"cluster_arn": node.place("ClusterArn"), "control_plane": node.place("ClusterArn")},
            cluster_arn=None if resource else arn.text(),
            control_plane=UNRESOLVED if resource is None else self.control_plane(resource, hyperpod),
        )

    def _cluster_of(self, arn: Node) -> Resource | None:
        found = arn.resource(EKS_CLUSTER, CDK_EKS_CLUSTER)
        text = arn.example
        if found is not None or not isinstance(text, str):
            return found
        name = text.rpartition(":cluster/")[2]
        named = (each for each in self._values.graph.of_type(EKS_CLUSTER) if self._name(each) == name)
        return next(named, None) if ":cluster/" in text else None

    def _name(self, cluster: Resource) -> Any:
        return self._values.properties(cluster).get("Name").text()

    def control_plane(self, resource: Resource, hyperpod: Resource | None) -> EksControlPlane:
        """EKS cluster; ``hyperpod``: the HyperPod cluster on it, None without one."""
        settings = self._values.properties(resource)
        spelled: Callable[[str], str] = str
        if resource.type == CDK_EKS_CLUSTER:
            settings, spelled = settings.get("Config"), _in_camel_case
        vpc = settings.get(spelled("ResourcesVpcConfig"))
        subnets, security_groups = vpc.get(spelled("SubnetIds")), vpc.get(spelled("SecurityGroupIds"))
        return read_item(
            EksControlPlane,
            settings,
            spelled=spelled,
            vpc=self._network.vpc_config(vpc, subnets=subnets, security_groups=security_groups),
            addons=self._addons(resource),
            releases=self._releases(resource, hyperpod),
            access_entries=self._access_entries(resource),
            node_roles=self._node_roles(resource),
        )

    def _owned(self, kind: str, cluster: Resource, property_name: str = "ClusterName") -> Any:
        """Resources of a kind that name the cluster; UNRESOLVED if there may be more."""
        linked = self._values.linked([kind], [property_name], cluster)
        return linked.found if linked.complete and self._values.graph.complete else UNRESOLVED

    def _addons(self, cluster: Resource) -> Any:
        addons = self._owned(EKS_ADDON, cluster)
        return UNRESOLVED if addons is UNRESOLVED else tuple(self._addon(each, cluster) for each in addons)

    def _addon(self, resource: Resource, cluster: Resource) -> Addon:
        properties = self._values.properties(resource)
        name = required(properties.get("AddonName").text())
        return read_item(
            Addon,
            properties,
            configuration=_configuration(properties.get("ConfigurationValues")),
            has_role=properties.get("ServiceAccountRoleArn").present
            or properties.get("PodIdentityAssociations").present
            or self._has_pod_identity(name, cluster),
        )

    def _has_pod_identity(self, addon: Any, cluster: Resource) -> Any:
        associations = self._owned("AWS::EKS::PodIdentityAssociation", cluster)
        if associations is UNRESOLVED or addon is UNRESOLVED:
            return UNRESOLVED
        accounts = [self._values.properties(each).get("ServiceAccount").text() for each in associations]
        if addon in _SERVICE_ACCOUNTS and _SERVICE_ACCOUNTS[addon] in accounts:
            return True
        return UNRESOLVED if accounts and (addon not in _SERVICE_ACCOUNTS or UNRESOLVED in accounts) else False

    def _releases(self, cluster: Resource, hyperpod: Resource | None) -> Any:
        found = []
        for resource in self._values.graph.of_type(*_RELEASES):
            # Holdfast's releases name no cluster: they belong to that which their installer is made for.
            if cluster in self._order.before(resource):
                found.append(resource)
            elif resource.template is not cluster.template:
                named = self._values.properties(resource).get("ClusterName").is_resource(cluster)
                if named is None:
                    return UNRESOLVED
                found += [resource] if named else []
        if not self._values.graph.complete or any(resource.conditional for resource in found):
            return UNRESOLVED
        if not found and any(map(_may_install, self._values.graph.resources())):
            return UNRESOLVED
        return tuple(self._release(each, hyperpod) for each in found)

    def _release(self, resource: Resource, hyperpod: Resource | None) -> HelmRelease:
        properties = self._values.properties(resource)
        chart = next((each for each in map(properties.get, ("ChartPath", "Chart", "Release")) if each.present), None)
        name = UNRESOLVED if chart is None else chart.text()
        return HelmRelease(
            path=properties.path,
            places={"before_cluster": f"{(hyperpod or resource).path.removesuffix('.Properties')}.DependsOn"},
            chart=name.rpartition("/")[2] if isinstance(name, str) else UNRESOLVED,
            before_cluster=resource in self._order.before(hyperpod)
            if hyperpod is not None and resource.template is hyperpod.template
            else UNRESOLVED,
        )

    def _access_entries(self, cluster: Resource) -> Any:
        entries = self._owned(ACCESS_ENTRY, cluster)
        return UNRESOLVED if entries is UNRESOLVED else tuple(map(self._access_entry, entries))

    def _access_entry(self, resource: Resource) -> AccessEntry:
        properties = self._values.properties(resource)
        return read_item(AccessEntry, properties, principal=self._role_id(properties.get("PrincipalArn")))

    def _node_roles(self, cluster: Resource) -> Any:
        groups = self._owned("AWS::EKS::Nodegroup", cluster)
        if groups is UNRESOLVED:
            return UNRESOLVED
        roles = {self._role_id(self._values.properties(each).get("NodeRole")) for each in groups}
        return UNRESOLVED if UNRESOLVED in roles else frozenset(roles)

    def _role_id(self, node: Node) -> Any:
        role = node.resource("AWS::IAM::Role")
        return required(node.text()) if role is None else self._values.graph.identity(role)


def _in_camel_case(name: str) -> str:
    """Names of the CDK's older module, which passes settings to the API unchanged."""
    return name[0].lower() + name[1:]


def _may_install(resource: Resource) -> bool:
    """True if a foreign custom resource may install charts, as in AWS's own templates."""
    own = resource.type.startswith("Custom::") or resource.type == "AWS::CloudFormation::CustomResource"
    words = (resource.type, resource.logical_id, json.dumps(resource.body.get("Properties"), default=repr))
    return own and any(part in word.lower() for word in words for part in ("helm", "chart"))


def _configuration(node: Node) -> Any:
    if not node.present:
        return {}
    text = node.text()
    if not isinstance(text, str):
        return UNRESOLVED
    try:
        settings = json.loads(text)
    except ValueError:
        return UNRESOLVED
    return settings if isinstance(settings, Mapping) else UNRESOLVED
