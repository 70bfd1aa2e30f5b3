"""Guarantee G9: data and nodes are replaced only if the file allows it, setting by setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.config import Environment
from holdfast.updates.changes import Change, compare
from holdfast.updates.schema import settings

ALLOW_REPLACEMENT = "allow_replacement"


@dataclass(frozen=True, kw_only=True)
class GuardProblem:
    """Forbidden change, or ineffective entry of ``allow_replacement``."""

    severity: Literal["error", "warning"]
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def guard(environment: Environment, deployed: Mapping[str, Any] | None) -> list[GuardProblem]:
    """Return the reasons against a deployment, one per change, errors first."""
    changes = [] if deployed is None else compare(deployed, environment)
    problems = [_refusal(change) for change in changes if change.blocked]
    for path in environment.allow_replacement:
        if not _is_setting(path):
            problems.append(_unknown(path))
        elif deployed is not None and not any(change.path == path and change.effect.needs_leave for change in changes):
            problems.append(_useless(path))
    return sorted(problems, key=lambda problem: problem.severity)


def _refusal(change: Change) -> GuardProblem:
    message = f"{change.effect.words}: {change.reason}"
    message += f"; {change.action}" if change.action else ""
    if change.effect.needs_leave:
        message += f"; to allow it, add {change.path} to {ALLOW_REPLACEMENT}"
    return GuardProblem(severity="error", path=change.path, message=message)


def _unknown(path: str) -> GuardProblem:
    message = (
        f"got {path}; allowed: the path of a setting of this file, groups, datasets and users by name "
        "(cluster.instance_groups.workers); correct or remove it"
    )
    return GuardProblem(severity="error", path=ALLOW_REPLACEMENT, message=message)


def _useless(path: str) -> GuardProblem:
    message = f"{path} allows a replacement that this file does not ask for any more; remove it"
    return GuardProblem(severity="warning", path=ALLOW_REPLACEMENT, message=message)


def _is_setting(path: str) -> bool:
    parts = path.split(".")
    return any(_matches(setting.split("."), parts) for setting in settings())


def _matches(setting: list[str], parts: list[str]) -> bool:
    pattern: list[str | None] = []
    for part in setting:
        pattern += [part.removesuffix("[]"), None] if part.endswith("[]") else [part]
    return len(pattern) == len(parts) and all(name in (None, part) for name, part in zip(pattern, parts, strict=True))
