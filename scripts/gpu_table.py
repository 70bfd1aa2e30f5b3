"""Table of the checks on one GPU: those of ``tests/gpu/one`` beside the results that were recorded of them."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributions import ROOT
from markdown_table import Row, table

FOLDER = ROOT / "tests" / "gpu" / "one"
PROGRAMS = ("collectives.py", "training.py")
RESULTS = FOLDER / "results.json"
NOT_RUN = "not run"


def markdown(*, results: Path = RESULTS) -> str:
    return table(("check", "what", "expected", "result"), rows(results=results))


def rows(*, results: Path = RESULTS) -> Iterator[Row]:
    found: dict[str, Any] = json.loads(results.read_text()) if results.is_file() else {}
    machine = found.get("machine", {})
    known = found.get("checks", {}) if machine.get("device") == "cuda" else {}
    for name, title, expected in sorted(_checks(), key=lambda row: int(row[0][1:])):
        yield name, title, expected, _result(known.get(name), machine)


def _result(row: dict[str, Any] | None, machine: dict[str, str]) -> str:
    if row is None:
        return NOT_RUN
    figures = json.dumps(row["figures"]).replace("|", "\\|")
    return f"{row['outcome']} on {machine['gpu']}, torch {machine['torch']}, {machine['date']}: `{figures}`"


def _checks() -> Iterator[tuple[str, str, str]]:
    for program in PROGRAMS:
        for node in ast.walk(ast.parse((FOLDER / program).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Check":
                name, title, expected = (ast.literal_eval(each) for each in node.args[:3])
                yield name, title, expected
