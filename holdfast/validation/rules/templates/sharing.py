"""0xx: values that two things may not share."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, EnvironmentFile, text_of

_LISTS = (
    ("eks", "admin_role_arns"),
    ("eks", "public_access_cidrs"),
    ("network", "existing", "control_plane_subnet_ids"),
    ("observability", "alarm_emails"),
    ("lifecycle", "scripts"),
    ("storage", "lustre", "preload"),
)
_GROUP_LISTS = (("override_vpc", "subnet_ids"), ("override_vpc", "security_group_ids"))
_KEYS: Mapping[str, tuple[str, ...]] = {
    "AWS::EKS::PodIdentityAssociation": ("ClusterName", "Namespace", "ServiceAccount"),
    "AWS::EKS::Nodegroup": ("ClusterName", "NodegroupName"),
    "AWS::IAM::ManagedPolicy": ("ManagedPolicyName",),
    "AWS::SageMaker::Cluster": ("ClusterName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::SecretsManager::Secret": ("Name",),
    "AWS::EC2::SecurityGroup": ("VpcId", "GroupName"),
    "AWS::Events::Rule": ("EventBusName", "Name"),
    "AWS::EC2::VPCGatewayAttachment": ("InternetGatewayId",),
    "AWS::FSx::DataRepositoryAssociation": ("FileSystemId", "FileSystemPath"),
    "AWS::EC2::NetworkAclEntry": ("NetworkAclId", "Egress", "RuleNumber"),
    "AWS::EC2::SubnetNetworkAclAssociation": ("SubnetId",),
    "AWS::EC2::NatGateway": ("AllocationId",),
    "AWS::EC2::VPCCidrBlock": ("VpcId", "CidrBlock"),
    "AWS::SageMaker::ClusterSchedulerConfig": ("ClusterArn",),
    "AWS::EFS::MountTarget": ("FileSystemId", "SubnetId"),
}
"""Properties that together tell a resource from others of its type. E3019 has those that are its primary identifier."""


@rule(
    "HF060",
    title="Lists have no entry twice",
    each=EnvironmentFile,
    source="API reference of each service: duplicates are refused",
)
def lists_once(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    A role that administers twice, a subnet or an address that stands twice: either one of them is a slip for another,
    or the deployment fails with "already exists".
    """
    for path in _LISTS:
        yield from _twice(_at(file.data, path), ".".join(path))
    cluster = _at(file.data, ("cluster",))
    for kind in ("instance_groups", "restricted_instance_groups"):
        groups = cluster.get(kind) if isinstance(cluster, Mapping) else None
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            for path in _GROUP_LISTS:
                yield from _twice(_at(group, path), f"cluster.{kind}.{index}.{'.'.join(path)}")
    existing = _at(file.data, ("network", "existing"))
    own_block = existing.get("subnet_cidr") if isinstance(existing, Mapping) else None
    if own_block and own_block == existing.get("vpc_cidr"):
        yield refused(
            "network.existing.subnet_cidr",
            show(existing["subnet_cidr"]),
            allowed="a part of vpc_cidr, beside the other subnets",
            fix="write the subnet's own block",
        )
    datasets = _at(file.data, ("storage", "lustre", "datasets"))
    for index, dataset in enumerate(datasets if isinstance(datasets, list) else ()):
        for name in ("auto_import", "auto_export"):
            listed = dataset.get(name) if isinstance(dataset, Mapping) else None
            yield from _twice(listed, f"storage.lustre.datasets.{index}.{name}")


