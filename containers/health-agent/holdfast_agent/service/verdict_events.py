"""A verdict as an event, and as ``status`` shows it."""

from typing import Any

from holdfast_agent.signals import Happening
from holdfast_agent.verdicts import Verdict
from holdfast_common import kinds

LONGEST_EVIDENCE = 500


def verdict_event(verdict: Verdict) -> Happening:
    detail: dict[str, Any] = {
        "incident": verdict.incident,
        "device": verdict.device,
        "severity": verdict.severity.value,
        "when": verdict.when.value,
    }
    if verdict.code is not None:
        detail["code"] = verdict.code
    if verdict.signal_ns and not verdict.withdrawn:
        detail["signal_ns"] = verdict.signal_ns
    if verdict.check:
        detail["check"] = True
    last = verdict.evidence[-1].text if verdict.evidence else ""
    if verdict.withdrawn:
        evidence = (verdict.reason or last)[:LONGEST_EVIDENCE]
        return Happening(kind=kinds.VERDICT_WITHDRAWN, fault=verdict.fault, evidence=evidence, detail=detail)
    return Happening(
        kind=kinds.VERDICT,
        fault=verdict.fault,
        evidence=last[:LONGEST_EVIDENCE],
        action=verdict.remedy.value,
        detail=detail,
    )


def verdict_status(verdict: Verdict) -> "dict[str, Any]":
    return {
        "incident": verdict.incident,
        "fault": verdict.fault,
        "code": verdict.code,
        "device": verdict.device,
        "severity": verdict.severity.value,
        "remedy": verdict.remedy.value,
        "when": verdict.when.value,
        "evidence": [one.text[:LONGEST_EVIDENCE] for one in verdict.evidence[-3:]],
    }
