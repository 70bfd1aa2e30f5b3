"""Rules about the environment file itself and about the existing resources that it names (0xx, 08x)."""

from holdfast.validation.rules.source import (  # noqa: F401 - each registers its rules
    existing,
    files,
)

__all__: list[str] = []
