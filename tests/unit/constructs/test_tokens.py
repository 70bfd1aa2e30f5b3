"""Values that only the deployment knows are told from plain ones, however the CDK writes them."""

from typing import Any

import aws_cdk as cdk
import pytest

from holdfast_constructs.cdk import has_token, json_text

REFERENCE = {"Ref": "Made"}
TOKENS = {
    "text": lambda: cdk.Token.as_string(REFERENCE),
    "part of a text": lambda: f"arn:{cdk.Aws.PARTITION}:iam",
    "list": lambda: cdk.Token.as_list(REFERENCE),
    "number": lambda: cdk.Token.as_number(REFERENCE),
    "intrinsic": lambda: cdk.Fn.get_att("Made", "Arn"),
    "deep down": lambda: {"a": [{"b": cdk.Token.as_number(REFERENCE)}]},
    "a name": lambda: {cdk.Token.as_string(REFERENCE): "value"},
}


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_found(kind: str) -> None:
    assert has_token(TOKENS[kind]())


@pytest.mark.parametrize(
    "value", ["", "$", "${Token", "{[Token]}", 0, -1, 1e289, 0.5, True, None, [], {}, {"a": [1, "b", None]}]
)
def test_a_plain_value_has_no_token(value: Any) -> None:
    assert not has_token(value)


@pytest.mark.parametrize("value", [{}, {"a": [1, True, "Ä\n\"'"], "b": {"c": 0.5}}, ["${AWS::Region}"]])
def test_a_plain_value_is_the_json_that_the_cdk_makes_of_it(value: Any) -> None:
    stack = cdk.Stack()

    assert json_text(stack, value) == stack.resolve(stack.to_json_string(value))


def test_nothing_stays_null_which_takes_a_default_out_of_a_chart() -> None:
    assert json_text(cdk.Stack(), {"image": None}) == '{"image":null}'


def test_a_value_with_tokens_is_put_together_by_cloudformation() -> None:
    stack = cdk.Stack()
    text = json_text(stack, {"arn": cdk.Token.as_string(REFERENCE), "count": 2})

    assert stack.resolve(text) == {"Fn::Join": ["", ['{"arn":"', REFERENCE, '","count":2}']]}


def test_an_intrinsic_inside_a_value_is_put_together_too() -> None:
    stack = cdk.Stack()
    text = json_text(stack, {"arn": cdk.Fn.get_att("Made", "Arn")})

    assert stack.resolve(text) == {"Fn::Join": ["", ['{"arn":"', {"Fn::GetAtt": ["Made", "Arn"]}, '"}']]}
