"""Content of the page, as plain data, from the state of the log and the nodes that AWS lists. Pure."""

from holdfast.cli.console.model.events import event_rows
from holdfast.cli.console.model.incidents import incidents_of
from holdfast.cli.console.model.jobs import jobs_of, series_of
from holdfast.cli.console.model.nodes import GroupFacts, NodeFacts, groups_of
from holdfast.cli.console.model.numbers import milliseconds

__all__ = ["GroupFacts", "NodeFacts", "event_rows", "groups_of", "incidents_of", "jobs_of", "milliseconds", "series_of"]
