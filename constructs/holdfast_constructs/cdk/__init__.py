"""CDK helpers: tokens, partitions of AWS, unique physical names, L1 structures. No resources."""

from holdfast_constructs.cdk.names import claim
from holdfast_constructs.cdk.partitions import is_commercial, url_suffix
from holdfast_constructs.cdk.structures import arguments, structure
from holdfast_constructs.cdk.tokens import has_token, json_text

__all__ = ["arguments", "claim", "has_token", "is_commercial", "json_text", "structure", "url_suffix"]
