"""
EventBridge's PutEvents: matching rules and delivery to targets.

Rules and targets are moto's, which fails at topics. Delivery to SQS, SNS and CloudWatch Logs is done here; other
targets are skipped, with one log line.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

import contextlib
import json
import logging
import uuid
from collections.abc import Callable
from typing import Any, cast

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import now

log = logging.getLogger(__name__)

MAX_DETAIL_BYTES = 256 * 1024


class Events:
    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self._client, self._account, self._region = client, account, region
        self._reported: set[str] = set()

    def put_events(self, *, Entries: list[dict[str, Any]], EndpointId: str = "") -> dict[str, Any]:
        del EndpointId  # there is one region
        answers = [self._put(entry) for entry in Entries]
        failed = sum("ErrorCode" in answer for answer in answers)
        return {"FailedEntryCount": failed, "Entries": answers}

    def _put(self, entry: dict[str, Any]) -> dict[str, str]:
        for key in ("Source", "DetailType", "Detail"):
            if not entry.get(key):
                return {
                    "ErrorCode": "InvalidArgument",
                    "ErrorMessage": f"Parameter {key} is not valid. Reason: missing.",
                }
        try:
            detail = json.loads(entry["Detail"])
        except ValueError:
            return {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
        if len(entry["Detail"].encode()) > MAX_DETAIL_BYTES:
            return {"ErrorCode": "InvalidArgument", "ErrorMessage": "Total size of the entries is over the limit."}
        moment = entry.get("Time") or now()
        event = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": entry["DetailType"],
            "source": entry["Source"],
            "account": self._account,
            "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._region,
            "resources": entry.get("Resources", []),
            "detail": detail,
        }
        bus = entry.get("EventBusName", "default").rsplit("/", 1)[-1]
        for target in self._targets(bus, event):
            self._deliver(target, event)
        return {"EventId": event["id"]}

    def _targets(self, bus: str, event: dict[str, Any]) -> list[dict[str, Any]]:
        from moto.events.models import EventPattern  # late, for start-up's sake

        events = self._client("events")
        found: list[dict[str, Any]] = []
        for rule in events.list_rules(EventBusName=bus)["Rules"]:
            pattern = rule.get("EventPattern")
            if rule["State"] == "ENABLED" and pattern and EventPattern.load(pattern).matches_event(cast("Any", event)):
                with contextlib.suppress(events.exceptions.ResourceNotFoundException):  # it went while the event came
                    found += events.list_targets_by_rule(Rule=rule["Name"], EventBusName=bus)["Targets"]
        return found

    def _deliver(self, target: dict[str, Any], event: dict[str, Any]) -> None:
        body = _body(target, event)
        arn = target["Arn"].split(":", 5)
        ways: dict[str, Callable[[], Any]] = {
            "sqs": lambda: self._to_queue(arn[5], target, body),
            "sns": lambda: self._client("sns").publish(TopicArn=target["Arn"], Message=body),
            "logs": lambda: self._to_log_group(arn[5].removeprefix("log-group:").removesuffix(":*"), body),
        }
        way = ways.get(arn[2])
        if way is None:
            if target["Arn"] not in self._reported:
                log.warning(
                    "target %s: events not delivered: only SQS, SNS and CloudWatch Logs are supported", target["Arn"]
                )
            self._reported.add(target["Arn"])
            return
        try:
            way()
        except ClientError as error:  # as on AWS, a delivery that fails is nobody's failure
            log.warning("target %s: event not delivered: %s", target["Arn"], error)

    def _to_queue(self, name: str, target: dict[str, Any], body: str) -> None:
        sqs, group = self._client("sqs"), target.get("SqsParameters", {}).get("MessageGroupId")
        url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=body, **({"MessageGroupId": group} if group else {}))

    def _to_log_group(self, group: str, body: str) -> None:
        logs, stream, moment = self._client("logs"), str(uuid.uuid4()), now()
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        entry = {"timestamp": int(moment.timestamp() * 1000), "message": body}
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[entry])


def _body(target: dict[str, Any], event: dict[str, Any]) -> str:
    """Return the target's input: the event, a constant, or a transformed text."""
    from moto.events.utils import EventTemplateParser  # late, for start-up's sake

    if "Input" in target:
        return str(target["Input"])
    if "InputTransformer" in target:
        given = target["InputTransformer"]
        whole = cast("Any", {**event, "ingestion-time": event["time"]})
        parsed = EventTemplateParser.parse(given["InputTemplate"], given.get("InputPathsMap", {}), whole)
        return json.dumps(parsed)
    return json.dumps(event)
