"""Published tables on a terminal, with figures that differ from their formula."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.planner import PublishedFigure, PublishedTable


def render_published(tables: Sequence[PublishedTable]) -> RenderableType:
    parts: list[RenderableType] = []
    for published in tables:
        columns = list(dict.fromkeys(figure.column for figure in published.figures))
        cells = {(figure.row, figure.column): published_cell(figure) for figure in published.figures}
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title=published.title, title_justify="left"
        )
        table.add_column(published.rows)
        for column in columns:
            table.add_column(column, justify="right")
        for row in dict.fromkeys(figure.row for figure in published.figures):
            table.add_row(row, *(cells.get((row, column), "") for column in columns))
        parts += [table, Text(f"formula: {published.formula}", style="dim")]
        parts += [Text(difference(figure), style="yellow") for figure in published.figures if not figure.agrees]
        parts.append(Text())
    differ = sum(not figure.agrees for published in tables for figure in published.figures)
    count = sum(len(published.figures) for published in tables)
    parts.append(Text(f"{count - differ} of {count} published figures are what their formula gives, {differ} differ"))
    return Group(*parts)


def published_cell(figure: PublishedFigure) -> str:
    text = _rounded(figure.published)
    return text if figure.agrees else f"{text} ({_rounded(figure.formula)})"


def difference(figure: PublishedFigure) -> str:
    return (
        f"{figure.row}, {figure.column}: published {_rounded(figure.published)}, the formula gives "
        f"{_rounded(figure.formula)} ({figure.exact:,.2f}); {figure.why}"
    )


def _rounded(value: float) -> str:
    return f"{value:,g}" if value < 1e6 else f"{value:,.0f}"
