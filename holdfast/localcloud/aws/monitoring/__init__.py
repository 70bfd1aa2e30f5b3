"""CloudWatch and its logs beyond moto: filter patterns, metrics of log events, metric math, evaluated alarms."""

from holdfast.localcloud.aws.monitoring.cloudwatch import CloudWatch
from holdfast.localcloud.aws.monitoring.logs import Logs

__all__ = [
    "CloudWatch",
    "Logs",
    "alarm_states",
    "evaluation",
    "filter_patterns",
    "log_bound",
    "log_metrics",
    "metric_math",
    "not_evaluated",
]
