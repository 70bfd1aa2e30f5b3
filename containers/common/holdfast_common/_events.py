"""The event: one JSON line that says what happened, when, where, and what was done about it.

Control plane, lifecycle, jobs and the command line write the same schema; the status view, the incident report and
the planner read it. Reading never guesses: a line of another schema version, or one that is not an event, is refused
with the reason. A kind nobody has heard of is kept, so that writers may be newer than readers.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Optional

VERSION = 1
SOURCES = ("control-plane", "lifecycle", "job", "cli")

Detail = Mapping[str, "str | int | float | bool"]


class EventError(ValueError):
    """A line is not an event of this schema."""


@dataclass(frozen=True)
class Event:
    """Something that happened. Times are UTC nanoseconds; empty strings mean "does not apply"."""

    time_ns: int
    source: str
    kind: str
    cluster: str = ""
    node: str = ""
    """Instance id."""
    job: str = ""
    """Slurm job id."""
    fault: str = ""
    """Name of a fault in the taxonomy."""
    evidence: str = ""
    """What was seen."""
    action: str = ""
    """What was done, or what a person should do."""
    duration_s: Optional[float] = None
    detail: Detail = field(default_factory=dict)
    version: int = VERSION

    def __post_init__(self) -> None:
        _check(self)

    def to_json(self) -> str:
        """One line, without the line end; ``from_json`` gives an equal event back."""
        return json.dumps(
            {name: getattr(self, name) for name in _WRITTEN_ORDER} | {"detail": dict(self.detail)},
            separators=(",", ":"),
            allow_nan=False,
        )

    @staticmethod
    def from_json(line: str) -> "Event":
        """Parse one line; raises EventError with the reason."""
        try:
            values = json.loads(line)
        except ValueError as error:
            raise EventError(f"not JSON: {error}, got {line[:120]!r}") from None
        if not isinstance(values, dict):
            raise EventError(f"an event must be a JSON object, got {line[:120]!r}")
        version = values.get("version")
        if not _is_int(version) or version != VERSION:
            raise EventError(
                f"event version must be {VERSION}, got {version!r}; read it with the holdfast_common that wrote it"
            )
        unknown = sorted(values.keys() - set(_WRITTEN_ORDER))
        missing = [name for name in ("time_ns", "source", "kind") if name not in values]
        if unknown or missing:
            raise EventError(f"event fields are wrong: unknown {unknown}, missing {missing}, got {line[:120]!r}")
        return Event(**values)


_TEXTS = ("kind", "cluster", "node", "job", "fault", "evidence", "action")
_WRITTEN_ORDER = (
    "version",
    "time_ns",
    "source",
    "cluster",
    "node",
    "job",
    "kind",
    "fault",
    "evidence",
    "action",
    "duration_s",
    "detail",
)
assert set(_WRITTEN_ORDER) == {item.name for item in fields(Event)}


def _check(event: Event) -> None:
    if not _is_int(event.time_ns) or event.time_ns < 0:
        raise EventError(f"time_ns must be UTC nanoseconds since 1970, got {event.time_ns!r}")
    if event.source not in SOURCES:
        raise EventError(f"source must be one of {', '.join(SOURCES)}, got {event.source!r}")
    for name in _TEXTS:
        if not isinstance(getattr(event, name), str):
            raise EventError(f"{name} must be a string, got {getattr(event, name)!r}")
    if not event.kind:
        raise EventError("kind must not be empty")
    if event.duration_s is not None and not _is_finite(event.duration_s):
        raise EventError(f"duration_s must be a finite number of seconds or null, got {event.duration_s!r}")
    if not isinstance(event.detail, Mapping):
        raise EventError(f"detail must be an object, got {event.detail!r}")
    for key, value in event.detail.items():
        if not isinstance(key, str) or not (isinstance(value, (str, bool)) or _is_finite(value)):
            raise EventError(f"detail.{key} must be a string, a finite number or a boolean, got {value!r}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class ParsedEvents:
    """Events of many lines, and one message for each line that is none."""

    events: tuple[Event, ...]
    problems: tuple[str, ...]


def parse_events(lines: Iterable[str]) -> ParsedEvents:
    """Parse lines, setting aside, never hiding, those that are no events: a dead node leaves a torn last line."""
    events: list[Event] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            events.append(Event.from_json(line))
        except EventError as error:
            problems.append(f"line {number}: {error}")
    return ParsedEvents(events=tuple(events), problems=tuple(problems))


@dataclass(frozen=True)
class EventLog:
    """A file that events are appended to, by any number of processes at once.

    Each event is one ``write`` to a descriptor opened with O_APPEND: lines of concurrent writers never mix.
    """

    path: Optional[Path]
    """None: events go nowhere, for a program tried outside a cluster."""
    source: str
    cluster: str = ""
    node: str = ""
    job: str = ""
    clock: Callable[[], int] = time.time_ns

    @staticmethod
    def from_environment(*, source: str, environment: Mapping[str, str] = os.environ) -> "EventLog":
        """The log of this node, as the job environment names it; one that goes nowhere outside a cluster."""
        path = environment.get("HOLDFAST_EVENTS")
        return EventLog(
            path=Path(path) if path else None,
            source=source,
            cluster=environment.get("HOLDFAST_CLUSTER", ""),
            node=environment.get("HOLDFAST_INSTANCE_ID", ""),
            job=environment.get("SLURM_ARRAY_JOB_ID") or environment.get("SLURM_JOB_ID", ""),
        )

    def write(
        self,
        *,
        kind: str,
        cluster: Optional[str] = None,
        node: Optional[str] = None,
        job: Optional[str] = None,
        fault: str = "",
        evidence: str = "",
        action: str = "",
        duration_s: Optional[float] = None,
        detail: Optional[Detail] = None,
    ) -> Event:
        """Append one event; what is not given comes from the log itself. Raises OSError when it cannot be kept."""
        event = Event(
            time_ns=self.clock(),
            source=self.source,
            kind=kind,
            cluster=self.cluster if cluster is None else cluster,
            node=self.node if node is None else node,
            job=self.job if job is None else job,
            fault=fault,
            evidence=evidence,
            action=action,
            duration_s=duration_s,
            detail={} if detail is None else dict(detail),
        )
        if self.path is not None:
            _append(self.path, event.to_json().encode() + b"\n")
        return event


def _append(path: Path, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        # O_CREAT only now: the kernel refuses it on another user's file in a world-writable sticky directory.
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
    try:
        written = os.write(descriptor, line)
    finally:
        os.close(descriptor)
    if written != len(line):
        raise OSError(f"event only partly written to {path}: {written} of {len(line)} bytes; is the disk full?")


def events_log_group(cluster_name: str) -> str:
    """The CloudWatch log group that carries a cluster's events."""
    return f"/holdfast/{cluster_name}/events"


def detail_number(event: Event, name: str) -> Optional[float]:
    """A number of an event's detail, or None when it is absent or no number."""
    value = event.detail.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
