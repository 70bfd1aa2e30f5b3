"""6xx: customer managed keys: what may use them, where they are, and what a key has to be."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import Grant, grants_in, grants_of, principals, reads_all, roles_of_groups
from holdfast.validation.model import (
    App,
    Cluster,
    Deployment,
    EnvironmentFile,
    RestrictedGroup,
    Volume,
    may_be,
    text_of,
)
from holdfast.validation.rules.iam.limits import given_by_managed

CMK = "SageMaker developer guide, 'Customer managed AWS KMS key encryption for SageMaker HyperPod'"
KMS = "KMS developer guide"
KEY, ALIAS = "AWS::KMS::Key", "AWS::KMS::Alias"
_NEEDED = ("kms:CreateGrant", "kms:DescribeKey")
_CONTEXT = "kms:encryptioncontext"


@rule("HF640", title="Customer managed keys of volumes need continuous provisioning", each=Cluster, source=CMK)
def keys_are_continuous(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    "Customer managed key encryption is only supported for clusters using the continuous node provisioning mode."
    """
    if cluster.continuous:
        return
    for group in cluster.instance_groups:
        for volume in group.volumes:
            if volume.kms_key:
                yield refused(
                    volume.at("kms_key"),
                    "a key of yours for volumes, without continuous provisioning",
                    allowed="such a key in a cluster with node provisioning mode Continuous",
                    fix="set the cluster's node provisioning mode to Continuous, or remove the key",
                )


@rule("HF641", title="Restricted groups have no customer managed key", each=RestrictedGroup, source=CMK)
def restricted_keys(group: RestrictedGroup, _: Deployment) -> Iterator[Broken]:
    """
    "Restricted instance groups don't support customer managed keys."
    """
    for volume in group.volumes:
        if volume.kms_key:
            yield refused(
                volume.at("kms_key"),
                "a key of yours on a restricted group",
                allowed="the service's own key",
                fix="remove the key",
            )


@rule("HF642", title="The execution role may use the volumes' KMS keys", each=App, source=CMK)
def role_uses_key(app: App, _: Deployment) -> Iterator[Broken]:
    """
    With a key of yours the execution role needs kms:CreateGrant and kms:DescribeKey. Without, nodes cannot be added,
    replaced or patched.
    """
    for _cluster, group, role in roles_of_groups(app):
        keys = list(_keys_of(group))
        given = given_by_managed(app, role)
        if not keys or given is None or not reads_all(app, role):
            continue
        region = app.region(role.template)
        allowed = [
            each
            for each in grants_of(app, role)
            if each.effect == "Allow"
            and any(may_be(text, service="kms", region=region, resource="key/") for text in each.resources or ("*",))
        ]
        missing = [
            action for action in _NEEDED if action not in given and not any(each.names(action) for each in allowed)
        ]
        if missing:
            yield refused(
                f"{role.path}.Policies",
                f"a role without {' and '.join(missing)}, for the key of {keys[0].path}",
                allowed="a role with both permissions, because the volume has a customer managed key",
                fix=f"allow {' and '.join(missing)} on the key",
            )
        for grant in allowed:
            if any(grant.names(action) for action in _NEEDED) and grant.actions != ("*",):
                yield from _context(grant)


