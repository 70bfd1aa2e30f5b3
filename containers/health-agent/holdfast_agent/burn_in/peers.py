"""Comparison of a node with earlier nodes of its type."""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

LEAST_PEERS = 3
"""Fewer nodes give no reliable median."""
SHARES = {"disk": 0.1}
USUAL_SHARE = 0.5
"""Of the median. Figures per second of CPU time hardly vary; a disk's do, with what else it has to do."""


def medians(folder: Path) -> "dict[str, tuple[float, int]]":
    """Median of each figure over the reports in a folder, and their number; invalid files are skipped."""
    found: dict[str, list[float]] = {}
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        for name, value in _figures(path).items():
            found.setdefault(name, []).append(value)
    return {name: (statistics.median(values), len(values)) for name, values in found.items()}


def _figures(path: Path) -> "dict[str, float]":
    try:
        figures = json.loads(path.read_text("utf-8"))["figures"]
        return {str(name): float(value) for name, value in figures.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def slower(figures: "Mapping[str, float]", others: "Mapping[str, tuple[float, int]]") -> "tuple[str, ...]":
    problems = []
    for name, value in sorted(figures.items()):
        median, count = others.get(name, (0.0, 0))
        share = SHARES.get(name.partition("_")[0], USUAL_SHARE)
        if count >= LEAST_PEERS and value < median * share:
            problems.append(
                f"{name} is {value:g}, below {share:.0%} of {median:g}, the median of {count} nodes like it"
            )
    return tuple(problems)
