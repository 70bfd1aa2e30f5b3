"""Style of all pages, on screen, phone and paper."""

from holdfast.cli.views.pages.style import STYLE

__all__ = ["STYLE"]
