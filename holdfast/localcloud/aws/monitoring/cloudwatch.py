# ruff: noqa: N803 - arguments bear the names of the API members

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import NotOurs, ServiceError
from holdfast.localcloud.aws.monitoring.alarm_states import INSUFFICIENT_DATA
from holdfast.localcloud.aws.monitoring.evaluation import Evaluation
from holdfast.localcloud.aws.monitoring.not_evaluated import alarm_remark

log = logging.getLogger(__name__)

OF_METRIC_ALARMS = (
    "namespace",
    "metric_name",
    "comparison_operator",
    "evaluation_periods",
    "datapoints_to_alarm",
    "period",
    "threshold",
    "statistic",
    "extended_statistic",
    "unit",
    "treat_missing_data",
    "evaluate_low_sample_count_percentile",
    "threshold_metric_id",
)


class CloudWatch:
    """Operations of one account and region; moto has the rest, also the alarms themselves."""

    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        in_moto: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._account, self._region, self._in_moto = account, region, in_moto
        self.evaluation = Evaluation(client=client, account=account, region=region, in_moto=in_moto)
        self._evaluates = False

    def put_metric_alarm(self, **alarm: Any) -> None:
        """Evaluate it at once; moto stores it."""
        _warn(alarm)
        self._evaluate()
        raise NotOurs

    def put_composite_alarm(
        self,
        *,
        AlarmName: str,
        AlarmRule: str,
        ActionsEnabled: bool = True,
        AlarmActions: list[str] | None = None,
        AlarmDescription: str | None = None,
        InsufficientDataActions: list[str] | None = None,
        OKActions: list[str] | None = None,
        Tags: list[dict[str, str]] | None = None,
        **unsupported: Any,
    ) -> None:
        from moto.cloudwatch.models import cloudwatch_backends  # late, for start-up's sake

        if unsupported:
            raise ServiceError("ValidationError", f"{next(iter(unsupported))} is not available in the embedded AWS.")
        _warn({"AlarmName": AlarmName, "AlarmRule": AlarmRule})
        absent: Any = dict.fromkeys(OF_METRIC_ALARMS)
        backend = cloudwatch_backends[self._account][self._region]
        before = backend.alarms.get(AlarmName)
        with self._in_moto("cloudwatch"):
            made = backend.put_metric_alarm(
                name=AlarmName,
                metric_data_queries=[],
                description=AlarmDescription or "",
                dimensions=[],
                alarm_actions=AlarmActions or [],
                ok_actions=OKActions or [],
                insufficient_data_actions=InsufficientDataActions or [],
                actions_enabled=ActionsEnabled,
                rule=AlarmRule,
                **absent,
                tags=Tags or [],
            )
            made.state_value = before.state_value if before else INSUFFICIENT_DATA

    def state(self) -> bool:
        return self._evaluates

    def restore(self, state: bool | None) -> None:  # noqa: FBT001 - what `state` gave
        if state:
            self._evaluate()

    def close(self) -> None:
        self.evaluation.stop()

    def _evaluate(self) -> None:
        self._evaluates = True
        self.evaluation.start()


def _warn(alarm: Mapping[str, Any]) -> None:
    if remark := alarm_remark(alarm):
        log.warning("alarm %s: %s", alarm["AlarmName"], remark)
