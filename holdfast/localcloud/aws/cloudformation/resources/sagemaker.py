"""HyperPod clusters, task governance and MLflow."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    pick,
)


class HyperPodClusterHandler(GenericHandler):
    """A HyperPod cluster: a failed update leaves it InService, with a message."""

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        arguments = super().update_arguments(made, properties, old, changed)
        kept = _group_names(properties)
        lost = [name for name in _group_names(old) if name not in kept]
        if not lost:
            return arguments
        return {**(arguments or self.identity("update", made, properties)), "InstanceGroupsToDelete": lost}

    def call(self, context: ResourceContext, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Tolerate a group that the rollback of an update finds deleted (assumed)."""
        if verb == "update" and "InstanceGroupsToDelete" in arguments:
            there = _group_names(super().call(context, "read", {"ClusterName": arguments["ClusterName"]}))
            lost = [name for name in arguments["InstanceGroupsToDelete"] if name in there]
            kept = {name: value for name, value in arguments.items() if name != "InstanceGroupsToDelete"}
            arguments = {**kept, "InstanceGroupsToDelete": lost} if lost else kept
        return super().call(context, verb, arguments)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
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


def _group_names(properties: Properties) -> list[str]:
    groups = [*properties.get("InstanceGroups", []), *properties.get("RestrictedInstanceGroups", [])]
    return [group["InstanceGroupName"] for group in groups]


class ExtensionHandler(GenericHandler):
    """An extension: the API takes the ARN of its cluster beside its own."""

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        return {**super().identity(verb, made, properties), "ClusterArn": properties["ClusterArn"]}


class GovernanceHandler(GenericHandler):
    """A scheduler configuration or compute quota: Ref is its ARN, the API takes id and version."""

    @property
    def custom_name(self) -> str:
        return ""  # names are told apart within one cluster only

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        return {f"{self.noun}Id": made.physical_id.rsplit("/", 1)[-1]}

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        now = self.describe(context, made, properties) or {}
        version = {f"{self.noun}Version": now.get(f"{self.noun}Version")}
        fresh = Made(physical_id=made.physical_id, attributes={**made.attributes, **version})
        return super().update(context, fresh, properties, old)

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        arguments = super().update_arguments(made, properties, old, changed)
        return {**arguments, "TargetVersion": made.attributes[f"{self.noun}Version"]} if arguments else None
