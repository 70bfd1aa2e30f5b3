"""
The event: one JSON line with time, place, kind, evidence and action.

Reading never guesses: a line of another schema version, or one that is not an event, is refused with the reason. An
unknown kind is kept, so that writers may be newer than readers. The collector decides the source of an event, not the
line: every user of a node can write the log of jobs, so its lines are a job's, of that node, and not of the future.
"""

import json
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Optional

from holdfast_common.log import stream_of_jobs
from holdfast_common.schema import VERSION, WRITTEN_ORDER, Detail, EventError, check_fields, is_integer, shown, to_line

_DECODE = json.JSONDecoder().raw_decode
_FIELDS = frozenset(WRITTEN_ORDER)
_REQUIRED = frozenset(("time_ns", "source", "kind"))

NO_EVENT = "[holdfast] no event in the log of jobs"
"""Prefix of a line that is not an event, so that it is not JSON and matches no filter."""
AHEAD_NS = 300_000_000_000
"""Allowance for a difference between the clocks of a node and of the collector."""
_OWN_STREAMS = {"control-plane": ("control-plane",), "cli": ("cli",)}
_OF_A_NODE = ("agent", "lifecycle", "job")


@dataclass(frozen=True)
class Event:
    """Times are UTC nanoseconds; empty strings mean "does not apply"."""

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
    """Action taken, or required."""
    duration_s: Optional[float] = None
    detail: Detail = field(default_factory=dict)
    version: int = VERSION

    def __post_init__(self) -> None:
        check_fields(vars(self))

    def to_json(self) -> str:
        """One line, without the line end."""
        return to_line(vars(self))

    @staticmethod
    def from_json(line: str) -> "Event":
        """Parse one line; raises EventError with the reason."""
        text = line.strip()
        try:
            values, end = _DECODE(text)
        except (ValueError, RecursionError) as error:
            raise EventError(f"not JSON: {error}, got {text[:120]!r}") from None
        if end != len(text):
            raise EventError(f"not JSON: something follows the object, got {text[end:][:120]!r}")
        if not isinstance(values, dict):
            raise EventError(f"an event must be a JSON object, got {text[:120]!r}")
        if tuple(values) != WRITTEN_ORDER:
            values = _completed(values, text)
        version = values["version"]
        if version != VERSION or not is_integer(version):
            raise EventError(
                f"event version must be {VERSION}, got {shown(version)}; read it with the holdfast_common that wrote it"
            )
        check_fields(values)
        # Setting each field of a frozen dataclass takes as long as all the rest.
        event = object.__new__(Event)
        vars(event).update(values)
        return event


assert {item.name for item in fields(Event)} == _FIELDS
_DEFAULTS = {item.name: item.default for item in fields(Event) if item.default is not MISSING}


def _completed(values: "dict[str, Any]", text: str) -> "dict[str, Any]":
    unknown, missing = sorted(values.keys() - _FIELDS), sorted(_REQUIRED - values.keys())
    if "version" not in values:
        raise EventError(f"event version must be {VERSION}, got None; an event names it")
    if unknown or missing:
        raise EventError(f"event fields are wrong: unknown {unknown}, missing {missing}, got {text[:120]!r}")
    return {**_DEFAULTS, "detail": {}, **values}


@dataclass(frozen=True)
class ParsedEvents:
    events: tuple[Event, ...]
    problems: tuple[str, ...]


def parse_events(lines: Iterable[str]) -> ParsedEvents:
    """Parse lines; report invalid ones: a dead node leaves a torn last line."""
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


def detail_number(event: Event, name: str) -> Optional[float]:
    """A number of an event's detail, or None."""
    value = event.detail.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def of_job(line: str, *, cluster: str, node: str, now_ns: int) -> str:
    """Sanitize a line of a log of jobs for shipping: its source, node, and no time after the collector's ``now_ns``."""
    try:
        event = Event.from_json(line)
    except EventError:
        return f"{NO_EVENT}: {line}"
    time_ns = event.time_ns if event.time_ns <= now_ns + AHEAD_NS else now_ns
    return replace(
        event, source="job", time_ns=time_ns, cluster=cluster or event.cluster, node=node or event.node
    ).to_json()


def is_of_stream(event: Event, stream: str) -> bool:
    """Return True if events of this source are put into that stream."""
    if stream.endswith(stream_of_jobs("")):
        return event.source == "job"
    return event.source in _OWN_STREAMS.get(stream, _OF_A_NODE)


LARGEST_STEP = 1 << 53
"""Up to it a float counts every whole number."""


def detail_step(event: Event) -> Optional[float]:
    """The step of an event's detail, or None."""
    step = event.detail.get("step")
    is_number = isinstance(step, (int, float)) and not isinstance(step, bool)
    return float(step) if is_number and 0 <= step < LARGEST_STEP else None  # type: ignore[operator,arg-type]
