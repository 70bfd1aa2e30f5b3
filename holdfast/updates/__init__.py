"""
Effect of changes of the environment file on a deployed cluster (guarantee G9).

Pure: the deployed state is the environment in the stack's template. Only the command line and the CDK app import this
package; constructs know no environment file.
"""

from holdfast.updates.changes import POLICIES, Change, compare, with_default_policies
from holdfast.updates.metadata import environment_metadata, environment_of
from holdfast.updates.policies import Effect
from holdfast.updates.reference import updates_text
from holdfast.updates.refusals import ALLOW_REPLACEMENT, GuardProblem, guard
from holdfast.updates.schema import becomes, settings

__all__ = [
    "ALLOW_REPLACEMENT",
    "POLICIES",
    "Change",
    "Effect",
    "GuardProblem",
    "becomes",
    "compare",
    "environment_metadata",
    "environment_of",
    "guard",
    "settings",
    "updates_text",
    "with_default_policies",
]
