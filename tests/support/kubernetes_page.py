"""The tables of docs/reference/kubernetes-api.md, from `tests/cases/kubernetes_api`: run it to write them."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "kubernetes-api.md"
CASES = ROOT / "tests" / "cases" / "kubernetes_api"
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
    """Every table of the page by its name."""
    made = {
        area: _table(
            ("behaviour", "relied on by", "Kubernetes' documentation"),
            ((one["behaviour"], one["relied on by"], one["source"]) for one in behaviours() if one["area"] == area),
        )
        for area in AREAS
    }
    made["newer"] = _table(
        ("what", "gate", "alpha", "beta", "stable", "on 1.20"),
        (
            (
                f"{one['feature']}{_at(one)}",
                *(f"`{one['gate']}`", one["alpha"], one["beta"], one["stable"], one["on 1.20"]),
            )
            for one in newer()
        ),
    )
    made["gone"] = _table(
        ("API", "kinds", "last served by", "instead"),
        ((f"`{one['api']}`", one["kinds"], one["until"], one["instead"]) for one in gone()),
    )
    return made


def written(page: str) -> str:
    """The page with its tables as they have to be."""
    for name, table in tables().items():
        pattern = rf"(?s)(<!-- {name} -->\n).*?(\n<!-- end -->)"
        page, count = re.subn(pattern, lambda found, table=table: found[1] + table + found[2], page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{PAGE.name} has {count} places for the table {name}; it needs one")
    return page


def _at(feature: Mapping[str, str]) -> str:
    return f" (`{feature['kind']}`, `{feature['field']}`)" if feature["kind"] else ""


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    head = list(columns)
    return "\n".join([line(head), line(["---"] * len(head)), *map(line, rows)])


def _read(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
