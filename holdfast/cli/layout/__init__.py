"""How tables stay whole on a narrow terminal, and what colours mean."""

from ._fitted import Column, Fitted
from ._states import coloured

__all__ = ["Column", "Fitted", "coloured"]
