"""A plan as one page of tables and plots, for a screen, a phone and paper. It loads nothing from anywhere."""

from holdfast.cli.views.plan_page.colours import every, strategy
from holdfast.cli.views.plan_page.html_page import page

__all__ = ["every", "page", "strategy"]
