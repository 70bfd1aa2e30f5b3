"""Names and values side by side; values wrap at words."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from holdfast.cli.views.layout.breaking import at_words, uncut

GAP = 2


class Facts:
    """Rows of a name and a value; a row without a name continues the previous one."""

    def __init__(self, rows: Sequence[tuple[str, str | Text]]) -> None:
        self._rows = [(name, value if isinstance(value, Text) else Text(value)) for name, value in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max((cell_len(name) for name, _ in self._rows), default=0) + GAP
        for name, value in self._rows:
            parts = list(at_words(value, options.max_width - width)) or [Text()]
            for number, part in enumerate(parts):
                yield uncut(Text.assemble(((name if number == 0 else "").ljust(width), "bold"), part))
