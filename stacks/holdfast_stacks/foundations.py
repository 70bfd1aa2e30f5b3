"""What a cluster stands on, as an environment asks for it: key, network, file systems."""

from dataclasses import dataclass

from aws_cdk import Fn, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast import config
from holdfast_constructs import (
    DataBucket,
    DataRepositoryAssociation,
    EncryptionKey,
    EventLogGroup,
    HyperPodNetwork,
    IDataBucket,
    IHyperPodNetwork,
    LustreFileSystem,
    LustreMount,
    OpenZfsFileSystem,
    OpenZfsMount,
    key_by_name,
)
from holdfast_stacks.required import required
from holdfast_stacks.retention import retention
from holdfast_stacks.shared import shared
from holdfast_stacks.subnets import existing_subnet


@dataclass(frozen=True, kw_only=True)
class Foundations:
    key: kms.IKey | None
    network: IHyperPodNetwork
    data: IDataBucket
    lustre: LustreMount | None
    home: OpenZfsMount | None
    events: EventLogGroup


def foundations(scope: Construct, environment: config.Environment) -> Foundations:
    key, policy = encryption_key(scope, environment), removal_policy(environment.storage)
    place = network(scope, environment, key=key)
    data = data_bucket(scope, environment, key=key)
    return Foundations(
        key=key,
        network=place,
        data=data,
        lustre=lustre(scope, environment, network=place, data=data, key=key),
        home=home(scope, environment, network=place, key=key),
        events=EventLogGroup(
            scope,
            "Events",
            cluster_name=environment.cluster_name,
            retention=retention(environment.observability.log_retention_days),
            encryption_key=key,
            removal_policy=policy,
        ),
    )


def removal_policy(section: config.Storage | config.Eks) -> RemovalPolicy:
    """What becomes of resources when the stack is deleted; what a first creation made goes when that creation fails."""
    return RemovalPolicy.DESTROY if section.on_delete == "Delete" else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def encryption_key(scope: Construct, environment: config.Environment) -> kms.IKey | None:
    """The key of data at rest; None for the services' own."""
    key = environment.encryption.kms_key
    if key == "aws-managed":
        return None
    if key == "create":
        return EncryptionKey(scope, "Key", removal_policy=removal_policy(environment.storage)).key
    return key_by_name(scope, "Key", key)


def data_bucket(scope: Construct, environment: config.Environment, *, key: kms.IKey | None) -> IDataBucket:
    there = environment.storage.data
    if there is None:
        return DataBucket(scope, "Data", encryption_key=key, removal_policy=removal_policy(environment.storage))
    return DataBucket.from_bucket_name(
        scope,
        "Data",
        bucket_name=there.bucket_name,
        encryption_key=existing_key(scope, "DataKey", there.kms_key_arn),
        manage_bucket_policy=there.manage_bucket_policy,
    )


@dataclass(frozen=True, kw_only=True)
class LifecyclePlace:
    bucket: s3.IBucket
    prefix: str


def lifecycle_bucket(scope: Construct, environment: config.Environment) -> LifecyclePlace | None:
    there = environment.lifecycle.bucket
    if there is None:
        return None
    found = DataBucket.from_bucket_name(
        scope,
        "LifecycleBucket",
        bucket_name=there.bucket_name,
        encryption_key=existing_key(scope, "LifecycleKey", there.kms_key_arn),
        manage_bucket_policy=there.manage_bucket_policy,
    )
    return LifecyclePlace(bucket=found.bucket, prefix=there.prefix or environment.name)


def existing_key(scope: Construct, construct_id: str, arn: str | None) -> kms.IKey | None:
    return None if arn is None else kms.Key.from_key_arn(scope, construct_id, arn)


def network(scope: Construct, environment: config.Environment, *, key: kms.IKey | None) -> IHyperPodNetwork:
    settings = environment.network
    if settings.existing is not None:
        closed = settings.egress == "none"
        return _existing(scope, settings.availability_zone, settings.existing, closed=closed)
    flow_logs: logs.ILogGroup | None = None
    if settings.flow_logs:
        flow_logs = logs.LogGroup(
            scope,
            "FlowLogs",
            retention=retention(environment.observability.log_retention_days),
            encryption_key=key,
            removal_policy=removal_policy(environment.storage),
        )
    return HyperPodNetwork(
        scope,
        "Network",
        cidr=required(settings.cidr, setting="network.cidr"),
        availability_zone=settings.availability_zone,
        second_availability_zone=settings.control_plane_availability_zone,
        availability_zone_id=settings.availability_zone_id,
        second_availability_zone_id=settings.control_plane_availability_zone_id,
        additional_availability_zones=settings.additional_availability_zones,
        orchestrator=environment.orchestrator,
        egress=settings.egress,
        flow_logs=flow_logs,
        removal_policy=removal_policy(environment.storage),
    )


