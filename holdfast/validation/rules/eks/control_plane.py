"""3xx: what HyperPod needs of the EKS control plane."""

import re
from collections.abc import Iterator

from holdfast.catalog import kubernetes_versions
from holdfast.catalog.facts import page_fact
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import AccessEntry, Deployment, Eks, EksControlPlane, groups_of, zones_of

EKS = "SageMaker developer guide, 'Getting started with Amazon EKS support in SageMaker HyperPod'"

_OUTSIDE = re.compile(r"(?<=\d)-(?:wl\d|[a-z]{3}-?\d).*$")
"""Text behind a region's name, or its short form in ids, where a zone is a Local or Wavelength Zone."""
_FIRST = {"availability_zone": "a", "availability_zone_id": "-az1"}


@rule(
    "HF301", title="The EKS cluster accepts access entries (authentication mode API)", each=EksControlPlane, source=EKS
)
def authentication_mode(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """
    HyperPod's nodes join by an access entry, which the modes API and API_AND_CONFIG_MAP know. The default of
    CloudFormation is CONFIG_MAP.
    """
    if plane.authentication_mode not in ("API", "API_AND_CONFIG_MAP"):
        yield refused(
            plane.at("authentication_mode"),
            show(plane.authentication_mode or "CONFIG_MAP"),
            allowed="API or API_AND_CONFIG_MAP",
            fix="write API",
        )


@rule(
    "HF302",
    title="The Kubernetes version is one that HyperPod supports",
    each=EksControlPlane,
    source=EKS,
    suppressible=True,
)
def kubernetes_version(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """
    EKS offers versions before HyperPod accepts them, and the CDK knows those. The list moves often and is in
    holdfast/catalog/kubernetes.json with its date; a newer version can be suppressed once AWS documents it.
    """
    if plane.version not in kubernetes_versions():
        yield refused(
            plane.at("version"),
            show(plane.version) if plane.version else "no version, so the newest of EKS",
            allowed=f"one of {', '.join(kubernetes_versions())}",
            fix=f'write "{kubernetes_versions()[-1]}"',
        )


@rule(
    "HF306",
    title="Access entries of nodes' roles have the type HYPERPOD_LINUX",
    each=AccessEntry,
    source="SageMaker API reference, ClusterMetadata (EksRoleAccessEntries); EKS API reference, CreateAccessEntry",
)
def access_entry(entry: AccessEntry, deployment: Deployment) -> Iterator[Broken]:
    """
    HyperPod makes the entry of each group's role itself ("created by HyperPod on your behalf"), and takes one of type
    HYPERPOD_LINUX that is there. A principal has one entry, so with one of another type nodes boot and never join.
    """
    if entry.type == "HYPERPOD_LINUX":
        return
    file = deployment.file
    if file is None and entry.principal in {
        group.role.id for group in groups_of(deployment.cluster) if group.role is not None
    }:
        yield refused(
            entry.at("type"),
            f"{entry.type} for {entry.principal}, the role of HyperPod's nodes",
            allowed="HYPERPOD_LINUX, or no entry of your own",
            fix="write Type: HYPERPOD_LINUX, or remove the entry",
        )
    if file is not None and file.existing is not None and entry.principal in file.existing.roles:
        yield refused(
            entry.path,
            f"{entry.principal}, the role of HyperPod's nodes",
            allowed="roles of people: HyperPod makes the access entry of its nodes",
            fix="remove it, or name the role with which people sign in",
        )


@rule(
    "HF307",
    title="Access entries of nodes have no policies",
    each=AccessEntry,
    source="EKS API reference, AssociateAccessPolicy",
)
def entry_without_policies(entry: AccessEntry, _: Deployment) -> Iterator[Broken]:
    """Entries of the type HYPERPOD_LINUX get their rights from the type; EKS refuses policies on them."""
    if entry.type == "HYPERPOD_LINUX" and entry.policies:
        yield refused(entry.at("policies"), "access policies", allowed="none on HYPERPOD_LINUX", fix="remove them")


@rule("HF308", title="HyperPod's nodes share no role with other nodes", each=Eks, source=EKS)
def separate_roles(eks: Eks, deployment: Deployment) -> Iterator[Broken]:
    """A role that is also that of EKS nodes has an access entry of another type, and an entry has one type."""
    if eks.control_plane is None:
        return
    for group in groups_of(deployment.cluster):
        if group.role is not None and group.role.id in eks.control_plane.node_roles:
            yield refused(
                group.at("role"), "the role of EKS nodes", allowed="a role of HyperPod's own", fix="make another role"
            )


@rule(
    "HF317",
    title="The EKS cluster has subnets in two zones",
    each=EksControlPlane,
    source="EKS user guide, 'View Amazon EKS networking requirements'",
)
def two_zones(plane: EksControlPlane, deployment: Deployment) -> Iterator[Broken]:
    """
    The control plane's network interfaces are in two zones or more, even when all nodes are in one. The second zone
    needs a small subnet only.
    """
    subnets = plane.vpc.subnets
    found = zones_of(subnets) if len(subnets) > 1 else []
    zones, unsaid = {zone for zone in found if zone is not None}, found.count(None)
    if len(zones) + unsaid < 2:
        count = "1 subnet" if len(subnets) == 1 else f"{len(subnets)} subnets"
        yield refused(
            plane.vpc.at("subnets"),
            f"subnets in {', '.join(sorted(zones))}" if zones else count,
            allowed="subnets in two zones",
            fix="name another zone here"
            if deployment.file is not None and deployment.file.new_network
            else "add subnets in two zones here",
        )


@rule(
    "HF351",
    title="EKS takes the zones of the control plane's subnets",
    each=EksControlPlane,
    source="EKS user guide, 'View Amazon EKS networking requirements', subnet requirements for clusters; 'Create "
    "self-managed Amazon Linux nodes': subnets of Local and Wavelength Zones are not passed to a cluster",
)
def zones(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """The control plane's network interfaces cannot be in a few old zones, nor in Local and Wavelength Zones."""
    for subnet in plane.vpc.subnets:
        if subnet.availability_zone_id in page_fact("eks_refused_zones"):
            yield refused(
                subnet.at("availability_zone_id"),
                f"{subnet.availability_zone_id} for the control plane",
                allowed=f"zones other than {', '.join(page_fact('eks_refused_zones'))}",
                fix="take another zone of the region",
            )
            continue
        by = "availability_zone" if subnet.availability_zone_id is None else "availability_zone_id"
        zone = (getattr(subnet, by) or "") if subnet.is_known(by) else ""
        if _OUTSIDE.search(zone):
            yield refused(
                subnet.at(by),
                f"{zone}, a Local or Wavelength Zone, for the control plane",
                allowed="Availability Zones",
                fix=f"take a zone of the region such as {_OUTSIDE.sub(_FIRST[by], zone)}",
            )


@rule(
    "HF318",
    severity="warning",
    title="The Kubernetes API is not open to the internet",
    each=EksControlPlane,
    source="EKS best practices guide, 'Identity and Access Management'",
)
def public_api(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """
    The default of CloudFormation is a public endpoint for everybody. Name the blocks that may reach it, or keep it
    private.
    """
    if plane.public_access and (not plane.public_access_cidrs or "0.0.0.0/0" in plane.public_access_cidrs):
        yield Broken(
            path=plane.at("public_access_cidrs"),
            message="the Kubernetes API is reachable from anywhere on the internet",
            fix="name the blocks that may, or turn public access off",
        )


@rule(
    "HF319",
    severity="warning",
    title="Nodes reach the Kubernetes API inside the VPC",
    each=EksControlPlane,
    source="EKS user guide, 'Cluster API server endpoint'",
)
def private_api(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """Without private access nodes talk to the API through the NAT gateway, and in a closed network not at all."""
    if plane.public_access and not plane.private_access:
        yield Broken(
            path=plane.at("private_access"),
            message="nodes reach the Kubernetes API over the internet only",
            fix="turn private access on",
        )
