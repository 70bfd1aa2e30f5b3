"""How long recoveries take, by strategy and cluster size; the figures and their sources are in the JSON beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DATA = Path(__file__).with_name("recovery_stages.json")


@dataclass(frozen=True, kw_only=True)
class MeasuredRecovery:
    """Seconds of each stage on a cluster of so many instances."""

    instances: int
    detect_s: float
    replace_s: float
    """From the notice until another instance is in the lost one's place; not waited for where a spare takes it."""
    resume_s: float
    """From having all instances until the next step runs."""


@dataclass(frozen=True, kw_only=True)
class RecoveryStages:
    """One way to recover."""

    name: str
    title: str
    spares: Literal["none", "optional", "needed"]
    """Whether it takes spares: it does without, they shorten it, or it is built on them."""
    redo: Literal["checkpoint", "step"]
    """What is done again: everything since the last checkpoint, or the step that was lost."""
    waits_for_replacement: bool
    """Whether training stands still while instances are missing; otherwise it goes on with fewer."""
    measured: tuple[MeasuredRecovery, ...]
    note: str
    source: str
    date: str


def recovery_stages(path: Path | None = None) -> Mapping[str, RecoveryStages]:
    """
    Read the strategies by name, the plainest first.

    Args:
        path: A file of the same form. Default: the one that Holdfast carries.

    Raises:
        ValueError: the file has another form.
        OSError: it cannot be read.
    """
    document: dict[str, Any] = json.loads((path or DATA).read_text())
    try:
        return {name: _stages(name, row) for name, row in document["strategies"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path or DATA} has not the form of {DATA.name}: {error}") from None


def _stages(name: str, row: dict[str, Any]) -> RecoveryStages:
    if row["redo"] not in ("checkpoint", "step") or row["spares"] not in ("none", "optional", "needed"):
        raise TypeError(f"strategy {name!r} needs redo checkpoint or step, and spares none, optional or needed")
    if not row["measured"]:
        raise TypeError(f"strategy {name!r} needs at least one measured row")
    measured = tuple(MeasuredRecovery(**each) for each in row["measured"])
    ordered = tuple(sorted(measured, key=lambda each: each.instances))
    return RecoveryStages(**{**row, "name": name, "measured": ordered})
