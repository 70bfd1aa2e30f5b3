"""Templates from text: YAML with its short tags, JSON, the line of every node, and what CloudFormation refuses."""

import json
from pathlib import Path

import pytest

from holdfast.validation.cloudformation import DEEPEST, Unreadable, line_of
from holdfast.validation.template_files import looks_like_a_template, read_json, read_text, read_yaml

YAML = """\
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Properties:
      BucketName: !Sub "logs-${AWS::Region}"
      Tags:
        - {Key: owner, Value: 0123}
        - Key: role
          Value: !GetAtt Role.Arn
        - !If [Large, {Key: size, Value: large}, !Ref AWS::NoValue]
"""


def test_short_tags_are_the_functions_that_they_stand_for() -> None:
    properties = read_yaml(YAML).body["Resources"]["Bucket"]["Properties"]

    assert properties["BucketName"] == {"Fn::Sub": "logs-${AWS::Region}"}
    assert properties["Tags"][1]["Value"] == {"Fn::GetAtt": ["Role", "Arn"]}
    assert properties["Tags"][2] == {"Fn::If": ["Large", {"Key": "size", "Value": "large"}, {"Ref": "AWS::NoValue"}]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2012-10-17", "2012-10-17"),
        ("yes", True),
        ("1:30:00", 5400),
        ("0777", 511),
        ("'0777'", "0777"),
        ("08", "08"),
        ("~", None),
        ("1e3", "1e3"),
        ("1.5", 1.5),
        ("!!str 12", "12"),
        ("111122223333", 111122223333),
        ("=", "="),
        ("!Condition A", {"Condition": "A"}),
        ("!Join ['', [a, b]]", {"Fn::Join": ["", ["a", "b"]]}),
    ],
)
def test_bare_words_are_what_yaml_1_1_takes_them_for_but_for_dates(text: str, value: object) -> None:
    assert read_yaml(f"Value: {text}\n").body["Value"] == value


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("Resources", 2),
        ("Resources.Bucket", 3),
        ("Resources.Bucket.Properties.BucketName", 6),
        ("Resources.Bucket.Properties.Tags.0.Value", 8),
        ("Resources.Bucket.Properties.Tags.1.Value", 10),
        ("Resources.Bucket.Properties.Tags.2", 11),
        ("Resources.Bucket.Properties.NotThere.Below", 5),
        ("Resources.Bucket.Properties.Tags.9", 7),
        ("NotThere", 1),
    ],
)
def test_every_place_has_a_line_or_that_of_what_is_around_it(path: str, line: int) -> None:
    assert line_of(read_yaml(YAML).body, path) == line


def test_json_has_the_same_lines_as_an_editor_shows() -> None:
    text = json.dumps(
        {"Resources": {"A.B": {"Type": 'a "b" {', "Properties": {"List": [1, {"C": []}, -2.5e3]}}}}, indent=2
    )
    read = read_json(text)

    assert read.body == json.loads(text)
    for path, expected in (
        ("Resources.A.B.Type", '"Type"'),
        ("Resources.A.B.Properties.List.1.C", '"C"'),
        ("Resources.A.B.Properties.List.2", "-2500.0"),
    ):
        assert expected in text.splitlines()[(line_of(read.body, path) or 0) - 1]


def test_a_key_that_stands_twice_is_told_with_both_lines_in_yaml_and_in_json() -> None:
    in_yaml = read_yaml("Resources:\n  A: {Type: x}\n  A: {Type: y}\n").faults
    in_json = read_json('{"Resources": {"A": [{"B": 1}, {"C": 1,\n"C": 2}]}}').faults

    assert [(each.code, each.line, each.path, each.given) for each in (*in_yaml, *in_json)] == [
        ("HF005", 3, "Resources.A", "the key a second time, after line 2"),
        ("HF005", 2, "Resources.A.1.C", "the key a second time, after line 1"),
    ]


