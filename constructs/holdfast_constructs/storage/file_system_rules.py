"""Security group rules and DNS name of a file system."""

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct


def wait_for_rules(file_system: CfnResource, security_group: ec2.ISecurityGroup) -> None:
    """
    Create a file system after the rules of its security group, which are separate resources.

    It refers only to the group, and FSx refuses one whose rules do not "permit Lustre LNET network traffic on port 988"
    yet (aws-parallelcluster issue 6181). An imported group has no rules here.
    """
    file_system.node.add_dependency(security_group)


def usual_dns_name(scope: IConstruct, file_system_id: str) -> str:
    """
    DNS name of a file system in the stack's region.

    FSx for Lustre user guide, "Mounting from an Amazon EC2 instance": ``file_system_id.fsx.region.amazonaws.com``; the
    OpenZFS user guide has the same form.
    """
    stack = Stack.of(scope)
    return f"{file_system_id}.fsx.{stack.region}.{stack.url_suffix}"
