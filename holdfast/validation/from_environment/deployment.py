"""Deployment from an environment file, with what Holdfast's constructs add."""

import ipaddress
from pathlib import Path
from typing import Any

from holdfast.catalog import CLUSTER, FILE_SYSTEM, limits
from holdfast.validation.cloudformation import UNRESOLVED, Graph, Template, Values
from holdfast.validation.from_environment.eks import control_plane_of, eks_of
from holdfast.validation.from_environment.file import environment_file, second_zone_place
from holdfast.validation.from_environment.governance import governance_of
from holdfast.validation.from_environment.groups import instance_group, restricted_group, zone_subnet
from holdfast.validation.from_environment.lifecycle import LifecycleModes
from holdfast.validation.from_environment.node_pools import node_pools_of
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.from_environment.storage import file_systems_of, home_of, lustre_of, mounts_of
from holdfast.validation.model import (
    AccessEntry,
    AccountingDatabase,
    Cluster,
    Deployment,
    Extension,
    Image,
    InstanceGroup,
    Network,
    RestrictedLustre,
    SecurityGroup,
    SessionDocument,
    Subnet,
    Traffic,
    VpcConfig,
)
from holdfast.validation.readers import ClusterReader
from holdfast.validation.translation import (
    Properties,
    cluster,
    eks_orchestrator,
    properties_of,
    slurm_orchestrator,
)

ALL_ENDPOINTS = frozenset((*limits("endpoints_of_a_closed_network")["eks"], "sagemaker.api"))


def deployment_of(file: Settings, *, folder: Path | None) -> Deployment:
    """Deployment of a file. ``folder``: base of its relative paths; None: scripts are unknown."""
    network = file.network
    vpc = VpcConfig(
        path=network.path,
        places=_vpc_places(network),
        subnets=(_nodes_subnet(network),),
        security_groups=(_security_group(network),),
    )
    modes = LifecycleModes(file, folder)
    graph = Graph([Template(body={"Resources": _resources(file, modes)})])
    reader = ClusterReader(Values(graph))
    read_lustre, read_home = reader.storage.all_file_systems(graph.of_type(FILE_SYSTEM))
    resource = next(graph.of_type(CLUSTER))
    lustre, home = lustre_of(file, vpc, *read_lustre), home_of(file, vpc, *read_home)
    return Deployment(
        path="",
        places={"account": "account", "region": "region"},
        account=file.account,
        region=file.region,
        cluster=_cluster(file, vpc, modes, reader.cluster(resource)),
        network=_network(network),
        lustre_file_systems=() if lustre is None else (lustre,),
        openzfs_file_systems=() if home is None else (home,),
        images=_images(file),
        governance=reader.teams.governance(resource),
        node_pools=node_pools_of(file),
        others=(*(() if file.eks is None else _admins(file.eks)), *_sessions(file), *_extensions(file)),
        file=environment_file(file, folder=folder),
    )


def resources_of(file: Settings, *, folder: Path | None) -> dict[str, Any]:
    return _resources(file, LifecycleModes(file, folder))


def _cluster(file: Settings, vpc: VpcConfig, modes: LifecycleModes, read: Cluster) -> Cluster:
    """Cluster as it was read from its properties, with what they do not have."""
    settings = file.cluster
    groups: Any = UNRESOLVED
    if settings.instance_groups is not UNRESOLVED:
        pairs = zip(read.instance_groups, settings.instance_groups, strict=True)
        zones: dict[str, Subnet] = {}
        groups = tuple(_beside_properties(file, group, setting, modes, vpc, zones) for group, setting in pairs)
    return read.changed(
        instance_groups=groups,
        vpc=vpc,
        slurm=None if file.eks is not None else read.slurm,
        eks=eks_of(file, read.eks, vpc=_control_plane_vpc(file.network)),
        has_role=settings.is_set("auto_scaler"),
    )


def _beside_properties(
    file: Settings,
    group: InstanceGroup,
    setting: Settings,
    modes: LifecycleModes,
    vpc: VpcConfig,
    zones: dict[str, Subnet],
) -> InstanceGroup:
    """Group with what AWS does not get, or not from a file."""
    placed = _zone_vpc(file.network, setting, vpc, zones)
    unknown = file.eks is None and file.storage.lustre is not None and setting.mount_lustre is UNRESOLVED
    return group.changed(
        places={
            **setting.places_in(InstanceGroup),
            **group.places,
            **({} if placed is None else {"override_vpc": placed.path}),
        },
        override_vpc=vars(group)["override_vpc"] if placed is None else placed,
        spare_count=setting.spare_count,
        lifecycle=modes.with_scripts(vars(group)["lifecycle"], setting),
        mounts=UNRESOLVED if unknown else vars(group)["mounts"],
    )


