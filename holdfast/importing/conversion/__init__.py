"""Conversion of a cluster request and its surroundings to an environment file."""

from holdfast.importing.conversion.environment import from_observed, from_samples

__all__ = ["from_observed", "from_samples"]
