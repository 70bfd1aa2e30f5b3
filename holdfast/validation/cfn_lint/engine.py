"""
cfn-lint in process, on a template as our own reader read it.

Source: cfn-lint, ``cfnlint.runner.template.run_template_by_data`` and ``cfnlint.decode.node``.
"""

import functools
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.catalog.facts import NEWER_TYPES, has_type
from holdfast.validation.cfn_lint.alternatives import judge_in_depth
from holdfast.validation.cfn_lint.left_out import (
    DESCRIPTION,
    FAILED,
    FORMS,
    LEFT_OUT,
    NAMES,
    PATTERN,
    PLACEHOLDER,
    SAME,
    UNKNOWN,
)
from holdfast.validation.cfn_lint.words import finding_of
from holdfast.validation.cloudformation import Template
from holdfast.validation.model import Finding

_REGIONS = ("us-east-1", "us-west-2", "us-east-2", "eu-west-1", "ap-northeast-1")
"""Those with most types, tried in this order for a template of any region."""


@dataclass(frozen=True, kw_only=True)
class Linted:
    findings: list[Finding]
    failed: str = ""
    """Why cfn-lint could not judge it, or a part of it. Default: it could."""


def lint(template: Template, *, region: str | None, complete: bool) -> Linted:
    """
    Findings of cfn-lint's rules, one for each mistake.

    Args:
        region: Of the deployment. Default: one that has all of the template's resource types.
        complete: False if a macro may add resources.
    """
    try:
        matches = list(_matches(template, region))
    except Exception as error:  # noqa: BLE001 - its rules meet whatever somebody wrote
        return Linted(findings=[], failed=f"{type(error).__name__}: {error}")
    failed = [each.message for each in matches if each.rule.id in FAILED or each.message.startswith("Exception ")]
    found = [
        finding_of(code=each.rule.id, message=each.message, path=getattr(each, "path", None) or (), template=template)
        for each in matches
        if each.message not in failed and _is_passed_on(each, complete=complete)
    ]
    return Linted(findings=list(_once(found)), failed=failed[0] if failed else "")


def _is_passed_on(match: Any, *, complete: bool) -> bool:
    code = match.rule.id
    if PLACEHOLDER.match(match.message):
        return False
    return code not in LEFT_OUT and (complete or code not in NAMES) and (code, match.message) != DESCRIPTION


def _matches(template: Template, region: str | None) -> Iterator[Any]:
    from cfnlint.config import ConfigMixIn
    from cfnlint.helpers import REGIONS
    from cfnlint.runner.template import run_template_by_data

    bodies = template.section("Resources").values()
    kinds = {str(body.get("Type")) for body in bodies if isinstance(body, Mapping)}
    here = region if region is not None and region in REGIONS else _region(kinds)
    judge_in_depth(kinds, region=here)
    values = [dict(template.values)] if template.values else []
    yield from run_template_by_data(
        _node(_without_empty_defaults(template.body)), ConfigMixIn(regions=[here], parameters=values), rules()
    )


@functools.cache
def rules() -> Any:
    """Rules of cfn-lint alone: a check runs no code of the folder that it is started in."""
    import cfnlint.rules
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    PROVIDER_SCHEMA_MANAGER.load_registry_schemas(str(NEWER_TYPES))
    return cfnlint.rules.Rules.create_from_directory(str(Path(cfnlint.rules.__file__).parent))


def _region(kinds: Set[str]) -> str:
    fitting = (each for each in _REGIONS if not any(has_type(kind, each) is False for kind in kinds))
    return next(fitting, _REGIONS[0])


def _without_empty_defaults(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Body whose parameters are unknown where their default is empty: nobody deploys with an empty name."""
    parameters = body.get("Parameters")
    if not isinstance(parameters, Mapping):
        return body
    kept = {
        name: {key: item for key, item in each.items() if (key, item) != ("Default", "")}
        if isinstance(each, Mapping)
        else each
        for name, each in parameters.items()
    }
    return {**body, "Parameters": kept}


def _node(value: Any) -> Any:
    """Data as cfn-lint's own decoder gives it; lines are found by path."""
    from cfnlint.decode.mark import Mark
    from cfnlint.decode.node import dict_node, list_node, str_node

    mark = Mark()

    def node(value: Any) -> Any:
        if isinstance(value, Mapping):
            return dict_node({str_node(key, mark, mark): node(item) for key, item in value.items()}, mark, mark)
        if isinstance(value, list):
            return list_node([node(item) for item in value], mark, mark)
        return str_node(value, mark, mark) if isinstance(value, str) else value

    return node(value)


def _once(found: list[Finding]) -> Iterator[Finding]:
    """One finding for each mistake: the most specific, and of resources that are the same the last."""
    places: dict[str, set[str]] = {}
    last = {each.message: each for each in sorted(found, key=lambda each: each.line or 0)}
    forms = tuple(f"{each.path}." for each in found if each.code in FORMS)
    for each in found:
        places.setdefault(each.path, set()).add(each.code)
    for each in {(each.path, each.message): each for each in reversed(found)}.values():
        within = each.code == UNKNOWN and each.path.startswith(forms)
        other_form = (within or each.code in FORMS) and any(place.startswith(f"{each.path}.") for place in places)
        other_pattern = each.code == PATTERN and places[each.path] != {PATTERN}
        other_resource = each.code == SAME and last[each.message] is not each
        if not (other_form or other_pattern or other_resource):
            yield each