@pytest.mark.parametrize(
    ("text", "given", "line"),
    [
        ("A: 1\nB: !Foo bar", "the tag !Foo", 2),
        ("A: !!binary aGk=", "the tag !!binary", 1),
        ("A: &a {b: 1}\nB: *a", "an alias (*name)", 2),
        ("A: &a {b: 1}\nB:\n  <<: *a\n  c: 1", "an alias (*name)", 3),
        ("A:\n  <<: {b: 1}\n", "a merge key (<<)", 2),
        ("A: {[1]: 2}", "a key that is no text", 1),
    ],
)
def test_what_cloudformation_does_not_take_of_yaml_is_told(text: str, given: str, line: int) -> None:
    fault = read_yaml(text).faults[0]

    assert (fault.code, fault.given, fault.line) == ("HF020", given, line)


def test_merged_keys_are_read_all_the_same() -> None:
    assert read_yaml("A:\n  <<: {b: 1, c: 2}\n  c: 3\n").body["A"] == {"b": 1, "c": 3}


def test_many_aliases_are_one_fault() -> None:
    faults = read_yaml("A: &a 1\nB: [*a, *a, *a]\n").faults

    assert [each.given for each in faults] == ["3 aliases (*name), the first of them here"]


def test_an_alias_of_what_it_is_inside_leads_nowhere() -> None:
    assert read_yaml("A: &a [1, *a]\n").body["A"] == [1, {"Fn::Alias": "a"}]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        bomb(9),
        "[" * 100_000,
        "A: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        "A: " + "{a: " * 5000,
        "\n".join(f"{' ' * n}a:" for n in range(400)),
        "A:\n\t- tab",
        "A: 'open",
        "A: 1\n---\nB: 2",
        "- a",
        "text",
        "",
        "# nothing",
        "A: \x00",
        "%TAG ! tag:\nA: 1",
        "A: *unknown\n&b",
    ],
)
def test_what_is_no_yaml_for_a_template_is_one_clear_error(text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_yaml(text)
    fault = caught.value.fault
    assert fault.code == "HF001"
    assert fault.line >= 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "7", '{"A": NaN}', '{"A": 1,}', "{'A': 1}", "// no", '{"A":' * 300 + "1" + "}" * 300]
)
def test_what_is_no_json_object_is_one_clear_error(text: str) -> None:
    with pytest.raises(Unreadable):
        read_json(text)


def test_very_deep_json_is_one_clear_error_too() -> None:
    with pytest.raises(Unreadable, match="nested more than"):
        read_json("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize(
    ("name", "text", "is_template"),
    [
        ("a.yaml", YAML, True),
        ("a.yaml", "﻿" + YAML, True),
        ("a.template", YAML, True),
        ("a.yaml", '{"Resources": {}}', True),
        ("a.yaml", '"Resources":\n  A: {}\n', True),
        ("a.yaml", "Transform: AWS::Serverless-2016-10-31\nResources:\n", True),
        ("a.yaml", "---\n  AWSTemplateFormatVersion: 2010-09-09\n  Resources:\n", True),
        ("a.template.yaml", "name: local\ncloud: embedded\n", False),
        ("a.yaml", "name: x\n# Resources: none\nnotes: |\n  Resources: x\n", False),
        ("a.yaml", "", False),
    ],
)
def test_a_template_is_known_by_its_content_and_not_by_its_name(
    name: str, text: str, is_template: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)

    assert looks_like_a_template(tmp_path / name) is is_template


def test_bytes_that_are_no_utf_8_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"Resources:\n  A: \xff\n")

    with pytest.raises(Unreadable) as caught:
        read_text(tmp_path / "a.yaml")
    assert (caught.value.fault.line, caught.value.fault.given) == (2, "bytes that are no UTF-8")


def test_properties_that_are_no_mapping_are_told_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("Resources:\n  A: {Type: x, Properties: [1]}\n")

    read = read_text(tmp_path / "a.yaml")

    assert [(each.path, each.given) for each in read.faults] == [("Resources.A.Properties", "a list")]
    assert read.body["Resources"]["A"]["Properties"] == {}


def test_a_template_beyond_the_largest_size_is_told(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text(
        f"Description: {'x' * (1 << 20)}\nResources:\n  A: {{Type: AWS::SQS::Queue}}\n"
    )

    assert [each.allowed for each in read_text(tmp_path / "large.yaml").faults] == ["at most 1048576"]
