"""Rules about any resource of a template that cfn-lint lacks: references, parameters, order, regions (0xx)."""

from holdfast.validation.rules.templates import (  # noqa: F401 - each registers its rules
    forms,
    order,
    order_eks,
    parameters,
    references,
    regions,
    sharing,
)

__all__: list[str] = []
