"""
One handler for most types: identifiers and attributes come from the registry schema, operations and members from
the service's botocore model by naming rules. A row in ``_table`` names what the rules cannot find; a subclass in
``_ec2``, ``_iam``, ... adds what one operation cannot do.
"""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.model import ListShape, OperationModel, ServiceModel, StructureShape

from holdfast.localcloud.aws.cloudformation.resources import _schema
from holdfast.localcloud.aws.cloudformation.resources._base import (
    Context,
    Handler,
    Made,
    Properties,
    ResourceError,
    gone,
)
from holdfast.localcloud.aws.cloudformation.resources._shapes import (
    members,
    pick,
    squeezed,
    to_shape,
    unwrapped,
)

BUSY = frozenset({"CREATING", "PENDING", "UPDATING", "DELETING", "ROLLINGBACK", "SYSTEMUPDATING", "INPROGRESS"})
BROKEN = frozenset({"FAILED", "CREATEFAILED", "UPDATEFAILED", "DELETEFAILED", "MISCONFIGURED"})
FIRST_POLL_S, LONGEST_POLL_S = 0.02, 0.5
POLLS_UNTIL_STUCK = 20
TAG_OPERATIONS = {
    "ec2": ("CreateTags", "DeleteTags"),
    "sagemaker": ("AddTags", "DeleteTags"),
    "ssm": ("AddTagsToResource", "RemoveTagsFromResource"),
}


def service_model(service: str) -> ServiceModel:
    """The botocore model of a service."""
    if service not in _MODELS:
        _MODELS[service] = botocore.session.get_session().get_service_model(service)
    return _MODELS[service]


_MODELS: dict[str, ServiceModel] = {}


