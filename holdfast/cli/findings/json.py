import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.cli.findings.place import place_of
from holdfast.validation import Finding


def as_json(findings: Iterable[Finding], *, checked: Path) -> str:
    return json.dumps([_entry(finding, checked) for finding in findings], indent=2)


def _entry(finding: Finding, checked: Path) -> dict[str, Any]:
    place = place_of(finding, checked=checked)
    entry: dict[str, Any] = {
        "code": finding.code,
        "severity": finding.severity,
        "file": place.file,
        "line": place.line,
        "path": place.path,
        "message": finding.message,
        "fix": finding.fix,
    }
    return entry | ({"cause": finding.cause} if finding.cause else {})
