"""
Comparison of port states and counters. Pure.

The first sample of a counter is the baseline: its value predates the agent. (Amazon's EKS agent starts at 0, so a
restart beside a large counter looks like a burst to it.)
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

RATES = {
    "rx_drops": 100.0,
    "rdma_write_wr_err": 100.0,
    "rdma_read_wr_err": 100.0,
    "unresponsive_remote_events": 100.0,
    "impaired_remote_conn_events": 100.0,
    "retrans_timeout_events": 100.0,
    "retrans_pkts": 1_000.0,
    "retrans_bytes": 1_000_000.0,
}
"""Limits per second of Amazon's EKS Node Monitoring Agent, which calls them not authoritative."""
FLAP_WINDOW_S = 3 * 3600.0
MOST_FLAPS = 3
"""Of Azure's healthagent: more than three in three hours."""
LEAST_ALIKE = 4
"""Fewer ports give no majority."""


@dataclass(frozen=True)
class Finding:
    """Condition by its attribute's name in ``signals.conditions``, and its facts."""

    condition: str
    device: str
    text: str
    facts: "Mapping[str, Any]"


@dataclass
class _Port:
    active: bool = False
    """Was active in this boot."""
    down_looks: int = 0
    odd_looks: int = 0
    bad: "Optional[Counter[str]]" = None
    sample: "Optional[tuple[float, dict[str, int]]]" = None
    flaps: "Optional[list[float]]" = None


class Ports:
    def __init__(self) -> None:
        self._ports: dict[str, _Port] = {}

    def look(self, devices: "Mapping[str, Any]", boot_s: float) -> "tuple[Finding, ...]":
        """Take the result of ``read_tree``; return all findings that hold."""
        now = {f"{name}/{number}": port for name, one in devices.items() for number, port in one["ports"].items()}
        found: list[Finding] = []
        for key, port in now.items():
            known = self._ports.setdefault(key, _Port())
            found += self._state(key, known, f"{port['state']}, {port['physical']}", active=_is_active(port))
            found += self._counters(key, known, port["counters"], boot_s)
        for key, known in self._ports.items():
            if key not in now and known.active:
                found += self._state(key, known, "gone", active=False)
        found += self._unequal(devices)
        return tuple(found)

    def remember(self) -> "list[str]":
        return [key for key, known in self._ports.items() if known.active]

    def restore(self, active: "list[str]") -> None:
        for key in active:
            self._ports.setdefault(key, _Port()).active = True

    def _state(self, key: str, known: _Port, state: str, *, active: bool) -> "list[Finding]":
        if active:
            known.active, known.down_looks = True, 0
            return []
        known.down_looks += 1
        if not known.active or known.down_looks < 2:
            return []  # a port without a cable was never up
        return [Finding("FABRIC_LINK_DOWN", key, f"port {key} was active, now: {state}", {"state": state})]

    def _counters(self, key: str, known: _Port, counters: "dict[str, int]", boot_s: float) -> "list[Finding]":
        before, known.sample = known.sample, (boot_s, counters)
        if before is None or boot_s <= before[0]:
            return []
        bad: Counter[str] = Counter()
        found = []
        for name, value in counters.items():
            grown = value - before[1].get(name, value)
            if grown <= 0:
                continue
            if name == "link_downed":
                known.flaps = [*(known.flaps or []), *[boot_s] * grown]
                continue
            per_s = grown / (boot_s - before[0])
            if per_s > RATES.get(name, float("inf")):
                bad[name] = (known.bad or Counter())[name] + 1
                if bad[name] >= 2:
                    text = f"port {key}: {name} grows by {per_s:.0f} a second; {RATES[name]:.0f} is much"
                    facts = {"counter": name, "per_s": round(per_s, 1)}
                    found.append(Finding("FABRIC_ERRORS", key, text, facts))
        known.bad = bad
        known.flaps = [time_s for time_s in known.flaps or [] if boot_s - time_s <= FLAP_WINDOW_S]
        if len(known.flaps) > MOST_FLAPS:
            text = f"port {key} went down {len(known.flaps)} times in three hours"
            found.append(Finding("FABRIC_LINK_FLAPPING", key, text, {"times": len(known.flaps)}))
        return found[:1] if len(found) > 1 and found[0].condition == found[1].condition else found

    def _unequal(self, devices: "Mapping[str, Any]") -> "list[Finding]":
        """A port that differs from at least three quarters of its kind, in two polls."""
        kinds: dict[tuple[str, str], dict[str, str]] = {}
        for name, one in devices.items():
            for number, port in one["ports"].items():
                alike = kinds.setdefault((one["kind"], port["layer"]), {})
                alike[f"{name}/{number}"] = f"{port['rate']}, {port['state']}" if port["rate"] else port["state"]
        found = []
        for alike in kinds.values():
            (common, times), *_ = Counter(alike.values()).most_common(1)
            for key, shown in alike.items():
                known = self._ports[key]
                odd = len(alike) >= LEAST_ALIKE and times * 4 >= len(alike) * 3 and shown != common
                known.odd_looks = known.odd_looks + 1 if odd else 0
                if known.odd_looks >= 2:
                    text = f"port {key} is unlike its kind: {shown}; {times} others: {common}"
                    found.append(Finding("FABRIC_UNEVEN", key, text, {"rate": shown, "others": common}))
        return found


def _is_active(port: "Mapping[str, Any]") -> bool:
    return port["state"] == "ACTIVE" and port["physical"] in ("LinkUp", "")
