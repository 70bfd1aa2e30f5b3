"""One event in a line; on a narrow terminal in a few."""

from collections.abc import Iterable
from datetime import UTC, datetime

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from holdfast.cli.views.layout import at_words, broken, uncut
from holdfast_common import Event, plain

COLOURS = {"control-plane": "cyan", "lifecycle": "blue", "job": "green", "cli": "magenta"}
BAD_KINDS = frozenset({"fault_injected", "node_lost", "node_failed", "step_failed", "cluster_failed", "job_stopped"})
INDENT = "    "


class EventLine:
    """Time in UTC, source, node, kind and details of an event; a single line in a pipe, to be searched."""

    def __init__(self, event: Event) -> None:
        self._event = event

    @property
    def plain(self) -> str:
        """Return the line without a console, which is too slow for a log."""
        event = self._event
        head = f"{_moment(event)}  {event.source:<13} {plain(event.node):<19} {plain(event.kind):<19}"
        return f"{head} {self._facts()}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head, facts = Text.assemble(*self._head()), Text(self._facts())
        whole = Text.assemble(head, " ", facts)
        if not console.is_terminal or cell_len(whole.plain) <= options.max_width:
            yield uncut(whole)
            return
        yield from broken(head, options.max_width, indent=INDENT)
        for part in at_words(facts, options.max_width - len(INDENT)):
            yield uncut(Text.assemble(INDENT, part))

    def _head(self) -> tuple[tuple[str, str], ...]:
        event = self._event
        return (
            (_moment(event), "dim"),
            ("  ", ""),
            (f"{event.source:<13}", COLOURS.get(event.source, "white")),
            (f" {plain(event.node):<19} ", ""),
            (f"{plain(event.kind):<19}", "bold red" if event.kind in BAD_KINDS else "bold"),
        )

    def _facts(self) -> str:
        return "  ".join(event_facts(self._event))


def _moment(event: Event) -> str:
    at = datetime.fromtimestamp(event.time_ns / 1e9, tz=UTC).isoformat(sep=" ", timespec="milliseconds")
    return at.removesuffix("+00:00")


def event_facts(event: Event) -> list[str]:
    """Fault, action, evidence, job, details and duration of an event, made safe to show."""
    return [plain(fact) for fact in _facts(event) if fact]


def _facts(event: Event) -> Iterable[str]:
    evidence = "; ".join(line for line in event.evidence.splitlines() if line)
    yield from (event.fault, event.action, evidence, f"job {event.job}" if event.job else "")
    yield from (f"{key}={_short(value)}" for key, value in sorted(event.detail.items()))
    if event.duration_s is not None:
        yield f"{event.duration_s:.1f} s"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
