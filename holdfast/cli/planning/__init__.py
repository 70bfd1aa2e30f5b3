"""What a plan is made of besides its options: an environment, events to learn from, files with other data."""

from holdfast.cli.planning.sources import data_from, learned, told_in

__all__ = ["data_from", "learned", "told_in"]
