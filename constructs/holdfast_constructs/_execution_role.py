"""What HyperPod may do in the account on behalf of a node."""

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from holdfast_constructs._network import HyperPodNetwork

MANAGED_POLICY = "AmazonSageMakerClusterInstanceRolePolicy"


def execution_role(scope: Construct, construct_id: str, *, network: HyperPodNetwork) -> iam.Role:
    """
    The execution role of instance groups.

    The managed policy covers logs, metrics, session manager and buckets named ``sagemaker-``. It has no action of EC2,
    without which nodes cannot be attached to a VPC ("Unable to retrieve subnets"), and none of FSx, without which an
    EFA-enabled file system is silently mounted over TCP.
    """
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(MANAGED_POLICY)],
        description="HyperPod nodes",
    )
    for statement in _statements(Stack.of(scope), network):
        role.add_to_policy(statement)
    return role


def _statements(stack: Stack, network: HyperPodNetwork) -> list[iam.PolicyStatement]:
    own = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}"
    interfaces = f"{own}:network-interface/*"
    return [
        iam.PolicyStatement(
            sid="LookAtTheNetwork",
            actions=[
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcs",
                "fsx:DescribeFileSystems",
            ],
            resources=["*"],  # none of them can be limited to a resource
        ),
        iam.PolicyStatement(
            sid="MakeNetworkInterfaces",
            actions=["ec2:CreateNetworkInterface"],
            resources=[
                interfaces,
                f"{own}:subnet/{network.subnet.subnet_id}",
                f"{own}:security-group/{network.security_group.security_group_id}",
            ],
        ),
        iam.PolicyStatement(
            sid="UseNetworkInterfaces",
            actions=[
                "ec2:CreateNetworkInterfacePermission",
                "ec2:CreateTags",
                "ec2:DeleteNetworkInterface",
                "ec2:DeleteNetworkInterfacePermission",
                "ec2:DetachNetworkInterface",
            ],
            # The instances themselves belong to an account of the service.
            resources=[interfaces, f"arn:{stack.partition}:ec2:{stack.region}:*:instance/*"],
        ),
    ]
