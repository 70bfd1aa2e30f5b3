"""5xx: buckets of lifecycle scripts: what their policies and keys let nodes do."""

import re
from collections.abc import Iterator, Mapping

from holdfast.validation.cloudformation import Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import (
    BUCKET,
    Grant,
    buckets_in,
    grants_in,
    grants_of,
    principals,
    reads_all,
    role_of,
    roles_of_groups,
    scripts_buckets,
)
from holdfast.validation.model import App, Deployment, may_be
from holdfast.validation.rules.iam.keys import key_of_bucket

READS = ("s3:GetObject", "s3:ListBucket")
_WAYS = {"aws:sourcevpce": "AWS::EC2::VPCEndpoint", "aws:sourcevpc": "AWS::EC2::VPC"}
"""Keys of conditions about the way of a request, and what it is of."""


@rule(
    "HF527",
    title="Bucket policies do not deny nodes",
    each=App,
    source="IAM user guide, 'Policy evaluation logic': an explicit deny; S3 user guide, 'Bucket policies'",
)
def bucket_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """A Deny without a condition that is for everybody, or for the nodes' role, outweighs what their role allows."""
    roles = {role for _cluster, _group, role in roles_of_groups(app)}
    for policy, node in app.each("AWS::S3::BucketPolicy"):
        for grant in grants_in(node.get("PolicyDocument")):
            denied = [action for action in READS if grant.names(action)]
            if grant.effect == "Deny" and not grant.conditions and denied and _meets(grant, roles):
                yield refused(
                    f"{policy.path}.PolicyDocument",
                    f"a Deny of {' and '.join(denied)} that meets the nodes",
                    allowed="policies under which nodes read the bucket",
                    fix="remove the Deny, or add the condition under which it holds",
                )
            elif grant.effect == "Deny" and denied and _meets(grant, roles) and (way := _other_way(app, grant)):
                yield refused(
                    way,
                    f"a Deny of {' and '.join(denied)} for all but a network that is not the nodes'",
                    allowed="the endpoint or the VPC of the nodes",
                    fix="name the one of this template",
                )
            elif grant.effect == "Deny" and denied and node.get("Bucket").resource(BUCKET) in scripts_buckets(app):
                for role in (each for each in roles if not _spares(app, grant, each)):
                    yield refused(
                        f"{policy.path}.PolicyDocument",
                        f"a Deny of {' and '.join(denied)} for all but others than {role.logical_id}",
                        allowed="policies under which nodes read their scripts",
                        fix=f"name the role {role.logical_id} in the condition",
                    )


@rule(
    "HF528",
    title="Nodes may use the key of the bucket with their scripts",
    each=App,
    source="S3 user guide, 'Using server-side encryption with AWS KMS keys': GetObject needs kms:Decrypt",
)
def keys_of_scripts(app: App, _: Deployment) -> Iterator[Broken]:
    """S3 decrypts with the caller's permissions. Without kms:Decrypt no node gets its scripts."""
    for _cluster, group, role in roles_of_groups(app):
        source = group.get("LifeCycleConfig", "SourceS3Uri")
        for bucket in buckets_in(app, source):
            key = key_of_bucket(app, bucket)
            if key is None or not reads_all(app, role) or _lets_in(app, key, role):
                continue
            if not any(each.effect == "Allow" and each.names("kms:Decrypt") for each in grants_of(app, role)):
                yield refused(
                    f"{role.path}.Policies",
                    f"a role without kms:Decrypt, for the key of {bucket.logical_id}",
                    allowed="a role that may decrypt the scripts",
                    fix=f"allow kms:Decrypt on {key.logical_id}",
                )


def _other_way(app: App, grant: Grant) -> str:
    """Place of a condition that requests come through a VPC or an endpoint, none of them one that the app makes."""
    conditions = [(operator, key) for operator, keys in grant.conditions.items() for key in _keys(keys)]
    if len(conditions) != 1 or not conditions[0][0].startswith("StringNotEquals"):
        return ""
    kind, held = _WAYS.get(conditions[0][1].lower(), ""), grant.node.get("Condition", *conditions[0])
    entries = (held.items() or []) if isinstance(held.value, list) else [held]
    named = [each.resource(kind) or each.value for each in entries]
    made = [resource for resource, _node in app.each(kind)]
    known = all(isinstance(each, str | Resource) for each in named)
    return held.path if made and named and known and not any(each in made for each in named) else ""


def _spares(app: App, grant: Grant, role: Resource) -> bool:
    """False if a condition lets in principals by name, all of them others than a role."""
    conditions = [(operator, key) for operator, keys in grant.conditions.items() for key in _keys(keys)]
    negated = [each for each in conditions if re.match(r"(String|Arn)Not(Equals|Like)", each[0])]
    if negated != conditions or [key.lower() for _operator, key in conditions] != ["aws:principalarn"]:
        return True
    held = grant.node.get("Condition", *conditions[0])
    name, folder = app.node(role).get("RoleName").text(), app.node(role).get("Path").text() or "/"
    if not isinstance(name, str | None) or not isinstance(folder, str):
        return True
    ending = f"role{folder}{name or role.logical_id}"
    for entry in (held.items() or []) if isinstance(held.value, list) else [held]:
        if role_of(entry) is role or not isinstance(entry.value, str):
            return True
        if may_be(entry.value, service="iam", resource=ending) or (name is None and "*" in entry.value):
            return True
    return False


def _keys(condition: object) -> Iterator[str]:
    yield from condition if isinstance(condition, Mapping) else ()


def _meets(grant: Grant, roles: set[Resource]) -> bool:
    held = grant.node.get("Principal")
    named = principals(grant, "AWS")
    return held.value == "*" or any(each.value == "*" or role_of(each) in roles for each in named)


def _lets_in(app: App, key: Resource, role: Resource) -> bool:
    """True if the key's policy may allow the role itself."""
    grants = [each for each in grants_in(app.node(key).get("KeyPolicy")) if each.effect == "Allow"]
    named = [node for each in grants if each.names("kms:Decrypt") for node in principals(each, "AWS")]
    return any(node.value == "*" or role_of(node) is role or not node.known for node in named)
