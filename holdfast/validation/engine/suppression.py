from collections.abc import Iterable, Mapping, Set
from typing import Any

from holdfast.validation.engine.registry import all_rules
from holdfast.validation.model import Finding


def suppressed(
    findings: Iterable[Finding], data: Mapping[str, Any], broken: Set[str]
) -> tuple[list[Finding], list[Finding]]:
    """
    Remaining findings, and those hidden by ``data["suppress"]``; invalid suppressions are findings, too.

    Args:
        broken: Paths of malformed entries, which hide nothing.
    """
    kept, hidden = list(findings), []
    written = data.get("suppress")
    for index, entry in enumerate(written if isinstance(written, list | tuple) else ()):
        where = f"suppress.{index}"
        if any(path == where or path.startswith(f"{where}.") for path in broken):
            continue
        rule = all_rules().get(entry["code"])
        if rule is None:
            kept.append(
                _wrong("HF006", f"{where}.code", f"got {entry['code']}; allowed: a code that `holdfast explain` lists")
            )
            continue
        path = _by_number(entry.get("path"), data)
        hit = [finding for finding in kept if finding.code == rule.code and _is_in(finding.path, path)]
        if any(finding.severity == "error" for finding in hit) and not rule.suppressible:
            kept.append(_wrong("HF008", f"{where}.code", f"got {rule.code}, which cannot be accepted: {rule.title}"))
            hit = [finding for finding in hit if finding.severity != "error"]
        elif not hit:
            kept.append(_wrong("HF007", where, f"{rule.code} is not found{f' at {path}' if path else ''}"))
        kept = [finding for finding in kept if finding not in hit]
        hidden += hit
    return kept, hidden


def _wrong(code: str, path: str, message: str) -> Finding:
    return Finding(
        code=code,
        severity=all_rules()[code].severity,
        path=path,
        message=message,
        fix="correct or remove the suppression",
    )


def _is_in(path: str, section: str | None) -> bool:
    return section is None or path == section or path.startswith(f"{section}.")


def _by_number(path: str | None, data: Any) -> str | None:
    """Path with list indices in place of names: ``cluster.instance_groups.1``."""
    if path is None:
        return None
    parts, value = [], data
    for part in path.split("."):
        if isinstance(value, list | tuple):
            names = [str(item.get("name")) if isinstance(item, dict) else "" for item in value]
            index = int(part) if part.isdigit() else names.index(part) if part in names else len(value)
            parts.append(str(index) if index < len(value) else part)
            value = value[index] if index < len(value) else None
        else:
            parts.append(part)
            value = value.get(part) if isinstance(value, dict) else None
    return ".".join(parts)
