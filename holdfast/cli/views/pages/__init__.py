"""Common parts of pages: their files, plots drawn by uPlot, and pages that are one file."""

from holdfast.cli.views.pages.files import PageFile, document, is_page, page_file, plotting_files

__all__ = ["PageFile", "document", "is_page", "page_file", "plotting_files"]
