"""
Values that are well-formed each, and impossible together.

A rule looks at the sections that are well-formed, so that one broken section hides nothing in the others.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from holdfast.catalog import addresses_needed, prefix_length_for
from holdfast.config._document import Document, Location
from holdfast.config._fields import NODES_PER_GROUP, REGION
from holdfast.config._models import Dataset, InstanceGroup, Network, StandIns, TrainingImage, User
from holdfast.config._problems import Problem, shown

EMBEDDED_ACCOUNT = "123456789012"

GROUPS: Location = ("cluster", "instance_groups")
DATASETS: Location = ("storage", "lustre", "datasets")
USERS: Location = ("lifecycle", "users")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Sections:
    """A file's sections, each parsed by itself."""

    document: Document

    def raw(self, location: Location) -> Any:
        """What stands in the file at a location; None when nothing does."""
        value: Any = self.document.data
        for part in location:
            inside = isinstance(value, dict) if isinstance(part, str) else isinstance(value, list) and part < len(value)
            value = value.get(part) if inside and isinstance(part, str) else value[part] if inside else None
        return value

    def one(self, model: type[M], location: Location) -> M | None:
        """The section at a location, or None where it is absent or malformed."""
        try:
            return model.model_validate(self.raw(location))
        except ValidationError:
            return None

    def each(self, model: type[M], location: Location) -> list[tuple[Location, M]]:
        """The well-formed items of a list, with the place of each."""
        raw = self.raw(location)
        places = [(*location, index) for index in range(len(raw))] if isinstance(raw, list) else []
        return [(place, item) for place in places if (item := self.one(model, place)) is not None]

    def all_groups(self) -> list[tuple[Location, InstanceGroup]] | None:
        """Every instance group, or None when one of them is malformed."""
        groups = self.each(InstanceGroup, GROUPS)
        raw = self.raw(GROUPS)
        return groups if isinstance(raw, list) and groups and len(groups) == len(raw) else None


Rule = Callable[[Sections], Iterator[Problem]]
"""Its docstring says what holds and, after "Source: ", who says so; docs/environment.md lists them."""


def broken_rules(document: Document) -> list[Problem]:
    """Every problem that a rule finds."""
    sections = Sections(document)
    return [problem for rule in RULES for problem in rule(sections)]


def names_are_unique(sections: Sections) -> Iterator[Problem]:
    """
    Names of instance groups, datasets and users are unique, and so are the users' uids.

    Source: CreateCluster refuses duplicate group names; the others become logical ids and accounts.
    """
    lists: tuple[tuple[Location, type[BaseModel], tuple[str, ...], str], ...] = (
        (GROUPS, InstanceGroup, ("name",), "instance group"),
        (DATASETS, Dataset, ("name",), "dataset"),
        (USERS, User, ("name", "uid"), "user"),
    )
    for location, model, attributes, what in lists:
        for attribute in attributes:
            items = sections.each(model, location)
            yield from _repeated(sections.document, items, attribute, what)


def _repeated(
    document: Document, items: Sequence[tuple[Location, BaseModel]], attribute: str, what: str
) -> Iterator[Problem]:
    first: dict[object, Location] = {}
    for place, item in items:
        value = getattr(item, attribute)
        if value in first:
            yield document.problem(
                (*place, attribute),
                given=f"{shown(value)} again, after line {document.line((*first[value], attribute))}",
                allowed=f"a {attribute} that no other {what} has",
                fix=f"give this {what} another {attribute}",
            )
        first.setdefault(value, place)


def slurm_has_one_controller(sections: Sections) -> Iterator[Problem]:
    """
    Exactly one instance group has node_type Controller, and at most one has Login.

    Source: HyperPod developer guide, Slurm configuration through the API.
    """
    groups = sections.all_groups()
    if groups is None:
        return
    kinds = Counter(group.slurm.node_type for _, group in groups)
    if kinds["Controller"] != 1:
        yield sections.document.problem(
            GROUPS,
            given=f"{kinds['Controller']} groups of node_type Controller",
            allowed="exactly one",
            fix="add a group with slurm: {node_type: Controller}" if not kinds["Controller"] else "keep one of them",
        )
    if kinds["Login"] > 1:
        given = f"{kinds['Login']} groups of node_type Login"
        yield sections.document.problem(GROUPS, given=given, allowed="at most one", fix="keep one of them")


def partitions_belong_to_compute(sections: Sections) -> Iterator[Problem]:
    """
    A Compute group has a partition, and no other group has one.

    Source: HyperPod developer guide, Slurm configuration through the API.
    """
    for place, group in sections.each(InstanceGroup, GROUPS):
        where, node_type, partition = (*place, "slurm", "partition"), group.slurm.node_type, group.slurm.partition
        if node_type == "Compute" and partition is None:
            yield sections.document.problem(
                where, given="nothing", allowed="a partition on every Compute group", fix="add partition: dev"
            )
        if node_type != "Compute" and partition is not None:
            allowed = f"no partition on a {node_type} group"
            yield sections.document.problem(where, given=shown(partition), allowed=allowed, fix="remove partition")


def counts_fit_their_group(sections: Sections) -> Iterator[Problem]:
    """
    The Controller group has one node and no spare; any group has at most 6758 nodes, spares included.

    Source: HyperPod developer guide, Slurm configuration through the API; ClusterInstanceGroupSpecification in the API.
    """
    for place, group in sections.each(InstanceGroup, GROUPS):
        if group.slurm.node_type == "Controller" and group.total_count != 1:
            yield sections.document.problem(
                (*place, "instance_count"),
                given=f"{group.total_count} with spares",
                allowed="1 on the Controller group",
                fix="write instance_count: 1, and no spare_count",
            )
        elif group.total_count > NODES_PER_GROUP:
            yield sections.document.problem(
                (*place, "spare_count"),
                given=f"{group.total_count} nodes in all",
                allowed=f"at most {NODES_PER_GROUP} with spares",
                fix="lower instance_count or spare_count",
            )


