from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from holdfast.catalog import Orchestrator

# Every node: what AmazonSageMakerClusterInstanceRolePolicy allows, logs and metrics to CloudWatch and sessions of
# Systems Manager (its user guide, "Improve the security of EC2 instances by using VPC endpoints"); images come from ECR
# (its user guide, "Amazon ECR interface VPC endpoints"), their layers through the gateway endpoint of S3.
NODES = ("ecr.api", "ecr.dkr", "ec2messages", "logs", "monitoring", "ssm", "ssmmessages")

# EKS adds ec2 for the VPC CNI, eks-auth for pod identity and sts (awslabs/awsome-distributed-ai 95b939c,
# hyperpod-eks-tf/modules/vpc_endpoints), and sagemaker.api for the training operator (SageMaker developer guide,
# "Installing the training operator").
SERVICES: dict[Orchestrator, tuple[str, ...]] = {
    "slurm": NODES,
    "eks": (*NODES, "ec2", "eks-auth", "sagemaker.api", "sts"),
}

PREFIXES = {"mlflow": "aws.sagemaker"}
"""Of services whose names do not begin with ``com.amazonaws``. An MLflow App is ``aws.sagemaker.<region>.mlflow``
(SageMaker developer guide, "Connecting to an MLflow tracking server through an Interface VPC Endpoint")."""

HTTPS = 443


class InterfaceEndpoints(Construct):
    """Endpoints in the nodes' subnet, with private names, for HTTPS from one security group."""

    def __init__(
        self, scope: Construct, construct_id: str, *, vpc: ec2.IVpc, subnet: ec2.ISubnet, nodes: ec2.ISecurityGroup
    ) -> None:
        """Define the place of endpoints; ``vpc`` needs DNS support and DNS host names."""
        super().__init__(scope, construct_id)
        self._vpc, self._subnet = vpc, subnet
        self._group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="Endpoints of AWS services", allow_all_outbound=False
        )
        self._group.add_ingress_rule(nodes, ec2.Port.tcp(HTTPS), "HTTPS from nodes")

    def add(self, service: str) -> None:
        """Make an endpoint of a service, such as ``ecr.api``, once."""
        if self.node.try_find_child(service) is None:
            ec2.InterfaceVpcEndpoint(
                self,
                service,
                vpc=self._vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service, PREFIXES.get(service)),
                subnets=ec2.SubnetSelection(subnets=[self._subnet]),
                security_groups=[self._group],
                open=False,
                private_dns_enabled=True,
            )
