"""How what is printed stays whole on a narrow terminal, and what colours mean."""

from .breaking import at_words, broken, uncut
from .facts import Facts
from .fitted import Column, Fitted
from .states import coloured

__all__ = ["Column", "Facts", "Fitted", "at_words", "broken", "coloured", "uncut"]
