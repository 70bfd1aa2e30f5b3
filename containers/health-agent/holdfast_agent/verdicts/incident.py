"""Open incident: its sightings, their combined remedy, and evidence."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from holdfast_agent.verdicts.policy import Row
from holdfast_agent.verdicts.verdict import Evidence
from holdfast_common import Remedy, When

MOST_EVIDENCE = 20
_ORDER = {remedy: place for place, remedy in enumerate(Remedy)}


def is_more(one: Remedy, other: Remedy) -> bool:
    return _ORDER[one] > _ORDER[other]


@dataclass
class Sighting:
    """One condition on one device. Times are the engine's."""

    key: str
    device: str
    fault: str
    code: Optional[int]
    remedy: Remedy
    when: When
    check: bool
    first_s: float
    last_s: float
    due_s: float
    """Start of counting: a condition that has to hold for a while requires nothing before."""
    joins: str = ""
    part: str = ""
    """Which part of the device, where that is known."""
    first_ns: int = 0
    """UTC, where that is known; 0 where not."""
    bursts: "list[float]" = field(default_factory=list)
    over: bool = False
    pids: "list[int]" = field(default_factory=list)
    """Processes that its lines name."""

    def counts(self, now_s: float) -> bool:
        return not self.over and now_s >= self.due_s


@dataclass(frozen=True)
class Asked:
    remedy: Remedy
    when: When
    check: bool


@dataclass
class Incident:
    """Open until it is over, cured by a reboot, or quiet without a required remedy."""

    id: str
    sightings: "dict[str, Sighting]" = field(default_factory=dict)
    evidence: "list[tuple[str, int, str]]" = field(default_factory=list)
    """Key of the sighting, line and text."""
    last_word: "tuple[str, str, str, bool]" = ("", "", "", False)
    named: "set[str]" = field(default_factory=set)
    """Devices named in verdicts."""

    @property
    def first_ns(self) -> int:
        """First sign, UTC; 0 if unknown."""
        return min((one.first_ns for one in self.sightings.values() if one.first_ns), default=0)

    @property
    def last_s(self) -> float:
        return max((sighting.last_s for sighting in self.sightings.values()), default=0.0)

    def asked(self, now_s: float) -> Asked:
        """Strongest remedy that still holds; ``now`` where one of them cannot wait."""
        counting = [sighting for sighting in self.sightings.values() if sighting.counts(now_s)]
        remedy = max((sighting.remedy for sighting in counting), key=_ORDER.__getitem__, default=Remedy.NONE)
        check = any(sighting.check for sighting in counting)
        whens = {sighting.when for sighting in counting if sighting.remedy is remedy}
        if remedy is Remedy.NONE:
            when = When.BOUNDARY if check else When.NOW
        else:
            when = When.NOW if When.NOW in whens else When.BOUNDARY
        return Asked(remedy=remedy, when=when, check=check)

    def pids(self, now_s: float) -> "tuple[int, ...]":
        counting = [one for one in self.sightings.values() if one.counts(now_s)]
        return tuple(pid for one in counting if one.remedy is Remedy.RESTART_PROCESS for pid in one.pids)

    def devices(self, now_s: float, *, remedies: "tuple[Remedy, ...]") -> "set[str]":
        return {one.device for one in self.sightings.values() if one.counts(now_s) and one.remedy in remedies}

    def leading(self, now_s: float) -> Sighting:
        return max(self.sightings.values(), key=lambda one: (one.counts(now_s), _ORDER[one.remedy], -one.first_s))

    def is_over(self) -> bool:
        return all(sighting.over for sighting in self.sightings.values())

    def concerns(self, device: str) -> Optional[float]:
        return max((one.last_s for one in self.sightings.values() if one.device == device), default=None)

    def joined(self, group: str) -> Optional[float]:
        return max((one.last_s for one in self.sightings.values() if one.joins == group), default=None)

    def keep(self, key: str, line: int, text: str) -> None:
        """Keep a line. Over the limit, drop the second of the most frequent sighting: first and latest stay."""
        self.evidence.append((key, line, text))
        if len(self.evidence) > MOST_EVIDENCE:
            keys = [one[0] for one in self.evidence]
            fullest = max(dict.fromkeys(keys), key=keys.count)
            seconds = [place for place, one in enumerate(keys) if one == fullest]
            del self.evidence[seconds[1] if len(seconds) > 1 else seconds[0]]

    def lines(self) -> "tuple[Evidence, ...]":
        return tuple(Evidence(line=line, text=text) for _, line, text in self.evidence)

    def snapshot(self) -> "dict[str, Any]":
        sightings = {
            name: {**asdict(one), "remedy": one.remedy.value, "when": one.when.value}
            for name, one in self.sightings.items()
        }
        return {
            "id": self.id,
            "sightings": sightings,
            "evidence": [list(one) for one in self.evidence],
            "last_word": list(self.last_word),
            "named": sorted(self.named),
        }


def restored(values: Mapping[str, Any]) -> Incident:
    sightings = {
        str(name): Sighting(**{**one, "remedy": Remedy(one["remedy"]), "when": When(one["when"])})
        for name, one in values["sightings"].items()
    }
    fault, remedy, when, withdrawn = values["last_word"]
    return Incident(
        id=str(values["id"]),
        sightings=sightings,
        evidence=[(str(key), int(line), str(text)) for key, line, text in values["evidence"]],
        last_word=(str(fault), str(remedy), str(when), withdrawn is True),
        named={str(device) for device in values["named"]},
    )


def sighting_of(row: Row, *, name: str, device: str, code: Optional[int], at_s: float, time_ns: int) -> Sighting:
    return Sighting(
        key=name,
        device=device,
        fault=row.fault.name,
        code=code,
        remedy=row.remedy,
        when=row.when,
        check=row.check,
        first_s=at_s,
        first_ns=time_ns,
        last_s=at_s,
        due_s=at_s + row.holds_s,
        joins=row.joins,
    )


def latest(times: "Iterable[tuple[Optional[float], Incident]]") -> Optional[Incident]:
    known = [(time, place, incident) for place, (time, incident) in enumerate(times) if time is not None]
    return max(known, key=lambda one: one[:2])[2] if known else None
