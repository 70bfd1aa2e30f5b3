"""
Evaluation of policies. Pure.

Source: IAM user guide, "Policy evaluation logic" (reference_policies_evaluation-logic); words: "Troubleshoot access
denied error messages" (troubleshoot_access-denied). There are no service control policies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.localcloud.aws.iam.conditions import Context, hold, listed, matches, with_variables


@dataclass(frozen=True, kw_only=True)
class IamPolicy:
    """A policy document; inline policies have no ARN."""

    document: Mapping[str, Any]
    arn: str = ""


@dataclass(frozen=True, kw_only=True)
class PermissionRequest:
    principal: str
    """As messages name it: the ARN of a session of the role."""
    action: str
    resource: str
    """"*" for actions that take no resource; "" when it is not known which one it is, which only allows more."""
    context: Context = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    """Other ARNs by which resource policies may name the principal: the role, a service."""
    account: tuple[str, ...] = ()
    """Names of its account: what they are denied, it is; what they are allowed, its own policies have to allow too
    (IAM user guide, "AWS account principals")."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    allowed: bool
    reason: str = ""


def decide(
    request: PermissionRequest,
    *,
    identity: Sequence[IamPolicy],
    boundary: Sequence[IamPolicy] | None = None,
    resource: Sequence[IamPolicy] = (),
) -> Decision:
    """
    Decide about a request within one account.

    Args:
        boundary: Permissions boundary. Default: none.
        resource: Policies of the resource; their grants to the principal need no identity policy.
    """
    kinds = (
        ("an identity-based policy", identity),
        ("a permissions boundary", boundary or ()),
        ("a resource-based policy", resource),
    )
    for kind, policies in kinds:
        for policy in policies:
            if _reason("Deny", policy, request, named=request.account if kind == "a resource-based policy" else None):
                where = f": {policy.arn}" if policy.arn else ""
                return _denied(request, f"with an explicit deny in {kind}{where}")
    if any(_reason("Allow", policy, request, named=()) for policy in resource):
        return Decision(allowed=True)
    if not any(_reason("Allow", policy, request) for policy in identity):
        return _denied(request, f"because no identity-based policy allows the {request.action} action")
    if boundary is not None and not any(_reason("Allow", policy, request) for policy in boundary):
        return _denied(request, f"because no permissions boundary allows the {request.action} action")
    return Decision(allowed=True)


def _denied(request: PermissionRequest, why: str) -> Decision:
    where = f" on resource: {request.resource}" if request.resource not in ("", "*") else ""
    return Decision(
        allowed=False,
        reason=f"User: {request.principal} is not authorized to perform: {request.action}{where} {why}",
    )


def _reason(
    effect: str, policy: IamPolicy, request: PermissionRequest, *, named: tuple[str, ...] | None = None
) -> bool:
    return any(
        statement.get("Effect") == effect
        and (named is None or _names(statement, request, named))
        and _covers(statement, request)
        and (bool(request.resource) or effect == "Allow" or "*" in listed(statement.get("Resource", [])))
        for statement in listed(policy.document.get("Statement", []))
    )


def _covers(statement: Mapping[str, Any], request: PermissionRequest) -> bool:
    if "NotAction" in statement:
        about = not any(matches(one, request.action, case=False) for one in listed(statement["NotAction"]))
    else:
        about = any(matches(one, request.action, case=False) for one in listed(statement.get("Action", [])))
    if not about:
        return False
    if not request.resource:
        meant = True
    elif "NotResource" in statement:
        meant = not _among(statement["NotResource"], request)
    else:  # trust policies name no resource: they are about the role that they are on
        meant = "Resource" not in statement or _among(statement["Resource"], request)
    return meant and hold(statement.get("Condition", {}), request.context)


def _among(resources: Any, request: PermissionRequest) -> bool:
    filled = (with_variables(str(one), request.context) for one in listed(resources))
    return any(one is not None and matches(one, request.resource) for one in filled)


def _names(statement: Mapping[str, Any], request: PermissionRequest, account: tuple[str, ...]) -> bool:
    if "NotPrincipal" in statement:
        return not _is_one_of(statement["NotPrincipal"], {request.principal, *request.aliases, *request.account})
    return _is_one_of(statement.get("Principal", {}), {request.principal, *request.aliases, *account})


def _is_one_of(principals: Any, known: set[str]) -> bool:
    if principals == "*":
        return True
    return any(
        name == "*" or name in known
        for kind, names in (principals.items() if isinstance(principals, Mapping) else ())
        for name in listed(names)
        if kind in ("AWS", "Service", "Federated")
    )
