"""What a signal means: rows of data, each with its source, and the rule that finds the row of a signal."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional, Union

from holdfast_agent.signals import Signal
from holdfast_common import FAULTS, Fault, Remedy, Severity, When, fault_named

_DATA = ("xids.jsonl", "conditions.jsonl")
_NAMES = frozenset(fault.name for fault in FAULTS)
_KEYS = frozenset(
    [
        "condition",
        "code",
        "fault",
        "severity",
        "remedy",
        "when",
        "often",
        "jobs",
        "again",
        "cancels",
        "holds_s",
        "joins",
        "scope",
        "check",
        "asks",
        "over",
        "variants",
        "source",
        "date",
    ]
)


class PolicyError(ValueError):
    """A row of a policy is wrong; the message says which and why."""


@dataclass(frozen=True)
class Change:
    """What a row asks for instead, once something came often enough."""

    remedy: Remedy
    when: When
    within_s: float
    count: int = 1
    check: bool = False


@dataclass(frozen=True)
class AtLeast:
    """A fact that is a number, and not below this one."""

    number: float


@dataclass(frozen=True)
class Row:
    """
    What one condition means.

    Args:
        key: Condition, with ``:code`` where it is about one code.
        fault: Of the taxonomy, which has what the row does not say itself.
        often: Asked for instead when it is seen so many times on a device.
        jobs: The same, counted in jobs that it ended.
        again: Asked for instead when it comes back after the reboot that should have cured it.
        cancels: Keys of conditions that it ends.
        holds_s: How long it has to hold before it asks for anything.
        joins: Name of a group: all its conditions of one moment are one incident, whatever their devices.
        scope: ``node``: all devices of the node are one incident.
        check: A deep check is due at the boundary.
        asks: The signal's facts ``remedy`` and ``when`` say what to do.
        over: It tells that nothing is wrong any more.
        variants: Fact, its value or the least of them, and the row that counts then.
        source: Where the row comes from; ``date`` says as of when.
    """

    key: str
    fault: Fault
    severity: Severity
    remedy: Remedy
    when: When
    often: Optional[Change] = None
    jobs: Optional[Change] = None
    again: Optional[Change] = None
    cancels: tuple[str, ...] = ()
    holds_s: float = 0.0
    joins: str = ""
    scope: str = ""
    check: bool = False
    asks: bool = False
    over: bool = False
    variants: "tuple[tuple[str, Union[str, int, float, bool, AtLeast], Row], ...]" = ()
    source: str = ""
    date: str = ""


class Policy:
    """Rows by their keys. ``standard()`` is what is shipped; an administrator's rows go over it."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: Mapping[str, Row] = {row.key: row for row in rows}

    @classmethod
    def standard(cls) -> "Policy":
        """The shipped rows."""
        here = Path(__file__).parent
        texts = [(here / name).read_text("utf-8") for name in _DATA]
        return cls(_row(json.loads(line)) for text in texts for line in text.splitlines())

    def extended(self, text: str) -> "tuple[Policy, tuple[str, ...]]":
        """This policy under the rows of a text, one JSON object a line; and which lines were refused, and why."""
        rows, problems = dict(self.rows), []
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                row = _row(_object(line))
            except PolicyError as error:
                problems.append(f"line {number}: {error}")
            else:
                rows[row.key] = row
        return Policy(rows.values()), tuple(problems)

    def row(self, signal: Signal) -> Row:
        """The row that a signal is judged by; a condition without one is told and asks for nothing."""
        condition = signal.condition
        row = self.rows.get(f"{condition}:{signal.code}") or self.rows.get(condition)
        if row is None:
            name = condition if condition in _NAMES else "unknown-condition"
            fault = fault_named(name)
            return Row(key=condition, fault=fault, severity=fault.severity, remedy=fault.remedy, when=fault.when)
        for fact, value, variant in row.variants:
            if _holds(signal.facts.get(fact), value):
                return variant
        return _asked(row, signal) if row.asks else row


def _holds(fact: object, value: "Union[str, int, float, bool, AtLeast]") -> bool:
    if isinstance(value, AtLeast):
        return isinstance(fact, (int, float)) and not isinstance(fact, bool) and fact >= value.number
    return fact == value


def _asked(row: Row, signal: Signal) -> Row:
    """What the facts of a signal ask for, as far as they name remedies that there are."""
    remedy, when = signal.facts.get("remedy"), signal.facts.get("when")
    return replace(
        row,
        remedy=Remedy(remedy) if remedy in {one.value for one in Remedy} else row.remedy,
        when=When(when) if when in {one.value for one in When} else row.when,
    )


