"""3xx: who gets into a Kubernetes cluster."""

import ipaddress
import re
from collections.abc import Iterator

from holdfast.catalog import bounds
from holdfast.catalog.facts import page_fact
from holdfast.validation.cloudformation import Node
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import AccessEntry, App, Deployment, EksControlPlane, text_of
from holdfast.validation.rules.eks.lookups import ADDON, ADDONS, CLUSTER, ENTRY, SERVICE_BLOCKS, network_of
from holdfast_common import closest_word

ACCESS = "EKS user guide, 'Create access entries' and 'Review access policy permissions'"
MOST_BLOCKS = bounds("public_access_cidrs").most
_NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYPERPOD_LINUX", "EC2")
_ENTRY_TYPES = ("STANDARD", *_NODE_TYPES, "HYBRID_LINUX")


@rule(
    "HF338", title="Access entries have a principal and type that EKS accepts", each=(AccessEntry, App), source=ACCESS
)
def access_entries(item: AccessEntry | App, deployment: Deployment) -> Iterator[Broken]:
    """
    Types are EKS's words. Service-linked roles get no entry. Policies, groups and user names are for STANDARD; the ARN
    of a policy is arn:aws:eks::aws:cluster-access-policy/NAME, and a scope of type namespace names namespaces. Groups
    and user names do not begin with system:.
    """
    if isinstance(item, AccessEntry):
        if deployment.file is not None:
            yield from _service_linked(item.path, item.principal)
        return
    known = set(page_fact("access_policies"))
    for entry, node in item.each(ENTRY):
        kind = node.get("Type").text()
        yield from _service_linked(f"{entry.path}.PrincipalArn", text_of(node.get("PrincipalArn").value) or "")
        yield from _words_of_people(entry.path, node, kind)
        if isinstance(kind, str) and kind not in _ENTRY_TYPES:
            yield refused(
                f"{entry.path}.Type",
                show(kind),
                allowed=", ".join(_ENTRY_TYPES),
                fix=f"write {closest_word(kind, _ENTRY_TYPES) or 'STANDARD'}",
            )
        if kind in _NODE_TYPES and kind not in ("HYPERPOD_LINUX", "EC2") and node.get("AccessPolicies").items():
            yield refused(
                f"{entry.path}.AccessPolicies",
                f"policies on an entry of type {kind}",
                allowed="none",
                fix="remove them, or write Type: STANDARD",
            )
        for policy in node.get("AccessPolicies").items() or ():
            yield from _access_policy(policy, known)


