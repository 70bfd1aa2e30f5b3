"""
IAM's policy simulator.

Source: IAM API reference, SimulatePrincipalPolicy and EvaluationResult. Roles only. Bucket policies are not read, and
of context entries only the first value; a condition on another key does not hold, as on AWS. Matching statements and
missing context keys are not listed.
"""
# ruff: noqa: N803 - arguments bear the names of the API members

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.iam.evaluation import Decision
from holdfast.localcloud.aws.iam.rights import Rights

EVERYTHING = ("*",)


class Simulation:
    def __init__(self, *, client: ClientFactory, account: str, **_: Any) -> None:
        self._client, self._account = client, account

    def simulate_principal_policy(
        self,
        *,
        PolicySourceArn: str,
        ActionNames: Sequence[str],
        ResourceArns: Sequence[str] = EVERYTHING,
        ContextEntries: Sequence[Mapping[str, Any]] = (),
        **more: Any,
    ) -> dict[str, Any]:
        given = sorted(more.keys() - {"MaxItems", "Marker"})
        if given:
            raise ServiceError("NotImplemented", f"not implemented by the embedded AWS: {', '.join(given)}", 501)
        if ":role/" not in PolicySourceArn:
            raise ServiceError("NotImplemented", "the embedded AWS simulates the policies of roles only", 501)
        rights = Rights(client=self._client, role=PolicySourceArn, session="simulated", account=self._account)
        if not rights.exists:
            raise ServiceError("NoSuchEntity", f"The role with name {rights.name} cannot be found.", 404)
        context = {each["ContextKeyName"]: each["ContextKeyValues"][0] for each in ContextEntries}
        results = [
            {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": _word(rights.simulated(action, resource, context)),
                "MatchedStatements": [],
                "MissingContextValues": [],
            }
            for action in ActionNames
            for resource in ResourceArns
        ]
        return {"EvaluationResults": results, "IsTruncated": False}


def _word(decision: Decision) -> str:
    if decision.allowed:
        return "allowed"
    return "explicitDeny" if "with an explicit deny" in decision.reason else "implicitDeny"
