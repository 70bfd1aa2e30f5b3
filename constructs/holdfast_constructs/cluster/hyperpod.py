from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import jsii
from aws_cdk import Names
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct, IDependable

from holdfast.validation import translation
from holdfast_constructs.cdk import arguments, structure
from holdfast_constructs.cluster.auto_scaling_role import AutoScalingRole
from holdfast_constructs.cluster.execution_roles import NodeRights, adopt, execution_role, volume_keys
from holdfast_constructs.cluster.health_rights import shipping, watching
from holdfast_constructs.cluster.l1 import Nodes, orchestrator_properties, restricted_lustre, vpc_properties
from holdfast_constructs.cluster.lifecycle_config import Lifecycle
from holdfast_constructs.cluster.orchestrators import EksOrchestrator, SlurmOrchestrator
from holdfast_constructs.cluster.reference import ClusterBase, IHyperPodCluster
from holdfast_constructs.eks import IHyperPodEks, NodesReady
from holdfast_constructs.groups import InstanceGroup, RestrictedEnvironment, RestrictedInstanceGroup
from holdfast_constructs.lifecycle import ILifecycleScripts
from holdfast_constructs.network import IHyperPodNetwork
from holdfast_constructs.storage import LustreMount, Mount, OpenZfsMount
from holdfast_constructs.synthesis import acknowledge_schema_gaps, register_rules


@dataclass(frozen=True, kw_only=True)
class AutoScaling:
    """Scaling of nodes with pending pods, by HyperPod's Karpenter."""

    enabled: bool = True
    """False turns it off on a cluster that had it. Default: True."""


@dataclass(frozen=True, kw_only=True)
class TieredStorage:
    """Checkpoints in the memory of nodes (managed tiered checkpointing)."""

    memory_percentage: int | None = None
    """Part of each node's memory, 0 to 100. Default: HyperPod's choice."""
    enabled: bool = True
    """False turns it off on a cluster that had it. Default: True."""


