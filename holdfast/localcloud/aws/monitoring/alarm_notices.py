"""Who is told of an alarm's new state: topics of its actions, and EventBridge."""

import contextlib
import json
import logging
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import now
from holdfast.localcloud.aws.monitoring.alarm_states import ALARM, INSUFFICIENT_DATA, OK

log = logging.getLogger(__name__)


class Notices:
    """Of the alarms of one account and region."""

    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self._client, self._account, self._region = client, account, region
        self._said: set[tuple[str, str]] = set()

    def tell(self, alarm: Any, *, previous: str) -> None:
        """Of the state that an alarm of moto's has now."""
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
            if (alarm.name, target) not in self._said:
                self._said.add((alarm.name, target))
                log.warning("alarm %s: the action %s is not taken in the embedded CloudWatch", alarm.name, target)
            return
        try:
            self._client("sns").publish(TopicArn=target, Subject=subject[:100], Message=json.dumps(message))
        except (BotoCoreError, ClientError) as error:
            log.warning("alarm %s: %s was not told: %s", alarm.name, target, error)

    def _announce(self, alarm: Any, *, previous: str, moment: str) -> None:
        """The event "CloudWatch Alarm State Change" of EventBridge."""
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
