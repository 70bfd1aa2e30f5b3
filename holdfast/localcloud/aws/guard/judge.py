"""Authorization of role sessions, by the role's policies as IAM has them now."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

from botocore.exceptions import BotoCoreError, ClientError
from werkzeug.wrappers import Request

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.guard.callers import CallerIdentity
from holdfast.localcloud.aws.guard.permissions import (
    Need,
    RequestPlace,
    needs,
    needs_of_s3,
    of_assumption,
    session_tags,
)
from holdfast.localcloud.aws.iam import Decision, IamPolicy, PermissionRequest, Rights, decide

KEPT = 256
MOST_TAGS, LONGEST_KEY, LONGEST_VALUE = 50, 128, 256
"""Of a session (STS API reference, AssumeRole)."""


class Authorizer:
    """Authorizes requests of roles, except those of ``clients``. Policies are read again after a change."""

    def __init__(self, clients: Callable[[str, str], ClientFactory]) -> None:
        self._clients = clients
        self._lock = threading.Lock()
        self._rights: dict[tuple[str, str], Rights] = {}

    def changed(self) -> None:
        with self._lock:
            self._rights.clear()

    def allow(
        self,
        who: CallerIdentity,
        request: Request,
        *,
        service: str,
        region: str,
        operation: str,
        labels: Mapping[str, str],
    ) -> None:
        """Return if the role is allowed to. Raise ServiceError (AccessDenied), in IAM's words."""
        account = who.role.split(":")[4]
        place = RequestPlace(account=account, region=region)
        client = self._clients(account, region)
        if service == "s3":
            desired = needs_of_s3(
                method=request.method,
                path=request.path,
                query=request.args,
                copied_from=request.headers.get("x-amz-copy-source", ""),
                body=request.get_data(),
            )
        else:
            _must_say_one_operation(request, operation)
            given = {**_parameters(request), **labels}
            desired = needs(
                service, operation, given, place=place, lookup=lambda kind, name: _found(client, kind, name)
            )
        rights = self._of(who, client, account)
        for need in desired:
            self._check(rights, need, place, who)

    def must_exist(self, request: Request, *, account: str, region: str) -> None:
        """Reject a role that does not exist, which moto would accept. Raise ServiceError (AccessDenied), as STS."""
        role = str(_parameters(request).get("RoleArn", ""))
        try:
            found = self._clients(account, region)("iam").get_role(RoleName=role.rpartition("/")[2])["Role"]["Arn"]
        except (ClientError, BotoCoreError):
            found = ""
        if found != role:
            principal = f"arn:aws:iam::{account}:root"
            message = f"User: {principal} is not authorized to perform: sts:AssumeRole on resource: {role}"
            raise ServiceError("AccessDenied", message, 403)

    def must_trust(self, request: Request, service: str, *, account: str, region: str) -> None:
        """Reject a role that the owner's service could not assume and tag. Raise ServiceError (AccessDenied)."""
        given = _parameters(request)
        role, tags = str(given.get("RoleArn", "")), session_tags(given)
        rights = Rights(client=self._clients(account, region), role=role, session=service, account=account)
        context = {"aws:SourceAccount": account, **of_assumption(given, tags)}
        for action in ("sts:AssumeRole", *(["sts:TagSession"] if tags else [])):
            if not rights.trusts(service, action, **context):
                message = f"User: {service} is not authorized to perform: {action} on resource: {role}"
                raise ServiceError("AccessDenied", message, 403)

    def _of(self, who: CallerIdentity, client: ClientFactory, account: str) -> Rights:
        with self._lock:
            known = self._rights.get((who.role, who.session))
        if known is not None:
            return known
        read = Rights(client=client, role=who.role, session=who.session, account=account)
        with self._lock:
            if len(self._rights) >= KEPT:
                self._rights.clear()
            self._rights[who.role, who.session] = read
        return read

    def _check(self, rights: Rights, need: Need, place: RequestPlace, who: CallerIdentity) -> None:
        same = {"aws:PrincipalAccount": place.account, "aws:ResourceAccount": place.account}
        context = {
            **same,
            **{f"aws:PrincipalTag/{key}": value for key, value in who.tags.items()},
            "s3:ResourceAccount": place.account,
            "aws:RequestedRegion": place.region,
            "aws:ViaAWSService": "false",
            **need.context,
        }
        decisions = [
            _limited(rights.to(need.action, each, context), who, need, each, context) for each in need.resources
        ]
        if any("explicit deny" in one.reason for one in decisions) or not any(one.allowed for one in decisions):
            refused = next(one for one in decisions if not one.allowed)
            raise ServiceError("AccessDenied", refused.reason, 403)
        assumed = need.action in ("sts:AssumeRole", "sts:TagSession")
        if assumed and not rights.trusted_by(need.resources[0], need.action, context):
            reason = f"User: {rights.principal} is not authorized to perform: {need.action} on resource: "
            raise ServiceError("AccessDenied", reason + need.resources[0], 403)


