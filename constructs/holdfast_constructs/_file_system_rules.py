"""A file system and the rules of its security group."""

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2


def wait_for_rules(file_system: CfnResource, security_group: ec2.ISecurityGroup) -> None:
    """
    Make a file system after the rules of its security group, in and out, which are resources of their own.

    It refers to the group alone, and FSx refuses one whose rules do not "permit Lustre LNET network traffic on port
    988" yet (aws-parallelcluster issue 6181). An imported group has no rules here.
    """
    file_system.node.add_dependency(security_group)
