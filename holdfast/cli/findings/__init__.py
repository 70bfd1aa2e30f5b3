"""Findings as text, JSON and SARIF."""

from holdfast.cli.findings.json import as_json
from holdfast.cli.findings.plain import as_plain_text
from holdfast.cli.findings.sarif import as_sarif
from holdfast.cli.findings.text import print_findings

__all__ = ["as_json", "as_plain_text", "as_sarif", "print_findings"]
