"""
What plain Python needs of the CDK itself: tokens told from values, partitions of AWS, names that two constructs may
not both give. It makes no resource.
"""

from holdfast_constructs.cdk.names import claim
from holdfast_constructs.cdk.partitions import is_commercial, url_suffix
from holdfast_constructs.cdk.tokens import has_token, json_text

__all__ = ["claim", "has_token", "is_commercial", "json_text", "url_suffix"]