@rule(
    "HF061",
    title="No two resources have the same name or identity",
    each=App,
    source="API reference of each service: AlreadyExists",
)
def same_resource(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Names, and what else tells a resource from others of its type (cluster and service account of a pod identity
    association), stand once: the second fails with "already exists". E3019 has types whose name is their identifier.
    """
    for kind, names in _KEYS.items():
        if not names:
            continue
        seen: dict[tuple[str, ...], Resource] = {}
        for resource, node in app.each(kind):
            parts = [node.get(name) for name in names]
            if resource.conditional or not all(part.known for part in parts[:1]) or not parts[-1].known:
                continue
            key = tuple(_key(part) for part in parts)
            if key in seen and seen[key].template is resource.template:
                shown = ", ".join(
                    f"{name} {_shown(part)}" for name, part in zip(names, parts, strict=True) if part.present
                )
                yield refused(
                    parts[-1].path,
                    f"{shown} again, after {seen[key].logical_id}",
                    allowed="each once",
                    fix=f"remove {resource.logical_id}, or say what it is for",
                )
            seen.setdefault(key, resource)
    exports: dict[str, str] = {}
    for template in app.values.graph.templates:
        for name, output in template.section("Outputs").items():
            export = (
                output.get("Export", {}).get("Name")
                if isinstance(output, Mapping) and isinstance(output.get("Export"), Mapping)
                else None
            )
            if (
                isinstance(export, str)
                and export in exports
                and template.region == app.values.graph.templates[0].region
            ):
                yield refused(
                    f"{template.path + '#' if template.path else ''}Outputs.{name}.Export.Name",
                    f"{export} again, after {exports[export]}",
                    allowed="each export name once in a region",
                    fix="give it another name",
                )
            elif isinstance(export, str):
                exports[export] = name


@rule("HF062", title="Subnets of a VPC do not overlap", each=App, source="VPC user guide, 'Subnet CIDR blocks'")
def subnet_blocks(app: App, _: Deployment) -> Iterator[Broken]:
    """
    EC2 refuses a subnet whose block overlaps another's of the VPC, is outside the VPC's blocks, or is not /16 to /28.
    """
    seen: dict[Resource | str, list[tuple[ipaddress.IPv4Network, Resource]]] = {}
    for subnet, node in app.each("AWS::EC2::Subnet"):
        block = node.get("CidrBlock")
        network = _network(block.value)
        if isinstance(block.value, str) and (network is None or not 16 <= network.prefixlen <= 28):
            yield refused(
                block.path,
                show(block.value),
                allowed="an IPv4 block from /16 to /28",
                fix="write a block like 10.1.0.0/24",
            )
            continue
        vpc: Any = node.get("VpcId").resource("AWS::EC2::VPC") or node.get("VpcId").token
        if network is None:
            continue
        for other, owner in seen.get(vpc, []):
            if network.overlaps(other) and not subnet.conditional and not owner.conditional:
                yield refused(
                    block.path,
                    f"{network}, which overlaps {other} of {owner.logical_id}",
                    allowed="blocks of their own for subnets of a VPC",
                    fix="write another block",
                )
        seen.setdefault(vpc, []).append((network, subnet))
        if isinstance(vpc, Resource) and vpc.type == "AWS::EC2::VPC":
            yield from _outside(app, vpc, network, block)


@rule(
    "HF064",
    title="Inline policies of a role have different names",
    each=App,
    source="IAM API reference, PutRolePolicy: a second policy of a name takes the place of the first",
)
def policy_names(app: App, _: Deployment) -> Iterator[Broken]:
    """The second inline policy of a name overwrites the first, in silence."""
    for role, node in app.each("AWS::IAM::Role"):
        seen: dict[str, str] = {}
        for entry in node.get("Policies").items() or ():
            name = text_of(entry.get("PolicyName").value)
            if name is not None and "${" not in name:
                if name in seen:
                    yield refused(
                        f"{entry.path}.PolicyName",
                        f"{show(name)} again",
                        allowed=f"each name once in {role.logical_id}",
                        fix="give it another name",
                    )
                seen.setdefault(name, entry.path)


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def _twice(values: Any, path: str) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, value in enumerate(values if isinstance(values, list) else ()):
        key = repr(value)
        if key in seen:
            yield refused(
                f"{path}.{index}",
                f"{show(value)} again",
                allowed="each once",
                fix="remove one of the two, or write the one that was meant",
            )
        seen.setdefault(key, index)


def _key(node: Node) -> str:
    value = node.value
    resource = getattr(value, "resource", None)
    if resource is not None:
        return f"{resource.template.path}#{resource.logical_id}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).lower() if isinstance(value, str | int) else node.token


def _shown(node: Node) -> str:
    return text_of(node.value) or node.token


def _network(value: object) -> ipaddress.IPv4Network | None:
    """Block of a subnet or VPC. EC2 sets host bits to zero (EC2 API reference, CreateSubnet: CidrBlock)."""
    try:
        return ipaddress.IPv4Network(value, strict=False) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


def _outside(app: App, vpc: Resource, network: ipaddress.IPv4Network, block: Node) -> Iterator[Broken]:
    own = app.node(vpc).get("CidrBlock")
    more = app.values.linked(["AWS::EC2::VPCCidrBlock"], ["VpcId"], vpc)
    texts = [own.value, *(app.node(each).get("CidrBlock").value for each in more.found)]
    blocks = [_network(text) for text in texts]
    if None in blocks or not more.complete:
        return
    if not any(each is not None and network.subnet_of(each) for each in blocks):
        yield refused(
            block.path,
            f"{network}, outside {', '.join(map(str, blocks))} of {vpc.logical_id}",
            allowed="a block of the VPC",
            fix=f"write a block inside {blocks[0]}",
        )
