"""Filter patterns of CloudWatch Logs, by the examples of its user guide (FilterAndPatternSyntax)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.aws.monitoring.filter_patterns import (
    FilterPatternError,
    LogEvent,
    number_at,
    parse_pattern,
    text_at,
)

TRAIL = json.dumps(
    {
        "eventType": "UpdateTrail",
        "sourceIPAddress": "111.111.111.111",
        "arrayKey": ["value", "another value"],
        "objectList": [{"name": "a", "id": 1}, {"name": "b", "id": 2}],
        "SomeObject": None,
        "cluster.name": "c",
    }
)
USERS = json.dumps(
    {
        "user": {"id": 1, "email": "John.Stiles@example.com"},
        "users": [{"id": 2, "email": "John.Doe@example.com"}, {"id": 3, "email": "Jane.Doe@example.com"}],
        "actions": ["GET", "PUT", "DELETE"],
        "coordinates": [[0, 1, 2], [4, 5, 6], [7, 8, 9]],
    }
)
REQUEST = '127.0.0.1 Prod frank [10/Oct/2000:13:25:15 -0700] "GET /index.html HTTP/1.0" 404 1534'
NUMBERS = json.dumps(
    {"bandwidth": 80, "latency": 40, "refreshRate": 60, "responseTime": 5, "errorCode": 400, "number": [1000]}
)


@pytest.mark.parametrize(
    ("pattern", "message", "matches"),
    [
        ("", "anything", True),
        ('" "', "two words", True),
        ("ERROR", "[ERROR 401] UNAUTHORIZED REQUEST", True),
        ("ERROR", "[error 401]", False),
        ("ERROR ARGUMENTS", "[ERROR 419] MISSING ARGUMENTS", True),
        ("ERROR ARGUMENTS", "[ERROR 400] BAD REQUEST", False),
        ('"INTERNAL SERVER ERROR"', "[ERROR 500] INTERNAL SERVER ERROR", True),
        ('"INTERNAL SERVER ERROR"', "[ERROR 500] INTERNAL ERROR OF A SERVER", False),
        ("{ $.eventType = \"UpdateTrail\" }", TRAIL, True),
        ("{ $.eventType = UpdateTrail }", TRAIL, True),
        ("{ $.eventType = \"Update*\" }", TRAIL, True),
        ("{ $.eventType != \"UpdateTrail\" }", TRAIL, False),
        ("{ $.sourceIPAddress != 123.123.* }", TRAIL, True),
        ("{ $.eventType = \"UpdateTrail\" }", "no JSON", False),
        ("{ $.absent != 1 }", TRAIL, False),
        ("{ $.bandwidth > 75 }", NUMBERS, True),
        ("{ $.latency < 50 }", NUMBERS, True),
        ("{ $.refreshRate >= 60 }", NUMBERS, True),
        ("{ $.responseTime <= 5 }", NUMBERS, True),
        ("{ $.errorCode = 400}", NUMBERS, True),
        ("{ $.errorCode != 500 }", NUMBERS, True),
        ("{ ($.user.id = 1) && ($.user.email = \"John.Stiles@example.com\") }", USERS, True),
        ("{ $.user.id = 1 || $.user.id = 2 && $.user.email = \"nonmatch\" }", USERS, True),
        ("{ ($.user.id = 1 || $.user.id = 2) && $.user.email = \"nonmatch\" }", USERS, False),
        ("{ $.user.id = * }", USERS, True),
        ("{ $.user.name = * }", USERS, False),
    ],
)  # fmt: skip
def test_a_pattern_matches_what_the_guide_says(pattern: str, message: str, matches: bool) -> None:
    assert parse_pattern(pattern)(LogEvent(message)) is matches


@pytest.mark.parametrize(
    "pattern",
    ["{", "{ $.a }", "{ $ = 1 }", "{ $.a = }", "{ $.a = 1", "{ $.a > word }", '"open', "{ $.a = 1 } more",
     "{ " + "(" * 60 + "$.a = 1" + ")" * 60 + " }", "a" * 1025,
     "%A+%", "{ $.a = %A+% }", "[a, b]", "?a ?b", "-a", "{ $.a IS NULL }", "{ $.a NOT EXISTS }", "{ $.a[0] = 1 }",
     "{ $.* = 1 }"],
)  # fmt: skip
def test_an_invalid_or_unsupported_pattern_is_rejected(pattern: str) -> None:
    with pytest.raises(FilterPatternError):
        parse_pattern(pattern)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_a_pattern_or_is_refused(pattern: str, message: str) -> None:
    try:
        found = parse_pattern(pattern)
    except FilterPatternError:
        return
    assert found(LogEvent(message)) in (True, False)


@pytest.mark.parametrize(
    ("selector", "value"),
    [
        ("$.detail.step", 7.0),
        ("$.duration_s", 1.5),
        ("$.text", 12.0),
        ("$.word", None),
        ("$.absent", None),
        ("$", None),
    ],
)
def test_a_metric_takes_its_value_from_the_event(selector: str, value: float | None) -> None:
    message = json.dumps({"detail": {"step": 7}, "duration_s": 1.5, "text": "12", "word": "x"})
    assert number_at(LogEvent(message), selector) == value


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ("$.node.name", "i-1"),
        ("$.step", "7"),
        ("$.ok", "true"),
        ("$.all[1]", None),
        ("$.node", None),
        ("$.none", None),
        ("node", None),
    ],
)
def test_a_dimension_is_a_scalar_of_the_event(selector: str, text: str | None) -> None:
    content = {"node": {"name": "i-1"}, "step": 7, "ok": True, "all": ["a", "b"], "none": None}
    assert text_at(LogEvent(json.dumps(content)), selector) == text


def test_a_message_is_read_as_json_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    loads = json.loads

    def counted(text: str) -> object:
        read.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", counted)
    event = LogEvent('{"a": 1, "b": 2}')
    assert [parse_pattern(f"{{ $.{name} = {value} }}")(event) for name, value in (("a", 1), ("b", 3))] == [
        True,
        False,
    ]
    assert number_at(event, "$.b") == 2.0
    assert read == [event.message]
