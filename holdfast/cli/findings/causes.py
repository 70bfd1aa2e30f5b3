"""Unchecked rules by cause: one line per reason."""

from collections.abc import Iterable, Sequence

from holdfast.validation import Finding


def by_cause(findings: Iterable[Finding]) -> list[Sequence[Finding]]:
    """Group the unchecked findings by cause, in the order of the first of each."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.severity == "not-checked":
            file = finding.path.rpartition("#")[0]
            groups.setdefault((file, finding.cause) if finding.cause else ("", str(finding)), []).append(finding)
    return list(groups.values())
