"""Region and account of a cluster, from ARNs, DNS names, zone ids and default buckets."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.importing.draft import Draft

REGION = r"[a-z]{2}(?:-[a-z]+)+-\d"
ARN = re.compile(rf"arn:aws[a-z-]*:[a-z0-9-]+:({REGION})?:(?:(\d{{12}})|[^:]*):")
DNS_NAME = re.compile(rf"[a-z0-9.-]+\.({REGION})\.(?:[a-z0-9-]+\.)?amazonaws\.com(?:\.cn)?")
ZONE_ID = re.compile(r"([a-z]{2})(g?)(ne|nw|se|sw|n|e|s|w|c)(\d)-az\d+")
DIRECTIONS = {"n": "north", "e": "east", "s": "south", "w": "west", "c": "central"}
DEFAULT_BUCKET = re.compile(rf"s3://sagemaker-({REGION})-(\d{{12}})(?:/.*)?")
"""SageMaker Python SDK, Session.default_bucket: sagemaker-{region}-{account}."""

SOME_ACCOUNT, SOME_REGION = "111122223333", "us-west-2"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    where: str
    region: str | None = None
    account: str | None = None
    certain: bool = True
    """Default: true; the name of a bucket is only a hint."""


def evidence(value: Any, path: str = "") -> Iterator[Evidence]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from evidence(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            yield from evidence(item, path)
    elif isinstance(value, str):
        yield from _in_text(value, path)


def _in_text(text: str, path: str) -> Iterator[Evidence]:
    if arn := ARN.match(text):
        yield Evidence(where=path, region=arn[1], account=arn[2])
    elif name := DNS_NAME.fullmatch(text):
        yield Evidence(where=path, region=name[1])
    elif zone := ZONE_ID.fullmatch(text):
        words = "-".join([zone[1], *(["gov"] if zone[2] else []), "".join(DIRECTIONS[each] for each in zone[3])])
        yield Evidence(where=path, region=f"{words}-{zone[4]}")
    elif bucket := DEFAULT_BUCKET.fullmatch(text):
        yield Evidence(where=path, region=bucket[1], account=bucket[2], certain=False)


def region_of(found: list[Evidence], *, given: str | None, likely: str | None, imported: Draft) -> str:
    """Region; ``given`` overrides all. A question if there is none, or more than one."""
    named = _values((each.region, each) for each in found)
    if given is not None:
        others = sorted(set(named) - {given})
        if others:
            imported.note("region", f"{given} was requested, but {_sources(named, others)}", decide=True)
        return given
    if len(named) > 1:
        imported.note("region", f"not one region: {_sources(named, sorted(named))}; set it", decide=True)
    if named:
        return next(iter(named))
    hint = next((each.region for each in found if each.region is not None), None)
    if hint is not None:
        imported.note("region", "taken from the name of the bucket of the lifecycle scripts")
        return hint
    if likely is not None:
        imported.note("region", "the configuration does not say it; this is the one of your AWS settings")
        return likely
    imported.note("region", "not known from the configuration; set it", decide=True)
    return SOME_REGION


def account_of(found: list[Evidence], *, given: str | None, imported: Draft) -> str:
    """Account; keys and training plans may be another account's, execution roles may not."""
    named = _values((each.account, each) for each in found if each.where.endswith("ExecutionRole"))
    named = named or _values((each.account, each) for each in found)
    if given is not None:
        others = sorted(set(named) - {given})
        if others:
            imported.note("account", f"{given} was requested, but {_sources(named, others)}", decide=True)
        return given
    if len(named) > 1:
        imported.note("account", f"not one account: {_sources(named, sorted(named))}; set it", decide=True)
    if named:
        return next(iter(named))
    imported.note("account", "not known from the configuration; set it", decide=True)
    return SOME_ACCOUNT


def _values(pairs: Any) -> dict[str, str]:
    named: dict[str, str] = {}
    for value, each in pairs:
        if value is not None and each.certain:
            named.setdefault(value, each.where)
    return named


def _sources(named: Mapping[str, str], values: list[str]) -> str:
    return ", ".join(f"{named[value]} is in {value}" for value in values)
