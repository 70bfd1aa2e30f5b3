"""Helm releases as resources: charts at one commit, verified by digest, installed by one function."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import AssetHashType, CustomResource, Duration, IgnoreMode, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IDependable

from holdfast.catalog import Chart
from holdfast_constructs.cdk import json_text
from holdfast_constructs.eks.access import IEksAccess
from holdfast_constructs.eks.chart_folder import ChartFolder
from holdfast_constructs.network import IHyperPodNetwork

RESOURCE_TYPE = "Custom::HoldfastHelmRelease"
TIMEOUT_MINUTES = 15
"""The longest that Lambda allows. Helm itself gives up after five minutes, and has as many to roll back."""


class HelmInstaller(Construct):
    """
    Function that runs helm against one EKS cluster, in the nodes' subnet, to reach the private endpoint.

    Its role needs cluster admin in Kubernetes, because the charts make cluster roles, and Kubernetes allows granting
    only own rights.
    """

    function: lambda_.IFunction
    timeout: Duration
    service_token: str
    """What a custom resource names the function by."""
    access: IDependable
    """The function's way into the cluster. Releases are made after it, and uninstalled before it is gone."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IEksAccess,
        network: IHyperPodNetwork,
        endpoint: str | None,
        certificate_authority: str | None,
        archives: Mapping[str, Path] | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """
        Define an installer.

        Args:
            eks_cluster: Grants access to the function's role.
            endpoint: Of the API server. None: the function asks EKS, which it must reach then.
            certificate_authority: Base64. None: the same.
            archives: Of charts' repositories, by repository, for a network without GitHub; uploaded with the app's
                assets.
            encryption_key: Of the log. Default: CloudWatch's own.
        """
        super().__init__(scope, construct_id)
        self.timeout = Duration.minutes(TIMEOUT_MINUTES)
        log = logs.LogGroup(
            self,
            "Log",
            retention=log_retention,
            encryption_key=encryption_key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        environment = {"CLUSTER_NAME": eks_cluster.cluster_name}
        if endpoint is not None and certificate_authority is not None:
            environment |= {"CLUSTER_ENDPOINT": endpoint, "CLUSTER_CERTIFICATE_AUTHORITY": certificate_authority}
        self.function = self._function(network, log, environment)
        if "CLUSTER_ENDPOINT" not in environment:
            self.function.add_to_role_policy(
                iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[eks_cluster.cluster_arn])
            )
        self.service_token = self.function.function_arn
        role = self.function.role
        assert role is not None
        self.access = eks_cluster.grant_access(role, policy="AmazonEKSClusterAdminPolicy")
        self._assets = {
            repository: s3_assets.Asset(self, f"Archive{index}", path=str(path))
            for index, (repository, path) in enumerate(sorted((archives or {}).items()))
        }
        for asset in self._assets.values():
            self._may_read(asset)

    def archive(self, chart: Chart | ChartFolder) -> dict[str, str]:
        """Source of a chart's archive: its repository, or a local one."""
        if isinstance(chart, ChartFolder):
            return self._packed(chart)
        asset = self._assets.get(chart.repository)
        if asset is None:
            return {"Url": f"https://codeload.github.com/{chart.repository}/tar.gz/{chart.commit}"}
        return {"Bucket": asset.s3_bucket_name, "Key": asset.s3_object_key}

    def _packed(self, chart: ChartFolder) -> dict[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{chart.name}.tar.gz"
            path.write_bytes(chart.archive())
            # By its files, not by its bytes: those also depend on who compressed them.
            asset = s3_assets.Asset(
                self,
                f"Chart-{chart.name}",
                path=str(path),
                asset_hash=chart.tree_sha256,
                asset_hash_type=AssetHashType.CUSTOM,
            )
        self._may_read(asset)
        return {"Bucket": asset.s3_bucket_name, "Key": asset.s3_object_key}

    def _may_read(self, asset: s3_assets.Asset) -> None:
        """One object; Asset.grant_read would allow the whole bucket."""
        archive = asset.bucket.arn_for_objects(asset.s3_object_key)
        self.function.add_to_role_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[archive]))

    def _function(
        self, network: IHyperPodNetwork, log: logs.ILogGroup, environment: dict[str, str]
    ) -> lambda_.IFunction:
        from aws_cdk.lambda_layer_kubectl_v34 import KubectlV34Layer  # makes Node load a package of its own

        function = lambda_.Function(
            self,
            "Resource",
            description=f"Installs Helm charts into EKS cluster {environment['CLUSTER_NAME']}",
            runtime=lambda_.Runtime.PYTHON_3_14,
            code=lambda_.Code.from_asset(
                str(Path(__file__).parents[1]),
                exclude=["*", "!helm_installer", "!helm_installer/*.py"],
                ignore_mode=IgnoreMode.GIT,
            ),
            handler="helm_installer.handler.on_event",
            layers=[KubectlV34Layer(self, "Helm")],
            memory_size=1024,
            timeout=self.timeout,
            log_group=log,
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=[network.subnet]),
            security_groups=[network.security_group],
            environment=environment,
        )
        resource = function.node.default_child
        assert resource is not None
        # Routes and rules, without which the function runs into its timeout. The function alone: its role needs none.
        resource.node.add_dependency(network)
        return function


class HelmRelease(Construct):
    """One chart in one cluster. Deleting the resource uninstalls it."""

    resource: CustomResource

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        installer: HelmInstaller,
        chart: Chart | ChartFolder,
        namespace: str = "kube-system",
        values: Mapping[str, object] | None = None,
        wait: bool = True,
        await_kinds: bool = False,
        after: Sequence[IDependable] = (),
    ) -> None:
        """
        Define a release with the chart's name.

        Args:
            chart: Of a repository or a folder; refused with another digest than the chart's.
            namespace: Created if missing. Changing it reinstalls.
            values: Plain values and tokens. Default: the chart's own.
            wait: Default: True, complete when all pods are ready, rolled back after five minutes. False: complete when
                Kubernetes has accepted it, for daemon sets, since large clusters always have a node that is not ready.
            await_kinds: Try again while Kubernetes lacks a kind of the chart's objects, which another installs.
                Default: False.
            after: Dependencies. Default: the cluster and the function's access.
        """
        super().__init__(scope, construct_id)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            service_token=installer.service_token,
            service_timeout=installer.timeout,
            properties={
                "Release": chart.name,
                "Namespace": namespace,
                "Archive": installer.archive(chart),
                "ChartPath": chart.path,
                "TreeSha256": chart.tree_sha256,
                "Wait": "true" if wait else "false",
                **({"AwaitKinds": "true"} if await_kinds else {}),
                # As text: CloudFormation makes strings of the numbers and booleans of a custom resource.
                "Values": json_text(self, dict(values or {})),
            },
        )
        self.resource.node.add_dependency(installer.access, *after)
