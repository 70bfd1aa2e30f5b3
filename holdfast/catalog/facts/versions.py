"""End dates of Lambda runtimes, and the age of the facts."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from holdfast.catalog.facts.packages import of_cfn_lint

LAMBDA_RUNTIMES = "AdditionalSpecs/LmbdRuntimeLifecycle.json"


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
            deprecated=_date(each["deprecated"]), create_block=_date(each["create-block"]), successor=each["successor"]
        )
        for name, each in of_cfn_lint(LAMBDA_RUNTIMES).items()
    }


@functools.cache
def facts_date() -> date:
    """Date of region lists and schemas."""
    return date.fromisoformat(of_cfn_lint("schemas/version.json")["schema_date"][:10])


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)
