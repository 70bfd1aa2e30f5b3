"""0xx: orderings among what runs in Kubernetes, and of addresses, secrets and rules that a cluster needs."""

import re
from collections.abc import Iterator

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.engine import Broken, rule
from holdfast.validation.model import App, Deployment, references_in, text_of
from holdfast.validation.rules.network import node_groups
from holdfast.validation.rules.templates.order import CLUSTER, DEPENDS_ON, is_before, too_late

ADDRESS = "AWS::EC2::EIP"
ADDON, IDENTITY, NODEGROUP = "AWS::EKS::Addon", "AWS::EKS::PodIdentityAssociation", "AWS::EKS::Nodegroup"
EKS_PREREQUISITES = "SageMaker developer guide, 'Installing packages on the Amazon EKS cluster using Helm'"
_ACCOUNTS = {
    "amazon-sagemaker-hyperpod-training-operator": "hp-training-operator-controller-manager",
    "amazon-cloudwatch-observability": "cloudwatch-agent",
    "aws-fsx-csi-driver": "fsx-csi-controller-sa",
    "vpc-cni": "aws-node",
    "amazon-sagemaker-hyperpod-observability": "hyperpod-observability-operator-otel-collector",
}
_CHARTS = re.compile(r"chart|helm", re.IGNORECASE)


@rule(
    "HF047",
    title="The cluster is created after the security group rules between its nodes",
    each=App,
    source=f"{DEPENDS_ON}; SageMaker developer guide, 'Prerequisites': all traffic within the security group",
)
def cluster_after_rules(app: App, _: Deployment) -> Iterator[Broken]:
    """
    HyperPod checks EFA and lets nodes find each other as soon as they are made. Rules that are resources of their own
    come after the security group, which is all that the cluster names.
    """
    for cluster, _node in app.each(CLUSTER):
        for group in node_groups(app):
            late = [
                each
                for kind in ("Ingress", "Egress")
                for each in app.values.linked([f"AWS::EC2::SecurityGroup{kind}"], ["GroupId"], group).found
                if _within(app, each, group) and not is_before(app, each, cluster)
            ]
            if late:
                yield too_late(cluster, late, f"the rules between nodes of {group.logical_id}")


@rule(
    "HF048",
    title="The cluster is created after the Helm charts that HyperPod needs",
    each=App,
    source=EKS_PREREQUISITES,
)
def cluster_after_charts(app: App, _: Deployment) -> Iterator[Broken]:
    """
    HyperPod's charts are installed "before creating your HyperPod cluster": without the health monitoring agent and the
    network plugin the nodes do not get ready. EKS installs a network plugin itself, unless BootstrapSelfManagedAddons
    is false.
    """
    for cluster, properties in app.each(CLUSTER):
        eks = {each.resource for each in references_in(properties.get("Orchestrator", "Eks").value)}
        if not properties.get("Orchestrator", "Eks").present:
            continue
        for resource in app.all():
            custom = resource.type.startswith("Custom::") or resource.type == "AWS::CloudFormation::CustomResource"
            if resource.template is not cluster.template or not custom:
                continue
            held = {each.resource for each in references_in(app.node(resource).value)}
            chart = _CHARTS.search(f"{resource.type} {resource.logical_id}")
            if (chart and (held & eks or not eks) and not _known_release(resource)) and (
                not is_before(app, resource, cluster) and cluster not in app.order.before(resource)
            ):
                yield too_late(cluster, resource, "what installs HyperPod's charts")
        for addon, node in app.each(ADDON):
            of_this = _without_plugin(app, node) & eks
            if node.get("AddonName").value == "vpc-cni" and of_this and not is_before(app, addon, cluster):
                yield too_late(cluster, addon, "the network plugin of pods")
    for group, node in app.each(NODEGROUP):
        eks = {each.resource for each in references_in(node.get("ClusterName").value)}
        for addon, own in app.each(ADDON):
            same = _without_plugin(app, own) & eks
            if (own.get("AddonName").value == "vpc-cni" and same and not is_before(app, addon, group)) and (
                group not in app.order.before(addon)
            ):
                yield too_late(group, addon, "the network plugin of pods")


def _without_plugin(app: App, addon: Node) -> set[Resource]:
    """Clusters of an add-on that have no network plugin of EKS's own."""
    clusters = {each.resource for each in references_in(addon.get("ClusterName").value)}
    return {each for each in clusters if app.node(each).get("BootstrapSelfManagedAddons").value in (False, "false")}


