"""Rights of nodes: only what the cluster uses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from holdfast_constructs.cluster.orchestrators import EksOrchestrator, SlurmOrchestrator
from holdfast_constructs.groups import InstanceGroup, OverrideVpc, RestrictedInstanceGroup
from holdfast_constructs.network import IHyperPodNetwork
from holdfast_constructs.storage import LustreMount, Mount

MANAGED_POLICY = "AmazonSageMakerClusterInstanceRolePolicy"
ADDRESSES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
)


@dataclass(frozen=True, kw_only=True)
class _Arns:
    interfaces: str
    instances: str
    """They belong to an account of the service."""
    places: Sequence[str]
    """Every subnet and security group that a node can have an interface in."""


@dataclass(frozen=True, kw_only=True)
class NodeRights:
    scope: Construct
    network: IHyperPodNetwork
    orchestrator: SlurmOrchestrator | EksOrchestrator

    def allow(
        self,
        role: iam.IRole,
        *,
        groups: Sequence[InstanceGroup],
        restricted_groups: Sequence[RestrictedInstanceGroup] = (),
        mounts: Sequence[Mount],
    ) -> None:
        """
        Give a role the rights of these groups.

        The managed policy covers logs, metrics, session manager and buckets named ``sagemaker-``. It has no action of
        EC2, without which nodes cannot be attached to a VPC ("Unable to retrieve subnets"), and none of FSx, without
        which an EFA-enabled file system is silently mounted over TCP.
        """
        stack = Stack.of(self.scope)
        partition, region = stack.partition, stack.region
        own = f"arn:{partition}:ec2:{region}:{stack.account}"
        arns = _Arns(
            interfaces=f"{own}:network-interface/*",
            instances=f"arn:{partition}:ec2:{region}:*:instance/*",
            places=[f"{own}:{place}" for place in _places(self.network, groups, restricted_groups)],
        )
        for statement in (*_vpc(arns), *_eks(self.orchestrator, arns, partition), *_alarms(groups)):
            role.add_to_principal_policy(statement)
        _files_and_keys(role, groups, mounts)
        if isinstance(self.orchestrator, SlurmOrchestrator) and self.orchestrator.accounting_database is not None:
            self.orchestrator.accounting_database.secret.grant_read(role)

    def allow_more(self, role: iam.IRole, group: InstanceGroup, *, mounts: Sequence[Mount]) -> None:
        """Give such a role the extra rights of another group."""
        stack = Stack.of(self.scope)
        own = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}"
        places = [f"{own}:{place}" for place in _override_places([group.override_vpc])]
        on_eks = isinstance(self.orchestrator, EksOrchestrator)
        if places:
            # Without names: those of the first statements are taken.
            actions = ["ec2:CreateNetworkInterface", *(ADDRESSES if on_eks else ())]
            role.add_to_principal_policy(iam.PolicyStatement(actions=actions, resources=places))
        for statement in _alarms([group]):
            statement.sid = None
            role.add_to_principal_policy(statement)
        _files_and_keys(role, [group], mounts)


def _files_and_keys(role: iam.IRole, groups: Sequence[InstanceGroup], mounts: Sequence[Mount]) -> None:
    for mount in mounts:
        if isinstance(mount, LustreMount) and mount.file_system.efa:
            mount.file_system.grant_describe(role)
    for key in volume_keys(groups):
        # SageMaker developer guide, "Customer managed AWS KMS key encryption for SageMaker HyperPod"
        key.grant(role, "kms:CreateGrant", "kms:DescribeKey")


def execution_role(scope: Construct, construct_id: str) -> iam.Role:
    return iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(MANAGED_POLICY)],
        description="HyperPod nodes",
    )


def adopt(role: iam.IRole) -> iam.IRole:
    """Add the managed policy to a given role of this app; imported ones stay unchanged."""
    if iam.Role.is_role(role):
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(MANAGED_POLICY))
    return role


def volume_keys(groups: Sequence[InstanceGroup]) -> list[kms.IKey]:
    keys = (key for group in groups for key in (group.root_volume_key, *(volume.key for volume in group.volumes)))
    return list({key.key_arn: key for key in keys if key is not None}.values())


def _vpc(arns: _Arns) -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(
        sid="LookAtTheNetwork",
        actions=[
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ],
        resources=["*"],  # none of them can be limited to a resource
    )
    yield iam.PolicyStatement(
        sid="MakeNetworkInterfaces",
        actions=["ec2:CreateNetworkInterface"],
        resources=[arns.interfaces, *arns.places],
    )
    yield iam.PolicyStatement(
        sid="UseNetworkInterfaces",
        actions=[
            "ec2:CreateNetworkInterfacePermission",
            "ec2:CreateTags",
            "ec2:DeleteNetworkInterface",
            "ec2:DeleteNetworkInterfacePermission",
            "ec2:DetachNetworkInterface",
        ],
        resources=[arns.interfaces, arns.instances],
    )


def _eks(
    orchestrator: SlurmOrchestrator | EksOrchestrator, arns: _Arns, partition: str
) -> Iterator[iam.PolicyStatement]:
    """After awslabs/awsome-distributed-ai 95b939c, hyperpod-eks-tf/modules/sagemaker_iam_role."""
    if not isinstance(orchestrator, EksOrchestrator):
        return
    yield iam.PolicyStatement(
        sid="LookAtNodesForPods",
        actions=["ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeTags"],
        resources=["*"],  # none of them can be limited to a resource
    )
    yield iam.PolicyStatement(
        sid="GiveAddressesToPods",
        actions=list(ADDRESSES),
        resources=[arns.interfaces, arns.instances, *arns.places],
    )
    yield iam.PolicyStatement(
        sid="LogInToRegistries",
        actions=["ecr:GetAuthorizationToken"],
        resources=["*"],  # it has no resource
    )
    yield iam.PolicyStatement(
        sid="PullImages",
        actions=["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        # Of this account, because kubelet pulls the images of all pods with this role (SageMaker developer guide, "IAM
        # role for SageMaker HyperPod", Amazon EKS); and of AWS: EKS, its add-ons and HyperPod's agents have registries
        # in accounts that differ by region and are not all documented.
        resources=[f"arn:{partition}:ecr:*:*:repository/*"],
    )
    yield iam.PolicyStatement(
        sid="GiveRolesToPods",
        actions=["eks-auth:AssumeRoleForPodIdentity"],
        resources=[orchestrator.control_plane.cluster_arn],
    )


def _alarms(groups: Sequence[InstanceGroup]) -> Iterator[iam.PolicyStatement]:
    deployments = [group.scheduled_update.deployment for group in groups if group.scheduled_update is not None]
    alarms = {alarm.alarm_arn: None for deployment in deployments if deployment for alarm in deployment.rollback_alarms}
    if alarms:
        yield iam.PolicyStatement(
            sid="WatchRollbackAlarms", actions=["cloudwatch:DescribeAlarms"], resources=list(alarms)
        )


def _places(
    network: IHyperPodNetwork,
    groups: Sequence[InstanceGroup],
    restricted_groups: Sequence[RestrictedInstanceGroup],
) -> list[str]:
    subnets = [f"subnet/{subnet.subnet_id}" for subnet in network.subnets]
    security_groups = [f"security-group/{group.security_group_id}" for group in network.security_groups]
    overrides = [group.override_vpc for group in groups] + [group.override_vpc for group in restricted_groups]
    others = _override_places(overrides)
    ids = [*subnets, *(place for place in others if place.startswith("subnet/")), *security_groups, *others]
    return list(dict.fromkeys(ids))


def _override_places(overrides: Sequence[OverrideVpc | None]) -> list[str]:
    subnets: list[ec2.ISubnet] = []
    security_groups: list[ec2.ISecurityGroup] = []
    for override in overrides:
        if override is not None:
            subnets += override.subnets
            security_groups += override.security_groups
    ids = [f"subnet/{subnet.subnet_id}" for subnet in subnets]
    return ids + [f"security-group/{group.security_group_id}" for group in security_groups]
