"""
Scenarios of an app: values of the parameters that conditions compare, consistent over all templates.

The first scenario has all defaults. Then each parameter takes each other relevant value, then two parameters at once,
up to ``MOST``: a property that needs three changed parameters is not covered.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.validation.cloudformation import Graph, Intrinsics, Resource, Template, named
from holdfast.validation.from_template.conditions import OTHER, Conditions, Questions, as_text, in_words
from holdfast.validation.from_template.settled import settled

MOST = 64
"""Scenarios that are judged."""
FEWEST, MOST_TEXT = 4, 6_000_000
"""Of large templates fewer are, so that all together are as long as this: a template of 1 MB has the fewest."""
_STACK = "AWS::CloudFormation::Stack"
_REGION = "AWS::Region"
_Place = tuple[int, str]
"""A question of a template, by the template's position."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    templates: Sequence[Template]
    differs: Mapping[str, str]
    """What is not as in the first scenario, in words: parameter and value."""
    most: int = MOST
    """How many are looked at."""
    left_out: int = 0
    """How many more there would be."""


def scenarios(templates: Sequence[Template]) -> Iterator[Scenario]:
    """Scenarios of an app, the most common first; equal ones once."""
    app = _App(templates)
    seen: set[str] = set()
    every = 1
    for values in app.domains.values():
        every *= len(values)
    most = MOST
    for number, (choice, differs) in enumerate(_choices(app.domains)):
        if number >= most:
            break
        found = app.under(choice)
        text = _signature(found)
        if not seen:
            most = min(MOST, max(FEWEST, MOST_TEXT // len(text)))
        if text not in seen:
            seen.add(text)
            left_out = max(0, every - most)
            yield Scenario(templates=found, differs=differs, most=most, left_out=left_out)


def _choices(domains: Mapping[_Place, Sequence[object]]) -> Iterator[tuple[dict[_Place, object], dict[str, str]]]:
    usual = {place: values[0] for place, values in domains.items()}
    others = [[(place, value) for value in values[1:]] for place, values in domains.items()]
    for changed in range(3):
        for places in itertools.combinations(others, changed):
            for picked in itertools.product(*places):
                yield usual | dict(picked), {in_words(place[1]): _text_of(value) for place, value in picked}


def _text_of(value: object) -> str:
    return repr(value) if value is OTHER else json.dumps(value)


class _App:
    """Templates of an app, parents before nested ones."""

    def __init__(self, templates: Sequence[Template]) -> None:
        self._graph = Graph(templates)
        self._templates = sorted(templates, key=self._depth)
        self._position = {id(template): index for index, template in enumerate(self._templates)}
        self._conditions = [Conditions(template) for template in self._templates]
        self.domains = self._domains()

    def under(self, choice: Mapping[_Place, object]) -> list[Template]:
        found: dict[int, Template] = {}
        answered: dict[int, Mapping[str, object]] = {}
        for index, template in enumerate(self._templates):
            parent = self._graph.parent(template)
            answers = {name: value for (place, name), value in choice.items() if place == index}
            if parent is not None:
                above = self._position[id(parent.template)]
                holder = found.get(above)
                if holder is None or parent.logical_id not in holder.section("Resources"):
                    continue
                answers |= self._handed(parent, holder, found.values(), answered[above])
            answered[index] = answers
            conditions = self._conditions[index]
            region = answers.get(_REGION, template.region)
            body = settled(template.body, lambda name, c=conditions, a=answers: c.holds(name, a))  # type: ignore[misc]
            found[index] = replace(
                template,
                body=body,
                region=region if isinstance(region, str) else None,
                values=self._values(template, answers),
            )
        return list(found.values())

    def _depth(self, template: Template) -> int:
        depth, parent = 0, self._graph.parent(template)
        while parent is not None and depth < len(self._graph.templates):
            depth, parent = depth + 1, self._graph.parent(parent.template)
        return depth

    def _values(self, template: Template, answers: Mapping[str, object]) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for name, definition in template.section("Parameters").items():
            given = template.values.get(name)
            value = answers.get(name, _default(definition) if given is None else given)
            if value is OTHER or value is None or (value == "" and given is None):
                # Nobody deploys with an empty name: where it is used at all, there is a value.
                continue
            found[name] = _split(str(value)) if _is_list(definition) else value
        return found

    def _handed(
        self, parent: Resource, holder: Template, templates: Iterable[Template], answers: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Known parameters that a stack passes to its nested template; an empty one is passed as it is."""
        stack = holder.section("Resources")[parent.logical_id]
        given = stack.get("Properties", {}).get("Parameters") if isinstance(stack, Mapping) else None
        if not isinstance(given, Mapping):
            return {}
        intrinsics = Intrinsics(Graph(list(templates)))
        handed: dict[str, object] = {}
        for name, raw in given.items():
            text = as_text(intrinsics.resolve(holder, raw))
            if text is None and isinstance(raw, Mapping) and raw.get("Ref") in answers:
                handed[name] = answers[raw["Ref"]]
            elif text is not None:
                handed[name] = text
        return handed

    def _domains(self) -> Mapping[_Place, Sequence[object]]:
        asked: list[Questions] = []
        compared: dict[_Place, set[str]] = {}
        for index, template in enumerate(self._templates):
            nested = self._graph.parent(template) is not None
            asked.append(self._conditions[index].questions(outputs=nested))
            for name, asked_for in asked[index].compared.items():
                compared.setdefault((index, name), set()).update(asked_for)
        for index in reversed(range(len(self._templates))):
            self._hand_up(index, compared)
        found: dict[_Place, Sequence[object]] = {}
        for index, template in enumerate(self._templates):
            written = list(template.section("Parameters"))
            names = [name for place, name in compared if place == index]
            for name in sorted(names, key=lambda each: (written.index(each) if each in written else -1, each)):
                found[(index, name)] = _domain(template, name, compared[(index, name)])
            found |= {(index, question): _both(question) for question in sorted(asked[index].open)}
        return {place: values for place, values in found.items() if values}

    def _hand_up(self, index: int, compared: dict[_Place, set[str]]) -> None:
        parent = self._graph.parent(self._templates[index])
        properties = parent.body.get("Properties") if parent else None
        given = properties.get("Parameters") if isinstance(properties, Mapping) else None
        if parent is None or not isinstance(given, Mapping):
            return
        above = self._position[id(parent.template)]
        for place, name in [each for each in compared if each[0] == index]:
            raw = given.get(name)
            if isinstance(raw, Mapping) and isinstance(raw.get("Ref"), str):
                if raw["Ref"] in parent.template.section("Parameters"):
                    compared.setdefault((above, raw["Ref"]), set()).update(compared.pop((place, name)))
            elif isinstance(raw, str | int | float):
                del compared[(place, name)]


def _both(question: str) -> tuple[bool, bool]:
    """Answers to an open comparison, the usual one first: a requested feature, a non-empty value."""
    return (False, True) if '""' in question else (True, False)


def _domain(template: Template, name: str, texts: set[str]) -> Sequence[object]:
    if name == _REGION:
        return (template.region,) if template.region else (OTHER, *sorted(texts))
    given = template.values.get(name)
    if given is not None:
        return (as_text(given),)
    definition = template.section("Parameters").get(name)
    if not isinstance(definition, Mapping):
        return (OTHER, *sorted(texts))
    default = _default(definition)
    if _is_list(definition) and default is not None:
        return (default,)
    allowed = definition.get("AllowedValues")
    options = [as_text(value) for value in allowed] if isinstance(allowed, list) else None
    found: list[object] = [] if default is None else [default]
    if options is None:
        if default is None or default in texts:
            found.append(OTHER)
        found += sorted(texts - {default})
    else:
        found += [option for option in options if option in texts and option != default]
        rest = [option for option in options if option not in texts]
        if rest and default not in rest:
            found.append(rest[0])
    return found


def _default(definition: Any) -> str | None:
    """Default; None without one, or for an SSM lookup."""
    if not isinstance(definition, Mapping) or str(definition.get("Type", "")).startswith("AWS::SSM::Parameter::Value"):
        return None
    value = definition.get("Default")
    return None if isinstance(value, Mapping | list) else as_text(value)


def _is_list(definition: Any) -> bool:
    kind = str(definition.get("Type", "")) if isinstance(definition, Mapping) else ""
    return kind == "CommaDelimitedList" or kind.startswith("List<")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _signature(templates: Sequence[Template]) -> str:
    parts = []
    for template in templates:
        resources = template.section("Resources")
        used = sorted(set(named(resources)) & template.values.keys())
        parts.append([template.path, template.region, resources, {name: template.values[name] for name in used}])
    return json.dumps(parts, default=repr)


__all__ = ["MOST", "Scenario", "scenarios"]
