"""Parts of a stack beside its nodes: deployed by constructs, priced by the planner."""

from holdfast.catalog.instances import Orchestrator

KEPT_VERSIONS_DAYS = 7
"""Days for which a retained data bucket keeps an old version of an object."""

# Every node: what AmazonSageMakerClusterInstanceRolePolicy allows, logs and metrics to CloudWatch and sessions of
# Systems Manager (its user guide, "Improve the security of EC2 instances by using VPC endpoints"); images come from ECR
# (its user guide, "Amazon ECR interface VPC endpoints"), their layers through the gateway endpoint of S3.
_NODES = ("ecr.api", "ecr.dkr", "ec2messages", "logs", "monitoring", "ssm", "ssmmessages")

# EKS adds ec2 for the VPC CNI, eks-auth for pod identity and sts (awslabs/awsome-distributed-ai 95b939c,
# hyperpod-eks-tf/modules/vpc_endpoints), and sagemaker.api for the training operator (SageMaker developer guide,
# "Installing the training operator").
ENDPOINTS: dict[Orchestrator, tuple[str, ...]] = {
    "slurm": _NODES,
    "eks": (*_NODES, "ec2", "eks-auth", "sagemaker.api", "sts"),
}
"""AWS services that nodes without a way to the internet reach through interface endpoints."""
