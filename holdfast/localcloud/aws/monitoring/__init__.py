"""
CloudWatch and its logs, as far as moto lacks them: filter patterns, metrics of log events, metric math, and alarms that
change their state and tell of it. All else is moto's.
"""

from holdfast.localcloud.aws.monitoring.cloudwatch import CloudWatch
from holdfast.localcloud.aws.monitoring.logs import Logs

__all__ = [
    "CloudWatch",
    "Logs",
    "alarm_states",
    "composite_rules",
    "evaluation",
    "filter_patterns",
    "log_metrics",
    "metric_math",
]
