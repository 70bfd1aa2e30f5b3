"""Which events are wanted. Pure: the time of now is given."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.cli.terminal import CommandError
from holdfast_common import Event, kinds

KINDS = frozenset(value for name, value in vars(kinds).items() if name.isupper() and isinstance(value, str))
_SPAN = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORM = "allowed: a time such as 2026-11-22T18:00 (UTC unless it names a zone), or an age such as 90s, 30m, 2h, 1d"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What of the cluster's events is shown."""

    kinds: frozenset[str] = frozenset()
    node: str = ""
    """Instance id or host name."""
    job: str = ""
    since_ns: int = 0

    def of(self, events: Iterable[Event]) -> list[Event]:
        """
        Those that are wanted, in their order.

        Raises:
            CommandError: nobody writes a kind that was asked for.
        """
        given = list(events)
        unknown = sorted(self.kinds - KINDS - {event.kind for event in given})
        if unknown:
            raise CommandError(f"got --kind {', '.join(unknown)}; allowed: {', '.join(sorted(KINDS))}")
        return [event for event in given if self._wants(event)]

    def _wants(self, event: Event) -> bool:
        return (
            (not self.kinds or event.kind in self.kinds)
            and (not self.node or self.node in (event.node, event.detail.get("host"), event.detail.get("replaces")))
            and (not self.job or event.job == self.job)
            and event.time_ns >= self.since_ns
        )


def parse_since(text: str, *, now: datetime) -> int:
    """
    Nanoseconds since 1970.

    Raises:
        CommandError: it is neither a time nor an age.
    """
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
