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


class LostDetectors:
    """Lost detectors after the events so far, added in order of time."""

    def __init__(self) -> None:
        self._lost: dict[tuple[str, str, str], LostDetector] = {}

    def add(self, event: Event) -> None:
        if event.kind == kinds.DETECTOR_LOST and event.source == "agent":
            one = LostDetector(
                node=event.node,
                detector=str(event.detail.get("detector", "")),
                part=str(event.detail.get("part", "")),
                since_ns=event.time_ns,
                evidence=event.evidence,
            )
            self._lost[one.node, one.detector, one.part] = one
        elif event.kind == kinds.DETECTOR_BACK and event.source == "agent":
            key = (event.node, str(event.detail.get("detector", "")), str(event.detail.get("part", "")))
            self._lost.pop(key, None)
        elif event.kind in _ENDS_ALL or event.kind == kinds.NODE_REPLACED:
            gone = event.detail.get("replaces") if event.kind == kinds.NODE_REPLACED else event.node
            self._lost = {key: one for key, one in self._lost.items() if one.node != gone}

    def found(self) -> "tuple[LostDetector, ...]":
        """Return them in the order of their loss."""
        return tuple(self._lost.values())


def lost_detectors(ordered: "Iterable[Event]") -> "tuple[LostDetector, ...]":
    """Return those lost after the last of these events, sorted by time."""
    reader = LostDetectors()
    for event in ordered:
        reader.add(event)
    return reader.found()
