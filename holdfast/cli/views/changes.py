import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from holdfast.updates import Change, GuardProblem


LONGEST_VALUE = 40


def render_changes(stack_name: str, changes: "list[Change]", problems: "list[GuardProblem]") -> Group:
    from holdfast.updates import ALLOW_REPLACEMENT

    parts: list[Any] = [_table(changes), Text()] if changes else []
    own = (problem for problem in problems if problem.path == ALLOW_REPLACEMENT)
    parts += [Text(str(problem), style="red" if problem.severity == "error" else "yellow") for problem in own]
    blocked = sum(change.blocked for change in changes)
    if not changes:
        parts.append(Text(f"{stack_name} matches the file", style="green"))
    elif blocked:
        parts.append(Text(f"{blocked} of {_counted(len(changes))} refused", style="bold red"))
    else:
        parts.append(Text(f"{_counted(len(changes))}, none refused; holdfast check judges the file", style="green"))
    return Group(*parts)


def _table(changes: "list[Change]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column, ratio in (
        ("setting", 4),
        ("deployed", 2),
        ("file", 2),
        ("what happens", 2),
        ("why", 4),
        ("action", 4),
    ):
        table.add_column(column, overflow="fold", ratio=ratio)
    for change in changes:
        table.add_row(
            change.path,
            _shown(change.old),
            _shown(change.new),
            _effect(change),
            change.reason,
            _to_do(change),
        )
    return table


def _effect(change: "Change") -> Text:
    if change.blocked:
        return Text(change.effect.words, style="bold red")
    words = f"{change.effect.words}, allowed" if change.effect.needs_leave else change.effect.words
    return Text(words, style="yellow" if change.effect.disturbs else "green")


def _to_do(change: "Change") -> str:
    allow = (
        f"to allow it, add {change.path} to allow_replacement" if change.blocked and change.effect.needs_leave else ""
    )
    return "; ".join(part for part in (change.action, allow) if part)


def _counted(changes: int) -> str:
    return f"{changes} change{'s' if changes != 1 else ''}"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict) and "name" in value:
        return "there"
    text = value if isinstance(value, str) else json_format.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def plain_change(change: "Change") -> dict[str, Any]:
    return {**asdict(change), "effect": change.effect.words, "blocked": change.blocked}
