"""Rules about the environment file itself and about what it says is there already (0xx, 08x)."""

from holdfast.validation.rules.source import (  # noqa: F401 - each registers its rules
    existing,
    files,
)

__all__: list[str] = []
