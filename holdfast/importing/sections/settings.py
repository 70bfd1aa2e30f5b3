"""Settings that map to one property, read from API answers."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from holdfast.config.models import property_of


def read_back(model: type[BaseModel], described: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a section by the answer, or by the service's default."""
    found = {name: property_of(field) for name, field in model.model_fields.items()}
    values = {name: becomes.read(described) for name, becomes in found.items() if becomes is not None}
    return {name: value for name, value in values.items() if value is not None}


def without_defaults(model: type[BaseModel], section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value != model.model_fields[name].default}
