"""What a deployment may be: conditions decided by parameters, the same over all templates, both branches looked at."""

from typing import Any

import pytest
import yaml

from holdfast.validation.cloudformation import Graph, Intrinsics, Template
from holdfast.validation.from_template import MOST, Conditions, Scenario, scenarios
from holdfast.validation.template_files import read_yaml


def template(text: str, **others: Any) -> Template:
    return Template(body=read_yaml(text).body, **others)


def found(*templates: Template) -> list[Scenario]:
    return list(scenarios(templates))


def differences(*templates: Template) -> list[dict[str, str]]:
    return [dict(each.differs) for each in found(*templates)]


def properties(scenario: Scenario, logical_id: str, index: int = 0) -> Any:
    one = scenario.templates[index]
    body = one.body["Resources"][logical_id]["Properties"]
    return Intrinsics(Graph(scenario.templates)).resolve(one, body)


SIZES = """
Parameters:
  Size: {Type: String, Default: small, AllowedValues: [small, large, huge]}
  Name: {Type: String, Default: ""}
Conditions:
  Large: !Equals [!Ref Size, large]
  Named: !Not [!Equals [!Ref Name, ""]]
  Both: !And [!Condition Large, !Condition Named]
Resources:
  Group:
    Type: AWS::SQS::Queue
    Properties:
      Type: !If [Large, ml.p5.48xlarge, ml.g5.xlarge]
      Size: !Ref Size
      Name: !If [Named, !Ref Name, !Ref AWS::NoValue]
      Tags: [a, !If [Both, b, !Ref AWS::NoValue], c]
  Extra:
    Type: AWS::SQS::Queue
    Condition: Both
"""


def test_the_first_scenario_has_the_defaults_and_each_other_says_what_differs() -> None:
    assert differences(template(SIZES)) == [
        {},
        {"Size": '"large"'},
        {"Name": "another value"},
        {"Size": '"large"', "Name": "another value"},
    ]


