"""
Texts of others, made fit to be shown: on a terminal, on a page, in a log.

A name of a job, a line of evidence or a message of another program may hold what steers a terminal, turns the direction
of writing, or cannot be written as UTF-8. Each such character is shown as its number.
"""

import unicodedata

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def plain(text: str) -> str:
    """One line: a line end is shown as its number, too, so that no name looks like a line of its own."""
    return _shown(text, kept="\t")


def visible(text: str) -> str:
    """The same, of text that may have several lines."""
    return _shown(text, kept="\t\n")


def _shown(text: str, *, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        one if one in kept or unicodedata.category(one) not in _HIDDEN else f"\\u{ord(one):04x}" for one in text
    )
