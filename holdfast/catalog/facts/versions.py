"""Until when what: runtimes of Lambda and versions of databases, and how old these facts are."""

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
    """A runtime of Lambda."""

    deprecated: date | None
    """From when it gets no more patches."""
    create_block: date | None
    """From when no function can be made with it."""
    successor: str | None


@functools.cache
def lambda_runtimes() -> Mapping[str, LambdaRuntime]:
    """The runtimes whose end is known or which are current."""
    return {
        name: LambdaRuntime(
            deprecated=_date(each["deprecated"]), create_block=_date(each["create_block"]), successor=each["successor"]
        )
        for name, each in _data()["lambda_runtimes"].items()
    }


def rds_versions(engine: str) -> tuple[str, ...]:
    """The versions of a database engine that RDS offers; empty where no list tells."""
    return tuple(_data()["rds_versions"].get(engine, ()))


def facts_date() -> date:
    """The day that the region lists and schemas are of."""
    return date.fromisoformat(_data()["date"])


def sources() -> Mapping[str, str]:
    """Which package each part was taken from."""
    return dict(_data()["sources"])


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(VERSIONS_FILE.read_text()))
