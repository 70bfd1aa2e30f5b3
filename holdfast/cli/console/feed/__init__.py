"""From a cluster to the board that open pages show: sources, history, pace."""

from holdfast.cli.console.feed.board import Board, PagePosition
from holdfast.cli.console.feed.feed import Feed
from holdfast.cli.console.feed.history import Source
from holdfast.cli.console.feed.intake import Intake
from holdfast.cli.console.feed.pacing import Pace, Paced
from holdfast.cli.console.feed.sections import Reading
from holdfast.cli.console.feed.source import ClusterFacts, ClusterSource, event_of_service

__all__ = [
    "Board",
    "ClusterFacts",
    "ClusterSource",
    "Feed",
    "Intake",
    "Pace",
    "Paced",
    "PagePosition",
    "Reading",
    "Source",
    "event_of_service",
]