def _object(line: str) -> Mapping[str, Any]:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise PolicyError(f"not JSON: {error}; write one object in one line") from None
    if not isinstance(values, dict):
        raise PolicyError("must be an object; write one object in one line")
    return values


def _row(values: Mapping[str, Any]) -> Row:
    unknown = sorted(values.keys() - _KEYS)
    if unknown:
        raise PolicyError(f"unknown keys {', '.join(unknown)}; there are {', '.join(sorted(_KEYS))}")
    condition, code = values.get("condition"), values.get("code")
    if not isinstance(condition, str) or not condition:
        raise PolicyError(f"condition must name what a detector sees, got {condition!r}")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise PolicyError(f"code must be a number, got {code!r}")
    if not isinstance(values.get("source"), str) or not isinstance(values.get("date"), str):
        raise PolicyError("source and date must say where the row comes from, and as of when")
    return _part(values, key=condition if code is None else f"{condition}:{code}")


def _part(values: Mapping[str, Any], *, key: str) -> Row:
    """A row, or the variant of one, which takes what it does not say from the row."""
    name = values.get("fault")
    if name not in _NAMES:
        raise PolicyError(f"fault must be one of the taxonomy (holdfast_common.FAULTS), got {name!r}")
    fault = fault_named(str(name))
    remedy, when = _one_of(Remedy, values, "remedy", fault.remedy), _one_of(When, values, "when", fault.when)
    variants = values.get("variants", ())
    if not isinstance(variants, (list, tuple)):
        raise PolicyError(f"variants must be a list, got {variants!r}")
    plain = {inner: value for inner, value in values.items() if inner != "variants"}
    return Row(
        key=key,
        fault=fault,
        severity=_one_of(Severity, values, "severity", fault.severity),
        remedy=remedy,
        when=when,
        often=_change(values, "often"),
        jobs=_change(values, "jobs"),
        again=_change(values, "again"),
        cancels=tuple(str(each) for each in values.get("cancels", ())),
        holds_s=_seconds(values, "holds_s", 0.0),
        joins=str(values.get("joins", "")),
        scope=str(values.get("scope", "")),
        check=values.get("check") is True,
        asks=values.get("asks") is True,
        over=values.get("over") is True,
        variants=tuple(_variant(plain, variant, key) for variant in variants),
        source=str(values.get("source", "")),
        date=str(values.get("date", "")),
    )


def _variant(
    row: Mapping[str, Any], variant: object, key: str
) -> "tuple[str, Union[str, int, float, bool, AtLeast], Row]":
    if (
        not isinstance(variant, dict)
        or not isinstance(variant.get("fact"), str)
        or not ("is" in variant) ^ isinstance(variant.get("at_least"), (int, float))
    ):
        raise PolicyError(f"a variant must be an object with fact and is or at_least, got {variant!r}")
    changes = {name: value for name, value in variant.items() if name not in ("fact", "is", "at_least")}
    if unknown := sorted(changes.keys() - _KEYS):
        raise PolicyError(f"unknown keys {', '.join(unknown)} in a variant; there are {', '.join(sorted(_KEYS))}")
    # Another fault brings its own severity, remedy and time.
    kept = {
        name: value
        for name, value in row.items()
        if "fault" not in changes or name not in ("severity", "remedy", "when")
    }
    value = AtLeast(float(variant["at_least"])) if "at_least" in variant else variant["is"]
    return variant["fact"], value, _part({**kept, **changes}, key=key)


def _change(values: Mapping[str, Any], name: str) -> Optional[Change]:
    given = values.get(name)
    if given is None:
        return None
    if not isinstance(given, dict):
        raise PolicyError(f"{name} must be an object with remedy and within_s, got {given!r}")
    count = given.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise PolicyError(f"{name}.count must be a number from 1 on, got {count!r}")
    return Change(
        remedy=_one_of(Remedy, given, "remedy", Remedy.NONE),
        when=_one_of(When, given, "when", When.NOW),
        within_s=_seconds(given, "within_s", 0.0),
        count=count,
        check=given.get("check") is True,
    )


def _seconds(values: Mapping[str, Any], name: str, default: float) -> float:
    given = values.get(name, default)
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0 <= given < 1e9:
        raise PolicyError(f"{name} must be seconds, got {given!r}")
    return float(given)


def _one_of(kind: Any, values: Mapping[str, Any], name: str, default: Any) -> Any:
    given = values.get(name)
    if given is None:
        return default
    try:
        return kind(given)
    except ValueError:
        allowed = ", ".join(one.value for one in kind)
        raise PolicyError(f"{name} must be one of {allowed}, got {given!r}") from None
