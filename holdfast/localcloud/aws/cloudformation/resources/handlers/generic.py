"""
Generic handler: calls the operations that `typed` finds. Subclasses add what one operation cannot do.

A property that nothing carries to the service is rejected, never dropped.
"""

from collections.abc import Mapping
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation import registry
from holdfast.localcloud.aws.cloudformation.resources.handlers.base import (
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    gone,
)
from holdfast.localcloud.aws.cloudformation.resources.handlers.shapes import pick, squeezed, to_shape, unwrapped
from holdfast.localcloud.aws.cloudformation.resources.handlers.typed import TypeModel, service_model, tag_pairs

BUSY = frozenset({"CREATING", "PENDING", "UPDATING", "DELETING", "ROLLINGBACK", "SYSTEMUPDATING", "INPROGRESS"})
BROKEN = frozenset({"FAILED", "CREATEFAILED", "UPDATEFAILED", "DELETEFAILED", "MISCONFIGURED"})
FIRST_POLL_S, LONGEST_POLL_S = 0.02, 0.5
POLLS_UNTIL_STUCK = 20
TAG_OPERATIONS = {
    "ec2": ("CreateTags", "DeleteTags"),
    "sagemaker": ("AddTags", "DeleteTags"),
    "ssm": ("AddTagsToResource", "RemoveTagsFromResource"),
}


class GenericHandler(TypeModel, ResourceHandler):
    """Create, read, update and delete by the operations of schema and models."""

    # -- the verbs

    def existing(self, context: ResourceContext, name: str) -> Made | None:
        if self.operations["read"] is None:
            return None
        named = {self.custom_name: name}
        description = self.describe(context, Made(physical_id=name), named)
        return Made(physical_id=name, attributes=self.found(description, named)) if description else None

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        self.refuse(self.unsettable("create", properties, {}), "set")
        properties = self.named(context, properties)
        if self.custom_name and self.custom_name == self.ref:
            context.note(str(properties[self.custom_name]))
        try:
            response = self.call(context, "create", self.arguments("create", properties))
        except Exception:
            context.note("")  # whatever bears the name is not ours
            raise
        physical_id = self.found_id(response, properties)
        context.note(physical_id)
        known = {name: properties[name] for name in self.identifiers if name in properties and name != self.ref}
        made = Made(physical_id=physical_id, attributes={**known, **self.found(response, properties)})
        self.settle(context, made, properties, {})
        return self.read(context, made, properties)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        self.refuse(self.unsettable("update", properties, old), "change")
        properties = {**properties, **self.kept_name(made, properties)}
        tags = registry.tag_property(self.type)
        changed = {key for key in properties.keys() | old.keys() if properties.get(key) != old.get(key)} - {tags}
        if self.operations["update"] is not None and changed:
            arguments = self.update_arguments(made, properties, old, changed)
            if arguments is not None:
                self.call(context, "update", arguments)
        if tags and properties.get(tags) != old.get(tags):
            self.retag(context, made, tag_pairs(properties.get(tags)), tag_pairs(old.get(tags)))
        self.settle(context, made, properties, old)
        return self.read(context, made, properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        try:
            self.call(context, "delete", self.identity("delete", made, properties))
        except ClientError as error:
            if gone(error):
                return
            raise
        self.wait(context, made, properties, until_gone=True)

    def refuse(self, paths: list[str], verb: str) -> None:
        """Raise if properties would be lost."""
        if paths:
            raise ResourceError(f"{self.type}: the embedded AWS cannot {verb} {', '.join(paths)}")

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        """Make the calls beyond create and update; ``old`` is {} after creation."""

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        client, model = context.client(self.service), service_model(self.service)
        add, remove = TAG_OPERATIONS.get(self.service, ("TagResource", "UntagResource"))
        arn = pick(made.attributes, "Arn", "ResourceARN", f"{self.noun}Arn") or made.physical_id
        lost = [key for key in old if key not in tags]
        new = {key: value for key, value in tags.items() if old.get(key) != value}
        for operation, value in ((remove, lost), (add, new)):
            if not value:
                continue
            shape = model.operation_model(operation).input_shape
            listed: Any = [{"Key": key, "Value": item} for key, item in new.items()] if value is new else lost
            if value is lost and self.service == "ec2":
                listed = [{"Key": key} for key in lost]
            arguments: dict[str, Any] = {}
            for name, member in shape.members.items():
                if "tag" in squeezed(name):
                    arguments[name] = to_shape(member, listed)
                elif squeezed(name) in ("resources", "resourcearn", "arn", "resourceid", "topicarn", "keyid"):
                    identifier = made.physical_id if squeezed(name) in ("resources", "resourceid", "keyid") else arn
                    arguments[name] = to_shape(member, identifier)
                elif name == "ResourceType":
                    arguments[name] = self.noun
            getattr(client, xform_name(operation))(**arguments)

    # -- answers

    def call(self, context: ResourceContext, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        operation = self.operations[verb]
        if operation is None:
            raise ResourceError(f"{self.type}: the service {self.service} has no operation to {verb} it")
        result: dict[str, Any] = getattr(context.client(self.service), xform_name(operation.name))(**arguments)
        return result

    def describe(self, context: ResourceContext, made: Made, properties: Properties) -> dict[str, Any] | None:
        try:
            response = self.call(context, "read", self.identity("read", made, properties))
        except ClientError as error:
            if gone(error):
                return None
            raise
        return unwrapped(response, self.noun)

    def read(self, context: ResourceContext, made: Made, properties: Properties) -> Made:
        """Wait until ready; return identifier and attributes."""
        description = self.wait(context, made, properties)
        attributes = {**made.attributes, **self.found(description, properties)}
        return Made(physical_id=made.physical_id, attributes=attributes)

    def wait(
        self, context: ResourceContext, made: Made, properties: Properties, *, until_gone: bool = False
    ) -> Mapping[str, Any]:
        """Poll until ready (or gone); return the last description."""
        delay, still_there = FIRST_POLL_S, 0
        while self.operations["read"] is not None:
            description = self.describe(context, made, properties)
            status = self.status(description or {})
            if until_gone and (not description or status in ("DELETED", "")):
                return {}
            if description is None:
                raise ResourceError(f"{self.type} {made.physical_id} disappeared during the operation")
            self.judge(description, status, made)
            if status not in BUSY and not until_gone:
                return description
            still_there += status not in BUSY
            if still_there > POLLS_UNTIL_STUCK:
                raise ResourceError(
                    f"{made.physical_id} was deleted, but the service still shows it as {status.lower()}"
                )
            context.pause(delay)
            delay = min(LONGEST_POLL_S, delay * 1.5)
        return {}

    def judge(self, description: Mapping[str, Any], status: str, made: Made) -> None:
        """Raise if the description is a failure."""
        if status in BROKEN:
            details = pick(description, "FailureDetails")
            reported = pick(details, "Message") if isinstance(details, Mapping) else None
            message = reported or pick(description, "FailureMessage", "FailureReason", "StatusReason")
            raise ResourceError(f"{made.physical_id} is {status.lower()}: {message or 'the service gives no reason'}")
