"""Which lines of a log are shown. Pure."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.cli.terminal import CommandError

_TIME = re.compile(
    r"^(?:\[?[\w./-]*\]?:?\s*)?\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)"
)


@dataclass(frozen=True, kw_only=True)
class LineChoice:
    """What of each file is shown."""

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
        """
        The lines that are wanted, of lines whose times are in themselves.

        Raises:
            CommandError: times are wanted, and no line has one.
        """
        return self._of_timed(lines if self.since_ns is None else since(list(lines), self.since_ns))

    def of_timed(self, lines: Iterable[tuple[int, str]]) -> list[str]:
        """The same of (nanoseconds since 1970, line)."""
        return self._of_timed(line for at_ns, line in lines if self.since_ns is None or at_ns >= self.since_ns)

    def matching(self, lines: Iterable[str]) -> list[str]:
        """Those that the pattern finds, for lines that come later."""
        return [line for line in lines if self.pattern is None or self.pattern.search(line)]

    def _of_timed(self, lines: Iterable[str]) -> list[str]:
        found = self.matching(lines)
        return found if self.tail is None else list(deque(found, maxlen=self.tail))


def since(lines: Sequence[str], since_ns: int) -> list[str]:
    """
    The lines from the first that begins with a time at or after ``since_ns``.

    Raises:
        CommandError: no line begins with a time.
    """
    times = ((place, time_ns(line)) for place, line in enumerate(lines))
    known = [(place, at_ns) for place, at_ns in times if at_ns is not None]
    if lines and not known:
        raise CommandError("got --since, and no line of this output begins with a time; use --tail N")
    first = next((place for place, at_ns in known if at_ns >= since_ns), len(lines))
    return list(lines[first:])


def time_ns(line: str) -> int | None:
    """Of a line that begins with a time as ISO 8601 has it, in UTC unless it names a zone; None without one."""
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found[1].replace(",", "."))
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000_000)
