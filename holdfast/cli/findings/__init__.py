"""How findings are shown: to people, as JSON, and as SARIF."""

from holdfast.cli.findings._json import as_json
from holdfast.cli.findings._sarif import as_sarif
from holdfast.cli.findings._text import print_findings

__all__ = ["as_json", "as_sarif", "print_findings"]