@rule(
    "HF049",
    title="Add-ons are created after their pods' roles and the add-ons they need",
    each=App,
    source="EKS user guide, 'Assign an IAM role to a Kubernetes service account'; SageMaker developer guide, "
    "'Installing the training operator'",
)
def addons_after_roles(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Pods that start before their pod identity association is there get no credentials, and keep none until they are made
    again. The training operator needs cert-manager to be there; a scheduler's policy needs task governance.
    """
    addons = list(app.each(ADDON))
    for addon, node in addons:
        name = node.get("AddonName").value
        cluster = node.get("ClusterName").token
        account = _ACCOUNTS.get(str(name))
        late = [
            each
            for each, own in app.each(IDENTITY)
            if account is not None
            and own.get("ServiceAccount").value == account
            and own.get("ClusterName").token == cluster
            and not is_before(app, each, addon)
        ]
        if str(name).endswith("hyperpod-training-operator"):
            late += [
                each
                for each, own in addons
                if own.get("AddonName").value == "cert-manager" and not is_before(app, each, addon)
            ]
        if late:
            yield too_late(addon, late, f"what {name} needs")
    for scheduler, _node in app.each("AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"):
        late = [
            each
            for each, own in addons
            if str(own.get("AddonName").value).endswith("hyperpod-taskgovernance")
            and not is_before(app, each, scheduler)
        ]
        if late:
            yield too_late(scheduler, late, "the add-on that acts by it")


@rule(
    "HF065",
    title="Elastic IPs and secrets are used only after they are ready",
    each=App,
    source=f"{DEPENDS_ON}, 'VPC-gateway attachment'; CloudFormation reference, AWS::EC2::NatGateway, "
    "AWS::SecretsManager::SecretTargetAttachment",
)
def whole_before_use(app: App, _: Deployment) -> Iterator[Broken]:
    """
    An elastic IP address and a public NAT gateway need the internet gateway to be attached to the VPC first; an address
    that only NAT gateways take is in the VPC when they are, and waits with them. A secret holds the address of its
    database only after the attachment was made.
    """
    yield from _before_the_gateway(app)
    for cluster, properties in app.each(CLUSTER):
        secret = properties.get("Orchestrator", "Slurm", "AccountingDatabase", "SecretArn")
        found = secret.resource("AWS::SecretsManager::Secret")
        for each, node in app.each("AWS::SecretsManager::SecretTargetAttachment"):
            if (found is not None and node.get("SecretId").resource("AWS::SecretsManager::Secret") is found) and (
                not is_before(app, each, cluster)
            ):
                yield too_late(cluster, each, "what puts the database's address into the secret")


def _before_the_gateway(app: App) -> Iterator[Broken]:
    attachments = [each for each, _node in app.each("AWS::EC2::VPCGatewayAttachment")]
    routes = [
        each
        for each, node in app.each("AWS::EC2::Route")
        if node.get("GatewayId").resource("AWS::EC2::InternetGateway")
    ]
    taken: set[Resource] = set()
    all_known = True
    for nat, node in app.each("AWS::EC2::NatGateway"):
        taken |= set(_held(app, nat))
        allocation = node.get("AllocationId")
        if allocation.present and not any(each.resource.type == ADDRESS for each in references_in(allocation.value)):
            all_known = False  # it may be any of the app's, and may wait for the gateway
            continue
        own = [each for each in (*attachments, *routes) if each.template is nat.template]
        waits = any(is_before(app, each, nat) for each in own)
        if own and node.get("ConnectivityType").value != "private" and not waits:
            yield too_late(nat, own[-1], "the way out of its subnet")
    for address, node in app.each(ADDRESS):
        own = [each for each in attachments if each.template is address.template]
        # An address alone does no harm: it is the NAT gateway with it that goes out, and that one is told.
        if address in taken or not all_known or node.get("Domain").value != "vpc":
            continue
        if own and not any(is_before(app, each, address) for each in own):
            yield too_late(address, own[0], "the attachment of the gateway")


@rule(
    "HF066",
    title="A function that installs charts has its access entry before it runs",
    each=App,
    source="EKS user guide, 'Grant IAM users access to Kubernetes with EKS access entries'",
)
def charts_after_access(app: App, _: Deployment) -> Iterator[Broken]:
    """A function that installs charts has no access to Kubernetes before its role has an access entry."""
    for resource in app.all():
        custom = resource.type.startswith("Custom::") or resource.type == "AWS::CloudFormation::CustomResource"
        if not custom or _known_release(resource) or not _CHARTS.search(f"{resource.type} {resource.logical_id}"):
            continue
        roles = {
            each.resource
            for function in _held(app, resource)
            if function.type == "AWS::Lambda::Function"
            for each in references_in(app.node(function).get("Role").value)
        }
        for entry, node in app.each("AWS::EKS::AccessEntry"):
            principal = node.get("PrincipalArn").resource("AWS::IAM::Role")
            # The role of a function that is made elsewhere is known by its name alone.
            named = not roles and _CHARTS.search(text_of(node.get("PrincipalArn").value) or "")
            if (named or (principal is not None and principal in roles)) and not is_before(app, entry, resource):
                yield too_late(resource, entry, "the access of what installs charts")


def _within(app: App, traffic: Resource, group: Resource) -> bool:
    node = app.node(traffic)
    names = ("SourceSecurityGroupId", "DestinationSecurityGroupId")
    return any(node.get(name).resource("AWS::EC2::SecurityGroup") is group for name in names)


def _known_release(resource: Resource) -> bool:
    return resource.type in ("Custom::HoldfastHelmRelease", "Custom::AWSCDK-EKS-HelmChart")


def _held(app: App, resource: Resource) -> list[Resource]:
    return list(dict.fromkeys(each.resource for each in references_in(app.node(resource).value)))
