"""Settings that become one property each: read back from what an API tells of the resource."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from holdfast.config.models import property_of


def read_back(model: type[BaseModel], described: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a section that are not the default, in the order of the section."""
    found = {}
    for name, field in model.model_fields.items():
        becomes = property_of(field)
        value = None if becomes is None else becomes.read(described)
        if value is not None and value != field.get_default():
            found[name] = value
    return found
