"""Deployment from an environment file, with what Holdfast's constructs add."""

import ipaddress
from pathlib import Path
from typing import Any

from holdfast.catalog import limits
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.file import environment_file, second_zone_place
from holdfast.validation.from_environment.governance import governance
from holdfast.validation.from_environment.groups import instance_group, restricted_group, restricted_lustre
from holdfast.validation.from_environment.lifecycle import LifecycleModes
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.from_environment.storage import home_of, lustre_of, mounts_of
from holdfast.validation.model import (
    AccessEntry,
    AccountingDatabase,
    Addon,
    Cluster,
    Deployment,
    Eks,
    EksControlPlane,
    HelmRelease,
    Image,
    Network,
    SecurityGroup,
    Slurm,
    Subnet,
    Traffic,
    VpcConfig,
)

OPERATOR, OBSERVABILITY = "amazon-sagemaker-hyperpod-training-operator", "amazon-sagemaker-hyperpod-observability"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
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
    lustre, home = lustre_of(file, vpc), home_of(file, vpc)
    return Deployment(
        path="",
        places={"account": "account", "region": "region"},
        account=file.account,
        region=file.region,
        cluster=_cluster(file, vpc, LifecycleModes(file, folder)),
        network=_network(network),
        lustre_file_systems=() if lustre is None else (lustre,),
        openzfs_file_systems=() if home is None else (home,),
        images=_images(file),
        governance=governance(file),
        others=() if file.eks is None else _admins(file.eks),
        file=environment_file(file),
    )


def _cluster(file: Settings, vpc: VpcConfig, modes: LifecycleModes) -> Cluster:
    cluster, continuous = file.cluster, file.cluster.node_provisioning_mode
    groups, restricted = cluster.instance_groups, cluster.restricted_instance_groups
    shared = cluster.restricted_environment
    tiered = cluster.tiered_storage
    return Cluster(
        path="cluster",
        places={
            **cluster.places_in(Cluster),
            **cluster.places(restricted_groups="restricted_instance_groups"),
            "tiered_storage_percent": "cluster.tiered_storage.memory_percentage",
            "vpc": "network",
        },
        name=cluster.name if cluster.is_set("name") else file.name,
        instance_groups=groups
        if groups is UNRESOLVED
        else tuple(
            instance_group(
                group,
                mounts=mounts_of(file, group),
                lifecycle=modes.lifecycle(group),
                lifecycle_place=modes.place(group),
            )
            for group in groups
        ),
        restricted_groups=restricted
        if restricted is UNRESOLVED
        else tuple(restricted_group(group) for group in restricted),
        restricted_lustre=None if shared is None or shared.lustre is None else restricted_lustre(shared.lustre),
        vpc=vpc,
        slurm=_slurm(file, continuous) if file.eks is None else None,
        eks=None if file.eks is None else Eks(path="eks", control_plane=_control_plane(file)),
        node_recovery=cluster.node_recovery,
        node_provisioning_mode=continuous,
        auto_scaler=cluster.auto_scaler,
        has_role=cluster.is_set("auto_scaler"),
        tiered_storage_percent=None if tiered is None else tiered.memory_percentage,
        tags=cluster.tags,
    )


def _slurm(file: Settings, continuous: Any) -> Slurm:
    settings = file.slurm if file.slurm is not None else None
    if settings is None:
        return Slurm(path="slurm", config_strategy=None)
    # The default is sent without continuous provisioning only; what is written is taken at its word.
    strategy = settings.config_strategy if settings.is_set("config_strategy") or continuous is None else None
    accounting = settings.accounting
    return Slurm(
        path="slurm",
        places=settings.places(config_strategy="config_strategy", accounting="accounting"),
        config_strategy=strategy,
        accounting=None
        if accounting is None
        else AccountingDatabase(
            path="slurm.accounting",
            places=accounting.places(endpoint="endpoint", secret_arn="secret_arn"),  # noqa: S106 - a setting's name
            endpoint=accounting.endpoint,
            secret_arn=accounting.secret_arn,
        ),
    )


def _control_plane(file: Settings) -> EksControlPlane | None:
    eks, cidrs = file.eks, file.eks.public_access_cidrs
    if eks.existing is not None:
        return None  # its owner's; the account tells whether HyperPod takes it
    names = ["vpc-cni", "eks-pod-identity-agent"]
    if eks.install_on_nodes is not False:
        names += ["coredns"]
        names += ["cert-manager", OPERATOR] if eks.training_operator is True else []
        names += [GOVERNANCE] if eks.task_governance is not None else []
        names += [OBSERVABILITY] if eks.observability_addon is True else []
    return EksControlPlane(
        path="eks",
        places=eks.places(version="kubernetes_version", public_access_cidrs="public_access_cidrs"),
        version=eks.kubernetes_version if eks.is_set("kubernetes_version") else UNRESOLVED,
        authentication_mode="API",
        private_access=True,
        public_access=cidrs if cidrs is UNRESOLVED else bool(cidrs),
        public_access_cidrs=cidrs,
        vpc=_control_plane_vpc(file.network),
        addons=tuple(Addon(path="eks", name=name, version=None) for name in names),
        releases=(HelmRelease(path="eks", chart="HyperPodHelmChart", before_cluster=True),),
        access_entries=(),
    )


def _admins(eks: Settings) -> Any:
    arns, where = eks.admin_role_arns, eks.at("admin_role_arns")
    if arns is UNRESOLVED:
        return ()
    return tuple(AccessEntry(path=f"{where}.{index}", type="STANDARD", principal=arn) for index, arn in enumerate(arns))


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
            vpc_cidrs=(existing.vpc_cidr,) if existing.is_set("vpc_cidr") else UNRESOLVED,
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
