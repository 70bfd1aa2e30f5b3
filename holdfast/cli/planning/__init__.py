"""Inputs of a plan: its options, an environment, events to learn from, files with other data."""

from holdfast.cli.planning.options import Options, PlanOptions
from holdfast.cli.planning.sources import data_from, events_of, learned

__all__ = ["Options", "PlanOptions", "data_from", "events_of", "learned"]
