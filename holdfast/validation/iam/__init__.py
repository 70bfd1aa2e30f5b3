"""
What the policies of an app's templates grant, statement by statement. Whether that is enough is for the rules to say.
"""

from holdfast.validation.iam.grants import (
    POLICIES,
    ROLE,
    Grant,
    grants_in,
    grants_of,
    managed_names,
    policies_of,
    principals,
    reads_all,
    role_of,
    roles_of_groups,
)

__all__ = [
    "POLICIES",
    "ROLE",
    "Grant",
    "grants_in",
    "grants_of",
    "managed_names",
    "policies_of",
    "principals",
    "reads_all",
    "role_of",
    "roles_of_groups",
]
