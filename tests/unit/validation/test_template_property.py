"""Whatever becomes of a template, reading it never fails, and what is not known is neither wrong nor right."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.validation import Finding, judge
from holdfast.validation.cloudformation import Template
from holdfast.validation.from_template import deployments_in_app

CASES = Path(__file__).parents[2] / "cases" / "templates"
TEMPLATES: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))
}
PROVIDED = {"Type": "Custom::Provided", "Properties": {"ServiceToken": "arn:aws:lambda:us-west-2:111122223333:f"}}
"""Only its provider knows what an attribute of it holds."""
TOKENS: list[dict[str, Any]] = [
    {"Ref": "Parameter"},
    {"Fn::ImportValue": "elsewhere"},
    {"Fn::If": ["Condition", 1, {"Ref": "AWS::NoValue"}]},
    {"Fn::Brandnew": ["x"]},
    {"Fn::GetAtt": ["Provided", "Value"]},
    {"Ref": "Provided"},
]
RUBBISH: list[Any] = [
    None,
    0,
    -1,
    1.5,
    True,
    "",
    "x",
    [],
    ["x"],
    [[]],
    {},
    {"x": {}},
    [{}],
    {"Ref": []},
    {"Fn::Sub": 3},
]

Place = tuple[str | int, ...]


def places(node: Any, here: Place = ()) -> Iterator[Place]:
    """Where properties are; what is inside a function is no property."""
    if isinstance(node, dict) and not any(key == "Ref" or key.startswith("Fn::") for key in node):
        for key, item in node.items():
            yield (*here, key)
            yield from places(item, (*here, key))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield (*here, index)
            yield from places(item, (*here, index))


def all_places(template: dict[str, Any]) -> list[Place]:
    return [
        ("Resources", name, "Properties", *place)
        for name, resource in template["Resources"].items()
        for place in places(resource.get("Properties", {}))
    ]


PLACES = {name: all_places(template) for name, template in TEMPLATES.items()}
for _template in TEMPLATES.values():
    _template["Resources"]["Provided"] = PROVIDED


@st.composite
def some_places(draw: st.DrawFn, at_most: int = 3) -> tuple[str, list[Place]]:
    name = draw(st.sampled_from(sorted(TEMPLATES)))
    return name, draw(st.lists(st.sampled_from(PLACES[name]), min_size=1, max_size=at_most))


def changed(template: dict[str, Any], place: Place, value: Any, *, remove: bool = False) -> None:
    holder: Any = template
    for key in place[:-1]:
        if not has(holder, key):
            return  # an earlier change has taken it away
        holder = holder[key]
    if has(holder, place[-1]) and remove:
        del holder[place[-1]]
    elif has(holder, place[-1]):
        holder[place[-1]] = value


def has(holder: Any, key: str | int) -> bool:
    if isinstance(holder, list):
        return isinstance(key, int) and key < len(holder)
    return isinstance(holder, dict) and key in holder


def findings(template: dict[str, Any]) -> list[Finding]:
    (deployment,) = deployments_in_app([Template(body=template, region="us-west-2", account="111122223333")])
    return judge(deployment)


def codes(found: list[Finding], *severities: str) -> set[str]:
    return {finding.code for finding in found if finding.severity in severities}


ERRORS = {name: codes(findings(template), "error") for name, template in TEMPLATES.items()}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(some_places(), st.sampled_from(TOKENS))
def test_a_token_never_turns_an_error_into_silence_nor_makes_one(
    where: tuple[str, list[Place]], token: dict[str, Any]
) -> None:
    name, chosen = where
    template = copy.deepcopy(TEMPLATES[name]) | {
        "Parameters": {"Parameter": {"Type": "String"}},
        "Conditions": {"Condition": {"Fn::Equals": [{"Ref": "Parameter"}, "yes"]}},
    }
    for place in chosen:
        changed(template, place, token)
    found = findings(template)

    assert ERRORS[name] <= codes(found, "error", "not-checked")
    assert codes(found, "error") <= ERRORS[name]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(some_places(), st.sampled_from(RUBBISH), st.booleans())
def test_no_rule_fails_whatever_a_template_says(where: tuple[str, list[Place]], value: Any, remove: bool) -> None:
    name, chosen = where
    template = copy.deepcopy(TEMPLATES[name])
    for place in chosen:
        changed(template, place, copy.deepcopy(value), remove=remove)

    assert isinstance(findings(template), list)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.e2e] * name.endswith(".clean")) for name in sorted(TEMPLATES)]
)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.e2e)])
def test_every_single_property_may_be_a_token(name: str, every: int) -> None:
    for place in PLACES[name][::every]:
        template = copy.deepcopy(TEMPLATES[name])
        changed(template, place, {"Fn::GetAtt": ["Provided", "Value"]})
        found = findings(template)
        where = ".".join(map(str, place))

        assert ERRORS[name] - codes(found, "error", "not-checked") == set(), where
        assert codes(found, "error") - ERRORS[name] == set(), where
