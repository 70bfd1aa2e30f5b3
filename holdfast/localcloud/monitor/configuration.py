"""Configuration of both programs. Pure. Paths are relative to their folder."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.localcloud.monitor.access import USER

SCRAPE_S = 5
RULES, TOKENS, PASSWORD, WEB = "rules.yaml", "tokens", "password", "web.json"
PROMETHEUS_PORT, ALERTMANAGER_PORT = 9090, 9093
"""On the loopback of the nodes' network, where no node and no program of the machine reaches them."""


@dataclass(frozen=True, kw_only=True, order=True)
class ScrapeTarget:
    instance_id: str
    instance: str
    """Host name, the label ``instance`` of each number, as it is of those that agents send."""
    address: str
    token: str

    @property
    def token_file(self) -> str:
        return f"{TOKENS}/{self.instance_id}"


def prometheus_configuration(targets: Iterable[ScrapeTarget], *, cluster: str) -> dict[str, Any]:
    """Return the configuration: one job per agent, since each has its own token, with equal labels."""
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": "15s"},
        "rule_files": [RULES],
        "alerting": {
            "alertmanagers": [
                {
                    "basic_auth": {"username": USER, "password_file": PASSWORD},
                    "static_configs": [{"targets": [f"127.0.0.1:{ALERTMANAGER_PORT}"]}],
                }
            ]
        },
        "scrape_configs": [
            {
                "job_name": f"holdfast-agent-{target.instance_id}",
                "authorization": {"credentials_file": target.token_file},
                "static_configs": [
                    {
                        "targets": [target.address],
                        "labels": {
                            "cluster": cluster,
                            "instance": target.instance,
                            "instance_id": target.instance_id,
                        },
                    }
                ],
                "relabel_configs": [{"target_label": "job", "replacement": "holdfast-agent"}],
            }
            for target in sorted(targets)
        ],
    }


def alertmanager_configuration() -> dict[str, Any]:
    """Return the configuration: alerts grouped by node, without receiver."""
    return {
        "route": {"receiver": "holdfast", "group_by": ["alertname", "instance"], "group_wait": "5s"},
        "receivers": [{"name": "holdfast"}],
    }


def web_configuration(*, password_hash: str) -> dict[str, Any]:
    return {"basic_auth_users": {USER: password_hash}}
