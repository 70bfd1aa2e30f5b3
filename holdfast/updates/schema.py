"""Settings of the environment file, and differences of two files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from holdfast.catalog import Property
from holdfast.config import Environment
from holdfast.config.models import property_of
from holdfast.config.reading import inner_model


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Different setting; None for a missing section or item."""

    setting: str
    """``cluster.instance_groups[].volume_gib``"""
    path: str
    """``cluster.instance_groups.workers.volume_gib``"""
    old: Any
    new: Any
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def settings() -> tuple[str, ...]:
    """Settings that change alone: leaves, optional sections, lists of named items."""
    return tuple(_settings(Environment, ""))


def becomes() -> dict[str, Property]:
    return dict(_becomes(Environment, ""))


def completed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Deployed environment with defaults of missing settings, without removed ones."""
    return _completed(Environment, document)


def differences(deployed: Mapping[str, Any], desired: Mapping[str, Any]) -> Iterator[Difference]:
    yield from _differences(Environment, deployed, desired, "", "")


def _settings(model: type[BaseModel], place: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner, named = _inner(field)
        if inner is None:
            yield place + name
            continue
        if named:
            yield f"{place}{name}[]"
        elif field.default is None:
            yield place + name
        yield from _settings(inner, f"{place}{name}{'[]' if named else ''}.")


def _becomes(model: type[BaseModel], place: str) -> Iterator[tuple[str, Property]]:
    for name, field in model.model_fields.items():
        inner, named = _inner(field)
        found = property_of(field)
        where = f"{place}{name}{'[]' if named else ''}"
        if found is not None:
            yield where, found
        if inner is not None:
            yield from _becomes(inner, f"{where}.")


def _completed(model: type[BaseModel], document: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, field in model.model_fields.items():
        value = document.get(name, _default(field))
        inner, named = _inner(field)
        if inner is not None and named:
            value = [_completed(inner, item) for item in value or ()]
        elif inner is not None and value is not None:
            value = _completed(inner, value)
        found[name] = value
    return found


def _differences(
    model: type[BaseModel], old: Mapping[str, Any], new: Mapping[str, Any], setting: str, path: str
) -> Iterator[Difference]:
    for name, field in model.model_fields.items():
        inner, named = _inner(field)
        before, after = old[name], new[name]
        if inner is not None and named:
            yield from _item_differences(inner, old, new, name, setting, path)
        elif inner is not None and before is not None and after is not None:
            yield from _differences(inner, before, after, f"{setting}{name}.", f"{path}{name}.")
        elif before != after:
            where = setting + name
            yield Difference(setting=where, path=path + name, old=before, new=after, before=old, after=new)


def _item_differences(
    model: type[BaseModel], old: Mapping[str, Any], new: Mapping[str, Any], name: str, setting: str, path: str
) -> Iterator[Difference]:
    before = {item["name"]: item for item in old[name]}
    after = {item["name"]: item for item in new[name]}
    for item in dict.fromkeys((*before, *after)):
        where, at = f"{setting}{name}[]", f"{path}{name}.{item}"
        if item in before and item in after:
            yield from _differences(model, before[item], after[item], f"{where}.", f"{at}.")
        else:
            was, becomes = before.get(item), after.get(item)
            yield Difference(setting=where, path=at, old=was, new=becomes, before=old, after=new)


def _inner(field: FieldInfo) -> tuple[type[BaseModel] | None, bool]:
    inner, many = inner_model(field)
    if inner is None or (many and "name" not in inner.model_fields):
        return None, False
    return inner, many


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return None
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value
