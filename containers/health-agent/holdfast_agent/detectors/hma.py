"""Log file of HyperPod's own agent: its findings are evidence, and its actions take precedence."""

from collections.abc import Mapping
from typing import Any

from holdfast_agent.detectors.detector import Detector, Instant, Seen
from holdfast_agent.hma import Finding, parse_finding
from holdfast_agent.logs import FollowedFile
from holdfast_agent.signals import Signal, conditions


class Hma(Detector):
    name = "hma"
    interval_s = 5.0

    def __init__(self, *, path: str) -> None:
        super().__init__()
        self._file = FollowedFile(path, from_start=False) if path else None

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if self._file is None:
            return self.switched_off("hma.path is empty")
        batch = self._file.read()
        if batch.missing:
            self.unsupported(batch.missing)
        else:
            self.supported()
        found = (parse_finding(line.decode("utf-8", "replace")) for line in batch.lines)
        return tuple(self._signal(at, finding) for finding in found if finding is not None)

    def remember(self) -> "dict[str, Any]":
        return {**super().remember(), "position": self._file.position() if self._file else {}}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        if self._file is not None and memory.get("position"):
            self._file.go_on(memory["position"])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _signal(self, at: Instant, finding: Finding) -> Signal:
        text = f"HMA: {finding.type} {finding.reason} {finding.message}"[:1000]
        facts = {"type": finding.type, "reason": finding.reason, "action": finding.action}
        seen = conditions.HMA_FINDING
        return self.signal(at, seen, text, device=finding.device, code=finding.code, facts=facts)