@jsii.implements(iam.IGrantable)
class HyperPodCluster(ClusterBase):
    """
    A HyperPod cluster with Slurm, configured through the API, or on EKS. Grants go to the execution role of its nodes.
    """

    role: iam.IRole
    """The execution role of all instance groups that have none of their own."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str | None = None,
        network: IHyperPodNetwork,
        orchestrator: SlurmOrchestrator | EksOrchestrator,
        instance_groups: Sequence[InstanceGroup] = (),
        lifecycle: ILifecycleScripts | None = None,
        lustre: LustreMount | None = None,
        home: OpenZfsMount | None = None,
        restricted_instance_groups: Sequence[RestrictedInstanceGroup] = (),
        restricted_environment: RestrictedEnvironment | None = None,
        node_recovery: Literal["Automatic", "None"] = "Automatic",
        continuous_provisioning: bool = False,
        install_on_nodes: bool = True,
        auto_scaling: AutoScaling | None = None,
        tiered_storage: TieredStorage | None = None,
        role: iam.IRole | None = None,
        auto_scaling_role: iam.IRole | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """
        Define a cluster.

        Args:
            cluster_name: Changing it replaces the cluster. Default: generated.
            network: Changing it replaces the cluster.
            instance_groups: Removing one deletes its nodes. Default: those of ``add_instance_group``.
            lifecycle: Scripts of new nodes, in groups whose ``lifecycle_mode`` is not none; uploaded before the cluster
                is created, with mounts and accounting. Default: none, HyperPod prepares nodes, with Slurm only.
            lustre: On the nodes of all groups without ``mounts`` of their own; Slurm only.
            home: The same for home directories. Default: none, each node has its own.
            node_recovery: Default: "Automatic", HyperPod replaces or reboots faulty nodes.
            continuous_provisioning: Start with the available nodes, while HyperPod adds the others. Cannot be added to
                an existing Slurm cluster. Default: False, all nodes or none.
            install_on_nodes: False leaves out CoreDNS, which is degraded without a node. Default: True, with EKS and
                continuous provisioning the stack waits 45 minutes for a first node, and fails without one.
            auto_scaling: With EKS and continuous provisioning only.
            tiered_storage: With EKS only.
            role: Execution role of nodes, extended with their rights unless immutable. Default: a new one.
            auto_scaling_role: Used unchanged. Default: a new one with ``auto_scaling``.
            tags: A cluster on EKS also gets SageMaker=true, which the training operator requires.
        """
        eks = orchestrator.control_plane if isinstance(orchestrator, EksOrchestrator) else None
        super().__init__(
            scope,
            construct_id,
            cluster_name=cluster_name,
            security_groups=network.security_groups,
            eks_cluster_name=None if eks is None else eks.physical_name,
        )
        if cluster_name is None:
            self._cluster_name = Names.unique_resource_name(self, max_length=63, separator="-")
        self._mounts: list[Mount] = [mount for mount in (lustre, home) if mount is not None]
        self._network, self._orchestrator, self._continuous = network, orchestrator, continuous_provisioning
        every = [*self._mounts, *(mount for group in instance_groups for mount in group.mounts or ())]
        check_groups(instance_groups, every, on_eks=eks is not None)
        self._define_roles(instance_groups, restricted_instance_groups, lifecycle=lifecycle, role=role)
        _reach_services(network, orchestrator, every)
        self._scaler: AutoScalingRole | None = None
        if auto_scaling is not None and auto_scaling_role is None:
            self._scaler = AutoScalingRole(self, "AutoScalingRole")
            auto_scaling_role = self._scaler.role
        self._define_groups(instance_groups)
        shared = restricted_environment
        resource = self._resource = sagemaker.CfnCluster(
            self,
            "Resource",
            **arguments(
                sagemaker.CfnCluster,
                translation.cluster(
                    name=self.cluster_name,
                    **orchestrator_properties(orchestrator, continuous=continuous_provisioning),
                    vpc=vpc_properties(network.subnets, network.security_groups),
                    instance_groups=self._groups,
                    restricted_groups=[self._nodes.restricted(group) for group in restricted_instance_groups],
                    restricted_lustre=restricted_lustre(None if shared is None else shared.lustre),
                    lustre_deletion_policy=None if shared is None else shared.lustre_deletion_policy,
                    node_recovery=node_recovery,
                    node_provisioning_mode="Continuous" if continuous_provisioning else None,
                    auto_scaling=None if auto_scaling is None else auto_scaling.enabled,
                    auto_scaler=None if auto_scaling is None else "Karpenter",
                    role=None if auto_scaling_role is None else auto_scaling_role.role_arn,
                    tiered_storage=None if tiered_storage is None else tiered_storage.enabled,
                    tiered_storage_percent=None if tiered_storage is None else tiered_storage.memory_percentage,
                    tags=_tags(tags or {}, on_eks=eks is not None),
                ),
            ),
        )
        self.cluster_arn = resource.attr_cluster_arn
        if self._scaler is not None:
            self._scaler.allow(cluster_arn=self.cluster_arn, keys=volume_keys(instance_groups))
        self._add_dependencies(eks, instance_groups, restricted_instance_groups, mounts=every)
        self.nodes = self._first_nodes(eks, instance_groups) if install_on_nodes else self.resource
        if eks is not None:
            eks.install_after(self.nodes if install_on_nodes else None)
        acknowledge_schema_gaps(resource, instance_groups)
        register_rules(self, subnets=[network.subnet])

    def _define_roles(
        self,
        groups: Sequence[InstanceGroup],
        restricted: Sequence[RestrictedInstanceGroup],
        *,
        lifecycle: ILifecycleScripts | None,
        role: iam.IRole | None,
    ) -> None:
        self._modes = Lifecycle(
            bundle=lifecycle, orchestrator=self._orchestrator, continuous=self._continuous, mounts=self._mounts
        )
        self._modes.check(groups)
        self._rights = NodeRights(scope=self, network=self._network, orchestrator=self._orchestrator)
        self._allowed: dict[str, iam.IRole] = {}
        self.role = execution_role(self, "Role") if role is None else adopt(role)
        for own in _roles(self.role, groups, restricted):
            self._allow(own, groups, restricted)
        self._modes.tell(groups)

    def _define_groups(self, groups: Sequence[InstanceGroup]) -> None:
        self._nodes = Nodes(role=self.role, lifecycle=self._modes, mounts=self._mounts)
        self._names = [group.name for group in groups]
        self._groups = [self._nodes.group(group) for group in groups]
        self._controller_roles = [group.role or self.role for group in groups if group.node_type == "Controller"]

    def _add_dependencies(
        self,
        eks: IHyperPodEks | None,
        groups: Sequence[InstanceGroup],
        restricted: Sequence[RestrictedInstanceGroup],
        *,
        mounts: Sequence[Mount],
    ) -> None:
        """Nodes boot at once: routes, rules, policies, scripts and data repository associations must exist before."""
        self._resource.node.add_dependency(
            self._network,
            *self._network.subnets,
            *self._network.security_groups,
            *_own_networks((*groups, *restricted)),
            *self._allowed.values(),
            *(mount.file_system for mount in mounts),
            *self._scripts(groups),
        )
        if eks is not None:
            self._resource.node.add_dependency(eks.dependencies, *_entries(eks, self._allowed.values()))

    def _first_nodes(self, eks: IHyperPodEks | None, groups: Sequence[InstanceGroup]) -> IDependable:
        """The cluster itself, unless it is in service before its nodes."""
        installer = None if eks is None else eks.known_installer
        if installer is None or not self._continuous or not any(group.instance_count for group in groups):
            return self.resource
        name = self.cluster_name
        return NodesReady(self, "Nodes", installer=installer, cluster_name=name, cluster=self.resource)

    @property
    def resource(self) -> sagemaker.CfnCluster:
        """For dependencies, and the escape hatch."""
        return self._resource

    def add_instance_group(self, group: InstanceGroup) -> None:
        """
        Add a group; the network must have room for its nodes. Raises ValueError for a used name, or another
        orchestrator.
        """
        if group.name in self._names:
            raise ValueError(
                f"instance group '{group.name}': got the name twice; allowed: names of their own "
                f"(there are: {', '.join(self._names)})"
            )
        eks = self._orchestrator.control_plane if isinstance(self._orchestrator, EksOrchestrator) else None
        check_groups([group], group.mounts or (), on_eks=eks is not None)
        self._modes.check([group])
        mounts = self._mounts if group.mounts is None else group.mounts
        role = group.role or self.role
        if role.node.path in self._allowed:
            self._rights.allow_more(role, group, mounts=mounts)
            for scripts in self._scripts([group]):
                scripts.grant_read(role)
        else:
            self._allow(role, [group], ())
            self.resource.node.add_dependency(role)
            if eks is not None:
                self.resource.node.add_dependency(*_entries(eks, [role]))
        if self._scaler is not None:
            self._scaler.allow_keys(volume_keys([group]))
        self._modes.tell_more(group)
        _reach_services(self._network, self._orchestrator, mounts)
        self._names.append(group.name)
        self._groups.append(self._nodes.group(group))
        kind = sagemaker.CfnCluster.ClusterInstanceGroupProperty
        self.resource.instance_groups = [structure(kind, each) for each in self._groups]
        self.resource.node.add_dependency(*(mount.file_system for mount in mounts), *self._scripts([group]))
        acknowledge_schema_gaps(self.resource, [group])

    def _allow(
        self,
        role: iam.IRole,
        groups: Sequence[InstanceGroup],
        restricted_groups: Sequence[RestrictedInstanceGroup],
    ) -> None:
        own = [group for group in groups if (group.role or self.role).node.path == role.node.path]
        restricted = [group for group in restricted_groups if (group.role or self.role).node.path == role.node.path]
        mounts = [*self._mounts, *(mount for group in own for mount in group.mounts or ())]
        self._rights.allow(
            role if role is self.role else adopt(role), groups=own, restricted_groups=restricted, mounts=mounts
        )
        for scripts in self._scripts(own):
            scripts.grant_read(role)
        self._allowed[role.node.path] = role

    def _scripts(self, groups: Sequence[InstanceGroup]) -> list[ILifecycleScripts]:
        found = [self._modes.bundle, *(group.lifecycle for group in groups)]
        return list({scripts.node.path: scripts for scripts in found if scripts is not None}.values())

    def allow_health_agent(self, *, events: logs.ILogGroup) -> None:
        """Allow health agents to ship events to this log group; under Slurm also the controller's queries."""
        for role in self._allowed.values():
            for statement in shipping(events):
                role.add_to_principal_policy(statement)
        for role in self._controller_roles[:1]:
            watching(self, "HealthAgent", role=role, name=self.cluster_name, arn=self.cluster_arn)

    @property
    def node_roles(self) -> tuple[iam.IRole, ...]:
        """Execution roles of all groups, the cluster's if a group has it."""
        return tuple(self._allowed.values())

    @property
    def grant_principal(self) -> iam.IPrincipal:
        return self.role.grant_principal

    @staticmethod
    def from_cluster_arn(scope: Construct, construct_id: str, *, cluster_arn: str) -> IHyperPodCluster:
        """Refer to an external cluster, whose name stays unknown."""
        return ClusterBase(scope, construct_id, cluster_arn=cluster_arn)

    @staticmethod
    def from_cluster_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        eks_cluster_name: str | None = None,
    ) -> IHyperPodCluster:
        """
        Refer to an external cluster.

        Args:
            cluster_arn: Ends with an id chosen by HyperPod, not with the name.
            security_groups: Of its nodes, for ``connections``. Default: unknown.
            eks_cluster_name: For metrics. Default: Slurm, or unknown.
        """
        return ClusterBase(
            scope,
            construct_id,
            cluster_name=cluster_name,
            cluster_arn=cluster_arn,
            security_groups=security_groups,
            eks_cluster_name=eks_cluster_name,
        )

    @staticmethod
    def from_lookup(
        scope: Construct, construct_id: str, *, cluster_name: str | None = None, cluster_arn: str | None = None
    ) -> IHyperPodCluster:
        """
        Refer to a cluster that the CDK CLI looks up in the stack's account and region, and caches.

        Args:
            cluster_name: Or ``cluster_arn``.
            cluster_arn: Looks up its security groups and its EKS cluster, too.
        """
        from holdfast_constructs.cluster.lookup import looked_up

        found = looked_up(scope, cluster_name=cluster_name, cluster_arn=cluster_arn)
        eks = ((found.get("Orchestrator") or {}).get("Eks") or {}).get("ClusterArn")
        groups = (found.get("VpcConfig") or {}).get("SecurityGroupIds") or ()
        place = Construct(scope, f"{construct_id}-Looked")
        return ClusterBase(
            scope,
            construct_id,
            cluster_name=found["ClusterName"],
            cluster_arn=found["ClusterArn"],
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(place, f"SecurityGroup{index}", group)
                for index, group in enumerate(groups)
            ],
            eks_cluster_name=None if eks is None else eks.rpartition("/")[2],
        )


