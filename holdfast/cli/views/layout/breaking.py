import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

_WORD = re.compile(r"\s*\S+")


def at_words(text: Text, width: int) -> Iterator[Text]:
    for line in text.split("\n", allow_blank=True):
        places: list[int] = []
        begun = 0
        for word in _WORD.finditer(line.plain):
            if word.start() > begun and cell_len(line.plain[begun : word.end()]) > width:
                begun = word.end() - len(word[0].lstrip())
                places.append(begun)
        for part in line.divide(places):
            part.rstrip()
            yield part


def uncut(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ignore"
    return line


def broken(text: Text, width: int, *, indent: str) -> Iterator[Text]:
    """Wrap, with all lines but the first indented."""
    for number, part in enumerate(at_words(text, width - len(indent))):
        yield uncut(part if number == 0 else Text.assemble(indent, part))
