"""Findings as text, JSON and SARIF."""

from holdfast.cli.views.findings.json import as_json
from holdfast.cli.views.findings.sarif import as_sarif
from holdfast.cli.views.findings.text import print_findings

__all__ = ["as_json", "as_sarif", "print_findings"]
