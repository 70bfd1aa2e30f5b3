"""Lost detectors of health agents, from the events of a cluster. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast_common import kinds
from holdfast_common.events import Event

_ENDS_ALL = (kinds.AGENT_STARTED, kinds.NODE_DELETED)
"""An agent that starts reports again what is lost."""


@dataclass(frozen=True)
class LostDetector:
    node: str
    detector: str
    part: str
    """Such as a mount point; empty for the detector as a whole."""
    since_ns: int
    evidence: str


def lost_detectors(ordered: "Iterable[Event]") -> "tuple[LostDetector, ...]":
    """Return those lost after the last of these events (sorted by time), in the order of their loss."""
    lost: dict[tuple[str, str, str], LostDetector] = {}
    for event in ordered:
        if event.kind == kinds.DETECTOR_LOST and event.source == "agent":
            one = LostDetector(
                node=event.node,
                detector=str(event.detail.get("detector", "")),
                part=str(event.detail.get("part", "")),
                since_ns=event.time_ns,
                evidence=event.evidence,
            )
            lost[one.node, one.detector, one.part] = one
        elif event.kind == kinds.DETECTOR_BACK and event.source == "agent":
            lost.pop((event.node, str(event.detail.get("detector", "")), str(event.detail.get("part", ""))), None)
        elif event.kind in _ENDS_ALL or event.kind == kinds.NODE_REPLACED:
            gone = event.detail.get("replaces") if event.kind == kinds.NODE_REPLACED else event.node
            lost = {key: one for key, one in lost.items() if one.node != gone}
    return tuple(lost.values())
