"""CloudWatch, its logs, Prometheus and Grafana."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    service_model,
    to_shape,
)
from holdfast.localcloud.aws.monitoring.not_evaluated import alarm_remark, filter_remark


class Alarm(GenericHandler):
    """A metric or composite alarm. The operation that creates it would overwrite another one of its name."""

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        name = properties.get("AlarmName")
        if name and self._look_up(context, name) is not None:
            raise ResourceError(f"{name} already exists")
        return super().create(context, properties)

    def read(self, context: ResourceContext, made: Made, properties: Properties) -> Made:
        return dataclasses.replace(super().read(context, made, properties), remark=alarm_remark(properties))

    def describe(self, context: ResourceContext, made: Made, properties: Properties) -> dict[str, Any] | None:
        found = self._look_up(context, made.physical_id)
        return {key: found[key] for key in ("AlarmArn",)} if found else None

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        return {"Arn": description["AlarmArn"]} if "AlarmArn" in description else {}

    @staticmethod
    def _look_up(context: ResourceContext, name: str) -> dict[str, Any] | None:
        kinds = ["MetricAlarm", "CompositeAlarm"]
        answer = context.client("cloudwatch").describe_alarms(AlarmNames=[name], AlarmTypes=kinds)
        found: list[dict[str, Any]] = [*answer.get("MetricAlarms", []), *answer.get("CompositeAlarms", [])]
        return found[0] if found else None


class Dashboard(GenericHandler):
    """A dashboard. The embedded CloudWatch keeps no tags of dashboards."""

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        return super().arguments(verb, {key: value for key, value in properties.items() if key != "Tags"})

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None: ...


class MetricFilter(GenericHandler):
    def read(self, context: ResourceContext, made: Made, properties: Properties) -> Made:
        given = properties["MetricTransformations"]
        remark = filter_remark(
            properties["FilterPattern"],
            values=[str(one["MetricValue"]) for one in given],
            dimensions=[str(pair["Value"]) for one in given for pair in one.get("Dimensions") or ()],
        )
        return dataclasses.replace(super().read(context, made, properties), remark=remark)


class LogGroup(GenericHandler):
    """A log group; retention and key are separate calls."""

    elsewhere = frozenset({"RetentionInDays", "KmsKeyId", "DeletionProtectionEnabled"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        if properties.get("DeletionProtectionEnabled"):
            raise ResourceError(f"{self.type}: the embedded AWS cannot set DeletionProtectionEnabled")
        result = super().arguments(verb, properties)
        result.pop("deletionProtectionEnabled", None)
        return result

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, days = context.client("logs"), properties.get("RetentionInDays")
        if days != old.get("RetentionInDays"):
            if days is None:
                client.delete_retention_policy(logGroupName=made.physical_id)
            else:
                client.put_retention_policy(logGroupName=made.physical_id, retentionInDays=days)
        key = properties.get("KmsKeyId")
        if old and key != old.get("KmsKeyId"):
            if key is None:
                client.disassociate_kms_key(logGroupName=made.physical_id)
            else:
                client.associate_kms_key(logGroupName=made.physical_id, kmsKeyId=key)

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        arn = description.get("arn")
        return {"Arn": arn if arn.endswith(":*") else f"{arn}:*"} if arn else {}

    def describe(self, context: ResourceContext, made: Made, properties: Properties) -> dict[str, Any] | None:
        found = context.client("logs").describe_log_groups(logGroupNamePrefix=made.physical_id)["logGroups"]
        return next((entry for entry in found if entry["logGroupName"] == made.physical_id), None)

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        arn = str(made.attributes["Arn"]).removesuffix(":*")
        super().retag(context, Made(physical_id=made.physical_id, attributes={"Arn": arn}), tags, old)


class PrometheusWorkspace(GenericHandler):
    PARTS: ClassVar = {
        "AlertManagerDefinition": "alert_manager_definition",
        "LoggingConfiguration": "logging_configuration",
    }
    elsewhere = frozenset(PARTS)

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        return {"workspaceId": made.physical_id.rsplit("/", 1)[-1]}

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, workspace = context.client("amp"), made.physical_id.rsplit("/", 1)[-1]
        self.wait(context, made, properties)
        for key, stem in self.PARTS.items():
            before, after = old.get(key), properties.get(key)
            if before == after:
                continue
            if after is None:
                getattr(client, f"delete_{stem}")(workspaceId=workspace)
                continue
            change = "put" if key == "AlertManagerDefinition" else "update"
            call = f"{'create' if before is None else change}_{stem}"
            model = service_model("amp").operation_model("".join(part.title() for part in call.split("_")))
            given = {"data": after} if isinstance(after, str) else after
            getattr(client, call)(workspaceId=workspace, **to_shape(model.input_shape, given))


class RuleGroups(GenericHandler):
    """Prometheus rules in a workspace, named by its ARN."""

    elsewhere = frozenset({"Workspace"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        return (
            {**result, "workspaceId": properties["Workspace"].rsplit("/", 1)[-1]}
            if "Workspace" in properties
            else result
        )

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        _, workspace, name = made.physical_id.rsplit("/", 2)
        return {"workspaceId": workspace, "name": name}


class GrafanaWorkspace(GenericHandler):
    PREFIXED = ("DataSources", "Description", "Name", "NotificationDestinations", "OrganizationalUnits", "RoleArn")
    elsewhere = frozenset({*PREFIXED, "AuthenticationProviders"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        renamed = {f"Workspace{key}" if key in self.PREFIXED else key: value for key, value in properties.items()}
        return super().arguments(verb, renamed)

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        result = self.arguments("update", {key: properties[key] for key in changed if key in properties})
        return {**result, "workspaceId": made.physical_id} if result else None

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        return {"workspaceId": made.physical_id}

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        providers = properties["AuthenticationProviders"]
        if old and providers != old["AuthenticationProviders"]:
            self.wait(context, made, properties)
            context.client("grafana").update_workspace_authentication(
                workspaceId=made.physical_id, authenticationProviders=providers
            )

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        workspace = description.get("workspace", description)
        known = {
            "Id": workspace.get("id"),
            "Endpoint": workspace.get("endpoint"),
            "GrafanaVersion": workspace.get("grafanaVersion"),
            "Status": workspace.get("status"),
            "CreationTimestamp": workspace.get("created"),
            "ModificationTimestamp": workspace.get("modified"),
            "SamlConfigurationStatus": workspace.get("authentication", {}).get("samlConfigurationStatus"),
        }
        return {key: str(value) for key, value in known.items() if value is not None}

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        arn = f"arn:aws:grafana:{context.region}:{context.account}:/workspaces/{made.physical_id}"
        super().retag(context, Made(physical_id=made.physical_id, attributes={"Arn": arn}), tags, old)
