"""Problems of pydantic as got, allowed, fix."""

import re
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from holdfast.config.models import Environment
from holdfast.config.reading.document import Document, Location
from holdfast.config.refusals import Allowed, Problem, plain, shown
from holdfast_common import closest_word

_LIKE_A_NUMBER = re.compile(r"\d[\d.-]*")
"""Text that YAML takes for a number or a day, unless it stands in quotes."""


def explain(error: ValidationError, document: Document) -> list[Problem]:
    """All problems of pydantic, except those that the reader has found."""
    known = {problem.path for problem in document.problems}
    all_details = error.errors(include_url=False)
    misspelled = {(*details["loc"][:-1], _meant(details["loc"])) for details in all_details if _is_unknown(details)}
    found = (
        _problem(details, document)
        for details in all_details
        if not _follows(details) and not (details["type"] == "missing" and details["loc"] in misspelled)
    )
    return [problem for problem in found if problem.path not in known]


def allowed_at(location: Location) -> Allowed:
    return _allowed(_annotation(location))


def _follows(details: ErrorDetails) -> bool:
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _problem(details: ErrorDetails, document: Document) -> Problem:
    location, key = details["loc"], details["loc"][-1]
    if _is_unknown(details):
        return _unknown(location, document)
    allowed = allowed_at(location)
    if key == "[key]":
        fix = f"name it like {allowed.example}"
        given = f"the name {shown(details['input'])}"
        return document.problem(location[:-1], given=given, allowed=allowed.text, fix=fix, code=allowed.code)
    if details["type"] == "missing":
        fix = f"add {_setting(key, allowed.example)}"
        return document.problem(location, given="nothing", allowed=allowed.text, fix=fix, code="HF003")
    value = details["input"]
    example = allowed.closest(value)
    if example is None:
        example = _as_text(document.written.get(location), allowed)
    like = "a value like " if example is None and bare(_annotation(location)) is str else ""
    setting = _setting(key, allowed.example if example is None else example)
    fix = _fix_of_amount(details, key) or f"write {like}{setting}"
    given = _given(value, location, document)
    return document.problem(location, given=given, allowed=allowed.text, fix=fix, code=allowed.code)


def _fix_of_amount(details: ErrorDetails, key: str | int) -> str | None:
    context, value = details.get("ctx", {}), details["input"]
    name = f"{key}: " if isinstance(key, str) else ""
    match details["type"]:
        case "less_than_equal":
            return f"write {name}{context['le']} or less"
        case "greater_than_equal":
            return f"write {name}{context['ge']} or more"
        case "too_long" if isinstance(value, list | dict):
            most = context["max_length"]
            return f"remove {len(value) - most} of the {len(value)} {key}"
        case "too_short" if isinstance(value, list | dict):
            return f"add {context['min_length'] - len(value)} to {key}"
        case "string_too_long":
            return f"shorten it by {len(value) - context['max_length']} characters"
        case "list_type" | "tuple_type":
            return f"write {key} as a list: one line for each, beginning with '- '"
    return None


def _unknown(location: Location, document: Document) -> Problem:
    meant = _meant(location)
    fix = f"did you mean {meant}?" if meant else f"remove {plain(str(location[-1]))}"
    allowed = ", ".join(_names(location))
    return document.problem(location, given="an unknown setting", allowed=allowed, fix=fix, code="HF002")


def _is_unknown(details: ErrorDetails) -> bool:
    return details["type"] == "extra_forbidden"


def _names(location: Location) -> list[str]:
    return list(_model(_annotation(location[:-1])).model_fields)


def _meant(location: Location) -> str | None:
    key, names = str(location[-1]), _names(location)
    return closest_word(key, names) or _longer(key, names)


def _longer(key: str, names: list[str]) -> str | None:
    """Return the setting whose first word ``key`` is, as in ``spares`` for ``spare_count``."""
    return next((name for name in names if name.partition("_")[0].lower() == key.lower().removesuffix("s")), None)


def _given(value: object, location: Location, document: Document) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}" if len(value) > 1 else "a list"
    return document.written.get(location) or shown(value)


def _as_text(written: str | None, allowed: Allowed) -> str | None:
    meant = isinstance(allowed.example, str) and _LIKE_A_NUMBER.fullmatch(allowed.example)
    same = written is not None and meant and len(written) == len(meant.string) and _LIKE_A_NUMBER.fullmatch(written)
    return written if same else None


def _setting(key: str | int, example: object) -> str:
    if isinstance(example, dict):
        return f"a mapping {key} with {', '.join(example)}"
    if isinstance(example, list):
        return f"a list {key}"
    quoted = isinstance(example, str) and _LIKE_A_NUMBER.fullmatch(example)
    text = f'"{example}"' if quoted else str(example)
    return f"{key}: {text}" if isinstance(key, str) else text


def _annotation(location: Location) -> Any:
    annotation: Any = Environment
    for part in location:
        if isinstance(part, int):
            annotation = get_args(bare(annotation))[0]
        elif get_origin(bare(annotation)) is dict:  # a key that is refused comes as (..., "key", "[key]")
            key, value = get_args(bare(annotation))
            annotation = key if location[-1] == "[key]" else value
            break
        else:
            field = _model(annotation).model_fields[part]
            annotation = field.annotation
            for mark in field.metadata:
                annotation = Annotated[annotation, mark]
    return annotation


def _model(annotation: Any) -> type[BaseModel]:
    model: type[BaseModel] = bare(annotation)
    assert issubclass(model, BaseModel)
    return model


def bare(annotation: Any) -> Any:
    """Strip Annotated and None."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(item for item in get_args(annotation) if item is not type(None))
        else:
            return annotation


def inner_model(field: FieldInfo) -> tuple[type[BaseModel] | None, bool]:
    """Return the model of a setting with settings of its own, and True for a list of them."""
    annotation = bare(field.annotation)
    many = get_origin(annotation) is tuple
    inner = bare(get_args(annotation)[0]) if many else annotation
    return (inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None), many


def _allowed(annotation: Any) -> Allowed:
    if get_origin(annotation) in (Union, UnionType):
        return _allowed(next(item for item in get_args(annotation) if item is not type(None)))
    if get_origin(annotation) is Annotated:
        marks = [item for item in get_args(annotation)[1:] if isinstance(item, Allowed)]
        return marks[0] if marks else _allowed(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return _one_of(tuple(str(item).lower() if isinstance(item, bool) else item for item in get_args(annotation)))
    if annotation is bool:
        return Allowed("true or false", "true")
    if get_origin(annotation) is tuple:
        item = bare(get_args(annotation)[0])
        what = f"of {', '.join(get_args(item))}" if get_origin(item) is Literal else f"of {item.__name__.lower()}s"
        return Allowed(f"a list {what}", [])
    settings = {name: None for name, field in annotation.model_fields.items() if field.is_required()}
    return Allowed(f"a mapping with {', '.join(annotation.model_fields)}", settings or {"its settings": None})


def _one_of(values: tuple[Any, ...]) -> Allowed:
    def closest(value: object) -> object | None:
        numbers = [item for item in values if isinstance(item, int)]
        if numbers and isinstance(value, int):
            return min(numbers, key=lambda number: abs(number - value))
        by_text = {str(item): item for item in values}
        word = closest_word(str(value), by_text)
        if word is None and value is None and "None" in by_text:
            return "None"
        return None if word is None else by_text[word]

    return Allowed(f"one of {', '.join(map(str, values))}", values[0], closest)
