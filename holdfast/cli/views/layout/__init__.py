"""Layout on narrow terminals, and colours of states."""

from holdfast.cli.views.layout.breaking import at_words, broken, uncut
from holdfast.cli.views.layout.facts import Facts
from holdfast.cli.views.layout.fitted import Column, Fitted
from holdfast.cli.views.layout.states import coloured

__all__ = ["Column", "Facts", "Fitted", "at_words", "broken", "coloured", "uncut"]
