"""Findings of ``holdfast why`` on a terminal, in the order in which people look."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.diagnosis import Diagnosis, Suspect, WaitingRank, shown_span
from holdfast.cli.views.layout import Facts

_STYLES = {"at-fault": "bold red", "unknown": "yellow", "waits": "yellow", "runs": "green", "ended": ""}
MOST_WAITING = 8


def render_diagnosis(found: Diagnosis) -> Group:
    head = Text.assemble(f"job {found.job} ({found.state}): ", (found.summary, _STYLES[found.verdict]))
    since = [("stands still", f"since {found.stands_since} (the last finished step)")] if found.stands_since else []
    ranks = [
        *_rows("waited for", [_with_span(one.text, one.since_s) for one in _beside(found)]),
        *_rows("waiting", _waiting(found)),
        *_rows("stacks", _stacks(found)),
        *_rows("numbers", found.numbers),
    ]
    facts: list[tuple[str, str | Text]] = [
        *_rows("changed", found.changed),
        *_rows("errors", found.errors, style="red"),
        *_rows("step time", [found.step_time]),
        *_rows("last step", [found.last_step]),
        *since,
        *([] if _is_calm(found) else ranks),
        *_rows("reason", [line for line in found.reason if not found.summary.startswith(line)]),
        *_rows("next", found.next),
        *_rows("output", found.output, style="dim"),
        *_rows("not seen", found.unseen, style="yellow"),
    ]
    parts: list[RenderableType] = [head]
    return Group(*parts, *([Facts(facts)] if facts else []))


def _is_calm(found: Diagnosis) -> bool:
    """Return True for a job at its usual pace, whose ranks wait for each other in each step."""
    return found.verdict == "runs" and (not found.step_time or found.step_time.startswith("steady"))


def _beside(found: Diagnosis) -> Sequence[Suspect]:
    """Return those that the rows of the reason do not show."""
    return [one for one in found.waited_for if one.text not in found.reason]


def _rows(name: str, lines: Sequence[str], *, style: str = "") -> list[tuple[str, str | Text]]:
    shown = [line for line in lines if line]
    return [(name if place == 0 else "", Text(line, style=style)) for place, line in enumerate(shown)]


def _with_span(text: str, seconds: float | None) -> str:
    return text if seconds is None else f"{text}, for {shown_span(seconds)}"


def _waiting(found: Diagnosis) -> list[str]:
    lines = [_with_span(_place_of(one), one.since_s) for one in found.waiting[:MOST_WAITING]]
    more = len(found.waiting) - MOST_WAITING
    return [*lines, f"{more} more ranks wait"] if more > 0 else lines


def _place_of(rank: WaitingRank) -> str:
    phase = f", phase {rank.phase}" if rank.phase else ""
    return f"rank {rank.rank} on {rank.node} (pid {rank.pid}){phase}" + (f", at {rank.place}" if rank.place else "")


def _stacks(found: Diagnosis) -> list[str]:
    lines: list[str] = []
    for one in found.stacks:
        if one.missing:
            lines.append(f"rank {one.rank}: {one.missing}")
        lines += [f"rank {one.rank}: {frame}" if place == 0 else f"  {frame}" for place, frame in enumerate(one.frames)]
    return lines
