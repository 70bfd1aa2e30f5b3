"""
Sanitizer of foreign texts for terminals, pages and logs, and the nearest of several words.

Job names, evidence and messages may hold terminal control characters, bidirectional overrides, or invalid UTF-8. Each
is shown as its number.
"""

import unicodedata
from collections.abc import Iterable
from typing import Optional

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def plain(text: str) -> str:
    """One line: line ends are shown as numbers, too."""
    return _shown(text, kept="\t")


def visible(text: str) -> str:
    return _shown(text, kept="\t\n")


def closest_word(word: str, words: Iterable[str]) -> Optional[str]:
    """Return the word that a mistyped one probably means, whatever its case; None where none is near."""
    import difflib  # only after a mistake

    by_lower = {each.lower(): each for each in words}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def _shown(text: str, *, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        one if one in kept or unicodedata.category(one) not in _HIDDEN else f"\\u{ord(one):04x}" for one in text
    )
