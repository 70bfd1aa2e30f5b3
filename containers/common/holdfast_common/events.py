"""The event: one JSON line that says what happened, when, where, and what was done about it.

Control plane, lifecycle, jobs and the command line write the same schema; the status view, the incident report and
the planner read it. Reading never guesses: a line of another schema version, or one that is not an event, is refused
with the reason. A kind nobody has heard of is kept, so that writers may be newer than readers.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Optional

from holdfast_common.schema import VERSION, WRITTEN_ORDER, Detail, EventError, check_fields, is_integer, to_line


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
        check_fields(vars(self))

    def to_json(self) -> str:
        """One line, without the line end; ``from_json`` gives an equal event back."""
        return to_line(vars(self))

    @staticmethod
    def from_json(line: str) -> "Event":
        """Parse one line; raises EventError with the reason."""
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EventError(f"not JSON: {error}, got {line[:120]!r}") from None
        if not isinstance(values, dict):
            raise EventError(f"an event must be a JSON object, got {line[:120]!r}")
        version = values.get("version")
        if not is_integer(version) or version != VERSION:
            raise EventError(
                f"event version must be {VERSION}, got {version!r}; read it with the holdfast_common that wrote it"
            )
        unknown = sorted(values.keys() - set(WRITTEN_ORDER))
        missing = [name for name in ("time_ns", "source", "kind") if name not in values]
        if unknown or missing:
            raise EventError(f"event fields are wrong: unknown {unknown}, missing {missing}, got {line[:120]!r}")
        return Event(**values)


assert set(WRITTEN_ORDER) == {item.name for item in fields(Event)}


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


def detail_number(event: Event, name: str) -> Optional[float]:
    """A number of an event's detail, or None when it is absent or no number."""
    value = event.detail.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
