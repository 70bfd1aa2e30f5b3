"""Remarks about a submission: to people, on standard error, one line each."""

from collections.abc import Mapping, Sequence

from holdfast.cli.terminal import error_console

MOST_NAMED = 4


def tell(line: str) -> None:
    """Print a remark."""
    error_console.print(line, style="yellow")


def shown(names: Sequence[str]) -> str:
    """Names without line breaks or control characters in them, the first few of many."""
    named = ", ".join(one if one.isprintable() else repr(one) for one in names[:MOST_NAMED])
    return named if len(names) <= MOST_NAMED else f"{named} and {len(names) - MOST_NAMED} more"


def left_out_line(left_out: Mapping[str, Sequence[str]]) -> str:
    """What does not travel, and why; empty where all does."""
    if not left_out:
        return ""
    return "left out: " + "; ".join(f"{shown(paths)} ({why})" for why, paths in left_out.items())
