"""From the request of a cluster, and what stands around it, to a whole environment file."""

from holdfast.importing.conversion.environment import from_observed, from_samples

__all__ = ["from_observed", "from_samples"]
