"""
Access policies: judge a request to the Kubernetes API. Pure.

Policies only allow (EKS user guide, access-policy-permissions); RBAC decides the rest. Rules match as in RBAC:
kubernetes/kubernetes, pkg/apis/rbac/v1/evaluation_helpers.go of v1.20.2, read 2026-11-23.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.catalog import AccessPolicy, AccessRule

ALL = "*"


@dataclass(frozen=True, kw_only=True)
class Scope:
    namespaces: tuple[str, ...] | None = None
    """Names with ``*`` in them. Default: the whole cluster."""

    def covers(self, namespace: str) -> bool:
        if self.namespaces is None:
            return True
        return bool(namespace) and any(_pattern(name).fullmatch(namespace) for name in self.namespaces)


@dataclass(frozen=True, kw_only=True)
class Association:
    policy: AccessPolicy
    scope: Scope


@dataclass(frozen=True, kw_only=True)
class Attributes:
    verb: str
    path: str = ""
    """Default: it is about a resource."""
    api_group: str = ""
    resource: str = ""
    """With its subresource, as ``pods/log``."""
    namespace: str = ""
    """Default: a resource of the cluster, or of all namespaces."""
    name: str = ""


def attributes_of(spec: Mapping[str, Any]) -> Attributes:
    """Return the attributes in a SubjectAccessReview's spec; missing ones are empty, which no policy allows."""
    path = spec.get("nonResourceAttributes")
    if isinstance(path, Mapping):
        return Attributes(verb=_text(path, "verb"), path=_text(path, "path"))
    given = spec.get("resourceAttributes")
    attributes: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    kind, part = _text(attributes, "resource"), _text(attributes, "subresource")
    return Attributes(
        verb=_text(attributes, "verb"),
        api_group=_text(attributes, "group"),
        resource=f"{kind}/{part}" if part else kind,
        namespace=_text(attributes, "namespace"),
        name=_text(attributes, "name"),
    )


def allowing(associations: Iterable[Association], request: Attributes) -> Association | None:
    """Return the first association that allows a request; None if RBAC decides."""
    for association in associations:
        scope = association.scope
        within = scope.namespaces is None if request.path else scope.covers(request.namespace)
        if within and any(_allows(rule, request) for rule in association.policy.rules):
            return association
    return None


def _allows(rule: AccessRule, request: Attributes) -> bool:
    if not request.verb or not _among(request.verb, rule.verbs):
        return False
    if request.path:
        return any(_is_path(each, request.path) for each in rule.non_resource_urls)
    return (
        bool(request.resource)
        and _among(request.api_group, rule.api_groups)
        and _is_resource(rule.resources, request.resource)
        and (not rule.resource_names or request.name in rule.resource_names)
    )


def _among(value: str, values: tuple[str, ...]) -> bool:
    return ALL in values or value in values


def _is_resource(resources: tuple[str, ...], request: str) -> bool:
    part = request.partition("/")[2]
    return _among(request, resources) or (bool(part) and f"{ALL}/{part}" in resources)


def _is_path(rule: str, path: str) -> bool:
    return rule in (ALL, path) or (rule.endswith(ALL) and path.startswith(rule.rstrip(ALL)))


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in name.split("*")))


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key, "")
    return value if isinstance(value, str) else ""
