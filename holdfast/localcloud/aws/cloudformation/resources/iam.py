# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceHandler,
    ignore_gone,
)

PRINCIPALS = (("Roles", "role", "RoleName"), ("Users", "user", "UserName"), ("Groups", "group", "GroupName"))


class Role(GenericHandler):
    """A role; attached and inline policies are separate calls."""

    elsewhere = frozenset({"AssumeRolePolicyDocument", "ManagedPolicyArns", "Policies"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        desired = {key: value for key, value in properties.items() if key not in ("Policies", "ManagedPolicyArns")}
        return super().arguments(verb, desired)

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, role = context.client("iam"), made.physical_id
        if old and properties["AssumeRolePolicyDocument"] != old["AssumeRolePolicyDocument"]:
            document = json.dumps(properties["AssumeRolePolicyDocument"])
            client.update_assume_role_policy(RoleName=role, PolicyDocument=document)
        before, after = set(old.get("ManagedPolicyArns", [])), set(properties.get("ManagedPolicyArns", []))
        for arn in sorted(after - before):
            client.attach_role_policy(RoleName=role, PolicyArn=arn)
        for arn in sorted(before - after):
            ignore_gone(client.detach_role_policy, RoleName=role, PolicyArn=arn)
        desired = {entry["PolicyName"]: entry["PolicyDocument"] for entry in properties.get("Policies", [])}
        had = {entry["PolicyName"]: entry["PolicyDocument"] for entry in old.get("Policies", [])}
        for name, document in desired.items():
            if had.get(name) != document:
                client.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
        for name in had.keys() - desired.keys():
            ignore_gone(client.delete_role_policy, RoleName=role, PolicyName=name)

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        client, lost = context.client("iam"), sorted(old.keys() - tags.keys())
        if lost:
            client.untag_role(RoleName=made.physical_id, TagKeys=lost)
        if tags:
            client.tag_role(RoleName=made.physical_id, Tags=[{"Key": k, "Value": v} for k, v in tags.items()])

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        client, role = context.client("iam"), made.physical_id
        for arn in properties.get("ManagedPolicyArns", []):
            ignore_gone(client.detach_role_policy, RoleName=role, PolicyArn=arn)
        for entry in properties.get("Policies", []):
            ignore_gone(client.delete_role_policy, RoleName=role, PolicyName=entry["PolicyName"])
        super().delete(context, made, properties)


class InlinePolicy(ResourceHandler):
    type = "AWS::IAM::Policy"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        made = Made(physical_id=context.name(length=64))
        self._put(context, properties)
        return made

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        self._put(context, properties)
        for key, kind, member in PRINCIPALS:
            for name in set(old.get(key, [])) - set(properties.get(key, [])):
                self._remove(context, kind, member, name, old["PolicyName"])
        if old["PolicyName"] != properties["PolicyName"]:
            self.delete(context, made, old)
        return made

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        for key, kind, member in PRINCIPALS:
            for name in properties.get(key, []):
                self._remove(context, kind, member, name, properties["PolicyName"])

    @staticmethod
    def _put(context: ResourceContext, properties: Properties) -> None:
        document = json.dumps(properties["PolicyDocument"])
        for key, kind, member in PRINCIPALS:
            put = getattr(context.client("iam"), f"put_{kind}_policy")
            for name in properties.get(key, []):
                put(PolicyName=properties["PolicyName"], PolicyDocument=document, **{member: name})

    @staticmethod
    def _remove(context: ResourceContext, kind: str, member: str, name: str, policy: str) -> None:
        ignore_gone(getattr(context.client("iam"), f"delete_{kind}_policy"), PolicyName=policy, **{member: name})


class ManagedPolicy(GenericHandler):
    """A managed policy; a changed document becomes a new default version."""

    elsewhere = frozenset({"ManagedPolicyName", "PolicyDocument", "Groups", "Roles", "Users"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        return {"PolicyName": properties["ManagedPolicyName"], **super().arguments(verb, properties)}

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, arn = context.client("iam"), made.physical_id
        if old and properties["PolicyDocument"] != old["PolicyDocument"]:
            stale = [entry["VersionId"] for entry in client.list_policy_versions(PolicyArn=arn)["Versions"]]
            client.create_policy_version(
                PolicyArn=arn, PolicyDocument=json.dumps(properties["PolicyDocument"]), SetAsDefault=True
            )
            for version in stale:
                client.delete_policy_version(PolicyArn=arn, VersionId=version)
        for key, kind, member in PRINCIPALS:
            before, after = set(old.get(key, [])), set(properties.get(key, []))
            for name in sorted(after - before):
                getattr(client, f"attach_{kind}_policy")(PolicyArn=arn, **{member: name})
            for name in sorted(before - after):
                ignore_gone(getattr(client, f"detach_{kind}_policy"), PolicyArn=arn, **{member: name})

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        for key, kind, member in PRINCIPALS:
            for name in properties.get(key, []):
                detach = getattr(context.client("iam"), f"detach_{kind}_policy")
                ignore_gone(detach, PolicyArn=made.physical_id, **{member: name})
        super().delete(context, made, properties)
