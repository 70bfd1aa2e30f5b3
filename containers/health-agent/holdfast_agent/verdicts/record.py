"""Record of a kernel log, and its line in the agent's recording."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from holdfast_agent.signals import Signal


@dataclass(frozen=True)
class Record:
    """
    One kernel message.

    Args:
        text: Without stamp, host and program.
        time_ns: UTC nanoseconds. Default: unknown.
        line: Counted from 1. Default: in no file.
        boot: Which boot of the log it is from. Default: the present one.
        sequence: Number in /dev/kmsg. Default: unknown.
    """

    text: str
    boot_s: Optional[float] = None
    time_ns: int = 0
    line: int = 0
    boot: str = ""
    sequence: Optional[int] = None


def recorded(seen: Union[Record, Signal]) -> str:
    """One line of the recording, without the line end: records as read, other detectors' signals."""
    kind = "record" if isinstance(seen, Record) else "signal"
    given = {name: value for name, value in vars(seen).items() if name != "line" and value not in ("", None)}
    if isinstance(seen, Signal):
        given["facts"] = dict(seen.facts)
    return json.dumps({kind: given}, separators=(",", ":"))


def from_recording(values: Mapping[str, Any], *, line: int) -> Union[Record, Signal, None]:
    """Parse a line of a recording; None if invalid."""
    record, signal = values.get("record"), values.get("signal")
    if isinstance(record, dict) and isinstance(record.get("text"), str):
        return Record(
            text=record["text"],
            boot_s=_number(record.get("boot_s")),
            time_ns=_whole(record.get("time_ns")) or 0,
            line=line,
            boot=str(record.get("boot", "")),
            sequence=_whole(record.get("sequence")),
        )
    if isinstance(signal, dict) and isinstance(signal.get("condition"), str):
        boot_s, facts = _number(signal.get("boot_s")), signal.get("facts")
        return Signal(
            condition=signal["condition"],
            boot_s=0.0 if boot_s is None else boot_s,
            time_ns=_whole(signal.get("time_ns")) or 0,
            detector=str(signal.get("detector", "")),
            device=str(signal.get("device", "")),
            code=_whole(signal.get("code")),
            facts=_plain(facts) if isinstance(facts, dict) else {},
            evidence=str(signal.get("evidence", "")),
            over=signal.get("over") is True,
        )
    return None


def _number(value: object) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: object) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _plain(facts: Mapping[str, Any]) -> "dict[str, Union[str, int, float, bool]]":
    return {str(name): value for name, value in facts.items() if isinstance(value, (str, int, float, bool))}
