"""Rules about a cluster: names, capacity, options, images, updates, quotas, goodput and health (1xx, 7xx, 8xx)."""

from holdfast.validation.rules.cluster import (  # noqa: F401 - each registers its rules
    capacity,
    goodput,
    governance,
    health,
    images,
    modes,
    names,
    quotas,
    sessions,
    updates,
)

__all__: list[str] = []
