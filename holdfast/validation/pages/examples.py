"""
Failing example of each finding: a good file, and its minimal change.

``HFnnn.yaml`` in ``EXAMPLES`` names a good file beside it, what is set in it, and files that lie next to it.
"""

import copy
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from holdfast.validation.from_environment import check
from holdfast.validation.from_template import check_template
from holdfast.validation.model import Finding

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True, kw_only=True)
class Example:
    base: str
    """The good file."""
    changes: Mapping[str, Any]
    """What is set in it, by dotted path; None takes away."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts of files beside it."""
    text: str | None = None
    """The file as a whole, where it is not one that can be read as data."""

    @property
    def is_template(self) -> bool:
        return ".template." in self.base


@functools.cache
def example(code: str) -> Example | None:
    """Example of a finding; None if only an account or a test can show it."""
    path = EXAMPLES / f"{code}.yaml"
    if not path.is_file():
        return None
    data = yaml.safe_load(path.read_text())
    return Example(base=data["base"], changes=data.get("set", {}), files=data.get("files", {}), text=data.get("text"))


def findings_of(each: Example, *, folder: Path, linted: bool = True) -> list[Finding]:
    """Findings in an example, written into an empty folder, without an account; ``linted``: with those of cfn-lint."""
    path = folder / each.base
    for name, text in each.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    if each.is_template:
        path.write_text(each.text or json.dumps(changed(json.loads((EXAMPLES / each.base).read_text()), each.changes)))
        return check_template(path, linted=linted).findings
    path.write_text(each.text or yaml.safe_dump(changed(_good(each.base), each.changes), sort_keys=False))
    return [finding for finding in check(path).findings if not finding.code.startswith("HF9")]


@functools.cache
def _good(base: str) -> Any:
    return yaml.safe_load((EXAMPLES / base).read_text())


def changed(data: Any, changes: Mapping[str, Any]) -> Any:
    """Copy of plain data with other values at dotted paths."""
    result = copy.deepcopy(data)
    for path, value in changes.items():
        *parts, last = path.split(".")
        place = result
        for part in parts:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            place[int(last) : int(last) + 1] = [] if value is None else [value]
        elif value is None:
            del place[last]
        else:
            place[last] = value
    return result
