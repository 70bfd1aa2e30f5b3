"""
The console: one live, read-only page of a cluster, and the same page as one file.

``state`` (events to state) and ``model`` (state to what is shown) are pure; ``feed`` reads, ``serving`` answers.
"""

from holdfast.cli.console.page import served_files, written_page
from holdfast.cli.console.reports import cluster_fleet, cluster_log, write_page
from holdfast.cli.console.running import run_console, serve

__all__ = ["cluster_fleet", "cluster_log", "run_console", "serve", "served_files", "write_page", "written_page"]
