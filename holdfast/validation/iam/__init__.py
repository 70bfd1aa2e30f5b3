"""Statements of the policies in an app's templates; rules judge them."""

from holdfast.validation.iam.buckets import BUCKET, buckets_in, scripts_bucket, scripts_buckets, scripts_uris
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
    resources_of,
    role_of,
    roles_of_groups,
)

__all__ = [
    "BUCKET",
    "POLICIES",
    "ROLE",
    "Grant",
    "buckets_in",
    "grants_in",
    "grants_of",
    "managed_names",
    "policies_of",
    "principals",
    "reads_all",
    "resources_of",
    "role_of",
    "roles_of_groups",
    "scripts_bucket",
    "scripts_buckets",
    "scripts_uris",
]