def _roles(
    role: iam.IRole, groups: Sequence[InstanceGroup], restricted_groups: Sequence[RestrictedInstanceGroup]
) -> list[iam.IRole]:
    found = [role, *(group.role for group in groups), *(group.role for group in restricted_groups)]
    return list({each.node.path: each for each in found if each is not None}.values())


def _entries(eks: IHyperPodEks, roles: Iterable[iam.IRole]) -> list[IDependable]:
    """
    Access entries for roles of this app.

    An imported role may have an entry, of which there can be one; HyperPod makes a missing one: the creator of a
    cluster needs eks:DescribeAccessEntry and eks:CreateAccessEntry for that (SageMaker developer guide, "AWS Identity
    and Access Management for SageMaker HyperPod", cluster admin).
    """
    return [eks.add_nodes_role(role) for role in roles if iam.Role.is_role(role)]


def _reach_services(
    network: IHyperPodNetwork, orchestrator: SlurmOrchestrator | EksOrchestrator, mounts: Sequence[Mount]
) -> None:
    if isinstance(orchestrator, SlurmOrchestrator) and orchestrator.accounting_database is not None:
        network.add_interface_endpoint("secretsmanager")
    if any(isinstance(mount, LustreMount) and mount.file_system.efa for mount in mounts):
        network.add_interface_endpoint("fsx")


