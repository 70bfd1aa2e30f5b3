"""TCP retransmissions of the node: links that lose packets without being down."""

from collections import deque
from pathlib import Path
from typing import Optional

from holdfast_agent.detectors.detector import Detector, Facts, Instant, Seen
from holdfast_agent.signals import conditions

WINDOW_S = 10.0
LEAST_SENT = 50
"""Segments in a window below which a share means nothing: an idle node sends a few a second."""
SHARE = 0.05
"""Of what was sent; congestion alone makes a burst, which is why several looks have to agree."""
LOOKS = 3


class Links(Detector):
    name = "links"
    interval_s = 5.0

    def __init__(self, *, path: str = "/proc/net/snmp") -> None:
        super().__init__()
        self._path = path
        self._samples: deque[tuple[float, int, int]] = deque()
        self._bad = 0
        self._good = 0
        self._holds = False

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        counted = self._counted()
        if counted is None:
            return self.unsupported(f"{self._path} has no TCP counters")
        self.supported()
        sent, again = counted
        self.numbers = {
            ("node_netstat_Tcp_OutSegs", ()): float(sent),
            ("node_netstat_Tcp_RetransSegs", ()): float(again),
        }
        if self._samples and sent < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((at.boot_s, sent, again))
        while len(self._samples) > 2 and at.boot_s - self._samples[1][0] >= WINDOW_S:
            self._samples.popleft()
        _, sent_before, again_before = self._samples[0]
        sent_now, again_now = sent - sent_before, again - again_before
        share = again_now / sent_now if sent_now >= LEAST_SENT else 0.0
        self._bad, self._good = (self._bad + 1, 0) if share > SHARE else (0, self._good + 1)
        self._holds = self._bad >= LOOKS or (self._holds and self._good < LOOKS)
        if not self._holds:
            return self.holding(at, ())
        text = f"TCP sent {again_now} of {sent_now} segments again ({share:.0%}) in {WINDOW_S:g} s"
        facts: Facts = {"counter": "RetransSegs", "share": round(share, 4)}
        return self.holding(at, (self.signal(at, conditions.FABRIC_ERRORS, text, device="tcp", facts=facts),))

    def _counted(self) -> "Optional[tuple[int, int]]":
        try:
            text = Path(self._path).read_text("ascii")
            rows = [line.split() for line in text.splitlines() if line.startswith("Tcp:")]
            table = dict(zip(rows[0], rows[1]))
            return int(table["OutSegs"]), int(table["RetransSegs"])
        except (OSError, IndexError, KeyError, ValueError):
            return None
