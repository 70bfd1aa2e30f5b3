"""Measured values by metric name and labels."""

from collections.abc import Mapping

Metric = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels, which are pairs of name and value."""
Numbers = Mapping[Metric, float]
