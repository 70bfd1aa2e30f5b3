"""
Rule registry, and the runner over a deployment.

A rule is a pure function over one kind of item. Its results become findings with its code; values that it could not
read become a "not-checked" finding with the same code. A rule that crashes is a bug and is not caught.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.validation.model import App, Deployment, Finding, Item, Missing, Severity, UnresolvedError, worst_first

I = TypeVar("I", bound=Item)  # noqa: E741 - the one letter that an item begins with


@dataclass(frozen=True, kw_only=True)
class Broken:
    path: str
    message: str
    fix: str


def refused(path: str, given: str, *, allowed: str, fix: str) -> Broken:
    return Broken(path=path, message=f"got {given}; allowed: {allowed}", fix=fix)


def show(value: object) -> str:
    return json.dumps(value)


Judge = Callable[[I, Deployment], Iterator[Broken]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    code: str
    severity: Severity
    title: str
    """What holds, as a sentence without a full stop."""
    source: str
    """Reference of the rule."""
    suppressible: bool
    """Whether an environment file may accept it with a reason."""
    explanation: str
    """Paragraphs for its page."""
    kind: type[Item] | tuple[type[Item], ...] | None = None
    """Kind of item. Default: none, found by reading the source or the account."""
    judge: Judge[Any] | None = None

    @property
    def asks_account(self) -> bool:
        """True for rules that need an account (chapter 9); all others run offline."""
        return self.code.startswith("HF9")


_RULES: dict[str, Rule] = {}

_GENERAL = frozenset({"HF057", "HF058", "HF062"})
"""Rules about any value of a kind: references, forms, blocks of subnets."""
DEEP = 2
"""Dots in the path of something smaller than a resource: ``Resources.Cluster.Properties.Orchestrator``."""


def all_rules() -> Mapping[str, Rule]:
    return _RULES


def rule(
    code: str,
    *,
    title: str,
    source: str,
    each: type[I] | tuple[type[Item], ...],
    severity: Severity = "error",
    suppressible: bool | None = None,
) -> Callable[[Judge[Any]], Judge[Any]]:
    """
    Register a function as the rule of a code; its docstring is the explanation on the rule's page.

    Args:
        each: Kind of item that it judges, or several.
        suppressible: Default: warnings are, errors are not.
    """

    def register(judge: Judge[Any]) -> Judge[Any]:
        _add(
            Rule(
                code=code,
                severity=severity,
                title=title,
                source=source,
                suppressible=severity != "error" if suppressible is None else suppressible,
                explanation=inspect.cleandoc(judge.__doc__ or ""),
                kind=each,
                judge=judge,
            )
        )
        return judge

    return register


def declare(code: str, *, title: str, source: str, explanation: str, severity: Severity = "error") -> None:
    """Register a finding without a rule function: from reading a file, or an account."""
    _add(
        Rule(
            code=code,
            severity=severity,
            title=title,
            source=source,
            suppressible=severity != "error",
            explanation=inspect.cleandoc(explanation),
        )
    )


def _add(new: Rule) -> None:
    assert new.code not in _RULES, f"{new.code} is there already"
    _RULES[new.code] = new


def judge(deployment: Deployment, *, errors_only: bool = False) -> list[Finding]:
    """Findings in a deployment, worst first; ``errors_only`` skips rules without errors."""
    parts = list(deployment.walk())
    parts_of: dict[object, list[Item | Missing]] = {}
    found: list[Finding] = []
    for each in _RULES.values():
        if each.judge is None or each.kind is None or (errors_only and each.severity != "error"):
            continue
        if each.kind not in parts_of:
            parts_of[each.kind] = [part for part in parts if _may_be(part, each.kind)]
        for part in parts_of[each.kind]:
            if isinstance(part, Missing):
                found.append(not_checked(each.code, part.path))
            elif isinstance(part, App):
                # Clusters of one app share it, and what is found in it is the same for all.
                if each.code not in part.memo:
                    part.memo[each.code] = _judge_one(each, part, deployment)
                found += part.memo[each.code]
            else:
                found += _judge_one(each, part, deployment)
    return worst_first(dict.fromkeys(most_specific(found)))


def most_specific(found: list[Finding]) -> list[Finding]:
    """Drop findings of cfn-lint, and general ones, on a value that a specific rule reports: one mistake, one code."""
    specific = [each for each in found if not _is_general(each) and each.severity != "not-checked"]
    own = {each.path for each in specific}
    # A warning of a list hides no error of its entries.
    errors = {each.path for each in specific if each.severity == "error"}
    around = tuple(f"{path}." for path in errors if path.rpartition("#")[2].count(".") > DEEP)
    return [each for each in found if not _is_general(each) or not (each.path in own or each.path.startswith(around))]


def _is_general(finding: Finding) -> bool:
    return finding.code in _GENERAL or not finding.code.startswith("HF")


def _may_be(part: Item | Missing, kind: type[Item] | tuple[type[Item], ...]) -> bool:
    kinds = part.kinds if isinstance(part, Missing) else (type(part),)
    return any(issubclass(each, kind) for each in kinds)


def not_checked(code: str, path: str, *, missing: str = "", unknown: str = "") -> Finding:
    """
    Return what stands in place of a rule's finding.

    Args:
        missing: The setting of an environment file that would tell.
        unknown: What is unknown about a value that is given.
    """
    if code.startswith("HF9"):
        cause = why = "needs AWS credentials (--account)"
        fix = "run it with credentials of the account"
    elif missing:
        cause = why = f"{missing} is not given"
        fix = f"add {missing.rpartition('.')[2]} to the file"
    elif unknown:
        cause = why = unknown
        fix = "check it before deployment"
    else:
        why = "a value is not known before deployment"
        cause = f"details of {path} are not known before deployment" if path else why
        fix = "check it before deployment"
    message = f"{_RULES[code].title}: not checked, {why}"
    return Finding(code=code, severity="not-checked", path=path, message=message, fix=fix, cause=cause)


def _is_missing(path: str, deployment: Deployment) -> bool:
    """Return True for a setting that the environment file leaves out of a section that it has."""
    section: Any = deployment.file.data if deployment.file is not None else None
    *sections, name = path.split(".")
    for part in sections:
        section = section.get(part) if isinstance(section, Mapping) else None
    return isinstance(section, Mapping) and name not in section


def _judge_one(each: Rule, item: Item, deployment: Deployment) -> list[Finding]:
    assert each.judge is not None
    found: list[Finding] = []
    try:
        for broken in each.judge(item, deployment):
            found.append(  # noqa: PERF401 - what was found before a value turned out unknown is kept
                Finding(
                    code=each.code,
                    severity=each.severity,
                    path=broken.path,
                    message=broken.message,
                    fix=broken.fix,
                )
            )
    except UnresolvedError as error:
        # An account has no place in the source: then it is the item that was not checked.
        path = error.path or item.path
        missing = path if _is_missing(path, deployment) else ""
        found.append(not_checked(each.code, path, missing=missing, unknown=error.why))
    return found
