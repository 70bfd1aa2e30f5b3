"""Rules about roles, policies and KMS keys (5xx, 64x)."""

from holdfast.validation.rules.iam import (  # noqa: F401 - each registers its rules
    keys,
    needs,
    policies,
    roles,
)

__all__: list[str] = []
