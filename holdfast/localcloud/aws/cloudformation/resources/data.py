"""Data stores and their protection: FSx, RDS, KMS, Secrets Manager, ECR, SSM."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    ignore_gone,
)


class Parameter(GenericHandler):
    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        arguments = super().update_arguments(made, properties, old, changed) or {}
        arguments.pop("Tags", None)
        return {**arguments, "Overwrite": True} if arguments else None


class Document(GenericHandler):
    """A document; with UpdateMethod NewVersion a change of its content becomes its default version."""

    elsewhere = frozenset({"Content", "UpdateMethod"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        return {**super().arguments(verb, properties), "Content": _document(properties)}

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        if not old or properties["Content"] == old["Content"]:
            return
        client, name = context.client("ssm"), made.physical_id
        newest = client.update_document(Name=name, Content=_document(properties), DocumentVersion="$LATEST")[
            "DocumentDescription"
        ]["DocumentVersion"]
        client.update_document_default_version(Name=name, DocumentVersion=newest)


def _document(properties: Properties) -> str:
    content = properties["Content"]
    return content if isinstance(content, str) else json.dumps(content)


class Key(GenericHandler):
    """A KMS key; deletion is scheduled, as in the service."""

    elsewhere = frozenset(
        {"EnableKeyRotation", "RotationPeriodInDays", "KeyPolicy", "Enabled", "PendingWindowInDays", "Description"}
    )

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        return result | ({"Policy": json.dumps(properties["KeyPolicy"])} if "KeyPolicy" in properties else {})

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, key = context.client("kms"), made.physical_id
        rotate = properties.get("EnableKeyRotation", False)
        period = properties.get("RotationPeriodInDays")
        if rotate and (not old.get("EnableKeyRotation") or period != old.get("RotationPeriodInDays")):
            client.enable_key_rotation(KeyId=key, **({"RotationPeriodInDays": period} if period else {}))
        elif not rotate and old.get("EnableKeyRotation"):
            client.disable_key_rotation(KeyId=key)
        if old and properties.get("KeyPolicy") != old.get("KeyPolicy") and "KeyPolicy" in properties:
            client.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(properties["KeyPolicy"]))
        if old and properties.get("Description") != old.get("Description"):
            client.update_key_description(KeyId=key, Description=properties.get("Description", ""))
        enabled = properties.get("Enabled", True)
        if enabled != old.get("Enabled", True):
            (client.enable_key if enabled else client.disable_key)(KeyId=key)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        days = properties.get("PendingWindowInDays", 30)
        ignore_gone(context.client("kms").schedule_key_deletion, KeyId=made.physical_id, PendingWindowInDays=days)


class Repository(GenericHandler):
    elsewhere = frozenset(
        {"LifecyclePolicy", "RepositoryPolicyText", "EmptyOnDelete", "ImageTagMutability", "ImageScanningConfiguration"}
    )

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, name = context.client("ecr"), {"repositoryName": made.physical_id}
        rules = properties.get("LifecyclePolicy", {}).get("LifecyclePolicyText")
        if rules != old.get("LifecyclePolicy", {}).get("LifecyclePolicyText"):
            if rules:
                client.put_lifecycle_policy(lifecyclePolicyText=rules, **name)
            else:
                ignore_gone(client.delete_lifecycle_policy, **name)
        policy = properties.get("RepositoryPolicyText")
        if policy != old.get("RepositoryPolicyText"):
            if policy:
                text = policy if isinstance(policy, str) else json.dumps(policy)
                client.set_repository_policy(policyText=text, **name)
            else:
                ignore_gone(client.delete_repository_policy, **name)
        if old and properties.get("ImageTagMutability") != old.get("ImageTagMutability"):
            mutability = properties.get("ImageTagMutability", "MUTABLE")
            client.put_image_tag_mutability(imageTagMutability=mutability, **name)
        scanning = properties.get("ImageScanningConfiguration", {})
        if old and scanning != old.get("ImageScanningConfiguration", {}):
            on_push = {"scanOnPush": scanning.get("ScanOnPush", False)}
            client.put_image_scanning_configuration(imageScanningConfiguration=on_push, **name)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        force = bool(properties.get("EmptyOnDelete", False))
        ignore_gone(context.client("ecr").delete_repository, repositoryName=made.physical_id, force=force)


class FileSystemHandler(GenericHandler):
    """An FSx file system; mount name and root volume are inside the configuration of its type."""

    elsewhere = frozenset({"OpenZFSConfiguration/Options"})

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        inside = description.get("FileSystem", description)
        lustre, zfs = inside.get("LustreConfiguration") or {}, inside.get("OpenZFSConfiguration") or {}
        result = {
            "LustreMountName": lustre.get("MountName"),
            "RootVolumeId": zfs.get("RootVolumeId"),
            "DNSName": inside.get("DNSName"),
            "ResourceARN": inside.get("ResourceARN"),
            "Id": inside.get("FileSystemId"),
        }
        return {key: value for key, value in result.items() if value}


DEFAULT_ENGINE_VERSIONS = {"mariadb": "11.4.8"}
"""For engines without a default version in moto."""


class DbInstance(GenericHandler):
    """A database, deleted without a final snapshot: the embedded AWS cannot restore one."""

    elsewhere = frozenset(
        {
            "AllowMajorVersionUpgrade",
            "ApplyImmediately",
            "AutomaticBackupReplicationRetentionPeriod",
            "DeleteAutomatedBackups",
            "MasterUserSecret",
            "VPCSecurityGroups",
        }
    )
    ONLY_TO_MODIFY = ("AllowMajorVersionUpgrade", "ApplyImmediately")

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        if verb == "create" and properties["Engine"] in DEFAULT_ENGINE_VERSIONS:
            result.setdefault("EngineVersion", DEFAULT_ENGINE_VERSIONS[properties["Engine"]])
        if "VPCSecurityGroups" in properties:
            result["VpcSecurityGroupIds"] = properties["VPCSecurityGroups"]
        if "KmsKeyId" in properties.get("MasterUserSecret", {}):
            result["MasterUserSecretKmsKeyId"] = properties["MasterUserSecret"]["KmsKeyId"]
        return result

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        result = self.arguments("update", {key: properties[key] for key in changed if key in properties})
        for key in self.ONLY_TO_MODIFY:
            result.pop(key, None)
        if not result:
            return None
        allowed = {"AllowMajorVersionUpgrade": True} if properties.get("AllowMajorVersionUpgrade") else {}
        return {**result, **allowed, "DBInstanceIdentifier": made.physical_id, "ApplyImmediately": True}

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        final = {"SkipFinalSnapshot": True} if verb == "delete" else {}
        return {"DBInstanceIdentifier": made.physical_id, **final}

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        database = description.get("DBInstance", description)
        endpoint = database.get("Endpoint") or {}
        known = {
            "DBInstanceArn": database.get("DBInstanceArn"),
            "DbiResourceId": database.get("DbiResourceId"),
            "DBInstanceStatus": database.get("DBInstanceStatus"),
            "Endpoint.Address": endpoint.get("Address"),
            "Endpoint.Port": endpoint.get("Port"),
            "Endpoint.HostedZoneId": endpoint.get("HostedZoneId"),
            "MasterUserSecret.SecretArn": (database.get("MasterUserSecret") or {}).get("SecretArn"),
        }
        return {key: str(value) for key, value in known.items() if value is not None}


class DbParameterGroup(GenericHandler):
    """A parameter group; its parameters are set by an update operation."""

    elsewhere = frozenset({"Family", "Parameters"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, {key: value for key, value in properties.items() if key != "Parameters"})
        return {**result, "DBParameterGroupFamily": properties["Family"]}

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, group = context.client("rds"), made.physical_id
        before, after = old.get("Parameters", {}), properties.get("Parameters", {})
        changed = [
            {"ParameterName": key, "ParameterValue": str(value), "ApplyMethod": "pending-reboot"}
            for key, value in after.items()
            if before.get(key) != value
        ]
        if changed:
            client.modify_db_parameter_group(DBParameterGroupName=group, Parameters=changed)
        if before.keys() - after.keys():
            raise ResourceError(f"{self.type}: the embedded AWS cannot reset a parameter")


class Secret(GenericHandler):
    """A secret, given or generated; deleted at once."""

    elsewhere = frozenset({"GenerateSecretString"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        return super().arguments(verb, {key: value for key, value in properties.items() if key != "Type"})

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        if "GenerateSecretString" in properties:
            properties = {**properties, "SecretString": self._generated(context, properties["GenerateSecretString"])}
        return super().create(context, properties)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        generate = properties.get("GenerateSecretString")
        if generate is not None and generate != old.get("GenerateSecretString"):
            properties = {**properties, "SecretString": self._generated(context, generate)}
        return super().update(context, made, properties, old)

    def found_id(self, response: Mapping[str, Any], properties: Properties) -> str:
        return str(response["ARN"])

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        return {"Id": description["ARN"]} if "ARN" in description else {}

    def describe(self, context: ResourceContext, made: Made, properties: Properties) -> dict[str, Any] | None:
        reported = ignore_gone(context.client("secretsmanager").describe_secret, SecretId=made.physical_id)
        return None if reported is None or "DeletedDate" in reported else {"ARN": reported["ARN"]}

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        now = {"ForceDeleteWithoutRecovery": True} if verb == "delete" else {}
        return {"SecretId": made.physical_id, **now}

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        client, lost = context.client("secretsmanager"), sorted(old.keys() - tags.keys())
        if lost:
            client.untag_resource(SecretId=made.physical_id, TagKeys=lost)
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        client.tag_resource(SecretId=made.physical_id, Tags=listed)

    @staticmethod
    def _generated(context: ResourceContext, rules: Properties) -> str:
        inside = ("SecretStringTemplate", "GenerateStringKey")
        asked = {key: value for key, value in rules.items() if key not in inside}
        password = context.client("secretsmanager").get_random_password(**asked)["RandomPassword"]
        if "GenerateStringKey" not in rules:
            return str(password)
        return json.dumps({**json.loads(rules["SecretStringTemplate"]), rules["GenerateStringKey"]: password})


class SecretTargetAttachment(ResourceHandler):
    """Writes the address of a database into its secret; the secret keeps it after deletion, as on AWS."""

    type = "AWS::SecretsManager::SecretTargetAttachment"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        if properties["TargetType"] != "AWS::RDS::DBInstance":
            raise ResourceError(f"{self.type}: the embedded AWS attaches secrets to AWS::RDS::DBInstance only")
        reported = context.client("rds").describe_db_instances(DBInstanceIdentifier=properties["TargetId"])
        database, secret = reported["DBInstances"][0], properties["SecretId"]
        endpoint = database.get("Endpoint") or {}
        known = {
            "engine": database["Engine"],
            "host": endpoint.get("Address"),
            "port": endpoint.get("Port"),
            "username": database["MasterUsername"],
            "dbname": database.get("DBName"),
            "dbInstanceIdentifier": database["DBInstanceIdentifier"],
        }
        client = context.client("secretsmanager")
        content = json.loads(client.get_secret_value(SecretId=secret)["SecretString"])
        content |= {key: value for key, value in known.items() if value is not None}
        client.put_secret_value(SecretId=secret, SecretString=json.dumps(content))
        return Made(physical_id=secret, attributes={"Id": secret})
