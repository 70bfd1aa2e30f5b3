"""Prometheus and Alertmanager beside the nodes of a local cloud: ``python -m holdfast.localcloud.monitor``."""

from holdfast.localcloud.monitor.access import MonitorAccess, access_of, bcrypt, fetch, is_ready, write_access
from holdfast.localcloud.monitor.configuration import (
    ScrapeTarget,
    alertmanager_configuration,
    prometheus_configuration,
    web_configuration,
)
from holdfast.localcloud.monitor.programs import MonitorError, check_rules, missing

__all__ = [
    "MonitorAccess",
    "MonitorError",
    "ScrapeTarget",
    "access_of",
    "alertmanager_configuration",
    "bcrypt",
    "check_rules",
    "fetch",
    "is_ready",
    "missing",
    "prometheus_configuration",
    "web_configuration",
    "write_access",
]
