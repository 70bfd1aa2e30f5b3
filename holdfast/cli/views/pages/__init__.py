"""What all pages that commands write have in common: how they look on a screen, on a phone and on paper."""

from holdfast.cli.views.pages.style import STYLE

__all__ = ["STYLE"]
