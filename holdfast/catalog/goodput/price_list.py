"""Prices of instance-hours by offer, and of a stack's parts beside its nodes; dates and sources in the JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("prices.json")
STANDING = Path(__file__).with_name("standing_prices.json")


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


@dataclass(frozen=True, kw_only=True)
class StandingPrices:
    """List prices by name and unit, such as ``nat-gateway-hour``."""

    region: str
    date: str
    usd: dict[str, float]


def standing_prices() -> StandingPrices:
    """Read the list prices of a stack's parts beside its nodes."""
    document: dict[str, Any] = json.loads(STANDING.read_text())
    usd = {name: float(row["usd"]) for name, row in document["prices"].items()}
    return StandingPrices(region=document["region"], date=document["date"], usd=usd)
