"""Settings that become one property each: read back from what an API tells of the resource."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from holdfast.config.models import property_of


def read_back(model: type[BaseModel], described: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a section that are told, or that the service takes where nothing is told."""
    found = {name: property_of(field) for name, field in model.model_fields.items()}
    values = {name: becomes.read(described) for name, becomes in found.items() if becomes is not None}
    return {name: value for name, value in values.items() if value is not None}


def without_defaults(model: type[BaseModel], section: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be written of a section."""
    return {name: value for name, value in section.items() if value != model.model_fields[name].default}
