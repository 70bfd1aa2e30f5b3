"""
Report on environment files: faults of form and meaning together.

Separate from the package, because constructs import that without environment files.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from holdfast.config import Environment, EnvironmentFileError, Problem
from holdfast.config.reading import Document, parse, read
from holdfast.config.refusals import dotted
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.engine import judge, suppressed
from holdfast.validation.from_environment.deployment import deployment_of, resources_of
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.imports import Describe, changes_since, read_origin
from holdfast.validation.model import Deployment, Finding, worst_first

Facts = Callable[[Deployment], Deployment]
"""Adds the facts of an account to a deployment."""


@dataclass(frozen=True, kw_only=True)
class Report:
    file: str
    usable: bool
    """Whether it could be read at all."""
    findings: list[Finding]
    """Worst first, without those that the file suppresses."""
    suppressed: list[Finding]


def check(
    path: Path,
    *,
    errors_only: bool = False,
    facts: Facts | None = None,
    describe: Describe | None = None,
    today: date | None = None,
) -> Report:
    """
    Judge an environment file.

    Args:
        errors_only: Only errors.
        facts: Query of the account. Default: none, "not checked".
        describe: Query of the imported cluster. Default: none, "not checked".
        today: Date for versions. Default: that of the facts about them.
    """
    try:
        document = read(path)
    except EnvironmentFileError as error:
        findings = [_shape(problem) for problem in error.problems]
        return Report(file=error.problems[0].file, usable=False, findings=findings, suppressed=[])
    problems = parse(document)[1]
    return _judged(
        document, problems, folder=path.parent, errors_only=errors_only, facts=facts, describe=describe, today=today
    )


def load_checked(path: Path, *, errors_only: bool = False) -> tuple[Environment, Report]:
    """
    Environment and findings of a file, read once, without an account; ``errors_only``: only errors. Raises
    EnvironmentFileError with all problems.
    """
    document = read(path)
    environment, problems = parse(document)
    if problems or environment is None:
        raise EnvironmentFileError(problems)
    return environment, _judged(document, problems, folder=path.parent, errors_only=errors_only)


def _judged(
    document: Document,
    problems: Sequence[Problem],
    *,
    folder: Path,
    errors_only: bool,
    facts: Facts | None = None,
    describe: Describe | None = None,
    today: date | None = None,
) -> Report:
    broken = {problem.path for problem in problems}
    deployment = deployment_of(Settings(Environment, document.data, (), broken), folder=folder)
    deployment = deployment.changed(today=today)
    if deployment.file is not None and deployment.file.is_known("cloud") and deployment.file.cloud == "aws":
        deployment = deployment.changed(facts=UNRESOLVED) if facts is None else facts(deployment)
    judged = [finding for finding in judge(deployment, errors_only=errors_only) if not _follows(finding, broken)]
    found = [*map(_shape, problems), *_open_questions(document), *judged]
    if deployment.file is not None and deployment.file.is_known("cloud") and deployment.file.cloud == "aws":
        found += _changes(document, describe)
    kept, hidden = suppressed(found, document.data, broken)
    if errors_only:
        kept = [finding for finding in kept if finding.severity == "error"]
    lines = {dotted(location): line for location, line in document.lines.items()}
    return Report(
        file=document.file,
        usable=True,
        findings=worst_first(replace(each, line=each.line or _line(each.path, lines)) for each in kept),
        suppressed=worst_first(hidden),
    )


def deployment_in(document: Document, *, folder: Path) -> Deployment:
    broken = {problem.path for problem in parse(document)[1]}
    return deployment_of(Settings(Environment, document.data, (), broken), folder=folder)


def resources_in(document: Document, *, folder: Path) -> dict[str, Any]:
    """CloudFormation resources of a file, without what only the CDK knows: ids, tokens, grants."""
    broken = {problem.path for problem in parse(document)[1]}
    return resources_of(Settings(Environment, document.data, (), broken), folder=folder)


def _shape(problem: Problem) -> Finding:
    return Finding(
        code=problem.code,
        severity="error",
        path=problem.path,
        message=f"got {problem.given}; allowed: {problem.allowed}",
        fix=problem.fix,
        line=problem.line or None,
    )


def _open_questions(document: Document) -> Iterator[Finding]:
    for line, text in document.open_questions.items():
        below = (location for location, at in document.lines.items() if at > line)
        yield Finding(
            code="HF013",
            severity="error",
            path=dotted(next(below, ())),
            message=f"an open question of an import: {text}",
            fix="decide it, then remove the comment that begins with DECIDE",
            line=line,
        )


def _changes(document: Document, describe: Describe | None) -> Iterator[Finding]:
    for line, text in list(document.as_it_was.items())[:1]:
        origin = read_origin(text)
        if origin is not None:
            yield from changes_since(origin, describe, line=line)


def _follows(finding: Finding, broken: Set[str]) -> bool:
    """True if a finding only reports that a broken setting is unknown."""
    return finding.severity == "not-checked" and any(
        finding.path == path or finding.path.startswith(f"{path}.") or path.startswith(f"{finding.path}.")
        for path in broken
    )


def _line(path: str, lines: dict[str, int]) -> int:
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return lines.get(path, 1)
