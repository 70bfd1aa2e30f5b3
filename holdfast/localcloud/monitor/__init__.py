"""Prometheus and Alertmanager beside the nodes of a local cloud: ``python -m holdfast.localcloud.monitor``."""

from holdfast.localcloud.monitor.access import (
    MonitorAccess,
    access_of,
    bcrypt,
    fetch,
    forget_access,
    is_ready,
    write_access,
)
from holdfast.localcloud.monitor.configuration import (
    ScrapeTarget,
    alertmanager_configuration,
    prometheus_configuration,
    web_configuration,
)
from holdfast.localcloud.monitor.programs import MonitorError, check_rules, missing
from holdfast.localcloud.monitor.settings import MonitorSettings, settings_of, write_settings

__all__ = [
    "MonitorAccess",
    "MonitorError",
    "MonitorSettings",
    "ScrapeTarget",
    "access_of",
    "alertmanager_configuration",
    "bcrypt",
    "check_rules",
    "fetch",
    "forget_access",
    "is_ready",
    "missing",
    "prometheus_configuration",
    "settings_of",
    "web_configuration",
    "write_access",
    "write_settings",
]
