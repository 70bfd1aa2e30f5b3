"""
CDK app with constructs of the wheel holdfast-constructs, without the rest of Holdfast.

The cluster is in an existing VPC of this app, with its own lifecycle scripts.
"""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from holdfast_constructs import HyperPodCluster, HyperPodNetwork, InstanceGroup, LifecycleBundle, SlurmOrchestrator

HERE = Path(__file__).parent


class ResearchStack(cdk.Stack):
    """A Slurm cluster beside existing resources."""

    def __init__(self, scope: cdk.App, construct_id: str) -> None:
        super().__init__(scope, construct_id, env=cdk.Environment(account="111122223333", region="us-west-2"))
        groups = [
            InstanceGroup(name="head", instance_type="ml.m5.2xlarge", instance_count=1, node_type="Controller"),
            InstanceGroup(
                name="trn", instance_type="ml.trn1.32xlarge", instance_count=4, node_type="Compute", partition="trn"
            ),
        ]
        network = HyperPodNetwork(self, "Network", cidr="10.9.0.0/20", availability_zone="us-west-2b")
        ec2.GatewayVpcEndpoint(self, "DynamoDb", vpc=network.vpc, service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
        cluster = HyperPodCluster(
            self,
            "Cluster",
            cluster_name="research",
            network=network,
            orchestrator=SlurmOrchestrator(),
            instance_groups=groups,
            lifecycle=LifecycleBundle(
                self, "Lifecycle", name="research", sources=[HERE / "on_init_complete.sh"], config={}
            ),
        )
        cdk.CfnOutput(self, "ClusterArn", value=cluster.cluster_arn)

    @property
    def availability_zones(self) -> list[str]:
        """Avoids a lookup of all zones by the CDK."""
        return ["us-west-2b"]


if __name__ == "__main__":
    app = cdk.App()
    ResearchStack(app, "Research")
    app.synth()
