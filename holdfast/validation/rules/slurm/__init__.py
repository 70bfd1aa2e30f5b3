"""Rules about orchestrators and what Slurm needs (4xx)."""

from holdfast.validation.rules.slurm import (  # noqa: F401 - each registers its rules
    extensions,
    legacy,
    orchestrators,
)

__all__: list[str] = []
