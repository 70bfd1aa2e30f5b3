"""Price of an instance-hour by offer; data, dates and sources in the JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("prices.json")


@dataclass(frozen=True, kw_only=True)
class Price:
    """Hourly price of an instance type under an offer."""

    offer: str
    instance_type: str
    region: str
    usd_per_instance_hour: float
    date: str
    source: str
    proxy: bool
    """Whether it stands in for a price that is not published."""
    note: str


def prices(path: Path | None = None) -> tuple[Price, ...]:
    """Read the prices. Default: Holdfast's own. Raises: ValueError: another form. OSError: unreadable."""
    document: dict[str, Any] = json.loads((path or DATA).read_text())
    try:
        offers = document["offers"]
        return tuple(
            Price(**row, source=offers[row["offer"]]["source"], **_flags(offers[row["offer"]]))
            for row in document["prices"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path or DATA} has not the form of {DATA.name}: {error}") from None


def _flags(offer: dict[str, Any]) -> dict[str, Any]:
    return {"proxy": bool(offer.get("proxy", False)), "note": str(offer.get("note", ""))}
