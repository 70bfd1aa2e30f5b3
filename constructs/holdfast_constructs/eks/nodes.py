from aws_cdk import CustomResource
from constructs import Construct

from holdfast_constructs.eks.helm import HelmInstaller
from holdfast_constructs.helm_installer import NODES_RESOURCE_TYPE

CALLS = 3
"""Of 15 minutes each, the longest that a function runs. AWS's own sample waits for 30 in all."""


class NodesReady(Construct):
    """
    Complete when the first node of a HyperPod cluster is ready in Kubernetes.

    With continuous provisioning the cluster is in service before it has a node, and an add-on that needs one is
    degraded, which CloudFormation takes for a failure (awslabs/awsome-distributed-ai 95b939c waits in the same way,
    hyperpod-eks-tf/scripts/wait-for-hyperpod-nodes.sh).
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, installer: HelmInstaller, cluster_name: str, cluster: Construct
    ) -> None:
        super().__init__(scope, construct_id)
        before = cluster
        for index in range(CALLS):
            call = CustomResource(
                self,
                f"Call{index}",
                resource_type=NODES_RESOURCE_TYPE,
                service_token=installer.service_token,
                service_timeout=installer.timeout,
                properties={"ClusterName": cluster_name, "Last": "true" if index == CALLS - 1 else "false"},
            )
            call.node.add_dependency(installer.access, before)
            before = call
