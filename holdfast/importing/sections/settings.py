"""Settings that map to one property, read from API answers."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from holdfast.config.models import property_of
from holdfast.config.reading import inner_model


def read_back(model: type[BaseModel], described: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a section by the answer, or by the service's default."""
    found = {}
    for name, field in model.model_fields.items():
        becomes = property_of(field)
        value = None if becomes is None else becomes.read(described)
        inner, many = inner_model(field)
        if inner is not None and value is not None:
            value = [part for entry in value if (part := _section(inner, entry))] if many else _section(inner, value)
        if value not in (None, []):
            found[name] = value
    return found


def _section(model: type[BaseModel], described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Settings of a section; None without those that it requires."""
    found = of_model(model, read_back(model, described))
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    return found if found and required <= set(found) else None


def properties_of(model: type[BaseModel]) -> frozenset[str]:
    """Properties, at the top of their structure, that settings of a section become."""
    found = map(property_of, model.model_fields.values())
    return frozenset(each.path.partition(".")[0] for each in found if each is not None)


def of_model(model: type[BaseModel], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in the order of the model, without those that are absent or the default."""
    given = {name: settings[name] for name in model.model_fields if settings.get(name) is not None}
    return without_defaults(model, given)


def without_defaults(model: type[BaseModel], section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if value != model.model_fields[name].default}