@rule(
    "HF643", title="Key policies allow the use of the key", each=App, source=f"{CMK}; {KMS}, 'Key policies in AWS KMS'"
)
def key_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A key policy that leaves out the account's administrators locks everybody out. One that asks for an encryption
    context shuts out HyperPod, which passes none. kms:ViaService has to name the service and region in which the key is
    used.
    """
    for key, properties in app.each(KEY):
        grants = grants_in(properties.get("KeyPolicy"))
        if not grants or not all(each.effect and each.sure for each in grants):
            continue
        allows = [each for each in grants if each.effect == "Allow"]
        if not any(_administers(each) for each in allows):
            yield refused(
                f"{key.path}.KeyPolicy",
                "a policy that lets no principal change it",
                allowed="one that lets the account administer the key",
                fix="allow kms:* to the account's root, arn:aws:iam::ACCOUNT:root",
            )
        if any(key_of(app, node) is key for _c, group, _r in roles_of_groups(app) for node in _keys_of(group)):
            for grant in grants:
                if any(
                    grant.names(action) for action in (*_NEEDED, "kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext")
                ):
                    yield from _context(grant)
                    yield from _via(app, key, grant)
                if grant.effect == "Deny" and not grant.conditions and any(grant.names(each) for each in _NEEDED):
                    yield refused(
                        grant.path,
                        "a Deny of kms:CreateGrant or kms:DescribeKey",
                        allowed="policies that do not deny these to the execution role",
                        fix="remove the Deny, or name those whom it is for",
                    )


@rule(
    "HF644",
    title="KMS keys are symmetric, for encryption, and enabled",
    each=App,
    source=f"{KMS}, 'Key types'; EBS user guide, 'EBS encryption'",
)
def kinds_of_keys(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Volumes, file systems, buckets and logs take symmetric keys for ENCRYPT_DECRYPT that are enabled. An asymmetric key,
    one for signatures, or one that is disabled encrypts nothing.
    """
    used = {key for node in _uses(app) if (key := key_of(app, node)) is not None}
    for key, properties in app.each(KEY):
        if key not in used:
            continue
        spec, usage = properties.get("KeySpec"), properties.get("KeyUsage")
        if isinstance(spec.value, str) and spec.value != "SYMMETRIC_DEFAULT":
            yield refused(
                spec.path, spec.value, allowed="SYMMETRIC_DEFAULT, for what encrypts data at rest", fix="remove KeySpec"
            )
        if isinstance(usage.value, str) and usage.value != "ENCRYPT_DECRYPT":
            yield refused(usage.path, usage.value, allowed="ENCRYPT_DECRYPT", fix="remove KeyUsage")
        if properties.get("Enabled").boolean(default=True) is False:
            yield refused(
                properties.get("Enabled").path,
                "a key that is disabled",
                allowed="an enabled one for what uses it",
                fix="remove Enabled: false",
            )


@rule(
    "HF645",
    title="KMS keys of buckets in data repository associations allow FSx",
    each=App,
    source="FSx for Lustre user guide, 'Working with server-side encrypted Amazon S3 buckets'",
)
def keys_of_linked_buckets(app: App, _: Deployment) -> Iterator[Broken]:
    """
    FSx reads and writes a linked bucket with its service-linked role AWSServiceRoleForFSxS3Access_fs-*. A key of yours
    on the bucket has to let that role in, by its policy or by letting the account's policies decide.
    """
    for association, properties in app.each("AWS::FSx::DataRepositoryAssociation"):
        bucket = _linked_bucket(app, properties.get("DataRepositoryPath"))
        key = key_of_bucket(app, bucket) if bucket is not None else None
        if key is None:
            continue
        grants = [each for each in grants_in(app.node(key).get("KeyPolicy")) if each.effect == "Allow"]
        if grants and all(each.sure for each in grants) and not any(_lets_fsx_in(each) for each in grants):
            yield refused(
                f"{key.path}.KeyPolicy",
                f"a key policy without FSx's role, for the bucket of {association.logical_id}",
                allowed="one that lets AWSServiceRoleForFSxS3Access_fs-* encrypt and decrypt",
                fix="allow kms:Encrypt, kms:Decrypt, kms:ReEncrypt*, kms:GenerateDataKey*, kms:DescribeKey to "
                "arn:aws:iam::ACCOUNT:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*",
            )