class Generic(Handler):
    """Create, read, update and delete by the operations which the schema and the models name."""

    def __init__(
        self,
        resource_type: str,
        *,
        noun: str = "",
        service: str = "",
        create: str | None = "",
        read: str | None = "",
        update: str | None = "",
        delete: str | None = "",
        ref: str = "",
        name: str = "",
        aliases: tuple[str, ...] = (),
        tag_kind: str = "",
        name_length: int = 64,
        lower_name: bool = False,
    ) -> None:
        """
        Describe a type.

        Args:
            noun: Default: the type's last part; how the service's operations call the thing.
            service: Default: the type's middle part, lower case.
            create: Default: Create<noun>, singular or plural; likewise the other three, with their usual verbs.
                None for update: ``settle`` does everything; None for read: there is nothing to wait for.
            ref: Default: the primary identifier; the property or attribute that Ref gives.
            name: Default: an identifier ending in Name, or <type>Name; the property by which users name it.
            aliases: Further member names by which operations take the identifier.
            tag_kind: Default: the noun in kebab case; the ResourceType of EC2's TagSpecifications.
            name_length: Longest generated name.
            lower_name: Whether generated names must be lower case.
        """
        self.type = resource_type
        _, family, last = resource_type.split("::")
        self.noun, self.service = noun or last, service or family.lower()
        self._named = {"create": create, "read": read, "update": update, "delete": delete}
        self._ref, self._name, self.aliases = ref, name, aliases
        self.tag_kind = tag_kind or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", self.noun).lower()
        self.name_length, self.lower_name = name_length, lower_name

    # -- what the schema and the models say

    @cached_property
    def operations(self) -> Mapping[str, OperationModel | None]:
        """The API operation of each handler verb."""
        model = service_model(self.service)
        known = {squeezed(name): name for name in model.operation_names}
        found: dict[str, OperationModel | None] = {}
        for verb, given in self._named.items():
            candidates = [] if given is None else [given] if given else list(self._candidates(verb))
            name = next((known[squeezed(entry)] for entry in candidates if squeezed(entry) in known), None)
            found[verb] = model.operation_model(name) if name else None
        return found

    def _candidates(self, verb: str) -> Iterator[str]:
        prefixes = {
            "create": ("Create",),
            "update": ("Update", "Modify"),
            "delete": ("Delete",),
            "read": ("Describe", "Get"),
        }
        for prefix in prefixes[verb]:
            for noun in (self.noun, f"{self.noun}s", f"{self.noun}es", f"{self.noun.removesuffix('y')}ies"):
                yield f"{prefix}{noun}"

    @cached_property
    def identifiers(self) -> list[str]:
        return _schema.paths(self.type, "primaryIdentifier")

    def spellings(self, name: str) -> tuple[str, str, str]:
        """How an answer may call a property: as it is, with the noun in front, or without."""
        return name, f"{self.noun}{name}", name.removeprefix(self.noun)

    @property
    def ref(self) -> str:
        return self._ref or self.identifiers[0]

    @cached_property
    def custom_name(self) -> str:  # type: ignore[override]
        """The naming property: an identifier, or <noun>Name, that the user may set and may omit."""
        read_only = _schema.paths(self.type, "readOnlyProperties")
        known = _schema.schema(self.type).get("properties", {})
        last = self.type.rsplit("::", 1)[1]
        for name in (self._name, self.ref, *self.identifiers, f"{self.noun}Name", f"{last}Name", "Name"):
            if name.endswith("Name") and name in known and name not in read_only:
                return name
        return ""

    # -- the verbs

    def create(self, context: Context, properties: Properties) -> Made:
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
        made = Made(physical_id=physical_id, attributes=self.found(response, properties))
        self.settle(context, made, properties, {})
        return self.read(context, made, properties)

    def update(self, context: Context, made: Made, properties: Properties, old: Properties) -> Made:
        properties = {**properties, **self.kept_name(made, properties)}
        tags = _schema.tag_property(self.type)
        changed = {key for key in properties.keys() | old.keys() if properties.get(key) != old.get(key)} - {tags}
        operation = self.operations["update"]
        if operation is not None and changed:
            arguments = self.update_arguments(made, properties, old, changed)
            if arguments is not None:
                self.call(context, "update", arguments)
        if tags and properties.get(tags) != old.get(tags):
            self.retag(context, made, _pairs(properties.get(tags)), _pairs(old.get(tags)))
        self.settle(context, made, properties, old)
        return self.read(context, made, properties)

    def delete(self, context: Context, made: Made, properties: Properties) -> None:
        try:
            self.call(context, "delete", self.identity("delete", made, properties))
        except ClientError as error:
            if gone(error):
                return
            raise
        self.wait(context, made, properties, until_gone=True)

    def settle(self, context: Context, made: Made, properties: Properties, old: Properties) -> None:
        """What the create and update operations leave to further calls; ``old`` is {} after creation."""

    # -- arguments

    def named(self, context: Context, properties: Properties) -> Properties:
        """The properties with a generated name where the user gave none."""
        if not self.custom_name or properties.get(self.custom_name):
            return properties
        return {**properties, self.custom_name: context.name(length=self.name_length, lower=self.lower_name)}

    def kept_name(self, made: Made, properties: Properties) -> Properties:
        if self.custom_name and self.custom_name == self.ref and not properties.get(self.custom_name):
            return {self.custom_name: made.physical_id}
        return {}

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        """Properties and tags as members of an operation's input."""
        shape = self._input(verb)
        result: dict[str, Any] = to_shape(shape, properties)
        tags = _pairs(properties.get(_schema.tag_property(self.type) or "Tags"))
        if "TagSpecifications" in shape.members and tags:
            listed = [{"Key": key, "Value": value} for key, value in tags.items()]
            result["TagSpecifications"] = [{"ResourceType": self.tag_kind, "Tags": listed}]
        given = {squeezed(key): value for key, value in properties.items()}
        for required in shape.required_members:
            for key in (f"{self.noun}{required}", required.removeprefix(self.noun)):
                if required not in result and squeezed(key) in given:
                    result[required] = to_shape(shape.members[required], given[squeezed(key)])
        return result

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        """Input of the update operation; None when it takes nothing of what has changed."""
        operation, shape = self.operations["update"], self._input("update")
        assert operation is not None
        whole = operation.name.startswith("Put")
        sent = {key: value for key, value in properties.items() if whole or key in changed}
        arguments = self.arguments("update", sent)
        if not arguments or not {squeezed(key) for key in changed} & members(shape).keys():
            return None
        required = {squeezed(name) for name in shape.required_members}
        needed = {key: value for key, value in properties.items() if squeezed(key) in required}
        return {**to_shape(shape, needed), **arguments, **self.identity("update", made, properties)}

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        """The members of an operation's input that say which resource is meant."""
        values: dict[str, Any] = {}
        for name in self.identifiers:
            value = made.attributes.get(name, properties.get(name))
            value = made.physical_id if value is None or name == self.ref else value
            for alias in (name, f"{self.noun}{name}", *self.aliases):
                values[squeezed(alias)] = value
        shape = self._input(verb)
        result: dict[str, Any] = {}
        for name, member in shape.members.items():
            if squeezed(name) in values:
                result[name] = to_shape(member, values[squeezed(name)])
            elif isinstance(member, ListShape) and squeezed(name).removesuffix("s") in values:
                result[name] = [values[squeezed(name).removesuffix("s")]]
        return result

    def retag(self, context: Context, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        """Make the tags so, by the service's tagging operations."""
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

    def call(self, context: Context, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        operation = self.operations[verb]
        if operation is None:
            raise ResourceError(f"{self.type}: the service {self.service} has no operation to {verb} it")
        result: dict[str, Any] = getattr(context.client(self.service), xform_name(operation.name))(**arguments)
        return result

    def found_id(self, response: Mapping[str, Any], properties: Properties) -> str:
        """What Ref gives, from the answer of the create operation or from the properties."""
        inside = unwrapped(response, self.noun)
        for source in (response, inside):
            value = pick(source, *self.spellings(self.ref))
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str):
                return value
        ids = next(
            (value for key, value in response.items() if squeezed(key) == squeezed(f"{self.noun}{self.ref}s")), None
        )
        if ids:
            return str(ids[0])
        if self.ref in properties:
            return str(properties[self.ref])
        raise ResourceError(f"{self.type}: the answer of the create operation names no {self.ref}")

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        """The read-only properties inside an answer."""
        result: dict[str, Any] = {}
        for path in _schema.paths(self.type, "readOnlyProperties"):
            if "*" in path:
                continue
            value: Any = description
            for depth, part in enumerate(path.split("/")):
                if not isinstance(value, Mapping):
                    value = None
                    break
                value = pick(value, *self.spellings(part)) if depth == 0 else pick(value, part)
            if value is None and "/" not in path:
                value = pick(unwrapped(description, self.noun), *self.spellings(path))
            if value is not None:
                result[path.replace("/", ".")] = value if isinstance(value, (str, int, float, list)) else str(value)
        return result

    def describe(self, context: Context, made: Made, properties: Properties) -> dict[str, Any] | None:
        """What the service says about it; None when it is gone."""
        try:
            response = self.call(context, "read", self.identity("read", made, properties))
        except ClientError as error:
            if gone(error):
                return None
            raise
        return unwrapped(response, self.noun)

    def read(self, context: Context, made: Made, properties: Properties) -> Made:
        """Wait until it is ready; then its identifier and attributes."""
        description = self.wait(context, made, properties)
        attributes = {**made.attributes, **self.found(description, properties)}
        return Made(physical_id=made.physical_id, attributes=attributes)

    def wait(
        self, context: Context, made: Made, properties: Properties, *, until_gone: bool = False
    ) -> Mapping[str, Any]:
        """Poll until it is ready (or gone); the last description."""
        delay, still_there = FIRST_POLL_S, 0
        while self.operations["read"] is not None:
            description = self.describe(context, made, properties)
            status = self.status(description or {})
            if until_gone and (not description or status in ("DELETED", "")):
                return {}
            if description is None:
                raise ResourceError(f"{self.type} {made.physical_id} disappeared while it was being worked on")
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
        """Raise when the description says that the service failed at it."""
        if status in BROKEN:
            details = pick(description, "FailureDetails")
            told = pick(details, "Message") if isinstance(details, Mapping) else None
            message = told or pick(description, "FailureMessage", "FailureReason", "StatusReason")
            raise ResourceError(f"{made.physical_id} is {status.lower()}: {message or 'the service gives no reason'}")

    def status(self, description: Mapping[str, Any]) -> str:
        """Upper case without punctuation; "" when the description has none."""
        value = pick(description, f"{self.noun}Status", "Status", "State", "Lifecycle")
        return squeezed(value).upper() if isinstance(value, str) else ""

    def _input(self, verb: str) -> StructureShape:
        operation = self.operations[verb]
        if operation is None:
            raise ResourceError(f"{self.type}: the service {self.service} has no operation to {verb} it")
        return operation.input_shape


def _pairs(tags: Any) -> dict[str, str]:
    if isinstance(tags, Mapping):
        return dict(tags)
    return {tag["Key"]: tag["Value"] for tag in tags or []}
