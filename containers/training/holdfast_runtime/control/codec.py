"""
Dataclasses as JSON and back, by their annotations.

An unknown field, one of another type, or a missing one without default is an error with the path to it. Fields may be
int, float, str, bool, None, literals, tuples, unions of these and other dataclasses.
"""

import base64
import dataclasses
import json
import types
import zlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[Any, str], Any]
Forms = frozenset[tuple[type, type]]
"""Annotations that stand for a text, each with what it is a text of."""

TEXTS_KEPT = 8
LONGEST_TEXT_BYTES = 1 << 26


class MessageError(ValueError):
    """A message is not of the form that both sides agreed on."""


class Codec(Generic[T]):
    """
    Messages of a union of dataclasses. Each has a name, which stands in the field ``type``.

    Args:
        texts: Large dataclasses that come in one message after the other: such a value is a text inside the message,
            its JSON compressed by zlib, and is written once and read once while it is the same. By annotation, what it
            is a text of: itself; or another one, for who reads it later. That has the attribute ``text``, and is made
            of a text and of what reads it. Default: none
    """

    def __init__(self, texts: Mapping[type, type] | None = None, /, **kinds: type[T]) -> None:
        self._kinds = kinds
        self._names = {kind: name for name, kind in kinds.items()}
        self._texts = texts or {}
        self._forms = frozenset(self._texts.items())
        self._to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=self._plain).encode

    def _plain(self, value: Any) -> Any:
        of = self._texts.get(type(value))
        if of is None:
            return vars(value)
        return _text(value) if of is type(value) else value.text

    def encode(self, message: T) -> bytes:
        return self._to_json({"type": self._names[type(message)]} | vars(message)).encode()

    def decode(self, data: bytes) -> T:
        """The message. Raises MessageError."""
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MessageError(f"not JSON: {error}, got {data[:80]!r}") from None
        name = values.pop("type", None) if isinstance(values, dict) else None
        if not isinstance(name, str) or name not in self._kinds:
            raise MessageError(f"a message's type must be one of {', '.join(self._kinds)}, got {name!r}")
        kind: Any = self._kinds[name]
        message: T = _reader(kind, self._forms)(values, name)
        return message


def _differing(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    defaults = _defaults(kind)
    return {name: item for name, item in vars(value).items() if name not in defaults or item != defaults[name]}


_short = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_differing).encode
"""Without the fields that have their default."""


@lru_cache(TEXTS_KEPT)
def _text(value: Any) -> str:
    return base64.b64encode(zlib.compress(_short(value).encode(), 1)).decode()


