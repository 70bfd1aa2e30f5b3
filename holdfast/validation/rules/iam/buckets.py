"""5xx: buckets of lifecycle scripts: what their policies and keys let nodes do."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import Grant, grants_in, grants_of, principals, reads_all, role_of, roles_of_groups
from holdfast.validation.model import App, Deployment, references_in, text_of
from holdfast.validation.rules.iam.keys import key_of_bucket

BUCKET = "AWS::S3::Bucket"
READS = ("s3:GetObject", "s3:ListBucket")


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
        for bucket in _buckets_of(app, source):
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


def _buckets_of(app: App, source: Node) -> Iterator[Resource]:
    """Buckets of the app in a URI, by reference or by name."""
    yield from {each.resource for each in references_in(source.value) if each.resource.type == BUCKET}
    text = text_of(source.value) or ""
    for bucket, node in app.each(BUCKET):
        name = text_of(node.get("BucketName").value)
        if name and text.startswith((f"s3://{name}/", f"s3://{name}")):
            yield bucket


def _meets(grant: Grant, roles: set[Resource]) -> bool:
    held = grant.node.get("Principal")
    named = principals(grant, "AWS")
    return held.value == "*" or any(each.value == "*" or role_of(each) in roles for each in named)


def _lets_in(app: App, key: Resource, role: Resource) -> bool:
    """True if the key's policy may allow the role itself."""
    grants = [each for each in grants_in(app.node(key).get("KeyPolicy")) if each.effect == "Allow"]
    named = [node for each in grants if each.names("kms:Decrypt") for node in principals(each, "AWS")]
    return any(node.value == "*" or role_of(node) is role or not node.known for node in named)