def test_all_branches_of_one_scenario_are_decided_by_the_same_values() -> None:
    usual, large, named, both = found(template(SIZES))

    assert properties(usual, "Group") == {"Type": "ml.g5.xlarge", "Size": "small", "Tags": ["a", "c"]}
    assert properties(large, "Group") == {"Type": "ml.p5.48xlarge", "Size": "large", "Tags": ["a", "c"]}
    assert properties(named, "Group")["Type"] == "ml.g5.xlarge"
    assert properties(both, "Group")["Tags"] == ["a", "b", "c"]
    assert ["Extra" in each.templates[0].body["Resources"] for each in (usual, large, named, both)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_value_that_is_given_decides_and_leaves_nothing_open() -> None:
    own = template(SIZES, values={"Size": "large", "Name": "x"})

    (only,) = found(own)

    assert properties(only, "Group") == {
        "Type": "ml.p5.48xlarge",
        "Size": "large",
        "Name": "x",
        "Tags": ["a", "b", "c"],
    }


def test_a_comparison_that_no_parameter_decides_is_looked_at_both_ways() -> None:
    own = template(
        """
        Conditions: {Chosen: !Not [!Equals [!Join ["", !Ref Ids], ""]]}
        Parameters: {Ids: {Type: List<AWS::EC2::Subnet::Id>}}
        Resources: {A: {Type: T, Properties: {B: !If [Chosen, 1, 2]}}}
        """.replace("\n        ", "\n")
    )

    assert [properties(each, "A") for each in found(own)] == [{"B": 1}, {"B": 2}]
    assert differences(own)[1] == {'(Join("", Ids) == "")': "true"}


def test_a_condition_on_the_region_sets_the_region() -> None:
    text = """
Conditions: {West: !Equals [!Ref AWS::Region, us-west-2]}
Resources: {A: {Type: T, Properties: {B: !If [West, !Ref AWS::Region, other]}}}
"""
    assert [properties(each, "A")["B"] for each in found(template(text))] == ["other", "us-west-2"]
    assert [properties(each, "A")["B"] for each in found(template(text, region="us-west-2"))] == ["us-west-2"]
    assert [properties(each, "A")["B"] for each in found(template(text, region="eu-west-1"))] == ["other"]


def test_conditions_that_no_resource_depends_on_make_no_scenario() -> None:
    own = template(
        """
Parameters: {P: {Type: String, Default: a}}
Conditions: {Used: !Equals [!Ref P, b]}
Resources: {A: {Type: T}, CDKMetadata: {Type: AWS::CDK::Metadata, Condition: Used}}
Outputs: {O: {Condition: Used, Value: x}}
"""
    )

    assert differences(own) == [{}]


def test_scenarios_that_come_to_the_same_resources_are_looked_at_once() -> None:
    own = template(
        """
Parameters: {P: {Type: String, Default: a}}
Conditions: {Used: !Equals [!Ref P, b]}
Resources: {A: {Type: T, Properties: {B: !If [Used, 1, 1]}}}
"""
    )

    assert differences(own) == [{}]


def test_the_number_of_scenarios_is_bounded_and_what_is_left_out_is_counted() -> None:
    names = [f"P{n}" for n in range(12)]
    own = Template(
        body={
            "Parameters": {name: {"Type": "String", "Default": "a"} for name in names},
            "Conditions": {f"C{name}": {"Fn::Equals": [{"Ref": name}, "b"]} for name in names},
            "Resources": {name: {"Type": "T", "Condition": f"C{name}"} for name in names},
        }
    )

    every = found(own)

    assert len(every) == MOST
    assert every[0].left_out == 2**12 - MOST
    seen = {name for each in every for name in each.templates[0].body["Resources"]}
    assert seen == set(names), "each condition holds in some scenario"


PARENT = """
Parameters: {Create: {Type: String, Default: "true"}}
Conditions: {Make: !Equals [!Ref Create, "true"]}
Resources:
  Child:
    Type: AWS::CloudFormation::Stack
    Condition: Make
    Properties: {TemplateURL: child.yaml, Parameters: {With: !Ref Create, Fixed: x, Kept: !GetAtt Queue.Arn}}
  Queue: {Type: AWS::SQS::Queue, Properties: {Name: !Ref Create}}
"""
CHILD = """
Parameters: {With: {Type: String}, Fixed: {Type: String, Default: y}, Kept: {Type: String, Default: ""}}
Conditions:
  Made: !Equals [!Ref With, "true"]
  X: !Equals [!Ref Fixed, x]
  Has: !Not [!Equals [!Ref Kept, ""]]
Resources:
  A: {Type: T, Properties: {Made: !If [Made, 1, 2], X: !If [X, 1, 2], Has: !If [Has, 1, 2], Fixed: !Ref Fixed}}
"""


def test_a_nested_stack_takes_what_it_is_handed_and_is_gone_where_it_is_not_made() -> None:
    parent = template(PARENT, path="parent.yaml")
    child = template(CHILD, path="child.yaml", parent=("parent.yaml", "Child"))

    every = found(parent, child)

    made = [each for each in every if len(each.templates) == 2]
    assert [each.differs for each in every if len(each.templates) == 1] == [{"Create": "another value"}]
    assert [properties(each, "A", 1) for each in made] == [
        {"Made": 1, "X": 1, "Has": 2, "Fixed": "x"},
        {"Made": 1, "X": 1, "Has": 1, "Fixed": "x"},
    ]


HANDING = """
Parameters: {Own: {Type: String, Default: ""}}
Resources:
  Child: {Type: "AWS::CloudFormation::Stack", Properties: {Parameters: {Own: !Ref Own}}}
"""
EMPTY = """
Parameters: {Own: {Type: String, Default: ""}}
Conditions: {Make: !Equals [!Ref Own, ""]}
Resources:
  Role: {Type: T, Condition: Make}
"""


def test_a_nested_stack_is_handed_an_empty_default_through_any_number_of_stacks() -> None:
    top = template(HANDING, path="top.yaml")
    middle = template(HANDING, path="middle.yaml", parent=("top.yaml", "Child"))
    below = template(EMPTY, path="below.yaml", parent=("middle.yaml", "Child"))

    made = [
        (dict(each.differs), "Role" in each.templates[2].section("Resources")) for each in found(top, middle, below)
    ]

    assert made == [({}, True), ({"Own": "another value"}, False)]


@pytest.mark.parametrize(
    ("conditions", "places"),
    [
        ({"A": {"Condition": "B"}, "B": {"Condition": "A"}}, ["Conditions.A", "Conditions.B"]),
        ({"A": {"Fn::Not": [{"Condition": "A"}]}}, ["Conditions.A"]),
        ({"A": {"Fn::Or": [{"Condition": "None"}]}}, []),
        ({}, []),
    ],
)
def test_conditions_in_a_circle_are_told_and_missing_ones_are_never_followed(
    conditions: dict[str, Any], places: list[str]
) -> None:
    own = Template(
        body={
            "Conditions": conditions,
            "Resources": {"R": {"Type": "T", "Condition": "A", "Properties": {"P": {"Fn::If": ["A", 1, 2]}}}},
        }
    )

    assert [fault.path for fault in Conditions(own).faults()] == places
    assert "R" in found(own)[0].templates[0].body["Resources"]


@pytest.mark.parametrize(
    "expression",
    [None, [], "A", 3, {}, {"Fn::Equals": []}, {"Fn::Equals": [1]}, {"Fn::If": []}, {"Fn::And": 3}, {"Ref": "P"}],
)
def test_a_condition_that_cannot_be_read_is_not_decided(expression: Any) -> None:
    body = {
        "Conditions": {"A": expression},
        "Resources": {"R": {"Type": "T", "Properties": {"P": {"Fn::If": ["A", 1, 2]}}}},
    }

    assert len(found(Template(body=body))) >= 1


def test_lines_of_a_chosen_branch_are_those_of_the_branch() -> None:
    from holdfast.validation.cloudformation import line_of

    text = """Parameters: {P: {Type: String, Default: a}}
Conditions: {C: !Equals [!Ref P, b]}
Resources:
  A:
    Type: T
    Properties:
      Groups: !If
        - C
        - - Name: one
        - - Name: two
            Count: 3
"""
    usual, other = found(template(text))

    assert line_of(usual.templates[0].body, "Resources.A.Properties.Groups.0.Count") == 11
    assert line_of(other.templates[0].body, "Resources.A.Properties.Groups.0.Name") == 9


def test_a_loop_is_written_out() -> None:
    from holdfast.validation.template_files import unrolled

    body = unrolled(
        read_yaml(
            yaml.safe_dump(
                {
                    "Transform": "AWS::LanguageExtensions",
                    "Parameters": {"Zones": {"Type": "CommaDelimitedList", "Default": "a,b"}},
                    "Resources": {
                        "Fn::ForEach::Outer": [
                            "Zone",
                            {"Ref": "Zones"},
                            {
                                "Fn::ForEach::Inner": [
                                    "Kind",
                                    ["X", "10.0.0.0"],
                                    {"Subnet${Zone}&{Kind}": {"Type": "T", "Properties": {"N": {"Ref": "Zone"}}}},
                                ]
                            },
                        ]
                    },
                }
            )
        ).body
    )

    assert {name: each["Properties"]["N"] for name, each in body["Resources"].items()} == {
        "SubnetaX": "a",
        "Subneta10000": "a",
        "SubnetbX": "b",
        "Subnetb10000": "b",
    }


def test_a_reference_that_a_function_makes_stays_as_it_is_in_a_loop() -> None:
    from holdfast.validation.template_files import unrolled

    made = {"Ref": {"Fn::FindInMap": ["Names", "a", "b"]}}
    fragment = {"R${Each}": {"Type": "T", "Properties": {"N": made}}}
    resources = {"Fn::ForEach::Loop": ["Each", ["A"], fragment]}
    body = read_yaml(yaml.safe_dump({"Transform": "AWS::LanguageExtensions", "Resources": resources})).body

    assert unrolled(body)["Resources"]["RA"]["Properties"]["N"] == made


def test_a_loop_without_end_in_sight_stays_as_it_is() -> None:
    from holdfast.validation.template_files import unrolled

    fragment: Any = {"R${A0}": {"Type": "T"}}
    for level in range(6):
        fragment = {f"Fn::ForEach::L{level}": [f"A{level}", [str(n) for n in range(10)], fragment]}
    body = read_yaml(yaml.safe_dump({"Transform": "AWS::LanguageExtensions", "Resources": fragment})).body

    assert unrolled(body) is body
