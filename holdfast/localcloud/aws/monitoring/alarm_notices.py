"""Notifications of an alarm's new state: topics of its actions, and EventBridge."""

import contextlib
import json
import logging
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import now
from holdfast.localcloud.aws.monitoring.alarm_states import ALARM, INSUFFICIENT_DATA, OK

log = logging.getLogger(__name__)


class AlarmNotices:
    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self._client, self._account, self._region = client, account, region
        self._warned: set[tuple[str, str]] = set()

    def send(self, alarm: Any, *, previous: str) -> None:
        state, moment = alarm.state_value, now().strftime("%Y-%m-%dT%H:%M:%S.000+0000")
        actions = {
            OK: alarm.ok_actions,
            ALARM: alarm.alarm_actions,
            INSUFFICIENT_DATA: alarm.insufficient_data_actions,
        }
        message = {
            "AlarmName": alarm.name,
            "AlarmDescription": alarm.description,
            "AWSAccountId": self._account,
            "NewStateValue": state,
            "NewStateReason": alarm.state_reason,
            "StateChangeTime": moment,
            "Region": self._region,
            "AlarmArn": alarm.alarm_arn,
            "OldStateValue": previous,
        }
        for target in actions[state]:
            self._notify(target, alarm, f'{state}: "{alarm.name}" in {self._region}', message)
        self._announce(alarm, previous=previous, moment=moment)

    def _notify(self, target: str, alarm: Any, subject: str, message: dict[str, Any]) -> None:
        if ":sns:" not in target:
            if (alarm.name, target) not in self._warned:
                self._warned.add((alarm.name, target))
                log.warning("alarm %s: action %s: not supported by the embedded CloudWatch", alarm.name, target)
            return
        try:
            self._client("sns").publish(TopicArn=target, Subject=subject[:100], Message=json.dumps(message))
        except (BotoCoreError, ClientError) as error:
            log.warning("alarm %s: notification to %s failed: %s", alarm.name, target, error)

    def _announce(self, alarm: Any, *, previous: str, moment: str) -> None:
        detail = {
            "alarmName": alarm.name,
            "state": {"value": alarm.state_value, "reason": alarm.state_reason, "timestamp": moment},
            "previousState": {"value": previous},
            "configuration": {"description": alarm.description},
        }
        entry = {
            "Source": "aws.cloudwatch",
            "DetailType": "CloudWatch Alarm State Change",
            "Resources": [alarm.alarm_arn],
            "Detail": json.dumps(detail),
        }
        with contextlib.suppress(BotoCoreError, ClientError):
            self._client("events").put_events(Entries=[entry])
