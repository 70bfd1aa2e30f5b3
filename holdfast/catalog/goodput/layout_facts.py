"""Figures for the plan of a model's layout; data and sources in the JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("layouts.json")


@dataclass(frozen=True, kw_only=True)
class Sourced:
    value: float
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class RecoveryTerm:
    """Part of a recovery in which no state is copied. Seconds."""

    name: str
    low_s: float
    high_s: float
    at_ranks: int
    """Ranks that the seconds are of, and grow with; 0 if they do not depend on the number of ranks."""
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class PublishedRecovery:
    name: str
    accelerators: int
    recovery_s: float
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class LayoutFacts:
    models: Mapping[str, Sourced]
    """Parameters."""
    values: Mapping[str, Sourced]
    recovery: tuple[RecoveryTerm, ...]
    goal_s: float
    """Recovery that 256 nodes are to reach."""
    published: tuple[PublishedRecovery, ...]


def layout_facts() -> LayoutFacts:
    document: dict[str, Any] = json.loads(DATA.read_text())
    return LayoutFacts(
        models={name: Sourced(**row) for name, row in document["models"].items()},
        values={name: Sourced(**row) for name, row in document["values"].items()},
        recovery=tuple(RecoveryTerm(**row) for row in document["recovery"]),
        goal_s=document["goal_s"],
        published=tuple(PublishedRecovery(**row) for row in document["published"]),
    )
