from collections.abc import Iterator, Mapping, Sequence

from holdfast_agent.coverage import Change, Report
from holdfast_agent.detectors import Detector
from holdfast_agent.service.interfaces import Measuring
from holdfast_agent.signals import Happening
from holdfast_common import kinds

METRICS_LOST_AFTER_S = 90.0
"""Three intervals of remote writes: a short outage of the workspace is no loss."""


def reports(
    detectors: "Sequence[Detector]", *, failed: "Mapping[str, str]", measuring: "Sequence[Measuring]"
) -> "Iterator[Report]":
    """State of each detector, and of each metrics thread; ``failed``: exceptions of last passes."""
    for one in detectors:
        parts = {**one.parts, "": failed[one.name]} if one.name in failed else one.parts
        yield Report(detector=one.name, parts=parts, lost_after_s=one.lost_after_s)
    for companion in measuring:
        yield Report(detector=companion.name, parts={"": companion.state}, lost_after_s=METRICS_LOST_AFTER_S)


def changed(change: Change) -> Happening:
    detail = {"detector": change.detector}
    if change.part:
        detail["part"] = change.part
    name = f"{change.detector} ({change.part})" if change.part else change.detector
    return Happening(
        kind=kinds.DETECTOR_LOST if change.lost else kinds.DETECTOR_BACK,
        evidence=f"{name}: {change.why}"[:500],
        duration_s=round(change.for_s, 1),
        detail=detail,
    )
