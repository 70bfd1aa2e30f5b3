"""What is measured, by the name of a metric and its labels: between detectors, and whoever serves or sends it."""

from collections.abc import Mapping

Metric = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels, which are pairs of name and value."""
Numbers = Mapping[Metric, float]
