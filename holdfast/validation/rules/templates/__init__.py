"""Rules about any resource of a template: properties, references, parameters, order, regions (0xx)."""

from holdfast.validation.rules.templates import (  # noqa: F401 - each registers its rules
    order,
    order_eks,
    parameters,
    properties,
    references,
    regions,
    sharing,
)

__all__: list[str] = []
