"""
What a change of the environment file does to a live cluster, and whether it may be deployed (guarantee G9).

Pure: what is deployed comes in as the environment that a stack's template carries. Only the command line and the CDK
app import this package; constructs know no environment file.
"""

from holdfast.validation.updates._compare import POLICIES, Change, compare, policy_of
from holdfast.validation.updates._guard import ALLOW_REPLACEMENT, GuardProblem, guard
from holdfast.validation.updates._metadata import METADATA_KEY, environment_metadata, environment_of
from holdfast.validation.updates._policy import Case, Edit, Effect, Policy
from holdfast.validation.updates._settings import settings

__all__ = [
    "ALLOW_REPLACEMENT",
    "METADATA_KEY",
    "POLICIES",
    "Case",
    "Change",
    "Edit",
    "Effect",
    "GuardProblem",
    "Policy",
    "compare",
    "environment_metadata",
    "environment_of",
    "guard",
    "policy_of",
    "settings",
]
