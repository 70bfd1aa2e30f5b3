"""Table, or a block of lines per row if it does not fit; nothing is cut."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from holdfast.cli.views.layout.breaking import broken, uncut

GAP = 2
LEAST_COLUMNS = 3
LEAST_WIDTH = 24
"""Of a last column that is broken: narrower ones are hard to read."""


@dataclass(frozen=True, kw_only=False)
class Column:
    name: str
    justify: Literal["left", "right"] = "left"


class Fitted:
    """
    Rows under headings.

    Args:
        rows: A cell per column; a cell is shown whole, if necessary on its own line.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> None:
        cells = [[one if isinstance(one, Text) else Text(one) for one in row] for row in rows]
        kept = [at for at in range(len(columns)) if any(row[at].plain for row in cells)]
        self._columns = [columns[at] for at in kept]
        self._rows = [[row[at] for at in kept] for row in cells]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._width() <= options.max_width or self._last_can_break(options.max_width):
            yield self._table()
            return
        yield from self._blocks(options.max_width)

    def _width(self) -> int:
        widths = [
            max(cell_len(column.name), *(cell_len(row[at].plain) for row in self._rows), 0)
            for at, column in enumerate(self._columns)
        ]
        return sum(widths) + GAP * max(len(widths) - 1, 0)

    def _last_can_break(self, width: int) -> bool:
        """Return True if the table fits with the last column wrapped at words."""
        if not self._rows or len(self._columns) < LEAST_COLUMNS:
            return False
        words = [word for row in self._rows for word in row[-1].plain.split()]
        longest = max((cell_len(word) for word in words), default=0)
        whole = max(cell_len(self._columns[-1].name), *(cell_len(row[-1].plain) for row in self._rows))
        return self._width() - whole + max(longest, LEAST_WIDTH) <= width

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", title_justify="left")
        for column in self._columns[:-1]:
            table.add_column(column.name, justify=column.justify, no_wrap=True, overflow="ignore")
        for column in self._columns[-1:]:
            table.add_column(column.name, justify=column.justify)
        for row in self._rows:
            table.add_row(*row)
        return table

    def _blocks(self, width: int) -> Iterator[Text]:
        for row in self._rows:
            pieces = [
                cell if at == 0 else Text.assemble((f"{column.name} ", "dim"), cell)
                for at, (column, cell) in enumerate(zip(self._columns, row, strict=True))
                if cell.plain
            ]
            line = Text()
            for piece in pieces:
                if line.plain and cell_len(line.plain) + GAP + cell_len(piece.plain) > width:
                    yield from _whole_words(line, width)
                    line = Text(" " * GAP)
                line = Text.assemble(line, " " * GAP if line.plain.strip() else "", piece)
            yield from _whole_words(line, width)


def _whole_words(line: Text, width: int) -> Iterator[Text]:
    if cell_len(line.plain) <= width:
        yield uncut(line)
        return
    margin = " " * (len(line.plain) - len(line.plain.lstrip()))
    yield from broken(line, width, indent=margin + " " * GAP)
