"""Tables of the Kubernetes API, from `tests/cases/kubernetes_api`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_table import table

CASES = Path(__file__).parents[1] / "tests" / "cases" / "kubernetes_api"
AREAS = {
    "objects": "Objects, watches and rights",
    "definitions": "Kinds of one's own, and webhooks",
    "pods": "Pods on nodes",
    "scheduling": "Where and whether pods run",
}


def behaviours() -> list[dict[str, str]]:
    listed: list[dict[str, str]] = _read("behaviours")["behaviours"]
    return listed


def newer() -> list[dict[str, str]]:
    listed: list[dict[str, str]] = _read("newer")["features"]
    return listed


def gone() -> list[dict[str, str]]:
    listed: list[dict[str, str]] = _read("newer")["gone"]["versions"]
    return listed


def tables() -> Mapping[str, str]:
    made = {
        area: table(
            ("behaviour", "relied on by", "Kubernetes' documentation"),
            ((one["behaviour"], one["relied on by"], one["source"]) for one in behaviours() if one["area"] == area),
        )
        for area in AREAS
    }
    made["newer"] = table(
        ("what", "gate", "alpha", "beta", "stable", "on 1.20"),
        (
            (
                f"{one['feature']}{_at(one)}",
                *(f"`{one['gate']}`", one["alpha"], one["beta"], one["stable"], one["on 1.20"]),
            )
            for one in newer()
        ),
    )
    made["gone"] = table(
        ("API", "kinds", "last served by", "instead"),
        ((f"`{one['api']}`", one["kinds"], one["until"], one["instead"]) for one in gone()),
    )
    return made


def _at(feature: Mapping[str, str]) -> str:
    return f" (`{feature['kind']}`, `{feature['field']}`)" if feature["kind"] else ""


def _read(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
