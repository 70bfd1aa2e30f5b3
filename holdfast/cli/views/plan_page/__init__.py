"""Plan as one page of tables and plots, for screen, phone and paper. Loads nothing from anywhere."""

from holdfast.cli.views.plan_page.colours import every, strategy
from holdfast.cli.views.plan_page.html_page import page

__all__ = ["every", "page", "strategy"]
