"""Recovery times by strategy and cluster size; data and sources in the JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DATA = Path(__file__).with_name("recovery_stages.json")


@dataclass(frozen=True, kw_only=True)
class MeasuredRecovery:
    """Seconds of each stage at a cluster size."""

    instances: int
    detect_s: float
    replace_s: float
    """From the notice until another instance is in the lost one's place; not waited for where a spare takes it."""
    resume_s: float
    """From having all instances until the next step runs."""


@dataclass(frozen=True, kw_only=True)
class RecoveryStages:
    name: str
    title: str
    spares: Literal["none", "optional", "needed"]
    """Whether it takes spares: it does without, they shorten it, or it is built on them."""
    redo: Literal["checkpoint", "step"]
    """What is done again: everything since the last checkpoint, or the step that was lost."""
    waits_for_replacement: bool
    """Whether training stands still while instances are missing; otherwise it goes on with fewer."""
    replaced_by: Literal["hyperpod", "people"]
    """Who brings a new instance: what is known of how long that takes is true of every strategy that has it done so."""
    measured: tuple[MeasuredRecovery, ...]
    """Means, for sums over many failures; the note names exceptions."""
    note: str
    source: str
    date: str
    percentile_90: tuple[MeasuredRecovery, ...] = ()
    """What nine of ten recoveries stayed below, where it is known; never taken for a mean."""

    def percentile_90_at(self, instances: int) -> MeasuredRecovery | None:
        """Row of the nearest size by ratio; None if unknown."""
        return min(
            self.percentile_90,
            key=lambda row: max(row.instances, instances) / min(row.instances, instances),
            default=None,
        )


def recovery_stages(path: Path | None = None) -> Mapping[str, RecoveryStages]:
    """Read strategies, the plainest first. Default: Holdfast's own. Raises: ValueError: another form. OSError."""
    document: dict[str, Any] = json.loads((path or DATA).read_text())
    try:
        return {name: _stages(name, row) for name, row in document["strategies"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path or DATA} has not the form of {DATA.name}: {error}") from None


def _stages(name: str, row: dict[str, Any]) -> RecoveryStages:
    for key, allowed in (
        ("redo", ("checkpoint", "step")),
        ("spares", ("none", "optional", "needed")),
        ("replaced_by", ("hyperpod", "people")),
    ):
        if row[key] not in allowed:
            raise TypeError(f"strategy {name!r} has {key} {row[key]!r}; allowed: {', '.join(allowed)}")
    if not row["measured"]:
        raise TypeError(f"strategy {name!r} needs at least one measured row")
    tables = {key: _by_size(row.get(key, ())) for key in ("measured", "percentile_90")}
    return RecoveryStages(**{**row, "name": name, **tables})


def _by_size(rows: Iterable[dict[str, Any]]) -> tuple[MeasuredRecovery, ...]:
    return tuple(sorted((MeasuredRecovery(**each) for each in rows), key=lambda each: each.instances))
