"""How what is printed stays whole on a narrow terminal, and what colours mean."""

from ._breaking import at_words, broken, uncut
from ._facts import Facts
from ._fitted import Column, Fitted
from ._states import coloured

__all__ = ["Column", "Facts", "Fitted", "at_words", "broken", "coloured", "uncut"]
