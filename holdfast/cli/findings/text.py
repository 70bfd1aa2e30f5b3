import os
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.findings.causes import by_cause
from holdfast.cli.findings.place import place_of
from holdfast.cli.terminal import print_line
from holdfast.validation import Finding

COLOURS = {"error": "bold red", "warning": "yellow", "not-checked": "dim"}
_MOST_CODES = 12


def print_findings(findings: Sequence[Finding], *, checked: Path) -> None:
    """Print findings, worst first, and their number."""
    for finding in findings:
        if finding.severity != "not-checked":
            _say(f"{finding.severity} {finding.code}", finding.severity, str(place_of(finding, checked=checked)))
            print_line(f"    {finding.message}\n    fix: {finding.fix}")
    causes = by_cause(findings)
    for group in causes:
        _print_cause(group, checked)
    print_line(_summary(findings, len(causes), os.path.relpath(checked)))


def _print_cause(group: Sequence[Finding], checked: Path) -> None:
    first = group[0]
    codes = sorted({finding.code for finding in group})
    shown = ", ".join(codes[:_MOST_CODES]) + (f" and {len(codes) - _MOST_CODES} more" if codes[_MOST_CODES:] else "")
    _say(f"not-checked {shown}", first.severity, str(place_of(first, checked=checked)))
    print_line(f"    {first.cause or first.message}\n    fix: {first.fix}")


def _say(marked: str, severity: str, rest: str) -> None:
    if not sys.stdout.isatty():
        print_line(f"{marked} {rest}")
        return
    from rich.text import Text

    from holdfast.cli.terminal import console

    console.print(Text.assemble((marked, COLOURS[severity]), f" {rest}"), soft_wrap=True)


def _summary(findings: Sequence[Finding], causes: int, shown: str) -> str:
    if not findings:
        return f"{shown}: nothing found"
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in COLOURS}
    errors, warnings, unchecked = counts.values()
    why = f" for {causes} {'reason' if causes == 1 else 'reasons'}" if unchecked else ""
    return (
        f"{shown}: {errors} {'error' if errors == 1 else 'errors'}, "
        f"{warnings} {'warning' if warnings == 1 else 'warnings'}, {unchecked} not checked{why}; "
        "holdfast explain CODE has more on each"
    )
