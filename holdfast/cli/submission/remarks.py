"""Remarks about a submission, one line each on standard error."""

from collections.abc import Mapping, Sequence

from holdfast.cli.terminal import error_console

MOST_NAMED = 4


def tell(line: str) -> None:
    error_console.print(line, style="yellow")


def shown(names: Sequence[str]) -> str:
    """Names without control characters; the first few of many."""
    named = ", ".join(one if one.isprintable() else repr(one) for one in names[:MOST_NAMED])
    return named if len(names) <= MOST_NAMED else f"{named} and {len(names) - MOST_NAMED} more"


def left_out_line(left_out: Mapping[str, Sequence[str]]) -> str:
    """Entries that are not uploaded, and why; empty if all are."""
    if not left_out:
        return ""
    return "left out: " + "; ".join(f"{shown(paths)} ({why})" for why, paths in left_out.items())


def pointer_line(path: str) -> str:
    return f"{shown([path])} is a Git LFS pointer and not the file; fetch it with: git lfs pull"
