"""Filters of events and of log lines. Pure: the current time is an argument."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.cli.terminal import CommandError
from holdfast_common import Event, kinds

KINDS = frozenset(value for name, value in vars(kinds).items() if name.isupper() and isinstance(value, str))
_SPAN = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TIME = re.compile(
    r"^(?:\[?[\w./-]*\]?:?\s*)?\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)"
)
_FORM = "allowed: a time such as 2026-11-22T18:00 (UTC unless it names a zone), or an age such as 90s, 30m, 2h, 1d"


@dataclass(frozen=True, kw_only=True)
class Choice:
    kinds: frozenset[str] = frozenset()
    node: str = ""
    """Instance id or host name."""
    job: str = ""
    since_ns: int = 0

    def of(self, events: Iterable[Event]) -> Iterator[Event]:
        """Filter events, in their order. Raises: CommandError: no component writes one of the kinds."""
        unknown = set(self.kinds - KINDS)
        for event in events:
            if unknown:
                unknown.discard(event.kind)
            if self.matches(event):
                yield event
        if unknown:
            raise CommandError(f"got --kind {', '.join(sorted(unknown))}; allowed: {', '.join(sorted(KINDS))}")

    def matches(self, event: Event) -> bool:
        return (
            (not self.kinds or event.kind in self.kinds)
            and (not self.node or self.node in (event.node, event.detail.get("host"), event.detail.get("replaces")))
            and (not self.job or event.job == self.job)
            and event.time_ns >= self.since_ns
        )


def parse_since(text: str, *, now: datetime) -> int:
    """Return nanoseconds since 1970. Raises: CommandError: the text is neither a time nor an age."""
    if span := _SPAN.fullmatch(text.strip()):
        try:
            at = now - timedelta(seconds=int(span[1]) * _UNITS_S[span[2]])
        except OverflowError:
            raise CommandError(f"got --since {text!r}; {_FORM}") from None
    else:
        try:
            at = datetime.fromisoformat(text.strip())
        except ValueError:
            raise CommandError(f"got --since {text!r}; {_FORM}") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    try:
        return max(int(at.timestamp()), 0) * 1_000_000_000
    except (OverflowError, ValueError):
        raise CommandError(f"got --since {text!r}; {_FORM}") from None


@dataclass(frozen=True, kw_only=True)
class LineChoice:
    tail: int | None = None
    since_ns: int | None = None
    pattern: re.Pattern[str] | None = None

    @staticmethod
    def parse(*, tail: int | None, since_ns: int | None, grep: str | None) -> "LineChoice":
        """Raises: CommandError: ``grep`` is no regular expression."""
        try:
            pattern = re.compile(grep) if grep is not None else None
        except re.error as error:
            raise CommandError(f"got --grep {grep!r}, no regular expression: {error}") from None
        return LineChoice(tail=tail, since_ns=since_ns, pattern=pattern)

    def of(self, lines: Iterable[str]) -> list[str]:
        """Filter lines that carry their times. Raises: CommandError: no line has a time to filter by."""
        return self._of_timed(lines if self.since_ns is None else since(list(lines), self.since_ns))

    def of_timed(self, lines: Iterable[tuple[int, str]]) -> list[str]:
        """Filter (nanoseconds since 1970, line)."""
        return self._of_timed(line for at_ns, line in lines if self.since_ns is None or at_ns >= self.since_ns)

    def matching(self, lines: Iterable[str]) -> list[str]:
        return [line for line in lines if self.pattern is None or self.pattern.search(line)]

    def _of_timed(self, lines: Iterable[str]) -> list[str]:
        found = self.matching(lines)
        return found if self.tail is None else list(deque(found, maxlen=self.tail))


def since(lines: Sequence[str], since_ns: int) -> list[str]:
    """Return the lines since ``since_ns``. Raises: CommandError: no line begins with a time."""
    times = ((place, time_ns(line)) for place, line in enumerate(lines))
    known = [(place, at_ns) for place, at_ns in times if at_ns is not None]
    if lines and not known:
        raise CommandError("got --since, and no line of this output begins with a time; use --tail N")
    first = next((place for place, at_ns in known if at_ns >= since_ns), len(lines))
    return list(lines[first:])


def time_ns(line: str) -> int | None:
    """Time of a line that begins with one (ISO 8601; UTC unless it names a zone); None without one."""
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found[1].replace(",", "."))
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000_000)
