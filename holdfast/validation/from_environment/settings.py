"""
Settings of an environment file: the value, else its default, UNRESOLVED if broken.

A broken setting hides no other, so a file is judged as far as possible.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import fields
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from holdfast.config.models import property_of
from holdfast.config.reading import bare
from holdfast.config.refusals import dotted
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.model import Item
from holdfast.validation.translation import Sourced

Location = tuple[str | int, ...]
T = TypeVar("T", bound=Item)


class Settings(Sourced):
    """
    Section of the file. Attributes are settings: plain values, sections as Settings, lists of them as tuples.

    Args:
        broken: Paths with problems.
    """

    def __init__(self, model: type[BaseModel], data: object, location: Location, broken: Set[str]) -> None:
        self._model = model
        self._data: Mapping[str, Any] | None = data if isinstance(data, dict) else None
        self._location = location
        self._broken = broken

    @property
    def path(self) -> str:
        return dotted(self._location)

    @property
    def is_unreadable(self) -> bool:
        """True if it is not a mapping, or inside of something that is not."""
        return self._data is None

    @property
    def written(self) -> Mapping[str, Any]:
        """As written; empty if it is not a mapping."""
        return self._data or {}

    def at(self, name: str) -> str:
        return dotted((*self._location, name))

    def is_set(self, name: str) -> bool:
        return self._data is not None and self._data.get(name) is not None

    def places(self, **settings: str) -> dict[str, str]:
        """Paths of settings by attribute: ``places(wait_interval_s="wait_interval_s")``."""
        return {attribute: self.at(setting) for attribute, setting in settings.items()}

    def places_in(self, kind: type[Item]) -> dict[str, str]:
        """Paths of the settings with the names of the model's attributes."""
        return {name: self.at(name) for name in self._shared(kind)}

    def values_in(self, kind: type[Item]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._shared(kind)}

    def item(self, kind: type[T], **others: Any) -> T:
        """Item of the settings with the names of its attributes; ``others`` are those of another form."""
        return kind(**{"path": self.path, "places": self.places_in(kind), **self.values_in(kind), **others})

    def _shared(self, kind: type[Item]) -> Iterator[str]:
        judged = {field.name for field in fields(kind)}
        return (name for name in self._model.model_fields if name in judged)

    def becoming(self, *, beside: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Settings that become a CloudFormation property each, without those ``beside``."""
        found = (name for name, field in self._model.model_fields.items() if property_of(field) is not None)
        return tuple(name for name in found if name not in beside)

    def __getattr__(self, name: str) -> Any:
        field = self._model.model_fields.get(name)
        if field is None:
            raise AttributeError(name)
        kind = bare(field.annotation)
        where = (*self._location, name)
        if self._data is None and not _is_section(kind):
            return UNRESOLVED
        written = self._data.get(name) if self._data is not None else None
        if written is None:
            default = field.get_default(call_default_factory=True)
            if _is_section(kind):
                return None if default is None and self._data is not None else self._section(kind, default, where)
            return UNRESOLVED if default is PydanticUndefined else default
        if _is_section(kind):
            return self._section(kind, written, where)
        if get_origin(kind) is tuple and _is_section(bare(get_args(kind)[0])):
            return self._sections(bare(get_args(kind)[0]), written, where)
        if self._is_broken(where):
            return UNRESOLVED
        return tuple(written) if isinstance(written, list) else written

    def _section(self, kind: type[BaseModel], data: object, where: Location) -> "Settings":
        return Settings(kind, {} if isinstance(data, BaseModel) else data, where, self._broken)

    def _sections(self, kind: type[BaseModel], data: object, where: Location) -> Any:
        if not isinstance(data, list) or dotted(where) in self._broken:
            return UNRESOLVED
        return tuple(self._section(kind, item, (*where, index)) for index, item in enumerate(data))

    def _is_broken(self, where: Location) -> bool:
        path = dotted(where)
        return any(broken == path or broken.startswith(f"{path}.") for broken in self._broken)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
