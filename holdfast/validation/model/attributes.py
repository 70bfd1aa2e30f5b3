"""Attributes of items that are one CloudFormation property each: read from it, and written to it."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from holdfast.catalog import Property, property_in
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True)
class Attribute:
    of: Property
    kind: Any
    """Without None."""
    optional: bool

    @functools.cached_property
    def keys(self) -> list[str]:
        return self.of.path.split(".")

    @functools.cached_property
    def item(self) -> type[Item] | None:
        """Item of the attribute, or of its list, if each of that item's own attributes is one property."""
        kind = get_args(self.kind)[0] if get_args(self.kind)[1:] == (...,) else self.kind
        if not (isinstance(kind, type) and issubclass(kind, Item)):
            return None
        return kind if {field.name for field in fields(kind)} == {"path", "places", *attributes_of(kind)} else None


_ATTRIBUTES: dict[type[Item], Mapping[str, Attribute]] = {}


def attributes_of(kind: type[Item]) -> Mapping[str, Attribute]:
    """Attributes with a ``Property``, by name."""
    if kind not in _ATTRIBUTES:
        _ATTRIBUTES[kind] = _found(kind)
    return _ATTRIBUTES[kind]


def _found(kind: type[Item]) -> Mapping[str, Attribute]:
    hints = get_type_hints(kind, include_extras=True)
    found = {field.name: property_in(hints[field.name]) for field in fields(kind)}
    return {name: _attribute(hints[name], each) for name, each in found.items() if each is not None}


def _attribute(annotation: Any, found: Property) -> Attribute:
    held = get_args(annotation)[0]
    types = get_args(held) if isinstance(held, UnionType) else (held,)
    kind = next(each for each in types if each is not NoneType)
    return Attribute(of=found, kind=kind, optional=NoneType in types)