@rule(
    "HF339",
    title="The Kubernetes API endpoint can be reached",
    each=EksControlPlane,
    source="EKS user guide, 'Cluster API server endpoint' and 'View and manage Amazon EKS service quotas'",
)
def endpoint_access(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """
    Public access, private access, or both; without either the API is unreachable. Blocks of addresses are for public
    access, at most 40, and those of private networks never come from the internet.
    """
    if not plane.private_access and not plane.public_access:
        yield refused(
            plane.at("private_access"),
            "neither public nor private access",
            allowed="at least one",
            fix=f"set {plane.word('private_access')} to true",
        )
    blocks = plane.public_access_cidrs
    if len(blocks) > MOST_BLOCKS:
        yield refused(
            plane.at("public_access_cidrs"),
            f"{len(blocks)} blocks",
            allowed=f"at most {MOST_BLOCKS}",
            fix="join blocks that lie side by side, or reach the API through the VPC",
        )
    for index, block in enumerate(blocks):
        if "/" not in block:
            yield refused(
                f"{plane.at('public_access_cidrs')}.{index}",
                f"{show(block)}, an address without the length of its prefix",
                allowed="blocks in CIDR notation",
                fix=f"write {block}/{128 if ':' in block else 32}",
            )
        if _is_private(block):
            yield _never_from_outside(f"{plane.at('public_access_cidrs')}.{index}", block)


@rule(
    "HF348", title="Add-ons and access entries name the template's own cluster", each=App, source=f"{ADDONS}; {ACCESS}"
)
def named_clusters(app: App, _: Deployment) -> Iterator[Broken]:
    """A name that no cluster of the template has, in a template that makes one, is of another cluster or of none."""
    clusters = list(app.each(CLUSTER))
    names = [node.get("Name").value for _cluster, node in clusters]
    if not clusters or not all(isinstance(name, str) for name in names):
        return
    kinds = (ADDON, ENTRY, "AWS::EKS::Nodegroup", "AWS::EKS::PodIdentityAssociation", "AWS::EKS::FargateProfile")
    for resource, node in app.each(*kinds):
        name = node.get("ClusterName")
        if isinstance(name.value, str) and name.value not in names:
            yield refused(
                name.path,
                f"{show(name.value)}, which no cluster of the template is called",
                allowed=f"{', '.join(map(str, names))}",
                fix=f"write !Ref {clusters[0][0].logical_id} in {resource.logical_id}",
            )


@rule("HF349", severity="warning", title="The Kubernetes cluster has an administrator", each=App, source=ACCESS)
def has_access_entry(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The creator of a cluster administers it only with BootstrapClusterCreatorAdminPermissions; all others need an access
    entry. With neither, kubectl is refused for everyone.
    """
    for cluster, node in app.each(CLUSTER):
        access = node.get("AccessConfig", "BootstrapClusterCreatorAdminPermissions")
        entries = [own for _entry, own in app.each(ENTRY) if (own.get("Type").text() or "STANDARD") == "STANDARD"]
        if access.boolean(default=True) is False and not entries and app.complete:
            yield Broken(
                path=access.path,
                message=f"no access to {cluster.logical_id}: no access entry, and no rights of its creator",
                fix="add an AWS::EKS::AccessEntry with AmazonEKSClusterAdminPolicy for who administers it",
            )


def _service_linked(path: str, principal: str) -> Iterator[Broken]:
    if ":role/aws-service-role/" in principal:
        yield refused(
            path,
            f"the service-linked role {principal.rpartition('/')[2]}",
            allowed="users and other roles",
            fix="name a role that people or functions assume",
        )


def _words_of_people(path: str, node: Node, kind: object) -> Iterator[Broken]:
    """Groups and the user name of an entry, which nodes have none of."""
    for name, entries in (
        ("KubernetesGroups", node.get("KubernetesGroups").items() or []),
        ("Username", [node.get("Username")] if node.get("Username").present else []),
    ):
        if entries and kind in _NODE_TYPES:
            yield refused(f"{path}.{name}", f"{name} on an entry of type {kind}", allowed="none", fix=f"remove {name}")
            continue
        for entry in entries:
            if isinstance(entry.value, str) and re.match(r"^(system|eks|aws|amazon|iam):", entry.value):
                yield refused(
                    entry.path,
                    show(entry.value),
                    allowed="names that do not begin with system:, eks:, aws:, amazon: or iam:",
                    fix="use an access policy, such as AmazonEKSClusterAdminPolicy, or a name of your own",
                )


def _is_private(value: object) -> bool:
    network = network_of(value)
    return network is not None and any(network.subnet_of(ipaddress.IPv4Network(each)) for each in SERVICE_BLOCKS)


def _never_from_outside(path: str, block: str) -> Broken:
    return refused(
        path,
        f"{block}, a block of private addresses",
        allowed="public addresses",
        fix="write the public addresses that people come from, or turn public access off",
    )


def _access_policy(policy: Node, known: set[str]) -> Iterator[Broken]:
    arn = policy.get("PolicyArn")
    text = text_of(arn.value)
    if text is not None:
        before, _, name = text.rpartition("/")
        if ":iam::" in text:
            yield refused(
                arn.path,
                show(text),
                allowed="arn:aws:eks::aws:cluster-access-policy/NAME",
                fix="name an access policy of EKS, such as AmazonEKSClusterAdminPolicy",
            )
        elif "cluster-access-policy" not in before and "${" not in text:
            yield refused(
                arn.path,
                show(text),
                allowed="arn:aws:eks::aws:cluster-access-policy/NAME",
                fix=f"write arn:aws:eks::aws:cluster-access-policy/{name}",
            )
        elif name not in known and "${" not in name and (meant := closest_word(name, known)):
            yield refused(arn.path, name, allowed=", ".join(sorted(known)[:6]), fix=f"did you mean {meant}?")
    kind, spaces = policy.get("AccessScope", "Type").text(), policy.get("AccessScope", "Namespaces")
    if kind == "namespace" and not spaces.present:
        yield refused(
            f"{policy.path}.AccessScope",
            "a scope of type namespace without namespaces",
            allowed="at least one namespace",
            fix="add Namespaces, or write Type: cluster",
        )
    if kind == "cluster" and spaces.present:
        yield refused(
            f"{policy.path}.AccessScope",
            "namespaces in a scope of type cluster",
            allowed="none",
            fix="write Type: namespace, or remove Namespaces",
        )
