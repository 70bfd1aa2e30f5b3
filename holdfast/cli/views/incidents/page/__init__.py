"""Incidents as one page on a time axis, for screen, phone and paper. Loads nothing from anywhere."""

from holdfast.cli.views.incidents.page.html_page import is_ours, page, picture

__all__ = ["is_ours", "page", "picture"]