def _limited(
    decision: Decision, who: CallerIdentity, need: Need, resource: str, context: Mapping[str, str]
) -> Decision:
    """Apply the session policy (IAM user guide, "Session policies")."""
    if not decision.allowed or not who.policy:
        return decision
    account = who.role.split(":")[4]
    principal = f"arn:aws:sts::{account}:assumed-role/{who.role.rsplit('/', 1)[-1]}/{who.session}"
    asked = PermissionRequest(principal=principal, action=need.action, resource=resource, context=context)
    limited = decide(asked, identity=[IamPolicy(document=_document(who.policy))])
    if limited.allowed or "explicit deny" in limited.reason:
        return limited
    return Decision(allowed=False, reason=limited.reason.replace("identity-based policy", "session policy"))


def _document(policy: str) -> Mapping[str, Any]:
    try:
        found = json.loads(policy)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _must_say_one_operation(request: Request, operation: str) -> None:
    """Reject a request that names two operations: moto would run another than the judged one."""
    body = request.get_data(parse_form_data=False)
    named = {value for _, value in _pairs(request, body)}
    named.update(value for name, value in request.headers.items() if name.lower() == "action")
    if request.mimetype == "multipart/form-data" or named - {operation}:
        raise ServiceError("InvalidParameterCombination", "the request names more than one action", 400)


def _pairs(request: Request, body: bytes) -> Iterator[tuple[str, str]]:
    texts = (request.query_string.decode("latin-1"), body.decode("latin-1"))
    return (pair for text in texts for pair in parse_qsl(text, keep_blank_values=True) if pair[0] == "Action")


def tags_of(request: Request) -> Mapping[str, str]:
    """Return the session tags of an AssumeRole request. Raise ServiceError for more or longer tags than STS takes."""
    tags = session_tags(_parameters(request))
    if len(tags) > MOST_TAGS or any(
        len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE for key, value in tags.items()
    ):
        message = f"a session has at most {MOST_TAGS} tags, of {LONGEST_KEY} and {LONGEST_VALUE} characters"
        raise ServiceError("ValidationError", message)
    return tags


def _parameters(request: Request) -> dict[str, Any]:
    body = request.get_data(parse_form_data=False)
    if request.mimetype == "application/x-www-form-urlencoded":
        return {**dict(parse_qsl(body.decode("utf-8", "replace"))), **request.args.to_dict()}
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return {**request.args.to_dict(), **(given if isinstance(given, dict) else {})}


def _found(client: ClientFactory, kind: str, name: str) -> str:
    if kind == "named role":
        return name
    if name.startswith("arn:"):
        return name
    try:
        if kind == "cluster":
            return str(client("sagemaker").describe_cluster(ClusterName=name)["ClusterArn"])
        if kind == "secret":
            return str(client("secretsmanager").describe_secret(SecretId=name)["ARN"])
        if kind == "key":
            return str(client("kms").describe_key(KeyId=name)["KeyMetadata"]["Arn"])
        if kind == "role":
            return str(client("iam").get_role(RoleName=name)["Role"]["Arn"])
        return str(client("eks").describe_cluster(name=name)["cluster"]["arn"])
    except (ClientError, BotoCoreError):
        return ""
