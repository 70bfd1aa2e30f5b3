"""1xx: names, counts and types of a cluster and its groups."""

from collections.abc import Iterator

from holdfast.catalog import bounds, instance_types
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Cluster, Deployment, Group, InstanceGroup, groups_of

GROUPS, NODES, TYPES = bounds("instance_groups"), bounds("instance_count"), bounds("flexible_types")

API = "SageMaker API reference, CreateCluster"
CONTINUOUS = "SageMaker developer guide, 'Continuous provisioning'"


@rule("HF103", title=f"A cluster has {GROUPS} instance groups", each=Cluster, source=f"{API}, InstanceGroups")
def number_of_groups(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """A cluster needs a group, restricted or not. E3032 reports more of a kind than it may have."""
    if not groups_of(cluster):
        yield refused(cluster.at("instance_groups"), "no group", allowed=str(GROUPS), fix="add an instance group")


@rule("HF104", title="Names of instance groups are unique", each=Cluster, source=f"{API}; synthesis accepts duplicates")
def unique_group_names(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    Two groups of one name are refused by CreateCluster, restricted groups included, after everything that the cluster
    depends on was made. Neither CloudFormation's own validation nor cfn-lint sees it.
    """
    seen: dict[str, Group] = {}
    for group in groups_of(cluster):
        if group.name in seen:
            yield refused(
                group.at("name"),
                f"{show(group.name)} again, after {seen[group.name].at('name')}",
                allowed="a name that no other group has",
                fix="give this group another name",
            )
        seen.setdefault(group.name, group)


@rule("HF105", title=f"A group has {NODES} nodes", each=Group, source=f"{API}, InstanceCount")
def number_of_nodes(group: Group, _: Deployment) -> Iterator[Broken]:
    """The limit is on what AWS is asked for: working nodes and spares together."""
    if not NODES.has(group.instance_count):
        yield refused(
            group.at("instance_count"),
            f"{group.instance_count} nodes in all",
            allowed=f"{NODES}, spares included",
            fix="lower the count, or make two groups of it",
        )


@rule(
    "HF106",
    title="Instance types are available for HyperPod",
    each=Group,
    source=f"{API}, ClusterInstanceType",
    suppressible=True,
)
def known_instance_type(group: Group, _: Deployment) -> Iterator[Broken]:
    """
    Types begin with `ml.`, and HyperPod offers a subset of EC2's. The list is the API model's, in
    holdfast/catalog/instance_types.json. A type that is newer than it can be suppressed.
    """
    for name in group.types:
        if name not in instance_types():
            prefixed = f"ml.{name}"
            yield refused(
                group.at("instance_type"),
                show(name),
                allowed="an instance type that HyperPod offers",
                fix=f"write {prefixed}" if prefixed in instance_types() else "write a type like ml.p5.48xlarge",
            )


@rule(
    "HF107",
    title="A group has either one instance type or a list of them",
    each=InstanceGroup,
    source=f"{API}, InstanceRequirements",
)
def type_or_types(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    InstanceType and InstanceRequirements exclude each other, and one of them has to be there. CloudFormation accepts a
    template with both, the API does not.
    """
    if (group.instance_type is None) == (not group.instance_types):
        both = group.instance_type is not None
        yield refused(
            group.at("instance_type"),
            "an instance type and a list of types" if both else "no instance type",
            allowed="one of the two",
            fix="keep one of them" if both else "add an instance type",
        )


@rule("HF108", title="A list of instance types needs continuous provisioning", each=InstanceGroup, source=CONTINUOUS)
def flexible_types_are_continuous(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """A group whose nodes may be of several types is filled node by node, which only continuous provisioning does."""
    if group.instance_types and not deployment.cluster.continuous:
        yield refused(
            group.at("instance_types"),
            "several types without continuous provisioning",
            allowed="several types in a cluster with node provisioning mode Continuous",
            fix="set the cluster's node provisioning mode to Continuous, or give one type",
        )


@rule(
    "HF109",
    title=f"A list of instance types has {TYPES} entries, none twice",
    each=InstanceGroup,
    source=f"{API}, InstanceRequirements",
)
def list_of_types(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """The list is in order of preference, so a repeated type has no meaning."""
    types = group.instance_types
    if len(types) > TYPES.most or len(set(types)) < len(types):
        given = f"{len(types)} types" if len(types) > TYPES.most else "a type twice"
        yield refused(group.at("instance_types"), given, allowed=f"{TYPES} different types", fix="shorten the list")


@rule("HF110", title="A group's minimum is at most its instance count", each=InstanceGroup, source=CONTINUOUS)
def minimum_within_count(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    MinInstanceCount is how many of InstanceCount have to be there before the group is in service. A minimum that cannot
    be reached rolls the group back to nothing after three hours.
    """
    minimum = group.min_instance_count
    if minimum is not None and minimum > group.instance_count:
        yield refused(
            group.at("min_instance_count"),
            str(minimum),
            allowed=f"at most {group.instance_count}, the nodes of the group",
            fix="lower the minimum, or raise the count",
        )


@rule("HF111", title="A minimum instance count needs continuous provisioning", each=InstanceGroup, source=CONTINUOUS)
def minimum_is_continuous(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    Without continuous provisioning a group is made whole or not at all, so a minimum has no meaning and is refused.
    """
    if group.min_instance_count is not None and not deployment.cluster.continuous:
        yield refused(
            group.at("min_instance_count"),
            "a minimum without continuous provisioning",
            allowed="one in a cluster with node provisioning mode Continuous",
            fix="set the cluster's node provisioning mode to Continuous, or remove the minimum",
        )


@rule("HF115", title="Tags do not begin with aws:", each=Cluster, source="Tagging AWS resources, 'Tag naming limits'")
def tag_names(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """The prefix is reserved, in any case."""
    for key in cluster.tags:
        if key.lower().startswith("aws:"):
            yield refused(
                cluster.at("tags"),
                f"the tag {show(key)}",
                allowed="a key that does not begin with aws:",
                fix="rename it",
            )


@rule(
    "HF118",
    severity="warning",
    title="Instance types of one group have the same kind of accelerator",
    each=InstanceGroup,
    source="Holdfast",
)
def types_are_alike(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    A flexible group fills up with whatever is to be had. If that can be a GPU, a Trainium device or none, no job can
    rely on what it gets: images and drivers differ.
    """
    kinds = {_kind(name) for name in group.instance_types if name in instance_types()}
    if len(kinds) > 1:
        yield Broken(
            path=group.at("instance_types"),
            message=f"the types of this group have {', '.join(sorted(kinds))}; jobs cannot rely on one kind",
            fix="make a group for each kind",
        )


def _kind(name: str) -> str:
    accelerator = instance_types()[name].accelerator
    return "Trainium" if accelerator.startswith(("Trainium", "Inferentia")) else "GPUs" if accelerator else "no device"