@rule(
    "HF647",
    title="Keys of your own are named by a KMS id, ARN or alias",
    each=(Volume, EnvironmentFile),
    source="SageMaker API reference, VolumeKmsKeyId; KMS developer guide, 'AWS KMS keys': AWS managed keys",
)
def keys_of_volumes(volume: Volume | EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """The id, the ARN or the alias of a key of yours; AWS's own keys (alias/aws/...) take no grants for HyperPod."""
    if "alias/aws/" in (volume.kms_key or ""):
        yield refused(
            volume.at("kms_key"),
            f"{volume.kms_key}, a key of AWS's own",
            allowed="a customer managed key",
            fix="name a key of yours, or leave it out for the keys of the services",
        )
        return
    parts = str(volume.kms_key or "").split(":")
    if parts[0] == "arn" and len(parts) > 5 and (parts[2] != "kms" or not parts[5].startswith(("key/", "alias/"))):
        yield refused(
            volume.at("kms_key"), f"an ARN of {parts[2]}", allowed="the id, ARN or alias of a KMS key", fix="name a key"
        )


@rule("HF648", severity="warning", title="Each instance group has its own KMS key", each=Cluster, source=CMK)
def keys_of_groups(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    "We strongly recommend that you use different KMS keys for each instance group": a grant that is revoked for one
    group goes on with that of another.
    """
    seen: dict[str, str] = {}
    for group in cluster.instance_groups:
        for volume in group.volumes:
            key = volume.kms_key
            if key and seen.get(key, group.name) != group.name:
                yield Broken(
                    path=volume.at("kms_key"),
                    message=f"the key of {group.name} is that of {seen[key]} too",
                    fix="give each group a key of its own",
                )
            if key:
                seen.setdefault(key, group.name)


@rule(
    "HF649",
    title="Aliases of keys, and what EKS encrypts, are allowed ones",
    each=App,
    source="CloudFormation reference, AWS::KMS::Alias; EKS API reference, EncryptionConfig",
)
def aliases(app: App, _: Deployment) -> Iterator[Broken]:
    """alias/aws/ is for AWS's own keys. EKS encrypts secrets, and nothing else, with a key of yours."""
    for alias, node in app.each(ALIAS):
        name = node.get("AliasName").value
        if isinstance(name, str) and (name.startswith("alias/aws/") or not name.startswith("alias/")):
            yield refused(
                f"{alias.path}.AliasName",
                f'"{name}"',
                allowed="alias/NAME, and not alias/aws/",
                fix=f"write alias/{name.removeprefix('alias/').removeprefix('aws/')}",
            )
    for _cluster, node in app.each("AWS::EKS::Cluster"):
        for entry in node.get("EncryptionConfig").items() or ():
            for resource in entry.get("Resources").items() or ():
                if isinstance(resource.value, str) and resource.value != "secrets":
                    yield refused(resource.path, f'"{resource.value}"', allowed="secrets", fix="write secrets")


@rule(
    "HF646",
    title="Key policies allow the services that encrypt with the key",
    each=App,
    source="CloudWatch Logs user guide, 'Encrypt log data'; SNS developer guide, 'Key management'",
)
def services_use_keys(app: App, _: Deployment) -> Iterator[Broken]:
    """
    CloudWatch Logs needs its principal, logs.REGION.amazonaws.com, in the policy of the key that encrypts a log group:
    CreateLogGroup fails without. A topic that alarms or events publish to needs cloudwatch or events in the policy of
    its key, and the AWS managed key alias/aws/sns cannot have them.
    """
    for group, properties in app.each("AWS::Logs::LogGroup"):
        key = key_of(app, properties.get("KmsKeyId"))
        if key is None:
            continue
        grants = [each for each in grants_in(app.node(key).get("KeyPolicy")) if each.effect == "Allow"]
        services = [text_of(node.value) for each in grants for node in principals(each, "Service")]
        sure = bool(grants) and all(each.sure for each in grants) and None not in services
        open_to_logs = any(str(text).startswith("logs.") for text in services) or any(map(_anybody, grants))
        if sure and not open_to_logs:
            yield refused(
                f"{key.path}.KeyPolicy",
                f"a key policy without CloudWatch Logs, for {group.logical_id}",
                allowed="one that names logs.REGION.amazonaws.com",
                fix="allow kms:Encrypt*, kms:Decrypt*, kms:ReEncrypt*, kms:GenerateDataKey*, kms:Describe* to it",
            )
    alarmed = {
        topic
        for _alarm, node in app.each("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        for name in ("AlarmActions", "OKActions", "InsufficientDataActions")
        for entry in node.get(name).items() or ()
        if (topic := entry.resource("AWS::SNS::Topic")) is not None
    }
    for topic in alarmed:
        node = app.node(topic).get("KmsMasterKeyId")
        if node.value == "alias/aws/sns":
            yield refused(
                node.path,
                "alias/aws/sns on a topic of alarms",
                allowed="no key, or a customer managed one that lets cloudwatch.amazonaws.com in",
                fix="make a key, or remove KmsMasterKeyId",
            )
        key = key_of(app, node)
        if key is not None:
            grants = [each for each in grants_in(app.node(key).get("KeyPolicy")) if each.effect == "Allow"]
            services = [text_of(each.value) for grant in grants for each in principals(grant, "Service")]
            if grants and None not in services and not any(str(text).startswith("cloudwatch.") for text in services):
                yield refused(
                    f"{key.path}.KeyPolicy",
                    f"a key policy without cloudwatch.amazonaws.com, for the alarms of {topic.logical_id}",
                    allowed="one that lets it use the key",
                    fix="allow kms:Decrypt and kms:GenerateDataKey* to cloudwatch.amazonaws.com",
                )


def key_of(app: App, node: Node) -> Resource | None:
    """Key of the app that a property names, directly or by an alias."""
    key = node.resource(KEY)
    value: Any = node.value
    if key is None and getattr(value, "resource", None) is not None and value.resource.type == KEY:
        key = value.resource
    alias = node.resource(ALIAS)
    if key is None and alias is None and isinstance(value, str) and value.startswith("alias/"):
        alias = next((each for each, own in app.each(ALIAS) if own.get("AliasName").value == value), None)
    if alias is not None:
        return key_of(app, app.node(alias).get("TargetKeyId"))
    return key


def _keys_of(group: Node) -> Iterator[Node]:
    for config in group.get("InstanceStorageConfigs").items() or ():
        key = config.get("EbsVolumeConfig", "VolumeKmsKeyId")
        if key.known:
            yield key


def _uses(app: App) -> Iterator[Node]:
    for _cluster, properties in app.each("AWS::SageMaker::Cluster"):
        for group in properties.get("InstanceGroups").items() or ():
            yield from _keys_of(group)
    for kind, path in (
        ("AWS::FSx::FileSystem", ("KmsKeyId",)), ("AWS::Logs::LogGroup", ("KmsKeyId",)),
        ("AWS::RDS::DBInstance", ("KmsKeyId",)), ("AWS::EFS::FileSystem", ("KmsKeyId",)),
        ("AWS::SecretsManager::Secret", ("KmsKeyId",)), ("AWS::SNS::Topic", ("KmsMasterKeyId",)),
        ("AWS::SQS::Queue", ("KmsMasterKeyId",)),
    ):  # fmt: skip
        for _resource, node in app.each(kind):
            yield node.get(*path)
    for _resource, node in app.each("AWS::EKS::Cluster"):
        for entry in node.get("EncryptionConfig").items() or ():
            yield entry.get("Provider", "KeyArn")
    for bucket, _node in app.each("AWS::S3::Bucket"):
        yield from _bucket_keys(app, bucket)


def _bucket_keys(app: App, bucket: Resource) -> Iterator[Node]:
    rules = app.node(bucket).get("BucketEncryption", "ServerSideEncryptionConfiguration").items() or ()
    for each in rules:
        yield each.get("ServerSideEncryptionByDefault", "KMSMasterKeyID")


def key_of_bucket(app: App, bucket: Resource) -> Resource | None:
    return next((key for node in _bucket_keys(app, bucket) if (key := key_of(app, node)) is not None), None)


def _linked_bucket(app: App, path: Node) -> Resource | None:
    value: Any = path.value
    for part in getattr(value, "parts", ()):
        if getattr(part, "resource", None) is not None and part.resource.type == "AWS::S3::Bucket":
            found: Resource = part.resource
            return found
    if isinstance(value, str):
        name = value.removeprefix("s3://").partition("/")[0]
        return next((each for each, own in app.each("AWS::S3::Bucket") if own.get("BucketName").value == name), None)
    return None


def _context(grant: Grant) -> Iterator[Broken]:
    for operator, keys in grant.conditions.items():
        for key in keys if isinstance(keys, Mapping) else ():
            if str(key).lower().startswith(_CONTEXT) and "null" not in operator.lower():
                yield refused(
                    f"{grant.path}.Condition.{operator}",
                    f"a condition on {key}",
                    allowed="none on the encryption context, because HyperPod passes none",
                    fix=f"remove the condition on {key}",
                )


def _via(app: App, key: Resource, grant: Grant) -> Iterator[Broken]:
    region = app.region(key.template)
    for operator, keys in grant.conditions.items():
        value = keys.get("kms:ViaService") if isinstance(keys, Mapping) else None
        texts = value if isinstance(value, list) else [] if value is None else [value]
        known = [known_text for text in texts if (known_text := text_of(text)) is not None]
        if not known or len(known) < len(texts) or operator.lower().startswith(("stringnot", "null")):
            continue
        if any(grant.names(action) for action in _NEEDED) and grant.effect == "Allow":
            fits = [text for text in known if re.match(r"^sagemaker\.|\*", text)]
            role_named = any(node.present for node in principals(grant, "AWS"))
            if not fits and role_named and grant.names("kms:CreateGrant"):
                yield refused(
                    f"{grant.path}.Condition.{operator}",
                    f"kms:ViaService {', '.join(known)}",
                    allowed="sagemaker.REGION.amazonaws.com for HyperPod's grants",
                    fix="write sagemaker.REGION.amazonaws.com",
                )
        for text in known:
            match = re.match(r"^[a-z0-9-]+\.([a-z]{2}(?:-[a-z]+)+-\d)\.", text)
            if match and region is not None and match[1] != region:
                yield refused(
                    f"{grant.path}.Condition.{operator}",
                    f"kms:ViaService {text}",
                    allowed=f"the service in {region}",
                    fix=f"write {text.replace(match[1], region)}",
                )


def _administers(grant: Grant) -> bool:
    if not grant.names("kms:PutKeyPolicy"):
        return False
    principal = grant.node.get("Principal")
    return principal.value == "*" or bool(principals(grant, "AWS")) or not principal.known


def _anybody(grant: Grant) -> bool:
    return grant.node.get("Principal").value == "*"


def _lets_fsx_in(grant: Grant) -> bool:
    if not (grant.names("kms:Decrypt") and (grant.names("kms:Encrypt") or grant.names("kms:GenerateDataKey"))):
        return False
    if not grant.names("kms:Encrypt") or not _through(grant, "s3"):
        return False
    principals_in = [str(text_of(node.value)) for node in principals(grant, "AWS")]
    if any("AWSServiceRoleForFSxS3Access" in text for text in principals_in):
        return True
    arns = [text for text in _condition_texts(grant) if ":role/" in text or ":user/" in text]
    anybody = _anybody(grant) or "*" in principals_in
    return anybody and (not arns or any("AWSServiceRoleForFSxS3Access" in text for text in arns))


def _through(grant: Grant, service: str) -> bool:
    texts: list[str] = []
    for operator, keys in grant.conditions.items():
        value = keys.get("kms:ViaService") if isinstance(keys, Mapping) else None
        if value is not None and not str(operator).lower().startswith("stringnot"):
            texts += [str(text_of(each)) for each in (value if isinstance(value, list) else [value])]
    return not texts or any(text.startswith((f"{service}.", "*")) for text in texts)


def _condition_texts(grant: Grant) -> list[str]:
    found = []
    for keys in grant.conditions.values():
        for value in keys.values() if isinstance(keys, Mapping) else ():
            found += [str(text_of(each)) for each in (value if isinstance(value, list) else [value])]
    return found
