"""Rules of composite alarms, by the examples of PutCompositeAlarm in CloudWatch's API reference."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.aws.monitoring.composite_rules import CompositeRuleError, in_order, parse_rule

STATES = ("OK", "ALARM", "INSUFFICIENT_DATA")


def holding(rule: str, *names: str) -> list[tuple[str, ...]]:
    """The states of these alarms in which a rule holds."""
    read = parse_rule(rule)
    all_states = product(STATES, repeat=len(names))
    return [states for states in all_states if read.holds(dict(zip(names, states, strict=True)).get)]


def test_the_examples_of_the_reference() -> None:
    cpu, disk = "CPUUtilizationTooHigh", "DiskReadOpsTooHigh"
    assert holding(f"ALARM({cpu}) AND ALARM({disk})", cpu, disk) == [("ALARM", "ALARM")]
    assert holding(f"ALARM({cpu}) AND NOT ALARM(DeploymentInProgress)", cpu, "DeploymentInProgress") == [
        ("ALARM", "OK"),
        ("ALARM", "INSUFFICIENT_DATA"),
    ]
    both = f"(ALARM({cpu}) OR ALARM({disk})) AND OK(NetworkOutTooHigh)"
    assert ("OK", "ALARM", "OK") in holding(both, cpu, disk, "NetworkOutTooHigh")
    assert ("ALARM", "ALARM", "ALARM") not in holding(both, cpu, disk, "NetworkOutTooHigh")


def test_names_and_arns_with_quotation_marks_and_without() -> None:
    arn = "arn:aws:cloudwatch:us-west-2:123456789012:alarm:a"
    assert parse_rule(f'ALARM("with space") OR OK({arn}) OR INSUFFICIENT_DATA("with \\"quotes\\"")').children == (
        "with space",
        arn,
        'with "quotes"',
    )


@pytest.mark.parametrize(
    ("rule", "holds"), [("TRUE", True), ("FALSE", False), ("NOT FALSE", True), ("NOT NOT FALSE", False)]
)
def test_a_rule_without_alarms(rule: str, *, holds: bool) -> None:
    assert parse_rule(rule).holds({}.get) is holds


def test_and_binds_before_or() -> None:
    assert parse_rule("TRUE OR FALSE AND FALSE").holds({}.get)
    assert not parse_rule("(TRUE OR FALSE) AND FALSE").holds({}.get)


def test_an_alarm_that_is_not_there_is_in_no_state() -> None:
    assert holding("ALARM(a) OR OK(a) OR INSUFFICIENT_DATA(a)") == []


@pytest.mark.parametrize(
    "rule",
    ["", "ALARM", "ALARM()", "ALARM(a", "ALARM(a))", "ALARM(a) ALARM(b)", "alarm(a)", "AND", "ALARM(a) AND",
     '"ALARM"(a)', 'ALARM("a)', "(" * 600, "ALARM(a) OR " * 501 + "TRUE", " " * 10_241 + "TRUE",
     " OR ".join(f"ALARM(a{number})" for number in range(101))],
)  # fmt: skip
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(CompositeRuleError):
        parse_rule(rule)


@given(st.text(alphabet='ANDORTLM()a" ', max_size=40))
def test_any_text_is_a_rule_or_is_refused(text: str) -> None:
    try:
        rule = parse_rule(text)
    except CompositeRuleError:
        return
    assert rule.holds({}.get) in (True, False)


def test_composite_alarms_come_after_those_that_they_name_and_cycles_not_at_all() -> None:
    children = {
        "top": ["middle", "metric"],
        "middle": ["low"],
        "low": ["metric"],
        "a": ["b"],
        "b": ["a"],
        "on-a": ["a"],
    }
    assert in_order(children) == ["low", "middle", "top"]
    assert in_order({"self": ["self"]}) == []
