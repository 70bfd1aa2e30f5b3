"""What is measured, by the name of a metric and its labels: between detectors, and whoever serves or sends it."""

from collections.abc import Mapping

Numbers = Mapping["tuple[str, tuple[tuple[str, str], ...]]", float]
"""Labels are pairs of name and value."""