def _existing(scope: Construct, zone: str | None, there: config.ExistingNetwork, *, closed: bool) -> IHyperPodNetwork:
    place = Construct(scope, "Existing")
    table = there.route_table_id
    subnet = (
        existing_subnet(place, "Subnet", there.subnet_id)
        if table is None
        else ec2.Subnet.from_subnet_attributes(
            place, "Subnet", subnet_id=there.subnet_id, availability_zone=zone, route_table_id=table
        )
    )
    vpc: ec2.IVpc | None = None
    if there.vpc_id is not None:
        vpc = ec2.Vpc.from_vpc_attributes(
            place,
            "Vpc",
            vpc_id=there.vpc_id,
            availability_zones=[zone or Fn.select(0, Fn.get_azs())],
            vpc_cidr_block=there.vpc_cidr,
        )
    return HyperPodNetwork.from_attributes(
        scope,
        "Network",
        vpc=vpc,
        subnet=subnet,
        security_group=_security_group(place, "SecurityGroup", there.security_group_id),
        additional_subnets=[
            existing_subnet(place, f"Subnet{index}", name) for index, name in enumerate(there.additional_subnet_ids)
        ],
        additional_security_groups=[
            _security_group(place, f"SecurityGroup{index}", name)
            for index, name in enumerate(there.additional_security_group_ids)
        ],
        control_plane_subnets=[
            existing_subnet(place, f"ControlPlaneSubnet{index}", name)
            for index, name in enumerate(there.control_plane_subnet_ids)
        ],
        s3_gateway_endpoint=table is not None,
        closed=closed,
    )


def _security_group(place: Construct, construct_id: str, name: str) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(place, construct_id, name, mutable=False)


def lustre(
    scope: Construct,
    environment: config.Environment,
    *,
    network: IHyperPodNetwork,
    data: IDataBucket,
    key: kms.IKey | None,
) -> LustreMount | None:
    settings = environment.storage.lustre
    if settings is None:
        return None
    associations = [_association(scope, dataset, settings, data) for dataset in settings.datasets]
    there = settings.existing
    if there is not None:
        return LustreMount(
            file_system=LustreFileSystem.from_attributes(
                scope,
                "Lustre",
                file_system_id=there.file_system_id,
                dns_name=there.dns_name,
                mount_name=there.mount_name,
                efa=settings.efa,
                data_repository_associations=associations,
            ),
            mount_path=settings.mount_path,
        )
    file_system = LustreFileSystem(
        scope,
        "Lustre",
        subnet=network.subnet,
        security_group=network.security_group,
        storage_capacity_gib=required(settings.capacity_gib, setting="storage.lustre.capacity_gib"),
        per_unit_storage_throughput=required(
            settings.throughput_mbps_per_tib, setting="storage.lustre.throughput_mbps_per_tib"
        ),
        **shared(settings, LustreFileSystem),
        data_repository_associations=associations,
        encryption_key=key,
        removal_policy=removal_policy(environment.storage),
    )
    return LustreMount(file_system=file_system, mount_path=settings.mount_path)


def _association(
    scope: Construct, dataset: config.Dataset, settings: config.Lustre, data: IDataBucket
) -> DataRepositoryAssociation:
    bucket, prefix = data.bucket, dataset.s3_prefix or ""
    if dataset.s3_uri is not None:
        name, _, prefix = dataset.s3_uri.removeprefix("s3://").strip("/").partition("/")
        bucket = s3.Bucket.from_bucket_name(scope, f"Dataset-{dataset.name}", name)
    return DataRepositoryAssociation(
        name=dataset.name,
        bucket=bucket,
        prefix=prefix,
        file_system_path=dataset.file_system_path,
        auto_import=dataset.auto_import,
        auto_export=dataset.auto_export,
        import_on_create=True if any(_inside(path, dataset) for path in settings.preload) else None,
    )


def _inside(path: str, dataset: config.Dataset) -> bool:
    """Whether a path that is preloaded has files of the dataset, whose names then have to be there at once."""
    one, other = path.rstrip("/") + "/", dataset.file_system_path.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def home(
    scope: Construct, environment: config.Environment, *, network: IHyperPodNetwork, key: kms.IKey | None
) -> OpenZfsMount | None:
    settings = environment.storage.home
    if settings is None:
        return None
    if settings.existing is not None:
        there = settings.existing
        found = OpenZfsFileSystem.from_attributes(
            scope, "Home", file_system_id=there.file_system_id, dns_name=there.dns_name
        )
        return OpenZfsMount(file_system=found, mount_path=settings.mount_path)
    file_system = OpenZfsFileSystem(
        scope,
        "Home",
        subnet=network.subnet,
        security_group=network.security_group,
        storage_capacity_gib=required(settings.capacity_gib, setting="storage.home.capacity_gib"),
        throughput_capacity=settings.throughput_mbps,
        encryption_key=key,
        removal_policy=removal_policy(environment.storage),
    )
    return OpenZfsMount(file_system=file_system, mount_path=settings.mount_path)