def _tags(tags: Mapping[str, str], *, on_eks: bool) -> Mapping[str, str]:
    """SageMaker developer guide, "Installing the training operator": without the tag "the installation will fail"."""
    return {"SageMaker": "true", **tags} if on_eks else tags


def _own_networks(groups: Sequence[InstanceGroup | RestrictedInstanceGroup]) -> Iterator[IConstruct]:
    for group in groups:
        if group.override_vpc is not None:
            yield from (*group.override_vpc.subnets, *group.override_vpc.security_groups)


def check_groups(groups: Sequence[InstanceGroup], mounts: Sequence[Mount], *, on_eks: bool) -> None:
    if on_eks and mounts:
        raise ValueError(
            f"cluster on EKS: got file systems at {', '.join(mount.mount_path for mount in mounts)}; allowed: none, "
            "pods mount them through the FSx CSI driver"
        )
    for group in groups:
        if on_eks and (group.node_type is not None or group.partition is not None):
            raise ValueError(
                f"instance group '{group.name}': got node_type {group.node_type!r} and partition {group.partition!r} "
                "on EKS; allowed: neither, they are Slurm's"
            )
        if not on_eks and (group.labels or group.taints):
            raise ValueError(
                f"instance group '{group.name}': got labels or taints with Slurm; allowed: neither, they are for EKS"
            )
        if not on_eks and group.node_type is None:
            raise ValueError(
                f"instance group '{group.name}': got no node_type; allowed with Slurm: Controller, Login or Compute"
            )
