"""SNS and EventBridge."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    ignore_gone,
    service_model,
    tag_pairs,
    to_shape,
)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


class Topic(GenericHandler):
    """A topic; most properties are attributes of one map."""

    ATTRIBUTES = (
        "ArchivePolicy",
        "ContentBasedDeduplication",
        "DisplayName",
        "FifoThroughputScope",
        "FifoTopic",
        "KmsMasterKeyId",
        "SignatureVersion",
        "TracingConfig",
    )
    elsewhere = frozenset({"TopicName", "Subscription", *ATTRIBUTES})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        attributes = {key: _text(properties[key]) for key in self.ATTRIBUTES if key in properties}
        tags = [{"Key": key, "Value": value} for key, value in tag_pairs(properties.get("Tags")).items()]
        return {"Name": properties["TopicName"], "Attributes": attributes, "Tags": tags}

    def found(self, description: Any, properties: Properties) -> dict[str, Any]:
        arn = description.get("TopicArn")
        return {"TopicArn": arn, "TopicName": arn.rsplit(":", 1)[-1]} if arn else {}

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, topic = context.client("sns"), made.physical_id
        if old:
            for key in self.ATTRIBUTES:
                if properties.get(key) != old.get(key):
                    value = _text(properties.get(key, ""))
                    client.set_topic_attributes(TopicArn=topic, AttributeName=key, AttributeValue=value)
        desired = [(entry["Protocol"], entry["Endpoint"]) for entry in properties.get("Subscription", [])]
        had = [(entry["Protocol"], entry["Endpoint"]) for entry in old.get("Subscription", [])]
        for protocol, endpoint in desired:
            if (protocol, endpoint) not in had:
                client.subscribe(TopicArn=topic, Protocol=protocol, Endpoint=endpoint)
        for entry in client.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] if had else []:
            pair = (entry["Protocol"], entry["Endpoint"])
            if pair in had and pair not in desired:
                ignore_gone(client.unsubscribe, SubscriptionArn=entry["SubscriptionArn"])


class TopicPolicy(ResourceHandler):
    type = "AWS::SNS::TopicPolicy"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        name = context.name()
        self._put(context, properties["Topics"], properties["PolicyDocument"])
        return Made(physical_id=name, attributes={"Id": name})

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        self._put(context, properties["Topics"], properties["PolicyDocument"])
        self._put(context, [one for one in old["Topics"] if one not in properties["Topics"]], None)
        return made

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        self._put(context, properties["Topics"], None)

    @staticmethod
    def _put(context: ResourceContext, topics: list[str], document: Any) -> None:
        client = context.client("sns")
        for topic in topics:
            policy = json.dumps(document or _owner_only(context, topic))
            arguments = {"TopicArn": topic, "AttributeName": "Policy", "AttributeValue": policy}
            ignore_gone(client.set_topic_attributes, **arguments)


def _owner_only(context: ResourceContext, topic: str) -> dict[str, Any]:
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Publish", "SNS:Subscribe"],
        "Resource": topic,
        "Condition": {"StringEquals": {"AWS:SourceOwner": context.account}},
    }
    return {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}


class Subscription(ResourceHandler):
    type = "AWS::SNS::Subscription"
    ATTRIBUTES = (
        "DeliveryPolicy",
        "FilterPolicy",
        "FilterPolicyScope",
        "RawMessageDelivery",
        "RedrivePolicy",
        "SubscriptionRoleArn",
    )

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        unknown = sorted(set(properties) - {"TopicArn", "Protocol", "Endpoint", *self.ATTRIBUTES})
        if unknown:
            raise ResourceError(f"{self.type}: the embedded AWS cannot set {', '.join(unknown)}")
        attributes = {key: _text(properties[key]) for key in self.ATTRIBUTES if key in properties}
        response = context.client("sns").subscribe(
            TopicArn=properties["TopicArn"],
            Protocol=properties["Protocol"],
            Endpoint=properties.get("Endpoint", ""),
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )
        return Made(physical_id=response["SubscriptionArn"], attributes={"Arn": response["SubscriptionArn"]})

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        client = context.client("sns")
        for key in self.ATTRIBUTES:
            if properties.get(key) != old.get(key):
                value = _text(properties[key]) if key in properties else ""
                client.set_subscription_attributes(
                    SubscriptionArn=made.physical_id, AttributeName=key, AttributeValue=value
                )
        return made

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        ignore_gone(context.client("sns").unsubscribe, SubscriptionArn=made.physical_id)


class EventRule(ResourceHandler):
    type = "AWS::Events::Rule"
    SIMPLE = ("Description", "RoleArn", "ScheduleExpression", "State")

    @property
    def custom_name(self) -> str:
        return "Name"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        client = context.client("events")
        name, bus = properties.get("Name") or context.name(length=64), self._bus(properties)
        if ignore_gone(client.describe_rule, Name=name, EventBusName=bus) is not None:
            raise ResourceError(f"{name} already exists")
        made = Made(physical_id=name if bus == "default" else f"{bus}|{name}")
        context.note(made.physical_id)
        arn = client.put_rule(**self._rule(name, properties), Tags=properties.get("Tags", []))["RuleArn"]
        self._target(context, name, bus, properties.get("Targets", []))
        return Made(physical_id=made.physical_id, attributes={"Arn": arn, "RuleName": name})

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        client, name, bus = context.client("events"), made.physical_id.split("|")[-1], self._bus(properties)
        client.put_rule(**self._rule(name, properties))
        self._target(context, name, bus, properties.get("Targets", []))
        kept = {target["Id"] for target in properties.get("Targets", [])}
        gone = [target["Id"] for target in old.get("Targets", []) if target["Id"] not in kept]
        if gone:
            client.remove_targets(Rule=name, EventBusName=bus, Ids=gone)
        tags, before = tag_pairs(properties.get("Tags")), tag_pairs(old.get("Tags"))
        lost, arn = sorted(before.keys() - tags.keys()), made.attributes["Arn"]
        if lost:
            client.untag_resource(ResourceARN=arn, TagKeys=lost)
        if tags != before and tags:
            client.tag_resource(ResourceARN=arn, Tags=properties["Tags"])
        return made

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        client, where = context.client("events"), {"EventBusName": self._bus(properties)}
        name = made.physical_id.split("|")[-1]
        reported = ignore_gone(client.list_targets_by_rule, Rule=name, **where)
        if reported is None:
            return
        ids = [target["Id"] for target in reported["Targets"]]
        if ids:
            client.remove_targets(Rule=name, Ids=ids, **where)
        ignore_gone(client.delete_rule, Name=name, **where)

    @staticmethod
    def _bus(properties: Properties) -> str:
        return str(properties.get("EventBusName", "default")).rsplit("/", 1)[-1]

    def _rule(self, name: str, properties: Properties) -> dict[str, Any]:
        result = {key: properties[key] for key in self.SIMPLE if key in properties}
        if "EventPattern" in properties:
            result["EventPattern"] = _text(properties["EventPattern"])
        return {"Name": name, "EventBusName": self._bus(properties), **result}

    @staticmethod
    def _target(context: ResourceContext, name: str, bus: str, targets: list[dict[str, Any]]) -> None:
        if not targets:
            return
        shape = service_model("events").shape_for("TargetList")
        answer = context.client("events").put_targets(Rule=name, EventBusName=bus, Targets=to_shape(shape, targets))
        for failed in answer.get("FailedEntries", []):
            raise ResourceError(f"target {failed['TargetId']} of rule {name}: {failed['ErrorMessage']}")
