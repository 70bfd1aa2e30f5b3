"""End dates of Lambda runtimes and database versions, and the age of the facts."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

VERSIONS_FILE = Path(__file__).with_name("versions.json")


@dataclass(frozen=True, kw_only=True)
class LambdaRuntime:
    deprecated: date | None
    """From when it gets no more patches."""
    create_block: date | None
    """From when no function can be made with it."""
    successor: str | None


@functools.cache
def lambda_runtimes() -> Mapping[str, LambdaRuntime]:
    """Current runtimes, and those with an end date."""
    return {
        name: LambdaRuntime(
            deprecated=_date(each["deprecated"]), create_block=_date(each["create_block"]), successor=each["successor"]
        )
        for name, each in _data()["lambda_runtimes"].items()
    }


def rds_versions(engine: str) -> tuple[str, ...]:
    """RDS versions of an engine; empty if unknown."""
    return tuple(_data()["rds_versions"].get(engine, ()))


def facts_date() -> date:
    """Date of region lists and schemas."""
    return date.fromisoformat(_data()["date"])


def sources() -> Mapping[str, str]:
    """Source package of each part."""
    return dict(_data()["sources"])


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(VERSIONS_FILE.read_text()))