def _inside(text: str) -> bytes:
    """Return the values in a text. Raises ValueError, zlib.error."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(base64.b64decode(text, validate=True), LONGEST_TEXT_BYTES)
    if not unpacking.eof:
        raise MessageError(f"the text is cut off, or is longer than {LONGEST_TEXT_BYTES} bytes")
    return data


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    items = dataclasses.fields(kind)
    return {item.name: item.default for item in items if item.default is not dataclasses.MISSING}


@cache
def _reader(kind: Any, texts: Forms) -> Reader:
    """The function that checks and converts a value of an annotated type; those of ``texts`` are read from a text."""
    of = dict(texts).get(kind)
    if of is not None:
        return _from_text(of) if of is kind else _later(kind, of)
    origin, arguments = get_origin(kind), get_args(kind)
    scalars = _scalars(kind)
    if scalars is not None:
        return _scalar(scalars)
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple:
        return _sequence(arguments[0], texts) if arguments[-1] is Ellipsis else _fixed(arguments, texts)
    if origin in (Union, types.UnionType):
        return _union(arguments, texts)
    return _object(kind, texts)


def _scalars(kind: Any) -> frozenset[type] | None:
    if get_origin(kind) in (Union, types.UnionType):
        parts = [_scalars(member) for member in get_args(kind)]
        return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
    if kind is float:
        return frozenset((float, int))
    return frozenset((kind,)) if kind in (int, str, bool, type(None)) else None


def _names(kinds: frozenset[type]) -> str:
    return " or ".join(sorted("null" if kind is type(None) else kind.__name__ for kind in kinds))


def _scalar(kinds: frozenset[type]) -> Reader:
    def read(value: Any, path: str) -> Any:
        if type(value) not in kinds:
            raise MessageError(f"{path} must be {_names(kinds)}, got {value!r}")
        return value

    return read


def _one_of(allowed: tuple[Any, ...]) -> Reader:
    def read(value: Any, path: str) -> Any:
        if value not in allowed:
            raise MessageError(f"{path} must be one of {', '.join(map(str, allowed))}, got {value!r}")
        return value

    return read


@cache
def _value_of(kind: Any) -> Callable[[str], Any]:
    inside = _reader(kind, frozenset())

    @lru_cache(TEXTS_KEPT)
    def value_of(text: str) -> Any:
        try:
            return inside(json.loads(_inside(text)), kind.__name__)
        except (ValueError, RecursionError, zlib.error) as error:
            raise MessageError(str(error)) from None

    return value_of


def _from_text(kind: Any) -> Reader:
    value_of = _value_of(kind)

    def read(value: Any, path: str) -> Any:
        try:
            return value_of(_string(value, path))
        except MessageError as error:
            raise MessageError(f"{path}: {error}") from None

    return read


def _later(form: Any, kind: Any) -> Reader:
    value_of = _value_of(kind)

    def read(value: Any, path: str) -> Any:
        return form(_string(value, path), value_of)

    return read


def _string(value: Any, path: str) -> str:
    if type(value) is not str:
        raise MessageError(f"{path} must be a text, got {value!r}")
    return value


def _sequence(item: Any, texts: Forms) -> Reader:
    inner, scalars = _reader(item, texts), _scalars(item)

    def read(value: Any, path: str) -> tuple[Any, ...]:
        if type(value) is not list:
            raise MessageError(f"{path} must be a list, got {value!r}")
        if scalars is not None and scalars.issuperset(map(type, value)):
            return tuple(value)
        return tuple([inner(each, path) for each in value])

    return read


def _fixed(items: tuple[Any, ...], texts: Forms) -> Reader:
    inner = [_reader(item, texts) for item in items]

    def read(value: Any, path: str) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(inner):
            raise MessageError(f"{path} must be a list of {len(inner)}, got {value!r}")
        return tuple([reader(each, path) for reader, each in zip(inner, value, strict=True)])

    return read


def _union(members: tuple[Any, ...], texts: Forms) -> Reader:
    readers = [_reader(member, texts) for member in members]

    def read(value: Any, path: str) -> Any:
        problems = []
        for reader in readers:
            try:
                return reader(value, path)
            except MessageError as error:  # noqa: PERF203 - at most a handful of members
                problems.append(str(error))
        raise MessageError(", or ".join(problems))

    return read


def _object(kind: Any, texts: Forms) -> Reader:
    if hasattr(kind, "__post_init__") or hasattr(kind, "__slots__"):
        raise TypeError(f"{kind.__name__} cannot be a message: its fields are set without its __init__")
    hints = get_type_hints(kind)
    items = dataclasses.fields(kind)
    scalars = {item.name: _scalars(hints[item.name]) for item in items}
    plain = [(name, kinds) for name, kinds in scalars.items() if kinds is not None]
    nested = [(name, _reader(hints[name], texts)) for name, kinds in scalars.items() if kinds is None]
    defaults = _defaults(kind)
    names = frozenset(item.name for item in items)

    def read(value: Any, path: str) -> Any:
        if type(value) is not dict:
            raise MessageError(f"{path} must be an object, got {value!r}")
        given = value
        if value.keys() != names:
            value = defaults | value
        if value.keys() != names:
            unknown, missing = sorted(value.keys() - names), sorted(names - value.keys())
            raise MessageError(f"fields of {path} are wrong: unknown {unknown}, missing {missing}")
        for name, kinds in plain:
            if type(value[name]) not in kinds:
                raise MessageError(f"{path}.{name} must be {_names(kinds)}, got {value[name]!r}")
        for name, reader in nested:
            if name in given:
                value[name] = reader(given[name], f"{path}.{name}")
        result = object.__new__(kind)
        vars(result).update(value)
        return result

    return read
