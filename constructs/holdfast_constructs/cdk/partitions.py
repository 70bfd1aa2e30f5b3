"""What differs between the partitions of AWS: aws, aws-cn, aws-us-gov, aws-eusc and those that are closed."""

from aws_cdk import Stack
from aws_cdk.region_info import RegionInfo
from constructs import IConstruct

from holdfast_constructs.cdk.tokens import has_token


def url_suffix(scope: IConstruct) -> str:
    """
    How names of endpoints end, and with them regional service principals and the values of ``kms:ViaService``.

    Known at synthesis where the region is: ``amazonaws.com``, or ``amazonaws.com.cn``.
    """
    stack = Stack.of(scope)
    if has_token(stack.region):
        return stack.url_suffix
    return RegionInfo.get(stack.region).domain_suffix or stack.url_suffix


def is_commercial(region: str) -> bool:
    """Whether a region is one of the partition aws, for which most of AWS's accounts are documented."""
    return RegionInfo.get(region).partition == "aws"
