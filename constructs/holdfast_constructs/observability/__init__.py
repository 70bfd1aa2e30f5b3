"""Observability of a cluster: log groups, metrics, alarms, events, dashboard, Prometheus and Grafana."""

from holdfast_constructs.observability.alarms import AlarmThresholds, ClusterAlarms, WatchedFileSystem
from holdfast_constructs.observability.cloudwatch import HyperPodObservability
from holdfast_constructs.observability.dashboard import ClusterDashboard
from holdfast_constructs.observability.event_log_group import EventLogGroup
from holdfast_constructs.observability.event_rules import ClusterEventRules
from holdfast_constructs.observability.extension import ObservabilityExtension
from holdfast_constructs.observability.grafana import GrafanaWorkspace
from holdfast_constructs.observability.logs import NodeLogGroup, log_group
from holdfast_constructs.observability.metrics import HYPERPOD_EVENTS, OWN_EVENTS, ClusterMetrics
from holdfast_constructs.observability.prometheus import RULES, PrometheusWorkspace
from holdfast_constructs.observability.topic import AlertTopic

__all__ = [
    "HYPERPOD_EVENTS",
    "OWN_EVENTS",
    "RULES",
    "AlarmThresholds",
    "AlertTopic",
    "ClusterAlarms",
    "ClusterDashboard",
    "ClusterEventRules",
    "ClusterMetrics",
    "EventLogGroup",
    "GrafanaWorkspace",
    "HyperPodObservability",
    "NodeLogGroup",
    "ObservabilityExtension",
    "PrometheusWorkspace",
    "WatchedFileSystem",
    "log_group",
]
