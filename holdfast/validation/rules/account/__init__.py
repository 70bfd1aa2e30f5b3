"""Rules about an account and its existing resources (9xx)."""

from holdfast.validation.rules.account import (  # noqa: F401 - each registers its rules
    cluster,
    existing,
)

__all__: list[str] = []
