"""Statements of the policies in an app's templates; rules judge them."""

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
