"""Policies decide as IAM's user guide says, in its words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.aws.iam import IamPolicy, PermissionRequest, decide, hold, matches

ROLE = "arn:aws:sts::123456789012:assumed-role/nodes/i-1"
OBJECT = "arn:aws:s3:::sagemaker-lab/on_create.sh"


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {**allow(action, resource, **more), "Effect": "Deny"}


def policy(*statements: dict[str, Any], arn: str = "") -> IamPolicy:
    return IamPolicy(document={"Version": "2012-10-17", "Statement": list(statements)}, arn=arn)


def asked(action: str = "s3:GetObject", resource: str = OBJECT, **context: str) -> PermissionRequest:
    named = {key.replace("_", ":"): value for key, value in context.items()}
    return PermissionRequest(principal=ROLE, action=action, resource=resource, context=named, aliases=("the-role",))


def test_what_nobody_allows_is_denied_in_iams_words():
    told = decide(asked(), identity=[policy(allow("s3:PutObject"))])

    assert not told.allowed
    assert told.reason == (
        f"User: {ROLE} is not authorized to perform: s3:GetObject on resource: {OBJECT} "
        "because no identity-based policy allows the s3:GetObject action"
    )


def test_an_action_without_a_resource_is_told_without_one():
    told = decide(asked("ec2:DescribeSubnets", "*"), identity=[])

    assert told.reason == (
        f"User: {ROLE} is not authorized to perform: ec2:DescribeSubnets "
        "because no identity-based policy allows the ec2:DescribeSubnets action"
    )


def test_an_explicit_deny_names_the_policy():
    mine = "arn:aws:iam::123456789012:policy/mine"

    told = decide(asked(), identity=[policy(allow()), policy(deny("s3:Get*"), arn=mine)])

    assert told.reason.endswith(f"with an explicit deny in an identity-based policy: {mine}")


def test_a_boundary_that_does_not_allow_is_named():
    told = decide(asked(), identity=[policy(allow())], boundary=[policy(allow("ec2:*"))])

    assert told.reason.endswith("because no permissions boundary allows the s3:GetObject action")


def test_a_bucket_policy_alone_lets_a_role_of_the_account_in():
    theirs = policy(allow("s3:GetObject", Principal={"AWS": "the-role"}))

    assert decide(asked(), identity=[], resource=[theirs]).allowed
    assert not decide(asked(), identity=[], resource=[policy(allow(Principal={"AWS": "another"}))]).allowed


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        (allow("S3:getobject"), True),
        (allow("s3:Get?bject"), True),
        (allow(["ec2:*", "s3:*Object"]), True),
        (allow("s3:*", "arn:aws:s3:::sagemaker-*"), True),
        (allow("s3:*", "arn:aws:s3:::other/*"), False),
        ({"Effect": "Allow", "NotAction": "ec2:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}, False),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::sagemaker-*"}, False),
        (allow("s3:*", "arn:aws:s3:::${aws:lab}/*"), True),
        (allow("s3:*", "arn:aws:s3:::${aws:unknown}/*"), False),
        (allow("s3:*", "arn:aws:s3:::${aws:unknown, 'sagemaker-lab'}/*"), True),
        (allow(Condition={"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}), True),
        (allow(Condition={"StringEquals": {"aws:ResourceAccount": "999999999999"}}), False),
    ],
)
def test_a_statement_is_about_what_its_patterns_match(statement, allowed):
    request = asked(aws_lab="sagemaker-lab", aws_PrincipalAccount="1", aws_ResourceAccount="1")

    assert decide(request, identity=[policy(statement)]).allowed is allowed


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"StringEquals": {"a:Key": ["x", "v"]}}, True),
        ({"StringNotEquals": {"a:key": "v"}}, False),
        ({"StringNotEquals": {"a:missing": "v"}}, True),
        ({"StringEquals": {"a:missing": "v"}}, False),
        ({"StringEqualsIfExists": {"a:missing": "v"}}, True),
        ({"StringLike": {"a:key": "?"}}, True),
        ({"Null": {"a:missing": "true"}}, True),
        ({"Null": {"a:key": True}}, False),
        ({"Bool": {"a:flag": True}}, True),
        ({"NumericLessThan": {"a:number": 10}}, True),
        ({"DateGreaterThan": {"a:date": "2026-01-01T00:00:00Z"}}, True),
        ({"IpAddress": {"a:ip": "10.0.0.0/8"}}, True),
        ({"NotIpAddress": {"a:ip": "10.0.0.0/8"}}, False),
        ({"ArnLike": {"a:arn": "arn:aws:iam::*:role/n*"}}, True),
        ({"ArnLike": {"a:arn": "arn:*"}}, False),
        ({"ForAnyValue:StringEquals": {"a:many": ["y", "q"]}}, True),
        ({"ForAllValues:StringEquals": {"a:many": ["x", "y", "z"]}}, True),
        ({"ForAllValues:StringEquals": {"a:many": ["x"]}}, False),
        ({"ForAllValues:StringEquals": {"a:missing": ["x"]}}, True),
        ({"StringEquals": {"a:key": "v"}, "Bool": {"a:flag": "false"}}, False),
    ],
)
def test_a_condition_holds_as_its_operator_says(condition, holds):
    context = {
        "A:Key": "v",
        "a:flag": "true",
        "a:number": "7",
        "a:date": "2026-11-22T00:00:00Z",
        "a:ip": "10.1.2.3",
        "a:arn": "arn:aws:iam::123456789012:role/nodes",
        "a:many": ["x", "y"],
    }

    assert hold(condition, context) is holds


def test_an_operator_that_there_is_not_is_no_condition():
    with pytest.raises(ValueError, match="StringSimilar"):
        hold({"StringSimilar": {"a": "b"}}, {"a": "b"})


ACTIONS = st.sampled_from(["s3:GetObject", "s3:Get*", "s3:*", "ec2:*", "*", "logs:PutLogEvents"])
STATEMENTS = st.builds(
    lambda effect, action: {**allow(action), "Effect": effect}, st.sampled_from(["Allow", "Deny"]), ACTIONS
)
POLICIES = st.lists(st.builds(policy, STATEMENTS), max_size=5)


@given(POLICIES)
def test_a_deny_wins_whatever_is_allowed(found):
    assert not decide(asked(), identity=[*found, policy(deny("s3:*"))]).allowed


@given(POLICIES)
def test_the_order_of_policies_makes_no_difference(found):
    assert decide(asked(), identity=found).allowed == decide(asked(), identity=found[::-1]).allowed


@given(POLICIES, POLICIES)
def test_a_boundary_never_allows_more(found, boundary):
    if decide(asked(), identity=found, boundary=boundary).allowed:
        assert decide(asked(), identity=found).allowed


@given(POLICIES)
def test_an_allow_never_takes_anything_away(found):
    if decide(asked(), identity=found).allowed:
        assert decide(asked(), identity=[*found, policy(allow("ec2:*"))]).allowed


@given(st.text(alphabet="ab.:/-[](){}+^$|\\", max_size=12))
def test_a_pattern_is_no_regular_expression(text):
    assert matches(text, text)
    assert matches("*", text)
    assert matches(text + "?", text) is False
