"""Policy: rows of data with their sources, and the lookup of a signal's row."""

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
    """A row is invalid; the message has the reason."""


@dataclass(frozen=True)
class Change:
    remedy: Remedy
    when: When
    within_s: float
    count: int = 1
    check: bool = False


@dataclass(frozen=True)
class AtLeast:
    number: float


@dataclass(frozen=True)
class Row:
    """
    Meaning of one condition.

    Args:
        key: Condition, with ``:code`` if it is about one code.
        fault: Of the taxonomy, which provides the defaults.
        often: Escalation after so many sightings on a device.
        jobs: The same, counted in jobs that it ended.
        again: Escalation if it returns after its reboot.
        cancels: Keys of conditions that it ends.
        holds_s: Time that it has to hold before it counts.
        joins: Group: its conditions of one moment are one incident, whatever their devices.
        scope: ``node``: all devices of the node are one incident.
        check: Requires a deep check at the boundary.
        asks: The facts ``remedy`` and ``when`` of the signal decide.
        over: It reports the end of a fault.
        variants: Fact, its value or minimum, and the row that applies.
        source: Of the row; ``date``: when it was read.
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
    """Rows by key. ``standard()`` is shipped; an administrator's rows override it."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: Mapping[str, Row] = {row.key: row for row in rows}

    @classmethod
    def standard(cls) -> "Policy":
        here = Path(__file__).parent
        texts = [(here / name).read_text("utf-8") for name in _DATA]
        return cls(_row(json.loads(line)) for text in texts for line in text.splitlines())

    def extended(self, text: str) -> "tuple[Policy, tuple[str, ...]]":
        """This policy with the rows of a text, one JSON object per line; and the refused lines with reasons."""
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
        """Row of a signal; a condition without one is reported and requires nothing."""
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
    """Remedy of a signal's facts, as far as it is valid."""
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
        raise PolicyError(f"not JSON: {error}; write one object per line") from None
    if not isinstance(values, dict):
        raise PolicyError("must be an object; write one object per line")
    return values


def _row(values: Mapping[str, Any]) -> Row:
    unknown = sorted(values.keys() - _KEYS)
    if unknown:
        raise PolicyError(f"unknown keys {', '.join(unknown)}; allowed: {', '.join(sorted(_KEYS))}")
    condition, code = values.get("condition"), values.get("code")
    if not isinstance(condition, str) or not condition:
        raise PolicyError(f"condition must be the name of a condition, got {condition!r}")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise PolicyError(f"code must be a number, got {code!r}")
    if not isinstance(values.get("source"), str) or not isinstance(values.get("date"), str):
        raise PolicyError("source and date are required: where the row comes from, and when it was read")
    return _part(values, key=condition if code is None else f"{condition}:{code}")


def _part(values: Mapping[str, Any], *, key: str) -> Row:
    """A row, or a variant, which inherits from its row."""
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
        raise PolicyError(f"unknown keys {', '.join(unknown)} in a variant; allowed: {', '.join(sorted(_KEYS))}")
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
        raise PolicyError(f"{name}.count must be a number of at least 1, got {count!r}")
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
