"""
Findings as SARIF 2.1.0, which GitHub code scanning and other tools take.

Sources: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub Docs, "SARIF support for
code scanning" (which properties it needs, and its limit of 5000 results shown). What was not checked is a result of
the kind "open", one a cause: "there was insufficient information to decide whether a problem exists".
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from holdfast.cli.findings.causes import by_cause
from holdfast.cli.findings.place import place_of
from holdfast.config.pages import site_url
from holdfast.validation import Finding, all_rules
from holdfast.validation.cfn_lint import linted_rule

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "not-checked": "none"}


def as_sarif(findings: Sequence[Finding], *, checked: Path) -> str:
    from holdfast.localcloud.home import installed_version  # text and JSON do without the local cloud

    decided = [finding for finding in findings if finding.severity != "not-checked"]
    groups = by_cause(findings)
    codes = sorted({finding.code for finding in (*decided, *(group[0] for group in groups))})
    results = [_result(finding, codes, checked) for finding in decided]
    results += [_open(group, codes, checked) for group in groups]
    driver = {"name": "Holdfast", "semanticVersion": installed_version(), "rules": [_rule(code) for code in codes]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    rule = all_rules().get(code) or linted_rule(code)
    assert rule is not None, "each finding is of a rule, ours or cfn-lint's"
    explanation = " ".join(rule.explanation.split()) or rule.title
    return {
        "id": code,
        "name": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": explanation[:1000]},
        **(
            {"helpUri": f"{site}/reference/findings/{code}.html"}
            if code in all_rules() and (site := site_url())
            else {}
        ),
        "help": {"text": f"{explanation} Source: {rule.source}. Example: holdfast explain {code}."},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["aws", "hyperpod"], "precision": "high"},
    }


def _result(finding: Finding, codes: Sequence[str], checked: Path) -> dict[str, Any]:
    place = place_of(finding, checked=checked)
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(Path(place.file).as_posix()), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": place.line or 1},
        }
    }
    if place.path:
        location["logicalLocations"] = [{"fullyQualifiedName": place.path}]
    same = "|".join((finding.code, place.file, place.path, finding.message))
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. Fix: {finding.fix}."},
        "locations": [location],
        "partialFingerprints": {"primaryLocationLineHash": f"{hashlib.sha256(same.encode()).hexdigest()[:16]}:1"},
    }


def _open(group: Sequence[Finding], codes: Sequence[str], checked: Path) -> dict[str, Any]:
    waiting = sorted({finding.code for finding in group})
    result = _result(group[0], codes, checked)
    cause = group[0].cause
    text = f"{cause}, so not checked: {', '.join(waiting)}" if cause else group[0].message
    return result | {"kind": "open", "message": {"text": f"{text}. Fix: {group[0].fix}."}}
