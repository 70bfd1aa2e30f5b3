"""
Sanitizer of foreign texts for terminals, pages and logs.

Job names, evidence and messages may hold terminal control characters, bidirectional overrides, or invalid UTF-8. Each
is shown as its number.
"""

import unicodedata

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def plain(text: str) -> str:
    """One line: line ends are shown as numbers, too."""
    return _shown(text, kept="\t")


def visible(text: str) -> str:
    return _shown(text, kept="\t\n")


def _shown(text: str, *, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        one if one in kept or unicodedata.category(one) not in _HIDDEN else f"\\u{ord(one):04x}" for one in text
    )
