"""Whatever a file holds, checking it ends with findings: never with a traceback, and never without an end."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.validation.from_template import Report, check_template

CASES = Path(__file__).parents[3] / "cases" / "templates"
BODIES = {path.stem: json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))}
PIECES = ["\t", ":", "!", "!Ref ", "!If [", "&a ", "*a", "- ", "{", "[", "}", "'", '"', "\n", "|", "\x07", "<<: ", "? "]
RUBBISH: list[Any] = [
    None,
    True,
    10**40,
    "",
    "{{resolve:ssm:x}}",
    [[]],
    {},
    {"Ref": 3},
    {"Ref": "Cluster"},
    {"Fn::If": ["A", 1]},
    {"Fn::If": ["A", {"Ref": "AWS::NoValue"}, 2]},
    {"Fn::GetAtt": ["A"]},
    {"Fn::Sub": ["${A.B}${}", 3]},
    {"Fn::Cidr": ["10.0.0.0/8", 3, 4]},
    {"Fn::ForEach::X": ["A", ["a"], {"${A}": 1}]},
    {"Fn::ToJsonString": {"a": {"Ref": "Cluster"}}},
    {"Condition": "A"},
]
LIGHT = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if here:
        yield here
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from places(item, (*here, key))


def as_yaml(body: object) -> str:
    text: str = yaml.dump(body, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    return text


TEXTS = {name: as_yaml(body) for name, body in BODIES.items()}
ALL = {name: list(places(body)) for name, body in BODIES.items()}


def judged(path: Path, text: str, *, linted: bool = True) -> Report:
    path.write_text(text)
    report = check_template(path, linted=linted)
    assert all(finding.line is None or finding.line >= 1 for finding in report.findings)
    assert report.usable or [finding.code for finding in report.findings] == ["HF001"]
    return report


@LIGHT
@given(data=st.data())
def test_rubbish_anywhere_in_a_template_is_read_to_its_end(data: st.DataObject, tmp_path: Path) -> None:
    name = data.draw(st.sampled_from(sorted(BODIES)))
    body = copy.deepcopy(BODIES[name])
    body["Parameters"] = {"P": {"Type": "String", "Default": "x"}}
    body["Conditions"] = {"A": {"Fn::Equals": [{"Ref": "P"}, "x"]}}
    for place in data.draw(st.lists(st.sampled_from(ALL[name]), min_size=1, max_size=4)):
        holder: Any = body
        try:
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = copy.deepcopy(data.draw(st.sampled_from(RUBBISH)))
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue

    judged(tmp_path / "a.yaml", as_yaml(body), linted=False)  # cfn-lint reads the same from JSON
    judged(tmp_path / "a.json", json.dumps(body))


@LIGHT
@given(data=st.data())
def test_a_text_with_pieces_that_do_not_belong_there_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    text = TEXTS[data.draw(st.sampled_from(sorted(TEXTS)))]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.sampled_from([0, 1, 5, 80]))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + gone :]

    judged(tmp_path / "a.yaml", text)


@LIGHT
@given(text=st.text(max_size=200) | st.binary(max_size=200).map(lambda held: held.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"Resources: {text}")
    check_template(tmp_path / "a.yaml")


@LIGHT
@given(held=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(held: bytes, tmp_path: Path) -> None:
    for name in ("a.yaml", "a.json"):
        (tmp_path / name).write_bytes(held)
        check_template(tmp_path / name)


@pytest.mark.e2e  # cfn-lint takes 7 s for it
@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_template_of_a_megabyte_is_read(name: str, tmp_path: Path) -> None:
    policy = {"Effect": "Allow", "Action": [f"s3:Action{n}" for n in range(50)], "Resource": "*"}
    body = {
        "Resources": {
            f"Role{n}": {
                "Type": "AWS::IAM::Role",
                "Properties": {"Policies": [{"PolicyDocument": {"Statement": [policy]}}]},
            }
            for n in range(120)
        }
    }
    text = json.dumps(body) if name == "a.json" else as_yaml(json.loads(json.dumps(body)))

    assert judged(tmp_path / name, text).usable


def test_links_into_nowhere_and_circles_of_references_end(tmp_path: Path) -> None:
    body = copy.deepcopy(BODIES["eight-defects.clean"])
    body["Outputs"] = {"A": {"Value": {"Fn::ImportValue": "a"}, "Export": {"Name": "a"}}}
    cluster = body["Resources"]["Cluster"]
    cluster["DependsOn"] = ["Cluster", "Nowhere"]
    cluster["Properties"]["ClusterName"] = {"Ref": "Cluster"}
    cluster["Properties"]["VpcConfig"]["Subnets"] = {"Fn::ImportValue": "a"}

    assert judged(tmp_path / "a.yaml", as_yaml(body)).usable