def zone_is_in_the_region(sections: Sections) -> Iterator[Problem]:
    """
    The availability zone is one of the region.

    Source: Amazon EC2 user guide, regions and zones: a zone's name is its region's and a letter.
    """
    network, region = sections.one(Network, ("network",)), sections.raw(("region",))
    if network is None or not isinstance(region, str) or not re.fullmatch(REGION, region):
        return
    zone = network.availability_zone
    if zone[:-1] != region:
        yield sections.document.problem(
            ("network", "availability_zone"),
            given=shown(zone),
            allowed=f"a zone of region {region}",
            fix=f"write availability_zone: {region}{zone[-1]}, or change region",
        )


def groups_fit_into_the_network(sections: Sections) -> Iterator[Problem]:
    """
    Half of the network's block, which is the nodes' subnet, has room for the addresses that the instance groups need.

    Source: addresses per instance type in holdfast/catalog; VPC and subnet sizes in the Amazon VPC user guide.
    """
    network, groups = sections.one(Network, ("network",)), sections.all_groups()
    if network is None or groups is None:
        return
    needed = addresses_needed((group.instance_type, group.total_count) for _, group in groups)
    # The nodes' subnet is half of the block; the other half is for what comes beside it.
    prefix, wanted = ipaddress.IPv4Network(network.cidr).prefixlen, prefix_length_for(needed) - 1
    if wanted >= prefix:
        return
    fix = f"write a block of /{wanted}" if wanted >= 16 else "take fewer nodes: a VPC has at most a /16"
    yield sections.document.problem(
        ("network", "cidr"),
        given=f"{network.cidr}, half of which has {2 ** (31 - prefix)} addresses",
        allowed=f"a half with room for the {needed} addresses that the instance groups need",
        fix=fix,
    )


def datasets_do_not_overlap(sections: Sections) -> Iterator[Problem]:
    """
    No dataset's folder, and no dataset's prefix, lies in that of another.

    Source: FSx API reference, CreateDataRepositoryAssociation.
    """
    datasets = sections.each(Dataset, DATASETS)
    for attribute in ("file_system_path", "s3_prefix"):
        for index, (place, dataset) in enumerate(datasets):
            own = getattr(dataset, attribute)
            other = next((o for _, o in datasets[:index] if _overlap(getattr(o, attribute), own)), None)
            if other is not None:
                yield sections.document.problem(
                    (*place, attribute),
                    given=shown(own),
                    allowed=f"what does not overlap with {getattr(other, attribute)} of dataset {other.name}",
                    fix=f"give one of them another {attribute}",
                )


def _overlap(one: str, other: str) -> bool:
    a, b = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return a.startswith(b) or b.startswith(a)


def images_have_a_place(sections: Sections) -> Iterator[Problem]:
    """
    An image of source ecr names a repository and one of source environment does not; environment needs cloud embedded.

    Source: our own: on AWS no Python environment of this machine is there.
    """
    where: Location = ("images", "training")
    image = sections.one(TrainingImage, where)
    if image is None:
        return
    if image.source == "environment" and not _embedded(sections):
        yield sections.document.problem(
            (*where, "source"),
            given='"environment"',
            allowed="ecr, when cloud is aws",
            fix="write {source: ecr, repository: NAME}, or set cloud: embedded",
        )
    if (image.source == "ecr") != (image.repository is not None):
        ecr = image.source == "ecr"
        yield sections.document.problem(
            (*where, "repository"),
            given="nothing" if ecr else shown(image.repository),
            allowed="the name of an ECR repository" if ecr else "no repository with source environment",
            fix="add repository: NAME" if ecr else "remove repository",
        )


def stand_ins_are_embedded(sections: Sections) -> Iterator[Problem]:
    """
    Stand-ins are named with cloud embedded only.

    Source: our own: on AWS nothing stands in for anything.
    """
    if _embedded(sections):
        return
    stand_ins = sections.one(StandIns, ("stand_ins",))
    for name in sorted(stand_ins.model_fields_set) if stand_ins is not None else ():
        if getattr(stand_ins, name) is not None:
            yield sections.document.problem(
                ("stand_ins", name),
                given=shown(getattr(stand_ins, name)),
                allowed="nothing, when cloud is aws",
                fix="remove stand_ins, or set cloud: embedded",
            )


def embedded_account_is_the_one(sections: Sections) -> Iterator[Problem]:
    """
    With cloud embedded the account is 123456789012.

    Source: our own: the embedded AWS has one account, moto's default.
    """
    account = sections.raw(("account",))
    if _embedded(sections) and isinstance(account, str) and account != EMBEDDED_ACCOUNT:
        yield sections.document.problem(
            ("account",),
            given=shown(account),
            allowed=f"{EMBEDDED_ACCOUNT}, the account of the embedded AWS",
            fix=f'write account: "{EMBEDDED_ACCOUNT}"',
        )


def _embedded(sections: Sections) -> bool:
    return bool(sections.raw(("cloud",)) == "embedded")


RULES: tuple[Rule, ...] = (
    names_are_unique,
    slurm_has_one_controller,
    partitions_belong_to_compute,
    counts_fit_their_group,
    zone_is_in_the_region,
    groups_fit_into_the_network,
    datasets_do_not_overlap,
    images_have_a_place,
    stand_ins_are_embedded,
    embedded_account_is_the_one,
)
