"""Write the tables of docs/events.md from the kinds of events and the taxonomy of faults: ``make schema``."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from holdfast_common import FAULTS, SOURCES, kinds

PAGE = Path(__file__).resolve().parents[1] / "docs" / "events.md"


def kind_rows() -> Iterator[tuple[str, str, str]]:
    """Kind, source and meaning of each constant of ``kinds``, as the text below it says."""
    body = ast.parse(Path(kinds.__file__).read_text()).body
    for constant, text in pairwise([*body, ast.Pass()]):
        if not isinstance(constant, ast.Assign):
            continue
        name = ast.unparse(constant.targets[0])
        documented = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        words = " ".join(str(text.value.value).split()) if documented else ""  # type: ignore[attr-defined]
        source, _, meaning = words.partition(": ")
        if source not in SOURCES or not meaning:
            raise SystemExit(
                f"kinds.{name} is not documented: got {words!r} below it; write '<source>: <meaning>', "
                f"the source one of {', '.join(SOURCES)}"
            )
        yield getattr(kinds, name), source, meaning


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table whose first column is code."""
    lines = [_row(head), "|---" * len(head) + "|", *(_row((f"`{row[0]}`", *row[1:])) for row in rows)]
    return "\n".join(lines)


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """The page with its tables as the code says."""
    faults = ((one.name, one.signal, one.severity.value, one.remedy.value) for one in FAULTS)
    for section, text in (
        ("Kinds", table(("kind", "source", "meaning"), kind_rows())),
        ("Faults", table(("name", "signal", "severity", "least remedy"), faults)),
    ):
        page, count = re.subn(rf"(\n## {section}\n(?:\n(?!\|).*)*?\n)(?:\|.*\n)+", partial(_with_table, text), page)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has no table below the heading '{section}'; put one there")
    return page


def _with_table(text: str, found: "re.Match[str]") -> str:
    return f"{found[1]}{text}\n"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
