"""External EKS cluster for HyperPod nodes, charts and add-ons."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws_cdk import Arn, ArnFormat, Stack, Token
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, DependencyGroup

from holdfast_constructs.eks.base import EksBase
from holdfast_constructs.eks.charts import releases
from holdfast_constructs.eks.helm import HelmInstaller
from holdfast_constructs.network import HyperPodNetwork, IHyperPodNetwork

if TYPE_CHECKING:
    from aws_cdk import aws_eks as eks
    from aws_cdk import aws_eks_v2 as eks_v2


class ExistingEks(EksBase):
    """EKS cluster by name, ARN, or construct of another library; installations use one function, made on demand."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str | None = None,
        network: IHyperPodNetwork | None = None,
        endpoint: str | None = None,
        certificate_authority: str | None = None,
        chart_archives: Mapping[str, Path] | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        super().__init__(scope, construct_id, cluster_name=cluster_name)
        if cluster_arn is not None:
            self.cluster_arn = cluster_arn
        self._network = network
        self._endpoint, self._certificate_authority = endpoint, certificate_authority
        self._archives, self._log_retention, self._key = chart_archives, log_retention, encryption_key

    @property
    def installer(self) -> HelmInstaller:
        """Runs Helm against the cluster; raises ValueError if its API server is unreachable."""
        if self._installer is None:
            if self._network is None:
                raise ValueError(
                    f"EKS cluster {self.cluster_name}: got no network to reach its API server from; allowed: one whose "
                    "subnet and security group reach it; give network where the cluster is referred to"
                )
            self._installer = HelmInstaller(
                self,
                "Helm",
                eks_cluster=self,
                network=self._network,
                endpoint=self._endpoint,
                certificate_authority=self._certificate_authority,
                archives=self._archives,
                log_retention=self._log_retention,
                encryption_key=self._key,
            )
        return self._installer

    def install_charts(self, instance_types: Collection[str] | None = None) -> None:
        """
        Install HyperPod's Helm charts on a cluster that lacks them; HyperPod clusters wait for them.

        Args:
            instance_types: Possible types, for device plugins. Default: any.
        """
        closed = self._network is not None and self._network.closed
        charts = releases(Construct(self, "Charts"), installer=self.installer, types=instance_types, closed=closed)
        self.dependencies = DependencyGroup(self.dependencies, *(chart.resource for chart in charts))


def from_arn(scope: Construct, cluster_arn: str) -> str:
    if Token.is_unresolved(cluster_arn):
        return Stack.of(scope).split_arn(cluster_arn, ArnFormat.SLASH_RESOURCE_NAME).resource_name or ""
    return Arn.extract_resource_name(cluster_arn, "cluster")


def from_construct(
    scope: Construct,
    construct_id: str,
    *,
    cluster: "eks.ICluster | eks_v2.ICluster",
    network: IHyperPodNetwork | None,
    log_retention: logs.RetentionDays,
    encryption_key: kms.IKey | None,
) -> ExistingEks:
    """Cluster of ``aws_eks``, owned or imported; HyperPod clusters wait for all of it."""
    place = Construct(scope, f"{construct_id}-Network") if network is None else None
    found = ExistingEks(
        scope,
        construct_id,
        cluster_name=cluster.cluster_name,
        cluster_arn=cluster.cluster_arn,
        network=network if place is None else _network_of(place, cluster),
        endpoint=_known(cluster, "cluster_endpoint"),
        certificate_authority=_known(cluster, "cluster_certificate_authority_data"),
        log_retention=log_retention,
        encryption_key=encryption_key,
    )
    found.dependencies = DependencyGroup(cluster)
    return found


def _network_of(place: Construct, cluster: "eks.ICluster | eks_v2.ICluster") -> IHyperPodNetwork | None:
    """Private subnet and control plane's group, for the function."""
    vpc, group = _known(cluster, "vpc"), _known(cluster, "cluster_security_group")
    if vpc is None or group is None or not vpc.private_subnets:
        return None
    return HyperPodNetwork.from_attributes(
        place, "Network", vpc=vpc, subnet=vpc.private_subnets[0], security_group=group
    )


def _known(cluster: "eks.ICluster | eks_v2.ICluster", attribute: str) -> Any:
    """Attribute, or None if the import lacks it, for which the CDK raises."""
    try:
        return getattr(cluster, attribute)
    except RuntimeError:
        return None
