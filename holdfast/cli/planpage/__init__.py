"""A plan as one page of tables and plots, for a screen, a phone and paper. It loads nothing from anywhere."""

from holdfast.cli.planpage._page import page

__all__ = ["page"]
