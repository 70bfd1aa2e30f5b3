import ipaddress
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import CfnResource, CfnTag, RemovalPolicy
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, DependencyGroup, IDependable

from holdfast import catalog
from holdfast.catalog import kubernetes_versions
from holdfast.validation import translation
from holdfast_constructs.cdk import arguments, has_token
from holdfast_constructs.eks.addon import EksAddon
from holdfast_constructs.eks.base import EksBase, IHyperPodEks
from holdfast_constructs.eks.charts import releases
from holdfast_constructs.eks.helm import HelmInstaller
from holdfast_constructs.guard_duty import GuardDutyLeftovers
from holdfast_constructs.network import HyperPodNetwork, IHyperPodNetwork

if TYPE_CHECKING:
    from aws_cdk import aws_eks_v2 as eks_v2

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
NODE_ADDONS = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""Daemon sets: they are there as soon as nodes are, and nodes are not ready without the first."""
DNS_ADDON = "coredns"


class HyperPodEks(EksBase):
    """
    An EKS cluster for HyperPod nodes only.

    It has no node group: charts installed before the first node are daemon sets and permissions, which need none;
    CoreDNS and operators wait for HyperPod nodes. Its creator has no access: use ``grant_access``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        network: IHyperPodNetwork,
        kubernetes_version: str,
        instance_types: Collection[str] | None = None,
        public_access_cidrs: Sequence[str] = (),
        chart_archives: Mapping[str, Path] | None = None,
        addon_versions: Mapping[str, str] | None = None,
        encryption_key: kms.IKey | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """
        Define a control plane.

        Args:
            cluster_name: Changing it replaces the cluster.
            network: Control plane and nodes share its security group.
            kubernetes_version: One of ``kubernetes_versions()`` of the catalog.
            instance_types: Possible types, for device plugins. Default: any.
            public_access_cidrs: Allowed to reach the API server from the internet. Default: none, it is private.
            chart_archives: See ``HelmInstaller``. Default: charts come from GitHub.
            addon_versions: Of vpc-cni, kube-proxy, eks-pod-identity-agent, coredns. Default: see ``EksAddon``.
            encryption_key: For Kubernetes secrets and logs; its policy must allow CloudWatch Logs. Default: AWS keys.
            removal_policy: Of the cluster, its role and its log. Default: DESTROY: its content is reproducible, and a
                retained one costs money and blocks the deletion of the network.
        """
        super().__init__(scope, construct_id, cluster_name=cluster_name)
        _check(kubernetes_version, instance_types or (), public_access_cidrs, addon_versions or {})
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/eks/{cluster_name}/cluster",
            retention=log_retention,
            encryption_key=encryption_key,
            removal_policy=removal_policy,
        )
        role = self._role()
        resource = self._cluster(network, kubernetes_version, public_access_cidrs, encryption_key, role)
        resource.node.add_dependency(log)  # or EKS makes one that keeps everything for ever
        for part in (resource, *role.node.find_all()):  # a cluster that stays needs its role, and that its policy
            if isinstance(part, CfnResource):
                part.apply_removal_policy(removal_policy)
        if isinstance(network, HyperPodNetwork):
            leftovers = GuardDutyLeftovers(
                self,
                "GuardDuty",
                vpc=network.vpc,
                log_retention=log_retention,
                encryption_key=encryption_key,
                removal_policy=removal_policy,
            )
            resource.node.add_dependency(leftovers.resource)
        self.cluster_name = resource.ref
        self.cluster_arn = resource.attr_arn
        self._installer = HelmInstaller(
            self,
            "Helm",
            eks_cluster=self,
            network=network,
            endpoint=resource.attr_endpoint,
            certificate_authority=resource.attr_certificate_authority_data,
            archives=chart_archives,
            log_retention=log_retention,
            encryption_key=encryption_key,
        )
        self.dependencies = self._install(instance_types, addon_versions or {}, closed=network.closed)

    @staticmethod
    def from_cluster_name(
        scope: Construct, construct_id: str, *, cluster_name: str, network: IHyperPodNetwork | None = None
    ) -> IHyperPodEks:
        """
        Refer to an external EKS cluster in the stack's account and region, with HyperPod's add-ons and charts
        installed.

        Args:
            network: Reaches its API server, for further releases. Default: none are installed.
        """
        from holdfast_constructs.eks.existing import ExistingEks

        return ExistingEks(scope, construct_id, cluster_name=cluster_name, network=network)

    @staticmethod
    def from_cluster_arn(
        scope: Construct, construct_id: str, *, cluster_arn: str, network: IHyperPodNetwork | None = None
    ) -> IHyperPodEks:
        """The same by its ARN."""
        from holdfast_constructs.eks.existing import ExistingEks, from_arn

        name = from_arn(scope, cluster_arn)
        return ExistingEks(scope, construct_id, cluster_name=name, cluster_arn=cluster_arn, network=network)

    @staticmethod
    def from_cluster(
        scope: Construct,
        construct_id: str,
        *,
        cluster: "eks.ICluster | eks_v2.ICluster",
        network: IHyperPodNetwork | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        encryption_key: kms.IKey | None = None,
    ) -> IHyperPodEks:
        """
        Use an EKS cluster of ``aws_eks`` or ``aws_eks_v2``, owned or imported.

        Args:
            cluster: With authentication mode API or API_AND_CONFIG_MAP.
            network: Reaches its API server. Default: a private subnet of its VPC and the control plane's security
                group, if known.
            log_retention: Of the installer's function.
            encryption_key: Of its log.
        """
        from holdfast_constructs.eks.existing import from_construct

        return from_construct(
            scope,
            construct_id,
            cluster=cluster,
            network=network,
            log_retention=log_retention,
            encryption_key=encryption_key,
        )

    def install_after(self, nodes: IDependable | None) -> None:
        """Make CoreDNS wait for nodes: without one it is degraded, and its creation fails. None leaves it out."""
        if nodes is None:
            self.node.try_remove_child(DNS_ADDON)
            return
        place = self._place(nodes) if isinstance(nodes, Construct) else self
        if place is not self and self.node.try_remove_child(DNS_ADDON):
            self._dns = EksAddon(place, DNS_ADDON, eks_cluster=self, name=DNS_ADDON, version=self._dns_version)
        self._dns.resource.node.add_dependency(nodes)

    def _install(self, types: Collection[str] | None, versions: Mapping[str, str], *, closed: bool) -> IDependable:
        """Charts and add-ons; returns those that need no node."""
        charts = releases(Construct(self, "Charts"), installer=self.installer, types=types, closed=closed)
        addons = [EksAddon(self, name, eks_cluster=self, name=name, version=versions.get(name)) for name in NODE_ADDONS]
        self._dns_version = versions.get(DNS_ADDON)
        self._dns = EksAddon(self, DNS_ADDON, eks_cluster=self, name=DNS_ADDON, version=self._dns_version)
        return DependencyGroup(*(chart.resource for chart in charts), *(addon.resource for addon in addons))

    def _role(self) -> iam.Role:
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("eks.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name("AmazonEKSClusterPolicy")],
            description="EKS control plane of HyperPod",
        )

    def _cluster(
        self, network: IHyperPodNetwork, version: str, cidrs: Sequence[str], key: kms.IKey | None, role: iam.Role
    ) -> eks.CfnCluster:
        grant, encryption = None, None
        if key is not None:
            grant = key.grant(role, "kms:Encrypt", "kms:Decrypt", "kms:DescribeKey", "kms:CreateGrant")
            provider = eks.CfnCluster.ProviderProperty(key_arn=key.key_arn)
            encryption = [eks.CfnCluster.EncryptionConfigProperty(provider=provider, resources=["secrets"])]
        properties = translation.eks_cluster(name=self.cluster_name, version=version, public_access_cidrs=list(cidrs))
        vpc = properties["ResourcesVpcConfig"]
        vpc["SubnetIds"] = [subnet.subnet_id for subnet in network.control_plane_subnets]
        vpc["SecurityGroupIds"] = [network.security_group.security_group_id]
        resource = eks.CfnCluster(
            self,
            "Resource",
            **arguments(eks.CfnCluster, properties),
            role_arn=role.role_arn,
            encryption_config=encryption,
            logging=eks.CfnCluster.LoggingProperty(
                cluster_logging=eks.CfnCluster.ClusterLoggingProperty(
                    enabled_types=[eks.CfnCluster.LoggingTypeConfigProperty(type=kind) for kind in LOG_TYPES]
                )
            ),
            # As the HyperPod cluster has it: AWS's page on the training operator does not say which one it asks for.
            tags=[CfnTag(key="SageMaker", value="true")],
        )
        if grant is not None:
            grant.apply_before(resource)
        return resource


def _check(version: str, types: Collection[str], cidrs: Sequence[str], addon_versions: Mapping[str, str]) -> None:
    if version not in kubernetes_versions():
        raise ValueError(
            f"kubernetes version: got '{version}'; allowed, because HyperPod accepts them: "
            f"{', '.join(kubernetes_versions())}"
        )
    strange = sorted(set(types) - set(catalog.instance_types()))
    if strange:
        raise ValueError(
            f"instance types: got {', '.join(strange)}; allowed: types of holdfast.catalog.instance_types(), "
            "with their ml. prefix"
        )
    for cidr in cidrs:
        if has_token(cidr):
            continue  # known at deployment only, where EKS looks at it
        if ipaddress.ip_network(cidr).prefixlen == 0:
            raise ValueError(f"public access: got {cidr}, the whole internet; allowed: the blocks you come from")
    unknown = sorted(set(addon_versions) - {*NODE_ADDONS, DNS_ADDON})
    if unknown:
        raise ValueError(
            f"add-on versions: got {', '.join(unknown)}; allowed: {', '.join((*NODE_ADDONS, DNS_ADDON))}; "
            "the construct of another add-on takes its version"
        )
