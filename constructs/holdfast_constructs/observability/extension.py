"""HyperPod's observability extension, for clusters under Slurm."""

from aws_cdk import CfnResource, Stack
from constructs import Construct

from holdfast.catalog import EXTENSION
from holdfast_constructs.cluster import IHyperPodCluster
from holdfast_constructs.observability.prometheus import PrometheusWorkspace
from holdfast_constructs.synthesis import acknowledge_new_type


class ObservabilityExtension(Construct):
    """
    Metrics of nodes, accelerators, network and jobs, collected by HyperPod on every node.

    Source: SageMaker developer guide, "Observability extension configuration"; its settings keep their defaults.
    """

    extension_arn: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IHyperPodCluster,
        prometheus: PrometheusWorkspace | None = None,
        version: str | None = None,
    ) -> None:
        """
        Define an extension.

        Args:
            cluster: Under Slurm, with continuous provisioning. Its role has to be able to write to ``prometheus``.
            prometheus: Workspace to which metrics go. Default: none, they go to CloudWatch.
            version: Like ``1.0.0``. Default: the latest when the extension is created.
        """
        super().__init__(scope, construct_id)
        settings = {} if prometheus is None else {"prometheus": {"remoteWriteUrl": prometheus.remote_write_url}}
        # aws-cdk-lib has a class for it from 2.278 on.
        extension = CfnResource(
            self,
            "Resource",
            type=EXTENSION,
            properties={
                "ClusterArn": cluster.cluster_arn,
                "ExtensionName": "sagemaker-observability",
                "ExtensionVersion": version,
                "ConfigurationValues": Stack.of(self).to_json_string(settings),
            },
        )
        acknowledge_new_type(extension)
        self.extension_arn = extension.ref
