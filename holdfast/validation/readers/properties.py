"""Items and their attributes that are one property each, read by the paths in the model's fields."""

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.validation.cloudformation import UNRESOLVED, Node, optional, required
from holdfast.validation.model import Attribute, Item, attributes_of

READ = (bool, int, str, tuple[str, ...])
"""Plain attributes. Items with other attributes, too, have readers of their own."""
T = TypeVar("T", bound=Item)


def read_item(kind: type[T], node: Node, /, *, spelled: Callable[[str], str] = str, **others: Any) -> T:
    """Item at a node; ``others`` are attributes that are not one property, ``spelled`` the name of a property there."""
    keys = {name: [spelled(key) for key in each.keys] for name, each in attributes_of(kind).items()}
    found: dict[str, Any] = {"path": node.path, "places": {name: node.place(*path) for name, path in keys.items()}}
    for name, attribute in attributes_of(kind).items():
        if name not in others and (attribute.kind in READ or attribute.item is not None):
            found[name] = _value(attribute, node.get(*keys[name]))
    return kind(**found, **others)


def each_of(node: Node, read: Callable[[Node], Any]) -> Any:
    """Item per entry; UNRESOLVED if an entry is a function that may return none."""
    entries = node.items()
    if entries is None or any(entry.keys() is None for entry in entries):
        return UNRESOLVED
    return tuple(read(entry) for entry in entries)


def _value(attribute: Attribute, node: Node) -> Any:
    if (item := attribute.item) is not None:
        return (optional if attribute.kind is item else each_of)(node, lambda found: read_item(item, found))
    if each := attribute.of.each:
        texts = each_of(node, lambda entry: entry.get(each).text())
        return UNRESOLVED if texts is UNRESOLVED or UNRESOLVED in texts else texts
    default = attribute.of.default
    if attribute.kind == tuple[str, ...]:
        return node.strings()
    if attribute.kind is bool:
        return node.boolean(default=bool(default))
    value = node.integer() if attribute.kind is int else node.text()
    if default is not None:
        value = value or default
    return value if attribute.optional else required(value)
