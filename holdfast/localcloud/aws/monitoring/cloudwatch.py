"""Alarms: composite ones can be put, which moto only shows, and all are evaluated once they are there."""

# ruff: noqa: N803 - arguments bear the names of the API members

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import NotOurs, ServiceError
from holdfast.localcloud.aws.monitoring.alarm_states import INSUFFICIENT_DATA
from holdfast.localcloud.aws.monitoring.composite_rules import CompositeRuleError, parse_rule
from holdfast.localcloud.aws.monitoring.evaluation import Evaluation

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
OF_STATES = ("state_value", "state_reason", "state_reason_data", "state_updated_timestamp", "history")


class CloudWatch:
    """These operations in one account and region; everything else is moto's, the alarms themselves too."""

    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        in_moto: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        """``in_moto`` is held while moto's state of a service is changed."""
        self._account, self._region, self._in_moto = account, region, in_moto
        self.evaluation = Evaluation(client=client, account=account, region=region, in_moto=in_moto)
        self._evaluates = False

    def put_metric_alarm(self, **_: Any) -> None:
        """moto's; the evaluation looks at it at once."""
        self._evaluate()
        raise NotOurs

    def set_alarm_state(self, **_: Any) -> None:
        """moto's; composite alarms follow at once."""
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
        try:
            parse_rule(AlarmRule)
        except CompositeRuleError as error:
            raise ServiceError("ValidationError", f"AlarmRule is not valid: {error}.") from None
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
            if before is not None:  # an update leaves the state as it is
                for name in OF_STATES:
                    setattr(made, name, getattr(before, name))
            else:
                made.state_value = INSUFFICIENT_DATA
        self._evaluate()

    def state(self) -> bool:
        """Whether there have been alarms to evaluate."""
        return self._evaluates

    def restore(self, state: bool | None) -> None:  # noqa: FBT001 - what `state` gave
        if state:
            self._evaluate()

    def close(self) -> None:
        self.evaluation.stop()

    def _evaluate(self) -> None:
        self._evaluates = True
        self.evaluation.start()
