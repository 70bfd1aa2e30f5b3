"""Custom resource that removes GuardDuty's resources in a VPC."""

from pathlib import Path

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

RESOURCE_TYPE = "Custom::HoldfastGuardDuty"
FUNCTION = Path(__file__).with_name("function.py")
TIMEOUT_MINUTES = 15


class GuardDutyLeftovers(Construct):
    """
    GuardDuty makes an interface endpoint and a security group in the VPC of a monitored EKS cluster. They are in no
    stack, and block the VPC's deletion. AWS's samples remove them, too (awslabs/awsome-distributed-ai 95b939c,
    hyperpod-eks-tf/scripts/guardduty-cleanup.sh).

    Only resources with the tag GuardDutyManaged=true are removed, after the EKS cluster.
    """

    resource: CustomResource

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """
        Define the cleanup of a VPC of this stack.

        Args:
            encryption_key: Of the function's log.
            removal_policy: Of the EKS cluster; GuardDuty still watches a retained one. Default: DESTROY.
        """
        super().__init__(scope, construct_id)
        log = logs.LogGroup(
            self,
            "Log",
            retention=log_retention,
            encryption_key=encryption_key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        function = lambda_.Function(
            self,
            "Function",
            description="Deletes what GuardDuty has made in a VPC, before the VPC is deleted",
            runtime=lambda_.Runtime.PYTHON_3_14,
            code=lambda_.Code.from_inline(FUNCTION.read_text()),
            handler="index.handler",
            timeout=Duration.minutes(TIMEOUT_MINUTES),
            log_group=log,
        )
        stack = Stack.of(self)
        own = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}"
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["ec2:DescribeSecurityGroups", "ec2:DescribeVpcEndpoints"],
                resources=["*"],  # none of them can be limited to a resource
            )
        )
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["ec2:DeleteSecurityGroup", "ec2:DeleteVpcEndpoints"],
                resources=[f"{own}:security-group/*", f"{own}:vpc-endpoint/*"],
                conditions={"StringEquals": {"aws:ResourceTag/GuardDutyManaged": "true"}},
            )
        )
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            service_token=function.function_arn,
            service_timeout=Duration.minutes(TIMEOUT_MINUTES),
            properties={"VpcId": vpc.vpc_id},
            removal_policy=removal_policy,
        )
        assert function.role is not None
        self.resource.node.add_dependency(function.role)  # its rights, too, until it has answered