def _resources(file: Settings, modes: LifecycleModes) -> dict[str, Any]:
    settings, tiered, shared = file.cluster, file.cluster.tiered_storage, file.cluster.restricted_environment
    groups, restricted = settings.instance_groups, settings.restricted_instance_groups
    name = settings.name if settings.is_set("name") else file.name
    control_plane = control_plane_of(file, name=name)
    eks_arn = {"Fn::GetAtt": ["Eks", "Arn"]} if control_plane else UNRESOLVED
    properties = cluster(
        settings,
        places={
            **settings.places(restricted_groups="restricted_instance_groups"),
            "tiered_storage_percent": "cluster.tiered_storage.memory_percentage",
            "vpc": "network",
        },
        name=name,
        instance_groups=groups
        if groups is UNRESOLVED
        else [
            instance_group(
                group,
                mounts=mounts_of(file, group),
                lifecycle=modes.properties(group),
                lifecycle_place=modes.place(group),
                zones=file.network.additional_availability_zones,
            )
            for group in groups
        ],
        restricted_groups=restricted if restricted is UNRESOLVED else [restricted_group(group) for group in restricted],
        restricted_lustre=None
        if shared is None or shared.lustre is None
        else properties_of(RestrictedLustre, shared.lustre),
        lustre_deletion_policy=None if shared is None else shared.lustre_deletion_policy,
        **({"slurm": _slurm(file)} if file.eks is None else {"eks": eks_orchestrator(path="eks", cluster_arn=eks_arn)}),
        auto_scaling=None if settings.auto_scaler is None else True,
        tiered_storage=None if tiered is None else True,
        tiered_storage_percent=None if tiered is None else tiered.memory_percentage,
        tags=settings.tags,
    )
    teams = governance_of(file, name=name, cluster_arn={"Fn::GetAtt": ["Cluster", "ClusterArn"]})
    return {"Cluster": {"Type": CLUSTER, "Properties": properties}, **file_systems_of(file), **control_plane, **teams}


def _slurm(file: Settings) -> Properties:
    settings, continuous = file.slurm, file.cluster.node_provisioning_mode
    # The default is sent without continuous provisioning only; what is written is taken at its word.
    strategy = "Managed" if continuous is None else None
    if settings is None:
        return slurm_orchestrator(path="slurm", config_strategy=strategy, accounting=None)
    accounting = settings.accounting
    return slurm_orchestrator(
        path="slurm",
        places=settings.places(config_strategy="config_strategy", accounting="accounting"),
        config_strategy=settings.config_strategy if settings.is_set("config_strategy") else strategy,
        accounting=None
        if accounting is None
        else properties_of(
            AccountingDatabase, accounting, database=None if accounting.create is True else accounting.database
        ),
    )


def _admins(eks: Settings) -> Any:
    arns, where = eks.admin_role_arns, eks.at("admin_role_arns")
    if arns is UNRESOLVED:
        return ()
    return tuple(AccessEntry(path=f"{where}.{index}", type="STANDARD", principal=arn) for index, arn in enumerate(arns))


def _extensions(file: Settings) -> tuple[Extension, ...]:
    used = file.slurm is not None and file.slurm.observability_extension is True
    return (Extension(path=file.slurm.at("observability_extension")),) if used else ()


def _sessions(file: Settings) -> tuple[SessionDocument, ...]:
    return () if file.sessions is None else (file.sessions.item(SessionDocument),)


def _control_plane_vpc(network: Settings) -> VpcConfig:
    existing = network.existing
    if existing is not None:
        ids, where = existing.control_plane_subnet_ids, existing.at("control_plane_subnet_ids")
        subnets: Any = ids if ids is UNRESOLVED else tuple(_existing_subnet(each, where) for each in ids)
        return VpcConfig(path=where, subnets=subnets, security_groups=())
    where = second_zone_place(network)
    second = Subnet(
        path=where,
        places={"availability_zone_id": network.at("control_plane_availability_zone_id")},
        id="control-plane",
        availability_zone=_zone(network, "control_plane_availability_zone"),
        availability_zone_id=network.control_plane_availability_zone_id,
        cidr=_half(network, 1),
        public=False,
    )
    nodes = _nodes_subnet(network)
    is_there = any(network.is_set(f"control_plane_availability_zone{by}") for by in ("", "_id"))
    return VpcConfig(path=where, subnets=(nodes, second) if is_there else (nodes,), security_groups=())


def _existing_subnet(identity: str, where: str) -> Subnet:
    return Subnet(path=where, id=identity, availability_zone=UNRESOLVED, cidr=UNRESOLVED, public=UNRESOLVED)


