"""Validation at synthesis: Holdfast's rules, and gaps of the CDK's own validator."""

from holdfast_constructs.synthesis.rules_plugin import register_rules
from holdfast_constructs.synthesis.schema_gaps import GAPS, QUOTA_GAP, acknowledge_new_type, acknowledge_schema_gaps

__all__ = ["GAPS", "QUOTA_GAP", "acknowledge_new_type", "acknowledge_schema_gaps", "register_rules"]
