"""State of a cluster's event log, of bounded size, from events in order of time. Pure."""

from holdfast.cli.console.state.jobs import JobState, Series
from holdfast.cli.console.state.log import MOST_JOBS, SETTLES_NS, LogState
from holdfast.cli.console.state.recent import MOST, MOST_REPORTS, REPORTS

__all__ = ["MOST", "MOST_JOBS", "MOST_REPORTS", "REPORTS", "SETTLES_NS", "JobState", "LogState", "Series"]
