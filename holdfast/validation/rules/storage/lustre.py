"""6xx: FSx for Lustre file systems."""

from collections.abc import Iterator

from holdfast.catalog import bounds, least_metadata_iops, limits, steps
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import (
    Deployment,
    LustreFileSystem,
    OpenZfsFileSystem,
    RestrictedLustre,
    mounting,
    zones_of,
)
from holdfast.validation.rules.network import vpc_of

FSX = "FSx API reference"
THROUGHPUTS = tuple(limits("lustre_throughput_mbps_per_tib")["PERSISTENT_2"])
METADATA_IOPS = steps("lustre_metadata_iops")["PERSISTENT_2"]
RESTRICTED_CAPACITY = bounds("restricted_lustre_capacity_gib")
RESTRICTED_THROUGHPUT = bounds("restricted_lustre_throughput_mbps_per_tib")


@rule(
    "HF608",
    title="Lustre's storage capacity is one that FSx offers",
    each=LustreFileSystem,
    source=f"{FSX}, StorageCapacity",
)
def lustre_capacity(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """On SSD 1200 GiB, or a multiple of 2400 GiB (3600 for SCRATCH_1 beyond 2400); none with intelligent tiering."""
    if lustre.storage_type == "INTELLIGENT_TIERING" and lustre.capacity_gib is not None:
        yield refused(
            lustre.at("capacity_gib"),
            f"{lustre.capacity_gib} GiB",
            allowed="none with INTELLIGENT_TIERING",
            fix="remove it",
        )
    allowed = steps("lustre_capacity_gib").get(lustre.deployment_type)
    if allowed is None or lustre.storage_type != "SSD":
        return
    capacity = lustre.capacity_gib
    if capacity is None or not allowed.has(capacity):
        yield refused(
            lustre.at("capacity_gib"),
            "no capacity" if capacity is None else f"{capacity} GiB",
            allowed=str(allowed),
            fix=f"write {allowed.step_above(capacity or 1)}",
        )


@rule(
    "HF609",
    title="Lustre's throughput is one that its deployment type offers",
    each=LustreFileSystem,
    source=f"{FSX}, PerUnitStorageThroughput",
)
def lustre_throughput(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    Persistent types need one: 50, 100 or 200 MB/s per TiB for PERSISTENT_1, 125, 250, 500 or 1000 for PERSISTENT_2. The
    CDK's own construct lets PERSISTENT_2 without one pass. Scratch types and intelligent tiering have none.
    """
    if lustre.storage_type == "INTELLIGENT_TIERING" and lustre.throughput_mbps_per_tib is not None:
        yield refused(
            lustre.at("throughput_mbps_per_tib"),
            f"{lustre.throughput_mbps_per_tib} MB/s per TiB",
            allowed="none with INTELLIGENT_TIERING, which has ThroughputCapacity",
            fix="write ThroughputCapacity instead, such as 4000",
        )
    if lustre.storage_type != "INTELLIGENT_TIERING" and lustre.throughput_capacity is not None:
        yield refused(
            lustre.at("throughput_capacity"),
            f"ThroughputCapacity on {lustre.storage_type}",
            allowed="it with INTELLIGENT_TIERING; PerUnitStorageThroughput otherwise",
            fix="remove it",
        )
    if lustre.storage_type != "SSD":
        return
    tiers = limits("lustre_throughput_mbps_per_tib").get(lustre.deployment_type)
    given = lustre.throughput_mbps_per_tib
    if (tiers is None and given is not None) or (tiers is not None and given not in tiers):
        yield refused(
            lustre.at("throughput_mbps_per_tib"),
            "no throughput" if given is None else f"{given} MB/s per TiB",
            allowed=f"one of {', '.join(map(str, tiers))}" if tiers else f"none with {lustre.deployment_type}",
            fix=f"write {tiers[0]}" if tiers else "remove it",
        )


@rule(
    "HF658",
    title="The storage type is one that the deployment type has",
    each=LustreFileSystem,
    source=f"{FSX}, StorageType",
)
def storage_type(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """HDD is for PERSISTENT_1, intelligent tiering for PERSISTENT_2; all types have SSD."""
    needed = {"HDD": "PERSISTENT_1", "INTELLIGENT_TIERING": "PERSISTENT_2"}.get(lustre.storage_type)
    if needed is not None and lustre.deployment_type != needed:
        yield refused(
            lustre.at("storage_type"),
            f"{lustre.storage_type} with {lustre.deployment_type}",
            allowed=f"it with {needed}",
            fix=f"write SSD, or {needed}",
        )


@rule(
    "HF610",
    title="EFA needs PERSISTENT_2 and metadata configuration",
    each=LustreFileSystem,
    source=f"{FSX}, EfaEnabled; FSx for Lustre user guide, 'Working with EFA-enabled file systems'",
)
def lustre_efa(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """EFA cannot be added later. CloudFormation accepts it on any type."""
    if (
        lustre.efa
        and lustre.deployment_type
        and (lustre.deployment_type != "PERSISTENT_2" or lustre.metadata_mode is None)
    ):
        yield refused(
            lustre.at("efa"),
            f"EFA on {lustre.deployment_type}"
            + ("" if lustre.metadata_mode is not None else " without metadata configuration"),
            allowed="EFA on PERSISTENT_2 with metadata configuration",
            fix="set PERSISTENT_2 and MetadataConfiguration",
        )


@rule(
    "HF611",
    title="Lustre's storage capacity with EFA is one that FSx offers",
    each=LustreFileSystem,
    source="FSx for Lustre user guide, 'Managing storage capacity'",
)
def lustre_efa_capacity(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    The faster per TiB, the smaller the step: 38400 GiB at 125 MB/s per TiB, 19200 at 250, 9600 at 500, 4800 at 1000.
    """
    step = limits("lustre_efa_capacity_step_gib").get(str(lustre.throughput_mbps_per_tib))
    if lustre.efa and step is not None and lustre.capacity_gib is not None and lustre.capacity_gib % step:
        yield refused(
            lustre.at("capacity_gib"),
            f"{lustre.capacity_gib} GiB with EFA at {lustre.throughput_mbps_per_tib} MB/s per TiB",
            allowed=f"a multiple of {step}",
            fix=f"write {-(-lustre.capacity_gib // step) * step}, or take more throughput per TiB",
        )


@rule(
    "HF612",
    title="A file system is in one subnet, one in two zones in two",
    each=(LustreFileSystem, OpenZfsFileSystem),
    source=f"{FSX}, SubnetIds",
)
def subnets(file_system: LustreFileSystem | OpenZfsFileSystem, _: Deployment) -> Iterator[Broken]:
    """Lustre and OpenZFS in a single zone take exactly one; OpenZFS with MULTI_AZ_1 takes two."""
    given, several = len(file_system.vpc.subnets), file_system.deployment_type.startswith("MULTI_AZ")
    if given != 1 + several:
        yield refused(
            file_system.vpc.at("subnets"),
            f"{given} subnet{'s' * (given != 1)}",
            allowed=f"two with {file_system.deployment_type}" if several else "one",
            fix="add a subnet of a second zone, or take SINGLE_AZ_2" if several else "name the nodes' subnet",
        )


@rule(
    "HF613",
    title="EFA-enabled file systems are in the zone of the nodes that mount them",
    each=LustreFileSystem,
    source="SageMaker developer guide, 'Prerequisites': EFA does not cross zones",
)
def efa_file_system_zone(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """Nodes in another zone cannot reach it through EFA."""
    if lustre.efa:
        yield from _zones_differ(lustre, deployment)


@rule(
    "HF614",
    severity="warning",
    title="File systems are in the zone of the nodes that mount them",
    each=LustreFileSystem,
    source="SageMaker developer guide, 'Prerequisites'",
)
def file_system_zone(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """Traffic between zones is slower and charged per GB."""
    if not lustre.efa:
        yield from _zones_differ(lustre, deployment)


@rule(
    "HF621",
    title="A PERSISTENT_2 file system has no ImportPath or ExportPath",
    each=LustreFileSystem,
    source=f"{FSX}, ImportPath; aws-parallelcluster 5693",
)
def import_path(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """Data repository associations take their place, on any deployment type. The CDK's own construct lets it pass."""
    for attribute in ("import_path", "export_path"):
        if getattr(lustre, attribute) is not None and (
            lustre.deployment_type == "PERSISTENT_2" or lustre.data_repository_associations
        ):
            yield refused(
                lustre.at(attribute),
                show(getattr(lustre, attribute)),
                allowed="none with PERSISTENT_2, nor beside data repository associations",
                fix="use a data repository association",
            )


@rule(
    "HF622",
    title="The Lustre version is one that the deployment type supports",
    each=LustreFileSystem,
    source=f"{FSX}, FileSystemTypeVersion",
)
def lustre_version(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    PERSISTENT_2 has 2.12 or 2.15, and 2.15 with metadata configuration. The default is older where that is possible.
    """
    versions = limits("lustre_versions").get(lustre.deployment_type, [])
    if lustre.metadata_mode is not None:
        versions = ["2.15"]
    if versions and lustre.version is not None and lustre.version not in versions:
        yield refused(
            lustre.at("version"), show(lustre.version), allowed=f"one of {', '.join(versions)}", fix='write "2.15"'
        )


@rule(
    "HF623",
    title="Lustre's metadata IOPS are a number that FSx offers",
    each=LustreFileSystem,
    source=f"{FSX}, MetadataConfiguration; FSx for Lustre guide, performance; terraform-provider-aws 44432",
)
def metadata_iops(lustre: LustreFileSystem, _: Deployment) -> Iterator[Broken]:
    """
    1500, 3000, 6000, or a multiple of 12000 up to 192000; with the mode USER_PROVISIONED, and on PERSISTENT_2 only. No
    fewer than mode AUTOMATIC gives the capacity: 1500 for 1200 GiB, 3000 for 2400, 6000 up to 9600, 12000 up to 45600,
    then 12000 for each 24000 GiB.
    """
    iops = lustre.metadata_iops
    if iops is not None and not METADATA_IOPS.has(iops):
        yield refused(
            lustre.at("metadata_iops"),
            str(iops),
            allowed=str(METADATA_IOPS),
            fix=f"write {METADATA_IOPS.multiple}",
        )
    elif iops is not None and lustre.capacity_gib is not None and lustre.storage_type == "SSD":
        least = least_metadata_iops(lustre.capacity_gib)
        if iops < least:
            yield refused(
                lustre.at("metadata_iops"),
                f"{iops} with {lustre.capacity_gib} GiB",
                allowed=f"at least {least}",
                fix=f"write {least}",
            )
    if lustre.metadata_mode is not None and lustre.deployment_type != "PERSISTENT_2":
        yield refused(
            lustre.at("metadata_iops"),
            f"metadata configuration on {lustre.deployment_type}",
            allowed="it on PERSISTENT_2",
            fix="take PERSISTENT_2",
        )


@rule(
    "HF627",
    severity="warning",
    title="File systems are kept when their stack is deleted",
    each=LustreFileSystem,
    source="Holdfast: nothing lost on deploy",
)
def kept(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """
    A replaced or deleted stack takes the data on the file system with it, exported or not. A rehearsal on the embedded
    AWS keeps nothing.
    """
    if not lustre.kept and (deployment.file is None or deployment.file.cloud == "aws"):
        yield Broken(
            path=lustre.at("kept"),
            message="deleting the stack deletes the file system and what is on it",
            fix="retain it, or say in a suppression why it may go",
        )


@rule(
    "HF628",
    title="The shared file system of restricted groups has a size that is offered",
    each=RestrictedLustre,
    source="SageMaker API reference, FSxLustreConfig",
)
def restricted_lustre(lustre: RestrictedLustre, _: Deployment) -> Iterator[Broken]:
    """1200 to 100800 GiB, in the steps of PERSISTENT_2, and 125 to 1000 MB/s per TiB."""
    in_steps = steps("lustre_capacity_gib")["PERSISTENT_2"]
    for attribute, value, allowed in (
        ("capacity_gib", lustre.capacity_gib, RESTRICTED_CAPACITY),
        ("throughput_mbps_per_tib", lustre.throughput_mbps_per_tib, RESTRICTED_THROUGHPUT),
    ):
        if not allowed.has(value):
            yield refused(lustre.at(attribute), str(value), allowed=str(allowed), fix=f"write {allowed.least}")
        elif attribute == "capacity_gib" and not in_steps.has(value):
            yield refused(
                lustre.at(attribute), str(value), allowed=str(in_steps), fix=f"write {in_steps.step_above(value)}"
            )
        elif attribute == "throughput_mbps_per_tib" and value not in THROUGHPUTS:
            near = min(THROUGHPUTS, key=lambda each: abs(each - value))
            yield refused(lustre.at(attribute), str(value), allowed="125, 250, 500 or 1000", fix=f"write {near}")


def _zones_differ(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    own = lustre.vpc.subnets
    found: dict[tuple[str, str, str], list[str]] = {}
    for group in mounting(lustre.id, deployment):
        vpc = vpc_of(group, deployment.cluster)
        known = zones_of((*own, *(() if vpc is None else vpc.subnets)))
        its, zones = {*known[: len(own)]} - {None}, {*known[len(own) :]} - {None}
        if its and zones - its:
            place = group.at("override_vpc") if group.override_vpc is not None else lustre.vpc.at("subnets")
            here, there = (", ".join(sorted(map(str, each))) for each in (zones, its))
            found.setdefault((place, here, there), []).append(group.name)
    for (place, here, there), groups in found.items():
        yield Broken(
            path=place,
            message=f"nodes of {', '.join(groups)} are in {here}, their file system in {there}",
            fix="write mount_lustre: false for the group, or put them into one zone"
            if deployment.file is not None
            else "put them into one zone",
        )
