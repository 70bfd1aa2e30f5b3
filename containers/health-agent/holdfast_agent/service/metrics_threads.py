"""Metrics: scraped, sent to Prometheus, or neither."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast_agent.configuration import Configuration
from holdfast_agent.metrics import MetricsServer, Sender, read_token
from holdfast_agent.service.interfaces import Measuring
from holdfast_agent.signals import Numbers


class _NotServed:
    """Stands for a server that could not be made."""

    name = "serving of metrics"

    def __init__(self, problem: str) -> None:
        self.problem = self.state = problem

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def numbers(self) -> "Mapping[str, float]":
        return {}


def is_measured(configuration: Configuration) -> bool:
    return bool(configuration.metrics_port or configuration.metrics_remote_write_url)


def measuring(configuration: Configuration, numbers: "Callable[[], Numbers]") -> "tuple[Measuring, ...]":
    """
    Return the threads of the configured metrics.

    If metrics cannot be served (the port is in use), the node is still watched; status has the reason.
    """
    if not is_measured(configuration):
        return ()
    found: list[Measuring] = []
    if configuration.metrics_port:
        try:
            server = MetricsServer(
                address=configuration.metrics_address,
                port=configuration.metrics_port,
                token=read_token(Path(configuration.metrics_token_path)),
                numbers=numbers,
            )
            found.append(server)
        except (OSError, ValueError) as error:
            found.append(_NotServed(f"port {configuration.metrics_port}: {error}"))
            print(f"metrics: cannot serve at {found[-1].problem}", file=sys.stderr, flush=True)
    if configuration.metrics_remote_write_url:
        labels = (
            ("job", "holdfast-agent"),
            ("cluster", configuration.cluster_name),
            ("instance", configuration.node_host),
            ("instance_id", configuration.node_instance_id),
        )
        found.append(
            Sender(
                url=configuration.metrics_remote_write_url,
                labels=labels,
                numbers=numbers,
                interval_s=configuration.metrics_interval_s,
            )
        )
    return tuple(found)
