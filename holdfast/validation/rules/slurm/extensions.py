"""4xx: extensions of clusters under Slurm."""

import json
from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, Extension

API = "SageMaker API reference, CreateClusterExtension"


@rule("HF420", title="Extensions are on clusters that take them", each=Extension, source=API)
def takes_extensions(extension: Extension, deployment: Deployment) -> Iterator[Broken]:
    """A cluster takes extensions under Slurm and with continuous provisioning only. On EKS add-ons do their work."""
    cluster = deployment.cluster
    if cluster.eks is not None:
        yield refused(
            extension.path,
            "an extension on a cluster on EKS",
            allowed="an extension on a cluster under Slurm",
            fix="install the EKS add-on amazon-sagemaker-hyperpod-observability instead",
        )
    elif not cluster.continuous:
        yield refused(
            extension.path,
            "an extension without continuous provisioning",
            allowed="an extension with NodeProvisioningMode Continuous",
            fix=f"set {cluster.word('node_provisioning_mode')}: Continuous, with which a new cluster is made",
        )


@rule("HF421", title="The configuration of an extension is a JSON object", each=Extension, source=API)
def configuration(extension: Extension, _: Deployment) -> Iterator[Broken]:
    """
    ConfigurationValues is text that holds one JSON object; its settings are those of the extension's version, which
    HyperPod judges when the extension is created.
    """
    if extension.configuration is None:
        return
    try:
        settings = json.loads(extension.configuration)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        yield refused(
            extension.at("configuration"),
            show(extension.configuration),
            allowed='a JSON object, such as {"metricsProvider": {"nodeMetrics": {"level": "ADVANCED"}}}',
            fix="write it as an object",
        )
