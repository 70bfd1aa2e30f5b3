"""Facts from AWS's pages, each with page and date in ``pages.yaml``."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("pages.yaml")


@dataclass(frozen=True, kw_only=True)
class KubernetesVersion:
    released: date
    standard_until: date
    extended_until: date


@functools.cache
def kubernetes_support() -> Mapping[str, KubernetesVersion]:
    return {
        version: KubernetesVersion(released=each[0], standard_until=each[1], extended_until=each[2])
        for version, each in page_fact("kubernetes_support").items()
    }


def page_fact(name: str) -> Any:
    return page_facts()[name]["values"]


@functools.cache
def page_facts() -> Mapping[str, Any]:
    """All entries: values, source, date."""
    import yaml  # apps of constructs read rules without it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load(DATA.read_text(), Loader=loader))  # noqa: S506 - a safe loader, written in C
