"""
Finding in a log record of HMA.

Records are JSON lines; the key ``HealthMonitoringAgentDetectionEvent`` marks findings. Known formats:

- ``msg`` "NPD caught event", with ``details: `` of ``severity``, ``reason`` and ``message`` (developer guide);
- ``msg`` "DCGM Policy Violation found", with ``condition: `` and ``data: `` of ``ErrNum`` (Slurm);
- ``Event detail`` of ``Action``, ``Type``, ``Reason`` and ``Message`` (EKS);
- ``msg`` "NPD caught positive condition", with ``condition details`` of ``type`` and ``status``.

A marked record in another format is a finding without details.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

MARK = "HealthMonitoringAgentDetectionEvent"
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")


@dataclass(frozen=True)
class Finding:
    """
    Args:
        type: Such as ``NvidiaGPUUnhealthy``.
        action: ``replace``, ``reboot`` or empty if not given.
        code: An Xid, or None.
        device: PCI address, or empty.
        time: As written; empty where the record has none.
    """

    type: str
    reason: str
    action: str
    message: str
    code: Optional[int]
    device: str
    time: str


def parse_finding(line: str) -> Optional[Finding]:
    if MARK not in line and "NPD caught positive condition" not in line and "Event detail" not in line:
        return None
    try:
        record = json.loads(line[line.index("{") :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    fields = {str(key).strip().rstrip(":").strip(): value for key, value in record.items()}
    details = _details(fields)
    if details is None:
        return None
    kind, reason, action, message = details
    found = _XID.search(message)
    code = int(found[2]) if found else _number(_object(fields.get("data")).get("ErrNum"))
    action = action or _named_action(f"{kind} {reason} {message}")
    time = fields.get("ts") or fields.get("time") or ""
    return Finding(kind, reason, action, message, code, found[1].lower() if found else "", str(time))


def _details(fields: "Mapping[str, Any]") -> "Optional[tuple[str, str, str, str]]":
    reported = str(fields.get("msg", ""))
    if event := _object(fields.get("Event detail")):
        return _text(event, "Type"), _text(event, "Reason"), _text(event, "Action").lower(), _text(event, "Message")
    if details := _object(fields.get("details")):
        return reported.partition(":")[0].strip(), _text(details, "reason"), "", _text(details, "message")
    if condition := _object(fields.get("condition details")):
        if _text(condition, "status").lower() not in ("true", ""):
            return None
        return _text(condition, "type"), _text(condition, "reason"), "", _text(condition, "message")
    if "condition" in fields:
        return str(fields["condition"]), reported.strip(), "", json.dumps(fields.get("data"))
    return (reported.strip(), "", "", reported.strip()) if MARK in fields else None


def _named_action(text: str) -> str:
    """EKS reasons and condition types end with the action."""
    low = text.lower()
    return "replace" if "pendingreplacement" in low else "reboot" if "reboot" in low else ""


def _object(value: Any) -> "Mapping[str, Any]":
    return value if isinstance(value, dict) else {}


def _text(fields: "Mapping[str, Any]", name: str) -> str:
    value = fields.get(name, "")
    return value if isinstance(value, str) else json.dumps(value)


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