def _vpc_places(network: Settings) -> dict[str, str]:
    existing = network.existing
    if existing is None:
        return {}
    places: dict[str, str] = existing.places(subnets="subnet_id", security_groups="security_group_id")
    return places


def _vpc_cidrs(existing: Settings) -> Any:
    is_known = existing.is_set("vpc_cidr") and existing.vpc_cidr is not UNRESOLVED
    return (existing.vpc_cidr,) if is_known else UNRESOLVED


def _nodes_subnet(network: Settings) -> Subnet:
    existing = network.existing
    if existing is not None:
        return Subnet(
            path=existing.at("subnet_id"),
            places={
                "availability_zone": network.at("availability_zone"),
                "availability_zone_id": network.at("availability_zone_id"),
                "cidr": existing.at("subnet_cidr"),
                "public": existing.at("subnet_id"),
            },
            id=existing.subnet_id,
            availability_zone=_zone(network, "availability_zone"),
            availability_zone_id=network.availability_zone_id,
            cidr=existing.subnet_cidr if existing.is_set("subnet_cidr") else UNRESOLVED,
            public=UNRESOLVED,
            vpc_cidrs=_vpc_cidrs(existing),
        )
    return Subnet(
        path=network.path,
        places=network.places(
            availability_zone="availability_zone", availability_zone_id="availability_zone_id", cidr="cidr"
        ),
        id="nodes",
        availability_zone=_zone(network, "availability_zone"),
        availability_zone_id=network.availability_zone_id,
        cidr=_half(network, 0),
        public=False,
    )


def _zone_vpc(network: Settings, group: Settings, nodes: VpcConfig, made: dict[str, Subnet]) -> VpcConfig | None:
    """
    Subnet of a group's zone: the second or third quarter of the block's second half. None: the first zone.

    Args:
        made: Subnets by zone; groups of one zone share one.
    """
    zone, zones = group.availability_zone, network.additional_availability_zones
    if UNRESOLVED in (zone, zones) or zone not in zones or group.override_vpc is not None:
        return None
    half, place = _half(network, 1), group.at("availability_zone")
    quarters = () if half is UNRESOLVED else list(ipaddress.IPv4Network(half).subnets(prefixlen_diff=2))
    subnet = Subnet(
        path=place,
        places={"cidr": network.at("cidr")},
        id=zone_subnet(zone),
        availability_zone=zone,
        cidr=str(quarters[1 + zones.index(zone)]) if quarters else UNRESOLVED,
        public=False,
    )
    subnets = (made.setdefault(zone, subnet),)
    return VpcConfig(path=place, subnets=subnets, security_groups=nodes.security_groups)


def _zone(network: Settings, name: str) -> Any:
    return getattr(network, name) if network.is_set(name) else UNRESOLVED


def _half(network: Settings, index: int) -> Any:
    """Half of the VPC's block: nodes have the first, all else the second."""
    if network.cidr in (None, UNRESOLVED):
        return UNRESOLVED
    return str(list(ipaddress.IPv4Network(network.cidr).subnets())[index])


def _security_group(network: Settings) -> SecurityGroup:
    existing = network.existing
    if existing is not None:
        path = existing.at("security_group_id")
        return SecurityGroup(path=path, id=existing.security_group_id, ingress=UNRESOLVED, egress=UNRESOLVED)
    own = (Traffic(path=network.path, protocol="-1", peer="nodes"),)
    return SecurityGroup(path=network.path, id="nodes", ingress=own, egress=own)


def _network(network: Settings) -> Network:
    existing, egress = network.existing, network.egress
    nat = egress if egress is UNRESOLVED else egress == "nat"
    if existing is not None:
        return Network(
            path=network.path,
            places={
                "cidr": existing.at("vpc_cidr"),
                "s3_gateway": existing.at("route_table_id"),
                "interface_endpoints": network.at("egress"),
            },
            cidr=existing.vpc_cidr if existing.is_set("vpc_cidr") else UNRESOLVED,
            nat=nat,
            way_out=nat,
            s3_gateway=True if existing.is_set("route_table_id") else UNRESOLVED,
            interface_endpoints=UNRESOLVED,
        )
    return Network(
        path=network.path,
        places=network.places(cidr="cidr", nat="egress", way_out="egress"),
        cidr=network.cidr,
        nat=nat,
        way_out=nat,
        s3_gateway=True,
        interface_endpoints=ALL_ENDPOINTS,
    )


def _images(file: Settings) -> tuple[Image, ...]:
    images = file.images
    named = () if images is None else (images.training, images.health_agent, images.job_operator)
    return tuple(
        Image(path=image.path, repository=image.repository, digest=image.digest) for image in named if image is not None
    )
