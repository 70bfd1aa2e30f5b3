"""Published failure counts; data and sources in the JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("failure_rates.json")


@dataclass(frozen=True, kw_only=True)
class ObservedFailures:
    """Failures that stopped a training job, counted over many instance-hours."""

    name: str
    accelerator: str
    failures: int
    instance_hours: float
    published_percent: float
    """The rate per instance-hour as it was published, in percent."""
    how: str
    source: str
    date: str

    @property
    def per_instance_hour(self) -> float:
        return self.failures / self.instance_hours


@dataclass(frozen=True, kw_only=True)
class ComponentFailures:
    component: str
    failures: int
    published_share_percent: float
    per_instance_hour: float


@dataclass(frozen=True, kw_only=True)
class FailureRates:
    observations: tuple[ObservedFailures, ...]
    stand_ins: Mapping[str, str]
    """Accelerator without an observation: the one whose observations stand in."""
    components: tuple[ComponentFailures, ...]
    components_source: str


def failure_rates(path: Path | None = None) -> FailureRates:
    """Read the rates. Default: Holdfast's own. Raises: ValueError: another form. OSError: unreadable."""
    document: dict[str, Any] = json.loads((path or DATA).read_text())
    try:
        components = document.get("components")
        return FailureRates(
            observations=tuple(ObservedFailures(**row) for row in document["observations"]),
            stand_ins=dict(document.get("stand_ins", {}).get("values", {})),
            components=() if components is None else _components(components),
            components_source="" if components is None else str(components["source"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path or DATA} has not the form of {DATA.name}: {error}") from None


def _components(table: dict[str, Any]) -> tuple[ComponentFailures, ...]:
    return tuple(
        ComponentFailures(
            component=name,
            failures=count,
            published_share_percent=table["published_share_percent"][name],
            per_instance_hour=count / table["instance_hours"],
        )
        for name, count in table["interruptions"].items()
    )
