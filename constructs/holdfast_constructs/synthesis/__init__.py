"""
What is said of a template as it is synthesised: Holdfast's rules, and what the CDK's own validator does not know yet.
The rules themselves are left to holdfast.validation.
"""

from holdfast_constructs.synthesis.rules_plugin import register_rules
from holdfast_constructs.synthesis.schema_gaps import GAPS, QUOTA_GAP, acknowledge_new_type, acknowledge_schema_gaps

__all__ = ["GAPS", "QUOTA_GAP", "acknowledge_new_type", "acknowledge_schema_gaps", "register_rules"]
