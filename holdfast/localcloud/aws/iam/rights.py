"""Rights of a role as IAM has them now."""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.iam.conditions import Context
from holdfast.localcloud.aws.iam.evaluation import Decision, IamPolicy, PermissionRequest, decide


class Rights:
    """Rights of one role. Policies are read once."""

    def __init__(self, *, client: ClientFactory, role: str, session: str, account: str) -> None:
        """Read a role's policies; an unknown role may do nothing. ``session``: its name in messages."""
        self.role, self.name = role, role.rsplit("/", 1)[-1]
        partition = role.split(":")[1] if role.count(":") >= 5 else "aws"
        self.principal = f"arn:{partition}:sts::{account}:assumed-role/{self.name}/{session}"
        self._account = (f"arn:{partition}:iam::{account}:root", account)
        self._client, self._iam = client, client("iam")
        self._buckets: dict[str, list[IamPolicy]] = {}
        self._role: Mapping[str, Any] = self._found()
        self._identity = tuple(self._policies()) if self._role else ()
        limit = self._role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
        self._boundary = (self._managed(limit),) if limit else None

    @property
    def exists(self) -> bool:
        return bool(self._role)

    def simulated(self, action: str, resource: str, context: Context) -> Decision:
        request = PermissionRequest(principal=self.principal, action=action, resource=resource, context=context)
        return decide(request, identity=self._identity, boundary=self._boundary)

    def trusts(self, service: str, action: str = "sts:AssumeRole", **context: str) -> bool:
        trust = self._role.get("AssumeRolePolicyDocument")
        if not trust:
            return False
        request = PermissionRequest(principal=service, action=action, resource=self.role, context=context)
        return decide(request, identity=(), resource=(IamPolicy(document=trust),)).allowed

    def to(self, action: str, resource: str = "*", context: Context | None = None) -> Decision:
        request = PermissionRequest(
            principal=self.principal,
            action=action,
            resource=resource,
            context={"aws:PrincipalArn": self.role, "aws:SecureTransport": "true", **(context or {})},
            aliases=(self.role,),
            account=self._account,
        )
        found = self._of_resource(action, resource)
        return decide(request, identity=self._identity, boundary=self._boundary, resource=found)

    def trusted_by(self, role: str, action: str = "sts:AssumeRole", context: Context | None = None) -> bool:
        """
        Return True if another role's trust policy names this role, its session or their account.

        Called where the role's own policies allow the call; within an account the trust policy alone would suffice (IAM
        user guide, "Cross account resource access").
        """
        try:
            found = self._iam.get_role(RoleName=role.rsplit("/", 1)[-1])["Role"]
        except ClientError:
            return False
        known = (self.role, *self._account)
        given = {"aws:PrincipalArn": self.role, **(context or {})}
        request = PermissionRequest(
            principal=self.principal, action=action, resource=role, aliases=known, context=given
        )
        trust = (IamPolicy(document=found["AssumeRolePolicyDocument"]),)
        return bool(found["Arn"] == role and decide(request, identity=(), resource=trust).allowed)

    # -- what IAM and the resource say

    def _found(self) -> Mapping[str, Any]:
        try:
            found: dict[str, Any] = self._iam.get_role(RoleName=self.name)["Role"]
        except ClientError:
            return {}
        return found if found["Arn"] == self.role else {}

    def _policies(self) -> list[IamPolicy]:
        found = []
        with contextlib.suppress(self._iam.exceptions.NoSuchEntityException):  # the role itself may go meanwhile
            for name in self._iam.list_role_policies(RoleName=self.name)["PolicyNames"]:
                with contextlib.suppress(self._iam.exceptions.NoSuchEntityException):
                    reported = self._iam.get_role_policy(RoleName=self.name, PolicyName=name)
                    found.append(IamPolicy(document=reported["PolicyDocument"]))
            attached = self._iam.list_attached_role_policies(RoleName=self.name)["AttachedPolicies"]
            found += [self._managed(policy["PolicyArn"]) for policy in attached]
        return found

    def _managed(self, arn: str) -> IamPolicy:
        version = self._iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        reported = self._iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]
        return IamPolicy(document=reported["Document"], arn=arn)

    def _of_resource(self, action: str, resource: str) -> list[IamPolicy]:
        """Return a bucket's policy; policies of other resources are not used."""
        if not action.startswith("s3:") or ":s3:::" not in resource:
            return []
        bucket = resource.split(":s3:::")[1].partition("/")[0]
        if bucket not in self._buckets:
            self._buckets[bucket] = self._bucket_policy(bucket)
        return self._buckets[bucket]

    def _bucket_policy(self, bucket: str) -> list[IamPolicy]:
        try:
            text = self._client("s3").get_bucket_policy(Bucket=bucket)["Policy"]
        except ClientError:
            return []
        return [IamPolicy(document=json.loads(text))]
