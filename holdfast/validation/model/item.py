"""
Base of all parts: the path in the source, and unknown attributes.

A value unknown before deployment is ``UNRESOLVED``: a token of a template, an external resource, a broken setting.
Reading it raises, so no rule takes it for a value; the runner reports "not checked".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self, get_args, get_type_hints

from holdfast.validation.cloudformation import UNRESOLVED


class UnresolvedError(Exception):
    """
    A rule read an unknown value.

    Args:
        why: What is unknown about a value that is given. Default: the value itself.
    """

    def __init__(self, path: str, *, why: str = "") -> None:
        super().__init__(f"{path} is not known")
        self.path = path
        self.why = why


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Item:
    """Part of a deployment; compared by identity."""

    path: str
    """Where it is in its source: ``cluster.instance_groups.1``, ``Resources.Cluster.Properties.InstanceGroups.1``."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Full paths of attributes, in the source's words. Default: below ``path``."""

    def at(self, attribute: str) -> str:
        """Path of an attribute in the source."""
        return self.places.get(attribute, self.path)

    def word(self, attribute: str) -> str:
        """Name of an attribute in the source's words."""
        return self.at(attribute).rpartition(".")[2]

    def is_known(self, attribute: str) -> bool:
        return vars(self)[attribute] is not UNRESOLVED

    def is_given(self, attribute: str) -> bool:
        """Return True if an attribute has a value, be it an unknown one."""
        return vars(self)[attribute] is not None

    def changed(self, **attributes: Any) -> Self:
        """Copy with other attributes; ``dataclasses.replace`` would read unknown ones."""
        return type(self)(**{**vars(self), **attributes})

    if not TYPE_CHECKING:  # a type checker that sees it takes every name for an attribute, misspelt ones too

        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            if value is UNRESOLVED:
                raise UnresolvedError(self.at(name))
            return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path})"

    def walk(self) -> Iterator[Self | "Item | Missing"]:
        """This item, all below it, and what is missing because it is unknown; each once."""
        yield from _walk(self, set())


@dataclass(frozen=True)
class Missing:
    """Items of these kinds may exist at ``path``."""

    path: str
    kinds: frozenset[type[Item]]


def _walk(value: object, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _walk(part, seen)
    if not isinstance(value, Item) or id(value) in seen:
        return
    seen.add(id(value))
    yield value
    held = vars(value)
    for name, kinds in _kinds_by_field(type(value)).items():
        if held[name] is UNRESOLVED:
            yield Missing(value.at(name), kinds)
        else:
            yield from _walk(held[name], seen)


_KINDS: dict[type[Item], Mapping[str, frozenset[type[Item]]]] = {}


def _kinds_by_field(kind: type[Item]) -> Mapping[str, frozenset[type[Item]]]:
    """Fields with items, and the kinds in each, nested ones included."""
    if kind not in _KINDS:
        _KINDS[kind] = _kinds(kind)
    return _KINDS[kind]


def _kinds(kind: type[Item]) -> Mapping[str, frozenset[type[Item]]]:
    hints = get_type_hints(kind)
    found = {part.name: frozenset(_item_types(hints[part.name])) for part in fields(kind)}
    return {
        name: kinds.union(*(inner for each in kinds for inner in _kinds_by_field(each).values()))
        for name, kinds in found.items()
        if kinds
    }


def _item_types(annotation: Any) -> Iterator[type[Item]]:
    if isinstance(annotation, type) and issubclass(annotation, Item):
        yield annotation
    for argument in get_args(annotation):
        yield from _item_types(argument)
