"""Types of other services whose operations need a hand."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources._base import (
    Context,
    Made,
    Properties,
    ResourceError,
    ignore_gone,
)
from holdfast.localcloud.aws.cloudformation.resources._generic import Generic
from holdfast.localcloud.aws.cloudformation.resources._shapes import pick


class Parameter(Generic):
    """An SSM parameter; the same operation makes and changes it."""

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        arguments = super().update_arguments(made, properties, old, changed) or {}
        arguments.pop("Tags", None)
        return {**arguments, "Overwrite": True} if arguments else None


class Dashboard(Generic):
    """A dashboard. Its tags are left out: the embedded CloudWatch keeps none for dashboards."""

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        return super().arguments(verb, {key: value for key, value in properties.items() if key != "Tags"})

    def retag(self, context: Context, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        """Nothing to tag."""


class LogGroup(Generic):
    """A log group; how long it keeps events is a call of its own."""

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        result.pop("deletionProtectionEnabled", None)
        return result

    def settle(self, context: Context, made: Made, properties: Properties, old: Properties) -> None:
        client, days = context.client("logs"), properties.get("RetentionInDays")
        if days != old.get("RetentionInDays"):
            if days is None:
                client.delete_retention_policy(logGroupName=made.physical_id)
            else:
                client.put_retention_policy(logGroupName=made.physical_id, retentionInDays=days)

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        arn = description.get("arn")
        return {"Arn": arn if arn.endswith(":*") else f"{arn}:*"} if arn else {}

    def describe(self, context: Context, made: Made, properties: Properties) -> dict[str, Any] | None:
        found = context.client("logs").describe_log_groups(logGroupNamePrefix=made.physical_id)["logGroups"]
        return next((entry for entry in found if entry["logGroupName"] == made.physical_id), None)

    def retag(self, context: Context, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        arn = str(made.attributes["Arn"]).removesuffix(":*")
        super().retag(context, Made(physical_id=made.physical_id, attributes={"Arn": arn}), tags, old)


class Key(Generic):
    """A KMS key; deletion is scheduled, as the service does it."""

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        return result | ({"Policy": json.dumps(properties["KeyPolicy"])} if "KeyPolicy" in properties else {})

    def settle(self, context: Context, made: Made, properties: Properties, old: Properties) -> None:
        client, key = context.client("kms"), made.physical_id
        rotate = properties.get("EnableKeyRotation", False)
        if rotate != old.get("EnableKeyRotation", False):
            (client.enable_key_rotation if rotate else client.disable_key_rotation)(KeyId=key)
        if old and properties.get("KeyPolicy") != old.get("KeyPolicy") and "KeyPolicy" in properties:
            client.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(properties["KeyPolicy"]))
        if old and properties.get("Description") != old.get("Description"):
            client.update_key_description(KeyId=key, Description=properties.get("Description", ""))
        enabled = properties.get("Enabled", True)
        if enabled != old.get("Enabled", True):
            (client.enable_key if enabled else client.disable_key)(KeyId=key)

    def delete(self, context: Context, made: Made, properties: Properties) -> None:
        days = properties.get("PendingWindowInDays", 30)
        ignore_gone(context.client("kms").schedule_key_deletion, KeyId=made.physical_id, PendingWindowInDays=days)


class Repository(Generic):
    """An ECR repository with its policies."""

    def settle(self, context: Context, made: Made, properties: Properties, old: Properties) -> None:
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

    def delete(self, context: Context, made: Made, properties: Properties) -> None:
        force = bool(properties.get("EmptyOnDelete", False))
        ignore_gone(context.client("ecr").delete_repository, repositoryName=made.physical_id, force=force)


class FileSystem(Generic):
    """An FSx file system; the mount name is inside its Lustre configuration."""

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        inside = description.get("FileSystem", description)
        lustre = inside.get("LustreConfiguration") or {}
        result = {
            "LustreMountName": lustre.get("MountName"),
            "DNSName": inside.get("DNSName"),
            "ResourceARN": inside.get("ResourceARN"),
            "Id": inside.get("FileSystemId"),
        }
        return {key: value for key, value in result.items() if value}


class Cluster(Generic):
    """A SageMaker HyperPod cluster: an update that fails leaves it InService, with a message."""

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        arguments = super().update_arguments(made, properties, old, changed)
        kept = {group["InstanceGroupName"] for group in properties.get("InstanceGroups", [])}
        lost = [
            group["InstanceGroupName"]
            for group in old.get("InstanceGroups", [])
            if group["InstanceGroupName"] not in kept
        ]
        return {**arguments, "InstanceGroupsToDelete": lost} if arguments and lost else arguments

    def update(self, context: Context, made: Made, properties: Properties, old: Properties) -> Made:
        result = super().update(context, made, properties, old)
        names = {key for key in properties.keys() | old.keys() if properties.get(key) != old.get(key)} - {"Tags"}
        message = pick(self.describe(context, made, properties) or {}, "FailureMessage")
        if names and message:
            raise ResourceError(str(message))
        return result

    def judge(self, description: Mapping[str, Any], status: str, made: Made) -> None:
        if status == "FAILED":
            message = pick(description, "FailureMessage")
            raise ResourceError(str(message or f"cluster {made.physical_id} failed without a message"))
