"""
Conditions of templates, their inputs and results.

A comparison with a parameter is decided by the parameter; one with a value that only the deployment knows is a question
of its own.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.catalog.facts import partition_of
from holdfast.validation.cloudformation import UNRESOLVED, Fault, Graph, Intrinsics, Template, line_of


class _Other:
    def __repr__(self) -> str:
        return "another value"


OTHER: Final = _Other()
"""A value of a parameter that is none of those which conditions compare it with."""

Question = str
"""The name of a parameter or pseudo parameter, or the text of a comparison."""


@dataclass(frozen=True, kw_only=True)
class Questions:
    compared: Mapping[str, frozenset[str]]
    """Parameters by name, with the texts that they are compared with."""
    open: frozenset[Question]
    """Comparisons that no parameter decides."""


class UnknownConditionError(Exception):
    """A condition is missing, or refers to itself."""


class Conditions:
    def __init__(self, template: Template) -> None:
        self._template = template
        self._written = template.section("Conditions")
        self._intrinsics = Intrinsics(Graph([template]))

    def faults(self) -> Iterator[Fault]:
        for name in self._written:
            if circle := self._circle(name):
                yield Fault(
                    code="HF021",
                    line=line_of(self._template.body, f"Conditions.{name}") or 1,
                    path=f"Conditions.{name}",
                    given=f"the circle {' -> '.join(circle)}",
                    allowed="conditions that are decided by others or by parameters",
                    fix="break the circle",
                )

    def questions(self, *, outputs: bool) -> Questions:
        """Inputs of conditions on resources; ``outputs``: on outputs, too."""
        compared: dict[str, set[str]] = {}
        unclear: set[Question] = set()
        for name in self._matter(outputs=outputs):
            for one, other in _comparisons(self._written.get(name)):
                parameter, text = _parameter_and_text(one, other)
                if parameter is not None and text is not None:
                    compared.setdefault(parameter, set()).add(text)
                elif self._plain(one) is None or self._plain(other) is None:
                    unclear.add(_key(one, other))
        for region in self._mapped_regions():
            compared.setdefault("AWS::Region", set()).add(region)
        return Questions(compared={name: frozenset(texts) for name, texts in compared.items()}, open=frozenset(unclear))

    def _mapped_regions(self) -> Iterator[str]:
        """The first region of each mapping that resources are made from by region."""
        for name, rows in self._template.section("Mappings").items():
            looked_up = f'{{"Fn::FindInMap": [{json.dumps(name)}, {{"Ref": "AWS::Region"}},'
            if isinstance(rows, Mapping) and looked_up in self._text:
                yield from [each for each in rows if partition_of(each)][:1]

    @functools.cached_property
    def _text(self) -> str:
        return json.dumps(self._template.section("Resources"), default=repr)

    def holds(self, name: str, answers: Mapping[Question, object]) -> bool:
        """Result of a condition; raises UnknownConditionError if it is missing, circular or unreadable."""
        if name not in self._written or self._circle(name):
            raise UnknownConditionError(name)
        return self._value(self._written[name], answers)

    def _value(self, expression: Any, answers: Mapping[Question, object]) -> bool:
        if not (isinstance(expression, Mapping) and len(expression) == 1):
            raise UnknownConditionError(str(expression))
        function, argument = next(iter(expression.items()))
        parts = argument if isinstance(argument, list) else [argument]
        match function:
            case "Condition" if isinstance(argument, str):
                return self.holds(argument, answers)
            case "Fn::And":
                return all(self._value(part, answers) for part in parts)
            case "Fn::Or":
                return any(self._value(part, answers) for part in parts)
            case "Fn::Not" if len(parts) == 1:
                return not self._value(parts[0], answers)
            case "Fn::Equals" if len(parts) == 2:
                return self._equals(parts[0], parts[1], answers)
        raise UnknownConditionError(str(function))

    def _equals(self, one: Any, other: Any, answers: Mapping[Question, object]) -> bool:
        parameter, text = _parameter_and_text(one, other)
        if parameter is not None and parameter in answers:
            return answers[parameter] == text
        known = self._plain(one), self._plain(other)
        if None not in known:
            return known[0] == known[1]
        return bool(answers.get(_key(one, other), False))

    def _plain(self, value: Any) -> str | None:
        return as_text(self._intrinsics.resolve(self._template, value))

    def _matter(self, *, outputs: bool) -> list[str]:
        waiting = [name for name, place in _used(self._template) if outputs or not place.startswith("Outputs")]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += _named(self._written.get(name))
        return sorted(seen)

    def _circle(self, name: str) -> list[str]:
        """Path from a condition back to itself; empty if there is none."""
        ways = [[name]]
        seen = {name}
        while ways:
            way = ways.pop()
            for inner in _named(self._written.get(way[-1])):
                if inner == name:
                    return [*way, name]
                if inner not in seen:
                    seen.add(inner)
                    ways.append([*way, inner])
        return []


def as_text(value: object) -> str | None:
    """Plain value as CloudFormation compares it; None for others."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    return None if value is UNRESOLVED or not isinstance(value, list) else ",".join(map(str, value))


def _parameter_and_text(one: Any, other: Any) -> tuple[str | None, str | None]:
    for reference, literal in ((one, other), (other, one)):
        if isinstance(reference, Mapping) and list(reference) == ["Ref"] and isinstance(reference["Ref"], str):
            text = as_text(literal) if not isinstance(literal, list | Mapping) else None
            if text is not None:
                return reference["Ref"], text
    return None, None


def _key(one: Any, other: Any) -> Question:
    return json.dumps([one, other], sort_keys=True, default=repr)


def is_open(question: Question) -> bool:
    return question.startswith("[")


def in_words(question: Question) -> str:
    if not is_open(question):
        return question
    one, other = json.loads(question)
    return f"({_in_words(one)} == {_in_words(other)})"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping) and len(value) == 1:
        function, argument = next(iter(value.items()))
        if function == "Ref":
            return str(argument)
        parts = argument if isinstance(argument, list) else [argument]
        return f"{function.removeprefix('Fn::')}({', '.join(map(_in_words, parts))})"
    return json.dumps(value)


def _comparisons(expression: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(expression, list):
        for part in expression:
            yield from _comparisons(part)
    elif isinstance(expression, Mapping):
        for function, argument in expression.items():
            if function == "Fn::Equals" and isinstance(argument, list) and len(argument) == 2:
                yield argument[0], argument[1]
            elif function in ("Fn::And", "Fn::Or", "Fn::Not"):
                yield from _comparisons(argument)


def _named(expression: Any) -> Iterator[str]:
    if isinstance(expression, list):
        for part in expression:
            yield from _named(part)
    elif isinstance(expression, Mapping):
        for function, argument in expression.items():
            if function == "Condition" and isinstance(argument, str):
                yield argument
            elif function in ("Fn::And", "Fn::Or", "Fn::Not"):
                yield from _named(argument)


def _used(template: Template) -> Iterator[tuple[str, str]]:
    for section in ("Resources", "Outputs"):
        for name, body in template.section(section).items():
            if not isinstance(body, Mapping) or body.get("Type") == "AWS::CDK::Metadata":
                continue
            place = f"{section}.{name}"
            if isinstance(body.get("Condition"), str):
                yield body["Condition"], f"{place}.Condition"
            yield from _asked(body, place)


def _asked(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _asked(item, f"{place}.{index}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key == "Fn::If" and isinstance(item, list) and item and isinstance(item[0], str):
                yield item[0], f"{place}.Fn::If"
            yield from _asked(item, f"{place}.{key}")
