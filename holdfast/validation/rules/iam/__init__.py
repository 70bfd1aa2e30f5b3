"""Rules about roles, policies and KMS keys (5xx, 64x)."""

from holdfast.validation.rules.iam import (  # noqa: F401 - each registers its rules
    actions,
    buckets,
    keys,
    limits,
    needs,
    roles,
    statements,
    trust,
)

__all__: list[str] = []
