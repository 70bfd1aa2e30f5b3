"""
Conditions of policy statements. Pure.

Source: IAM user guide, "IAM JSON policy elements: Condition operators"
(reference_policies_elements_condition_operators) and "Conditions with multiple context keys or values".
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

Context = Mapping[str, str | Sequence[str]]
VARIABLE = re.compile(r"\$\{([^},]+)(?:,\s*'([^']*)')?\}")


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def matches(pattern: str, text: str, *, case: bool = True) -> bool:
    """Return True if a text matches a pattern with ``*`` and ``?``."""
    if not case:
        pattern, text = pattern.lower(), text.lower()
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(letter) or re.escape(letter) for letter in pattern), re.S)


def with_variables(text: str, context: Context) -> str | None:
    """Fill in a policy text's variables; None if one has neither value nor default."""
    missing = False

    def filled(found: re.Match[str]) -> str:
        nonlocal missing
        if found[1] in ("*", "?", "$"):
            return found[1]
        values = listed(_get(context, found[1]) or ([found[2]] if found[2] is not None else []))
        missing = missing or len(values) != 1
        return str(values[0]) if values else ""

    result = VARIABLE.sub(filled, text)
    return None if missing else result


def hold(conditions: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    """Return True if all conditions of a statement hold. Raise ValueError for an unknown operator."""
    return all(
        _holds(operator, key, [str(_plain(value)) for value in listed(desired)], context)
        for operator, keys in conditions.items()
        for key, desired in keys.items()
    )


def _holds(operator: str, key: str, desired: list[str], context: Context) -> bool:
    name, every = operator, False
    for prefix in ("ForAllValues:", "ForAnyValue:"):
        if name.startswith(prefix):
            name, every = name.removeprefix(prefix), prefix == "ForAllValues:"
    given = _get(context, key)
    if name == "Null":
        return (given is None) == (desired[0].lower() == "true")
    optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    test, negative = _operator(name)
    if given is None:
        return optional or negative or every
    filled = [text for text in (with_variables(one, context) for one in desired) if text is not None]

    def one(value: str) -> bool:
        found = any(test(pattern, value) for pattern in filled)
        return not found if negative else found

    values = [one(str(value)) for value in listed(given)]
    return all(values) if every or (negative and not operator.startswith("ForAnyValue:")) else any(values)


def _get(context: Context, key: str) -> str | Sequence[str] | None:
    return next((value for name, value in context.items() if name.lower() == key.lower()), None)


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _operator(name: str) -> tuple[Callable[[str, str], bool], bool]:
    for positive, negative in OPPOSITES.items():
        if name == negative:
            return TESTS[positive], True
    if name not in TESTS:
        raise ValueError(f"condition operator {name} is not one of IAM's")
    return TESTS[name], False


def _date(text: str) -> datetime:
    if re.fullmatch(r"\d+", text):
        return datetime.fromtimestamp(int(text), tz=UTC)
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _like_arn(pattern: str, text: str) -> bool:
    desired, given = pattern.split(":", 5), text.split(":", 5)
    return len(desired) == len(given) and all(matches(one, other) for one, other in zip(desired, given, strict=True))


def _in_network(network: str, address: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)


TESTS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda desired, given: desired == given,
    "StringEqualsIgnoreCase": lambda desired, given: desired.lower() == given.lower(),
    "StringLike": matches,
    "ArnEquals": _like_arn,
    "ArnLike": _like_arn,
    "Bool": lambda desired, given: desired.lower() == given.lower(),
    "BinaryEquals": lambda desired, given: desired == given,
    "IpAddress": _in_network,
    "NumericEquals": lambda desired, given: float(given) == float(desired),
    "NumericLessThan": lambda desired, given: float(given) < float(desired),
    "NumericLessThanEquals": lambda desired, given: float(given) <= float(desired),
    "NumericGreaterThan": lambda desired, given: float(given) > float(desired),
    "NumericGreaterThanEquals": lambda desired, given: float(given) >= float(desired),
    "DateEquals": lambda desired, given: _date(given) == _date(desired),
    "DateLessThan": lambda desired, given: _date(given) < _date(desired),
    "DateLessThanEquals": lambda desired, given: _date(given) <= _date(desired),
    "DateGreaterThan": lambda desired, given: _date(given) > _date(desired),
    "DateGreaterThanEquals": lambda desired, given: _date(given) >= _date(desired),
}

OPPOSITES = {
    "StringEquals": "StringNotEquals",
    "StringEqualsIgnoreCase": "StringNotEqualsIgnoreCase",
    "StringLike": "StringNotLike",
    "ArnEquals": "ArnNotEquals",
    "ArnLike": "ArnNotLike",
    "IpAddress": "NotIpAddress",
    "NumericEquals": "NumericNotEquals",
    "DateEquals": "DateNotEquals",
}
