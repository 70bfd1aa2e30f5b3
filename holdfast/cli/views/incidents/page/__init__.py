"""Incidents as one page on a time axis, for a screen, a phone and paper. It loads nothing from anywhere."""

from holdfast.cli.views.incidents.page.html_page import is_ours, page, picture

__all__ = ["is_ours", "page", "picture"]
