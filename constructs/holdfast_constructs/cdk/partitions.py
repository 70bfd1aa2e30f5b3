"""Differences of the partitions of AWS: aws, aws-cn, aws-us-gov, aws-eusc and isolated ones."""

from aws_cdk import Stack
from aws_cdk.region_info import RegionInfo
from constructs import IConstruct

from holdfast_constructs.cdk.tokens import has_token


def url_suffix(scope: IConstruct) -> str:
    """
    Domain of endpoints, of regional service principals, and of ``kms:ViaService`` values.

    A string if the region is known at synthesis: ``amazonaws.com``, or ``amazonaws.com.cn``.
    """
    stack = Stack.of(scope)
    if has_token(stack.region):
        return stack.url_suffix
    return RegionInfo.get(stack.region).domain_suffix or stack.url_suffix


def is_commercial(region: str) -> bool:
    """True for a region of the partition aws, for which most of AWS's accounts are documented."""
    return RegionInfo.get(region).partition == "aws"
