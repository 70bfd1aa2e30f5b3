"""
From signals to verdicts. Pure: time comes with the signals.

A signal belongs to the open incident of its device, or to one of its group that had another condition within seconds;
else it opens one. An incident requires the strongest remedy of all conditions that hold. It ends when all are over,
when its reboot has happened, or silently: no remedy required and no signal for ten minutes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts.history import History
from holdfast_agent.verdicts.incident import Incident, Sighting, is_more, latest, restored, sighting_of
from holdfast_agent.verdicts.nvidia import same_device
from holdfast_agent.verdicts.policy import Change, Policy, Row
from holdfast_agent.verdicts.verdict import Verdict
from holdfast_common import Remedy, Severity, When, fault_named

QUIET_S = 600.0
"""An incident without a required remedy ends after so long without a line."""
JOINED_WITHIN_S = 15.0
"""Switch and GPUs report one failure about 12 s apart (leptonai/gpud's sample)."""
BURST_S = 1.0
"""Lines within this time are one occurrence."""
MOST_PIDS = 32
REBOOTS_IN_VAIN, IN_VAIN_WITHIN_S = 3, 604_800.0
"""Limit of reboots for the same device; then the node is replaced."""
_OF_THE_NODE = (Remedy.RESET_GPU, Remedy.REBOOT, Remedy.REPLACE)
_BY_REBOOT = (Remedy.RESET_GPU, Remedy.REBOOT)


class SnapshotError(ValueError):
    """Invalid snapshot."""


class Engine:
    """
    Verdicts on one node.

    Args:
        history: Of the node. Default: empty
        boot_id: Of the present boot. Default: unknown
        node: Part of incident ids, to make them unique.
    """

    def __init__(self, *, policy: Policy, history: Optional[History] = None, boot_id: str = "", node: str = "") -> None:
        self._policy = policy
        self._history = history or History()
        self._boot_id = boot_id
        self._node = node
        self._open: list[Incident] = []
        self._pending: list[Verdict] = []
        self._origin_s: Optional[float] = 0.0
        """Added to seconds since boot, so that time continues over reboots; None until the first time after one."""
        self._now_s = 0.0
        self._wall_ns = 0

    def see(self, signal: Signal, *, line: int = 0) -> "tuple[Verdict, ...]":
        """Judge a signal. The verdict on its incident is the last one returned, also without news."""
        if signal.condition == "node-booted":
            return self.booted(str(signal.facts.get("boot", "")))
        now_s = self._time(signal.boot_s, signal.time_ns)
        before = (*self._taken(), *self._due(now_s))
        row = self._policy.row(signal)
        device = self._device(signal, row)
        if signal.over or row.over or row.cancels:
            keys = {*row.cancels, row.key} if signal.over or row.over else {*row.cancels}
            ended = self._ended(keys, device, now_s, signal=signal, row=row, line=line)
            if ended or signal.over:
                return (*before, *ended)
        incident = self._incident(signal, row, device, now_s)
        sighting = self._sighted(incident, signal, row, device, now_s)
        if signal.evidence:
            incident.keep(sighting.key, line, signal.evidence)
        if signal.facts.get("detail") is True and signal.facts.get("alone") is not True:
            return before
        return (*before, self._word(incident, now_s, signal=signal, row=row))

    def advance(self, *, boot_s: float, time_ns: int = 0) -> "tuple[Verdict, ...]":
        """Advance the time: conditions that have held long enough count now, and results of reboots are reported."""
        now_s = self._time(boot_s, time_ns)
        return (*self._taken(), *self._due(now_s))

    def booted(self, boot_id: str) -> "tuple[Verdict, ...]":
        """Handle a reboot: what it cures is cured, and known as such if it comes back."""
        if boot_id and boot_id == self._boot_id:
            return ()
        self._boot_id = boot_id
        words: list[Verdict] = []
        kept: list[Incident] = []
        for incident in self._open:
            asked = incident.asked(self._now_s)
            for one in incident.sightings.values():
                if one.counts(self._now_s) and one.remedy in _BY_REBOOT:
                    self._history.cured(one.fault, one.device, self._now_s, part=one.part)
            if asked.remedy in _BY_REBOOT:
                words.append(self._withdrawn(incident, self._now_s, "the node was rebooted"))
            elif asked.remedy is Remedy.REPLACE:
                kept.append(incident)
        self._open = kept
        self._origin_s = None
        return (*self._taken(), *words)

    @property
    def history(self) -> History:
        return self._history

    def standing(self) -> "tuple[Verdict, ...]":
        """Last verdict on each open incident, without side effects."""
        return tuple(replace(self._verdict(one, self._now_s), news=False) for one in self._open)

    def snapshot(self) -> "dict[str, Any]":
        return {
            "version": 1,
            "node": self._node,
            "boot_id": self._boot_id,
            "origin_s": self._origin_s,
            "now_s": self._now_s,
            "wall_ns": self._wall_ns,
            "open": [incident.snapshot() for incident in self._open],
            "history": self._history.snapshot(),
        }

    @classmethod
    def restored(cls, *, policy: Policy, snapshot: Mapping[str, Any], boot_id: str = "") -> "Engine":
        """
        Resume from a snapshot; raises SnapshotError.

        Args:
            policy: May be newer than the snapshot's: open incidents keep their remedies.
            snapshot: Of ``snapshot()``, through JSON.
            boot_id: Of the present boot; if it differs, the node was rebooted, and ``advance`` reports what that cured.
        """
        try:
            if snapshot["version"] != 1:
                raise SnapshotError(f"snapshot version must be 1, got {snapshot['version']!r}")
            engine = cls(
                policy=policy,
                history=History.restored(snapshot["history"]),
                boot_id=str(snapshot["boot_id"]),
                node=str(snapshot["node"]),
            )
            engine._origin_s = None if snapshot["origin_s"] is None else float(snapshot["origin_s"])
            engine._now_s = float(snapshot["now_s"])
            engine._wall_ns = int(snapshot["wall_ns"])
            engine._open = [restored(each) for each in snapshot["open"]]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise SnapshotError(f"not a snapshot of the engine: {error!r}") from None
        if boot_id and boot_id != engine._boot_id:
            engine._pending = list(engine.booted(boot_id))
        return engine

    def _time(self, boot_s: float, time_ns: int) -> float:
        """Seconds that continue over reboots; the wall clock only measures the reboot."""
        if self._origin_s is None:
            away_s = (time_ns - self._wall_ns) / 1e9 if time_ns and self._wall_ns else 0.0
            self._origin_s = self._now_s + max(away_s, 1.0) - boot_s
        now_s = self._origin_s + boot_s
        self._now_s = max(self._now_s, now_s)
        self._wall_ns = time_ns or self._wall_ns
        return now_s

    def _taken(self) -> "tuple[Verdict, ...]":
        taken, self._pending = tuple(self._pending), []
        return taken

    def _due(self, now_s: float) -> "tuple[Verdict, ...]":
        """Verdicts on incidents whose time has come; quiet ones end."""
        words = []
        for incident in self._open:
            if any(self._now_s >= one.due_s > one.first_s and not one.over for one in incident.sightings.values()):
                word = self._word(incident, now_s)
                if word.news:
                    words.append(word)
        self._open = [one for one in self._open if not self._is_quiet(one, now_s)]
        return tuple(words)

    def _is_quiet(self, incident: Incident, now_s: float) -> bool:
        waits = any(not one.over and one.due_s > now_s for one in incident.sightings.values())
        return now_s - incident.last_s > QUIET_S and not waits and incident.asked(now_s).remedy not in _OF_THE_NODE

    def _device(self, signal: Signal, row: Row) -> str:
        if row.scope == "node" or not signal.device:
            return f"fault:{row.fault.name}"
        return same_device(signal.device)

    def _incident(self, signal: Signal, row: Row, device: str, now_s: float) -> Incident:
        own = latest((one.concerns(device), one) for one in self._open)
        if row.joins and (own is None or own.joined(row.joins) is None):
            times = ((one.joined(row.joins), one) for one in self._open)
            group = latest(time_of for time_of in times if time_of[0] is not None and _near(time_of[0], now_s))
            own = group or own
        if own is None and row.scope == "any" and not signal.device:
            own = latest((one.last_s, one) for one in self._open if one.asked(now_s).remedy in _OF_THE_NODE)
        if own is not None:
            return own
        opened = Incident(id=self._new_id(signal, device, now_s))
        self._open.append(opened)
        return opened

    def _new_id(self, signal: Signal, device: str, now_s: float) -> str:
        """Derived from the opening signal without a wall clock, so that replays give the same id."""
        parts = (self._node, self._boot_id, signal.condition, str(signal.code), device, f"{now_s:.6f}")
        return hashlib.sha256("|".join(parts).encode(errors="replace")).hexdigest()[:12]

    def _sighted(self, incident: Incident, signal: Signal, row: Row, device: str, now_s: float) -> Sighting:
        name = f"{row.key}|{row.fault.name}|{device}"
        known = incident.sightings.get(name)
        if known is None or known.over:
            began_ns = (known.first_ns if known is not None else 0) or signal.time_ns
            known = sighting_of(row, name=name, device=device, code=signal.code, at_s=now_s, time_ns=began_ns)
            incident.sightings[name] = known
        known.last_s = max(known.last_s, now_s)
        pid = signal.facts.get("pid")
        if isinstance(pid, int) and pid not in known.pids:
            known.pids = [*known.pids, pid][-MOST_PIDS:]
        known.part = str(signal.facts.get("row", known.part))
        if not known.bursts or now_s - known.bursts[-1] >= BURST_S:
            known.bursts = [*known.bursts, now_s][-50:]
        if row.asks or is_more(row.remedy, known.remedy):
            known.remedy, known.when = row.remedy, row.when
        change = self._change(row, known, incident, signal, now_s)
        if change is not None:
            known.remedy, known.when, known.check = change.remedy, change.when, change.check or known.check
        return known

    def _change(self, row: Row, known: Sighting, incident: Incident, signal: Signal, now_s: float) -> Optional[Change]:
        device = known.device
        if row.again and self._history.was_cured(
            row.fault.name, device, since_s=now_s - row.again.within_s, part=known.part
        ):
            # Another source tells of the same fault that it is a new one, such as an Xid 63 of another row.
            others = [one for one in incident.sightings.values() if one is not known and not one.over]
            if not any((one.fault, one.device, one.remedy) == (known.fault, device, row.remedy) for one in others):
                return row.again
        if row.remedy in _BY_REBOOT:
            since_s = now_s - IN_VAIN_WITHIN_S
            if self._history.reboots(row.fault.name, device, since_s=since_s) >= REBOOTS_IN_VAIN:
                return Change(remedy=Remedy.REPLACE, when=row.when, within_s=IN_VAIN_WITHIN_S)
        if row.jobs:
            pid = signal.facts.get("pid", 0)
            jobs = self._history.crashed(
                f"{row.key}|{device}",
                pid=pid if isinstance(pid, int) else 0,
                at_s=now_s,
                since_s=now_s - row.jobs.within_s,
            )
            if jobs >= row.jobs.count:
                return row.jobs
        if row.often and sum(now_s - time <= row.often.within_s for time in known.bursts) >= row.often.count:
            return row.often
        return None

    def _ended(
        self, keys: "set[str]", device: str, now_s: float, *, signal: Signal, row: Row, line: int
    ) -> "tuple[Verdict, ...]":
        """End conditions on a device; what is left of its incidents counts."""
        words = []
        for incident in self._open:
            ended = [
                one
                for one in incident.sightings.values()
                if one.device == device and not one.over and one.key.partition("|")[0] in keys
            ]
            if not ended:
                continue
            asked_for = incident.asked(now_s).remedy
            for one in ended:
                one.over, one.last_s = True, now_s
            if signal.evidence:
                incident.keep(ended[0].key, line, signal.evidence)
            left = incident.asked(now_s).remedy
            if incident.is_over() or (left is Remedy.NONE and asked_for is not Remedy.NONE):
                for one in incident.sightings.values():
                    one.over = True
                words.append(self._withdrawn(incident, now_s, signal.evidence, signal=signal, row=row))
            else:
                words.append(self._word(incident, now_s, signal=signal, row=row))
        self._open = [one for one in self._open if not one.is_over()]
        return tuple(words)

    def _withdrawn(
        self,
        incident: Incident,
        now_s: float,
        reason: str,
        *,
        signal: Optional[Signal] = None,
        row: Optional[Row] = None,
    ) -> Verdict:
        word = self._word(incident, now_s, signal=signal, row=row, withdrawn=True)
        return replace(word, remedy=Remedy.NONE, when=When.NOW, check=False, reason=reason)

    def _word(
        self,
        incident: Incident,
        now_s: float,
        *,
        signal: Optional[Signal] = None,
        row: Optional[Row] = None,
        withdrawn: bool = False,
    ) -> Verdict:
        """Verdict on an incident; news if it differs from the last, or names one more device."""
        verdict = self._verdict(incident, now_s, signal=signal, row=row)
        leading = incident.leading(now_s).fault
        word = (leading, verdict.remedy.value, verdict.when.value, withdrawn)
        devices = incident.devices(now_s, remedies=_OF_THE_NODE) | incident.named
        news = word != incident.last_word or devices != incident.named
        incident.last_word, incident.named = word, devices
        return replace(verdict, withdrawn=withdrawn, news=news)

    def _verdict(
        self, incident: Incident, now_s: float, *, signal: Optional[Signal] = None, row: Optional[Row] = None
    ) -> Verdict:
        asked, leading = incident.asked(now_s), incident.leading(now_s)
        severity: Severity = row.severity if row else fault_named(leading.fault).severity
        return Verdict(
            incident=incident.id,
            fault=row.fault.name if row else leading.fault,
            code=signal.code if signal else leading.code,
            device=signal.device if signal else leading.device.partition("fault:")[0],
            severity=severity,
            remedy=asked.remedy,
            when=asked.when,
            evidence=incident.lines(),
            withdrawn=False,
            check=asked.check,
            pids=incident.pids(now_s),
            signal_ns=incident.first_ns,
        )


def _near(then_s: float, now_s: float) -> bool:
    return abs(now_s - then_s) <= JOINED_WITHIN_S
