"""Properties of an item's attributes, from an object with attributes of the same names."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Properties
from holdfast.validation.model import Item, attributes_of

Places = Mapping[str, str] | None
ABSENT: Any = (None, "", (), [], {})


class Sourced(ABC):
    """Settings that have places in their source."""

    @property
    @abstractmethod
    def path(self) -> str: ...

    @property
    @abstractmethod
    def is_unreadable(self) -> bool: ...

    @abstractmethod
    def places_in(self, kind: type[Item]) -> dict[str, str]: ...


def properties_of(
    kind: type[Item], described: object = None, /, *, path: str = "", places: Places = None, **others: Any
) -> Properties:
    """
    Properties of a structure.

    Args:
        kind: Item whose attributes name the properties.
        described: Has attributes of the same names: a construct's value, or ``Sourced`` settings.
        path: Place in the source. Default: that of settings.
        places: Places of attributes whose settings have another name.
        others: Attributes that it has in another form, or not.
    """
    at = dict(places or {})
    if isinstance(described, Sourced):
        path, at = path or described.path, described.places_in(kind) | at
    found = Properties(path)
    for name, attribute in attributes_of(kind).items():
        value = others[name] if name in others else getattr(described, name, None)
        if attribute.item is not None:
            value = structures(attribute.item, value)
        elif attribute.of.each and value not in (UNRESOLVED, None):
            value = [{attribute.of.each: entry} for entry in value]
        found.put(attribute.keys, None if value in ABSENT else value, at.get(name))
    return found


def structures(kind: type[Item], value: Any) -> Any:
    """Properties of a structure, or of each of a list; those that are properties already are left."""
    if value is None or value is UNRESOLVED or isinstance(value, Properties):
        return value
    if isinstance(value, list | tuple):
        return [each if isinstance(each, Properties) else properties_of(kind, each) for each in value]
    return UNRESOLVED if isinstance(value, Sourced) and value.is_unreadable else properties_of(kind, value)
