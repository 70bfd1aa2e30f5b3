"""Jobs as the commands know them: what is submitted, what runs, what became of those that ended."""

from ._words import CommandWithArguments, Words, arguments_after_dashes

__all__ = ["CommandWithArguments", "Words", "arguments_after_dashes"]
